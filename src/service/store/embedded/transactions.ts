import { realpathSync, statSync } from "node:fs";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { errorMessage } from "../../../platform/files/error-code.ts";
import { StoreUnavailable } from "../../session/ports.ts";
import type { StoreMs } from "../../session/time.ts";
import type { StoreClock } from "./clock.ts";

/** SQLite's result codes for mistakes in a statement or its parameters (sqlite.org/rescode.html). They show a bug, not an outage. */
const BUGS = new Set([19 /* CONSTRAINT */, 20 /* MISMATCH */, 21 /* MISUSE */, 25 /* RANGE */]);

/** Runs a function that uses the database. If the database is full, locked, unreadable, corrupt or closed, StoreUnavailable is thrown. */
export function guarded<T>(step: () => T): T {
  try {
    return step();
  } catch (error) {
    throw translate(error);
  }
}

/** Returns StoreUnavailable for an outage, and all other errors as they are. */
function translate(error: unknown): unknown {
  if (!(error instanceof Error && isOutage(error))) return error;
  return new StoreUnavailable(`embedded store: ${error.message}`, { cause: error });
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
  /**
   * Runs a function at once, in the transaction that all such calls of this turn of the event loop share, and resolves when it is
   * committed: after the events of the turn, or before a call of another kind. So nobody reads what is not committed. If the function
   * throws, what it has changed until then is committed nevertheless, because it belongs to others' transaction.
   */
  share<T>(step: (now: StoreMs) => T): Promise<T>;
  /** Runs a function outside of all transactions. */
  alone<T>(step: () => T): T;
};

/** Ends a transaction that has failed, unless SQLite has ended it, as it does when the disk is full. */
export function rollBack(db: DatabaseSync): void {
  try {
    db.exec("ROLLBACK");
  } catch {
    // There is no transaction. `isTransaction`, which would tell, is newer than the oldest Node on which the service runs.
  }
}

/** The beginning and the end of a transaction. */
type Bounds = { readonly open: (durability: Durability) => void; readonly commit: Pick<StatementSync, "run"> };

function createBounds(db: DatabaseSync): Bounds {
  const [begin, commit] = [db.prepare("BEGIN IMMEDIATE"), db.prepare("COMMIT")];
  let current: Durability | undefined;
  return {
    open(durability) {
      if (current !== durability) db.exec(`PRAGMA synchronous = ${durability}`);
      current = durability;
      begin.run();
    },
    commit,
  };
}

/**
 * Commits the shared transaction that is open in this process, if there is one. No other transaction begins beside it, not even of another
 * connection: in one thread, each would wait for the other.
 */
let commitOpen = () => {};

/** Returns a function that joins the transaction of this turn. It returns the promise of its commit. */
function createShared(db: DatabaseSync, { open, commit }: Bounds, files: FileGuard): () => Promise<void> {
  let shared: PromiseWithResolvers<void> | undefined;
  const end = () => {
    if (shared === undefined) return;
    const { resolve, reject } = shared;
    shared = undefined;
    try {
      commit.run();
      files.checkRecent();
      resolve();
    } catch (error) {
      rollBack(db);
      reject(error);
    }
  };
  return () => {
    if (shared === undefined) {
      commitOpen();
      open("NORMAL");
      commitOpen = end;
      shared = Promise.withResolvers();
      shared.promise.catch(() => {}); // Perhaps nobody waits: all functions may have thrown.
      setImmediate(end);
    }
    return shared.promise;
  };
}

export function createTransactions(db: DatabaseSync, clock: StoreClock, files: FileGuard): Transactions {
  const bounds = createBounds(db);
  const join = createShared(db, bounds, files);
  return {
    read(step) {
      commitOpen();
      files.checkRecent();
      return guarded(() => step(clock.now()));
    },
    write(durability, step) {
      commitOpen();
      const result = guarded(() => {
        bounds.open(durability);
        try {
          const done = step(clock.now());
          bounds.commit.run();
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
    async share(step) {
      try {
        const committed = join();
        const result = step(clock.now());
        await committed;
        return result;
      } catch (error) {
        throw translate(error);
      }
    },
    alone(step) {
      commitOpen();
      return guarded(step);
    },
  };
}

/** How old a check may be, in ms, for reads and for writes that need not be on disk. A check takes 2 µs, a refresh 60 µs. */
const MAX_AGE_MS = 100;

/**
 * Checks whether the path of each file that SQLite has open still leads to that file. If a file was removed or replaced, the process
 * would go on writing to the old file, whose data would be lost. In the journal mode WAL, SQLite itself does not check this.
 */
export class FileGuard {
  readonly #path: string;
  /** Each file, with its identity when it was opened. */
  readonly #files: readonly (readonly [path: string, identity: string])[];
  #checkedAt = Number.NEGATIVE_INFINITY;

  /** @param path the path of the database. The database must be open, so that its -wal and -shm files exist */
  constructor(path: string) {
    this.#path = path;
    this.#files = filesOf(path).map((file) => [file, identityOf(file)] as const);
  }

  /** Checks the files now. @throws StoreUnavailable if one was removed or replaced, or cannot be examined */
  check(): void {
    const checkedAt = performance.now();
    this.#checkedAt = Number.NEGATIVE_INFINITY;
    for (const [file, identity] of this.#files) {
      if (identityOf(file) === identity) continue;
      throw new StoreUnavailable(
        `embedded store: ${file} was removed or replaced while it was in use, and nothing can be stored: ` +
          `stop the service, restore ${this.#path} from a backup, start it again`,
      );
    }
    this.#checkedAt = checkedAt;
  }

  /** Works as `check`, but may use a result of the last 100 ms. */
  checkRecent(): void {
    if (performance.now() - this.#checkedAt > MAX_AGE_MS) this.check();
  }
}

function filesOf(path: string): readonly string[] {
  const real = realpathSync(path);
  return [path, `${real}-wal`, `${real}-shm`];
}

/**
 * Returns the device and the inode of a file as a string; an empty string if there is no such file.
 *
 * @throws StoreUnavailable if that cannot be determined, as without the permission for the directory, or while its disk does not respond
 */
function identityOf(path: string): string {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    return found === undefined ? "" : `${found.dev}:${found.ino}`;
  } catch (cause) {
    throw new StoreUnavailable(`embedded store: ${path} cannot be examined: ${errorMessage(cause)}`, { cause });
  }
}
