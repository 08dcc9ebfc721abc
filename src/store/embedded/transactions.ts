import type { DatabaseSync } from "node:sqlite";
import type { StoreMs } from "../../session/time.ts";
import type { StoreClock } from "./clock.ts";
import { guarded } from "./failure.ts";
import type { FileGuard } from "./file-guard.ts";

/** What is on disk when a transaction returns: FULL, all of it; NORMAL, it may still be on its way there. */
export type Durability = "FULL" | "NORMAL";

/** Steps on the database, each run to its end at one moment of the store's time. What SQLite cannot do becomes StoreUnavailable. */
export class Transactions {
  readonly #db: DatabaseSync;
  readonly #clock: StoreClock;
  readonly #files: FileGuard;
  #durability: Durability | undefined;

  constructor(db: DatabaseSync, clock: StoreClock, files: FileGuard) {
    this.#db = db;
    this.#clock = clock;
    this.#files = files;
  }

  read<T>(step: (now: StoreMs) => T): T {
    this.#files.checkRecent();
    return guarded(() => step(this.#clock.now()));
  }

  /** One transaction; nothing of it is there if it throws. What is to be on disk is in the file of that name, too. */
  write<T>(durability: Durability, step: (now: StoreMs) => T): T {
    const result = this.#commit(durability, step);
    if (durability === "FULL") this.#files.check();
    else this.#files.checkRecent();
    return result;
  }

  /** @throws StoreUnavailable when what is written now would be lost */
  checkFiles(): void {
    this.#files.check();
  }

  #commit<T>(durability: Durability, step: (now: StoreMs) => T): T {
    return guarded(() => {
      if (this.#durability !== durability) this.#db.exec(`PRAGMA synchronous = ${durability}`);
      this.#durability = durability;
      this.#db.exec("BEGIN IMMEDIATE");
      try {
        const result = step(this.#clock.now());
        this.#db.exec("COMMIT");
        return result;
      } finally {
        if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      }
    });
  }
}
