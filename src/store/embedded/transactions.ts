import type { DatabaseSync } from "node:sqlite";
import type { Clock } from "../../session/ports.ts";
import { guarded } from "./failure.ts";

/** What is on disk when a transaction returns: FULL, all of it; NORMAL, it may still be on its way there. */
export type Durability = "FULL" | "NORMAL";

/** Steps on the database, each run to its end at one time of the clock. What SQLite cannot do becomes StoreUnavailable. */
export class Transactions {
  readonly #db: DatabaseSync;
  readonly #clock: Clock;
  #durability: Durability | undefined;

  constructor(db: DatabaseSync, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  read<T>(step: (now: number) => T): T {
    return guarded(() => step(this.#clock()));
  }

  /** One transaction; nothing of it is there if it throws. */
  write<T>(durability: Durability, step: (now: number) => T): T {
    return guarded(() => {
      if (this.#durability !== durability) this.#db.exec(`PRAGMA synchronous = ${durability}`);
      this.#durability = durability;
      this.#db.exec("BEGIN IMMEDIATE");
      try {
        const result = step(this.#clock());
        this.#db.exec("COMMIT");
        return result;
      } finally {
        if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      }
    });
  }
}
