import type { DatabaseSync } from "node:sqlite";
import type { StoreMs } from "../../session/time.ts";
import type { StoreClock } from "./clock.ts";
import { guarded } from "./failure.ts";
import type { FileGuard } from "./file-guard.ts";

/** How much of a transaction is on disk when it returns: everything (FULL), or what the operating system has written by then (NORMAL). */
type Durability = "FULL" | "NORMAL";

/** Runs functions that use the database, each at one moment of the store's time. Errors of SQLite become StoreUnavailable. */
export type Transactions = {
  read<T>(step: (now: StoreMs) => T): T;
  /** Runs a function in one transaction, which is rolled back if it throws. A durable write also checks that the file was not replaced. */
  write<T>(durability: Durability, step: (now: StoreMs) => T): T;
};

export function createTransactions(db: DatabaseSync, clock: StoreClock, files: FileGuard): Transactions {
  let current: Durability | undefined;
  return {
    read(step) {
      files.checkRecent();
      return guarded(() => step(clock.now()));
    },
    write(durability, step) {
      const result = guarded(() => {
        if (current !== durability) db.exec(`PRAGMA synchronous = ${durability}`);
        current = durability;
        db.exec("BEGIN IMMEDIATE");
        try {
          const done = step(clock.now());
          db.exec("COMMIT");
          return done;
        } finally {
          if (db.isTransaction) db.exec("ROLLBACK");
        }
      });
      if (durability === "FULL") files.check();
      else files.checkRecent();
      return result;
    },
  };
}
