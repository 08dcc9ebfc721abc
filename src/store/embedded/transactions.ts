import type { DatabaseSync } from "node:sqlite";
import type { StoreMs } from "../../session/time.ts";
import type { StoreClock } from "./clock.ts";
import { guarded } from "./failure.ts";
import type { FileGuard } from "./file-guard.ts";

/** How much is on disk when a transaction returns: with FULL all of it, with NORMAL it may still be in the system's cache. */
export type Durability = "FULL" | "NORMAL";

/** Runs steps on the database, each at one moment of the store's time. Errors of SQLite become StoreUnavailable. */
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

  /**
   * Runs a step in one transaction, which is rolled back if the step throws. A durable write also checks that the file is still the one
   * under its name.
   */
  write<T>(durability: Durability, step: (now: StoreMs) => T): T {
    const result = this.#commit(durability, step);
    if (durability === "FULL") this.#files.check();
    else this.#files.checkRecent();
    return result;
  }

  /** @throws StoreUnavailable if what is written now would be lost */
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
