/**
 * The embedded store's file: how it is opened, what protects it, and its tables.
 *
 * The journal mode is WAL: readers never wait for the writer, and if a process is killed, the next process recovers the file. SQLite
 * gives the -wal and -shm files the mode of the main file, so the mode 0600 is set before SQLite writes.
 */
import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { rollBack } from "./transactions.ts";

/** How long a statement waits for the transaction of another process, in ms. A transaction takes about one fsync. */
const BUSY_TIMEOUT_MS = 500;

/** How many expired rows each insertion removes. An insertion removes more rows than it adds, so that expired rows never accumulate. */
export const SWEEP = 4;

const SCHEMA = `
  CREATE TABLE store (id TEXT NOT NULL);
  INSERT INTO store VALUES (lower(hex(randomblob(8))));

  -- "fixed" changes with a later authentication and a device key alone; "rotation" is the RotationState. Both are JSON.
  CREATE TABLE sessions (
    sid TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_refreshed_at INTEGER NOT NULL,
    idle_expires_at INTEGER NOT NULL,
    absolute_expires_at INTEGER NOT NULL,
    fixed TEXT NOT NULL,
    rotation TEXT NOT NULL
  );
  CREATE INDEX sessions_by_subject ON sessions (subject, created_at, sid);
  CREATE INDEX sessions_by_expiry ON sessions (idle_expires_at);

  -- Revocation log and revocation markers in one: a session is marked while an entry of it has not expired.
  CREATE TABLE log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    sid TEXT NOT NULL,
    revoked_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    reason TEXT NOT NULL
  );
  CREATE INDEX log_by_sid ON log (sid);
`;

/** Each migration changes the schema of the version before it. Its text is never edited: check.ts compares it with a file's schema. */
export const MIGRATIONS = [
  SCHEMA,
  // `ended_until`: the time of creation up to which all sessions have ended. `newest`: when the newest session was created. Both in ms.
  `ALTER TABLE store ADD COLUMN ended_until INTEGER NOT NULL DEFAULT 0;
   ALTER TABLE store ADD COLUMN newest INTEGER NOT NULL DEFAULT 0;
   UPDATE store SET newest = coalesce((SELECT max(created_at) FROM sessions), 0);`,
  `CREATE INDEX sessions_by_creation ON sessions (created_at, sid);`,
  `CREATE TABLE events (
     seq INTEGER PRIMARY KEY,
     sid TEXT NOT NULL,
     subject TEXT,
     expires_at INTEGER NOT NULL,
     text TEXT NOT NULL
   );
   CREATE INDEX events_by_sid ON events (sid);
   CREATE INDEX events_by_subject ON events (subject, sid) WHERE subject IS NOT NULL;
   CREATE INDEX events_by_expiry ON events (expires_at);`,
  // The due records: events that are still to be recorded (src/service/session/events/events.ts). Most rows exist only for a moment.
  `CREATE TABLE due (
     key TEXT PRIMARY KEY,
     since INTEGER NOT NULL,
     at INTEGER NOT NULL,
     what TEXT NOT NULL,
     note TEXT NOT NULL,
     subject TEXT NOT NULL
   );
   CREATE INDEX due_by_since ON due (since);`,
  // Logouts of subjects that have many sessions. The sessions of the subject that were created after `created_after` and not after
  // `created_until` have ended, except `spared`; `count` of them have been deleted and logged. After the last one, `created_until`
  // is 0, and the row stays for a minute.
  `CREATE TABLE subject_ends (
     id TEXT PRIMARY KEY,
     subject TEXT NOT NULL,
     created_after INTEGER NOT NULL,
     created_until INTEGER NOT NULL,
     spared TEXT NOT NULL,
     reason TEXT NOT NULL,
     note TEXT NOT NULL,
     count INTEGER NOT NULL,
     changed_at INTEGER NOT NULL
   );
   CREATE INDEX subject_ends_by_subject ON subject_ends (subject);`,
  // The signals (src/service/signals/ports.ts), the subscriptions with their cursors, and one row that names the process that reads the signals.
  // While signals of a logout of everyone still have to be appended, that row also names the last session whose signal was appended.
  `CREATE TABLE signals (
     number INTEGER PRIMARY KEY AUTOINCREMENT,
     sid TEXT NOT NULL,
     ended_at INTEGER NOT NULL,
     reason TEXT NOT NULL,
     client TEXT NOT NULL,
     subject TEXT NOT NULL
   );
   CREATE TABLE subscriptions (
     id TEXT PRIMARY KEY,
     definition TEXT NOT NULL,
     created_at INTEGER NOT NULL,
     state TEXT NOT NULL DEFAULT 'active',
     because TEXT NOT NULL DEFAULT '',
     failures INTEGER NOT NULL DEFAULT 0,
     last_error TEXT NOT NULL DEFAULT '',
     last_error_at INTEGER NOT NULL DEFAULT 0,
     number INTEGER NOT NULL,
     sid TEXT NOT NULL,
     delivered INTEGER NOT NULL DEFAULT 0,
     dead_letters INTEGER NOT NULL DEFAULT 0
   );
   CREATE TABLE signal_state (
     holder TEXT NOT NULL DEFAULT '',
     fence INTEGER NOT NULL DEFAULT 0,
     held_until INTEGER NOT NULL DEFAULT 0,
     created_after INTEGER NOT NULL DEFAULT 0,
     created_until INTEGER NOT NULL DEFAULT 0,
     ended_at INTEGER NOT NULL DEFAULT 0,
     from_time INTEGER NOT NULL DEFAULT 0,
     from_sid TEXT NOT NULL DEFAULT ''
   );
   INSERT INTO signal_state (holder) VALUES ('');`,
  // `examined_at` is the time at which it is next examined whether the session has expired. It is never later than the expiry. A refresh
  // delays the expiry without changing this column, so that the index of the column need not be updated.
  `ALTER TABLE sessions ADD COLUMN examined_at INTEGER NOT NULL DEFAULT 0;
   UPDATE sessions SET examined_at = idle_expires_at;
   DROP INDEX sessions_by_expiry;
   CREATE INDEX sessions_by_examination ON sessions (examined_at);`,
  // `actor` of a session that somebody uses in place of its subject: the session of that actor with which it ends, '' if there is none, or
  // '!' when that one has ended and this one has to end. It is NULL for all other sessions.
  `ALTER TABLE sessions ADD COLUMN actor TEXT;
   CREATE INDEX sessions_by_actor ON sessions (actor) WHERE actor IS NOT NULL;
   CREATE INDEX sessions_by_subject_with_actor ON sessions (subject) WHERE actor IS NOT NULL;
   ALTER TABLE signals ADD COLUMN actor TEXT NOT NULL DEFAULT '';`,
] as const;
const VERSION = MIGRATIONS.length;

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
  refuseHalfRestored(path);
  createProtected(path);
  upgrade(path);
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    db.exec("PRAGMA journal_mode = WAL");
    migrate(db);
    return use(db);
  } catch (error) {
    db.close();
    throw error;
  }
}

function createProtected(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  closeSync(openSync(path, "a", 0o600));
  chmodSync(path, 0o600);
}

/** Returns the name under which a restore prepares the file before it takes its place. */
export const restoringPath = (path: string): string => `${path}.restoring`;

/** Returns whether a restore was killed after it had moved the former file away. */
export const isHalfRestored = (path: string): boolean => !existsSync(path) && existsSync(restoringPath(path));

/** A new file in the place of one that was to be restored would log out every user without a word. */
function refuseHalfRestored(path: string): void {
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
    migrate(db);
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

function migrate(db: DatabaseSync): void {
  db.exec("BEGIN IMMEDIATE"); // Two processes may start at the same time on one new file.
  try {
    const version = versionOf(db);
    if (version > VERSION) throw new Error(`made by a newer version of this service (schema ${version})`);
    const foreign = db.prepare("SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view')").get();
    if (foreign !== undefined)
      throw new Error(`it has a ${foreign.type} that this service did not make: ${foreign.name}`);
    for (const step of MIGRATIONS.slice(version)) db.exec(step);
    if (version < VERSION) db.exec(`PRAGMA user_version = ${VERSION}`);
    db.exec("COMMIT");
  } catch (error) {
    rollBack(db);
    throw error;
  }
}
