import type { DatabaseSync } from "node:sqlite";
import { StoreUnavailable } from "../../session/ports.ts";
import type { StoreMs } from "../../session/time.ts";
import type { StoreClock } from "./clock.ts";
import type { FileGuard } from "./file-guard.ts";

/** SQLite's result codes for mistakes in a statement or its parameters (sqlite.org/rescode.html). They show a bug, not an outage. */
const BUGS = new Set([19 /* CONSTRAINT */, 20 /* MISMATCH */, 21 /* MISUSE */, 25 /* RANGE */]);

/** Runs a function that uses the database. If the database is full, locked, unreadable, corrupt or closed, StoreUnavailable is thrown. */
export function guarded<T>(step: () => T): T {
  try {
    return step();
  } catch (error) {
    if (error instanceof Error && isOutage(error)) {
      throw new StoreUnavailable(`embedded store: ${error.message}`, { cause: error });
    }
    throw error;
  }
}

function isOutage(error: Error & { code?: unknown; errcode?: unknown }): boolean {
  if (error.code === "ERR_INVALID_STATE") return true; // This code means that the database is closed.
  return error.code === "ERR_SQLITE_ERROR" && !BUGS.has(Number(error.errcode) & 0xff);
}

/** How much of a transaction is on disk when it returns: everything (FULL), or what the operating system has written by then (NORMAL). */
type Durability = "FULL" | "NORMAL";

/** Runs functions that use the database, each at one moment of the store's time. Errors of SQLite become StoreUnavailable. */
export type Transactions = {
  read<T>(step: (now: StoreMs) => T): T;
  /** Runs a function in one transaction, which is rolled back if it throws. A durable write also checks that the file was not replaced. */
  write<T>(durability: Durability, step: (now: StoreMs) => T): T;
};

/** Ends a transaction that has failed, unless SQLite has ended it, as it does when the disk is full. */
export function rollBack(db: DatabaseSync): void {
  try {
    db.exec("ROLLBACK");
  } catch {
    // There is no transaction. `isTransaction`, which would tell, is newer than the oldest Node on which the service runs.
  }
}

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
        } catch (error) {
          rollBack(db);
          throw error;
        }
      });
      if (durability === "FULL") files.check();
      else files.checkRecent();
      return result;
    },
  };
}
