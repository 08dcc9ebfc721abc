import { StoreUnavailable } from "../../session/ports.ts";

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
