/**
 * The embedded store's file: how it is created, opened and upgraded. Its tables are in schema-versions.ts. transactions.ts notices if it is
 * replaced while it is in use.
 *
 * The journal mode is WAL: readers never wait for the writer, and if a process is killed, the next process recovers the file. SQLite
 * gives the -wal and -shm files the mode of the main file, so the mode 0600 is set before SQLite writes.
 */
import { chmodSync, closeSync, existsSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { makeDirectory } from "../../../platform/files/make-directory.ts";
import { SCHEMA_VERSIONS } from "./schema-versions.ts";
import { rollBack } from "./transactions.ts";

/** How long a statement waits for the transaction of another process, in ms. A transaction takes about one fsync. */
const BUSY_TIMEOUT_MS = 500;

/** How many expired rows each insertion removes. An insertion removes more rows than it adds, so that expired rows never accumulate. */
export const SWEEP = 4;

const VERSION = SCHEMA_VERSIONS.length;

/** For how long, in ms, and at which intervals opening the file is tried again while other processes open, recover or write it. */
const OPEN_TIMEOUT_MS = 5_000;
const OPEN_RETRY_MS = 25;

/** Repeats `open` while the file is locked: SQLite's timeout does not apply to the switch to WAL, nor to the recovery after a kill. */
export function whenUnlocked<T>(open: () => T): T {
  const giveUpAt = performance.now() + OPEN_TIMEOUT_MS;
  for (;;) {
    try {
      return open();
    } catch (error) {
      if (!isLocked(error) || performance.now() > giveUpAt) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, OPEN_RETRY_MS);
    }
  }
}

/** Returns whether the error is SQLITE_BUSY or SQLITE_LOCKED, with any extended code. */
function isLocked(error: unknown): boolean {
  const code = error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : 0;
  return code === 5 || code === 6;
}

/** Opens or creates the file (mode 0600) and its directories (0700). If `use` throws, the file is closed. @throws errors of SQLite */
export function openDatabase<T>(path: string, use: (db: DatabaseSync) => T): T {
  requireWholeRestore(path);
  createProtected(path);
  upgrade(path);
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    db.exec("PRAGMA journal_mode = WAL");
    updateSchema(db);
    return use(db);
  } catch (error) {
    db.close();
    throw error;
  }
}

function createProtected(path: string): void {
  makeDirectory(dirname(path));
  closeSync(openSync(path, "a", 0o600));
  chmodSync(path, 0o600);
}

/** Returns the name under which a restore prepares the file before it takes its place. */
export const restoringPath = (path: string): string => `${path}.restoring`;

/** Returns whether a restore was killed after it had moved the former file away. */
export const isHalfRestored = (path: string): boolean => !existsSync(path) && existsSync(restoringPath(path));

/** If a new file took the place of the one that is to be restored, every user would be logged out, and no error would say why. */
function requireWholeRestore(path: string): void {
  if (!isHalfRestored(path)) return;
  throw new Error(
    `a restore was interrupted: run it again, or remove ${restoringPath(path)} to begin with no sessions`,
  );
}

/**
 * Changes the tables of a file that an older version has made, but only while no other process has it open: an older version that still
 * runs would not read the new tables. For example, it would refresh sessions that `RevokeAllSessions` has ended.
 */
function upgrade(path: string): void {
  if (!isOld(path)) return;
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    db.exec("PRAGMA locking_mode = EXCLUSIVE");
    updateSchema(db);
  } catch (error) {
    // Another process may have changed the tables in the meantime.
    if (!isLocked(error) || !isOld(path)) throw error;
    throw new Error("it is a file of an older version, and another process has it open: stop that process first");
  } finally {
    db.close();
  }
}

/** Returns whether the file has tables of an older version. */
function isOld(path: string): boolean {
  const db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    const version = versionOf(db);
    return version > 0 && version < VERSION;
  } finally {
    db.close();
  }
}

const versionOf = (db: DatabaseSync) => Number(db.prepare("PRAGMA user_version").get()?.user_version);

function updateSchema(db: DatabaseSync): void {
  db.exec("BEGIN IMMEDIATE"); // Two processes may start at the same time on one new file.
  try {
    const version = versionOf(db);
    if (version > VERSION) throw new Error(`made by a newer version of this service (schema ${version})`);
    const foreign = db.prepare("SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view')").get();
    if (foreign !== undefined)
      throw new Error(`it has a ${foreign.type} that this service did not make: ${foreign.name}`);
    for (const step of SCHEMA_VERSIONS.slice(version)) db.exec(step);
    if (version < VERSION) db.exec(`PRAGMA user_version = ${VERSION}`);
    db.exec("COMMIT");
  } catch (error) {
    rollBack(db);
    throw error;
  }
}
