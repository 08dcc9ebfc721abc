/**
 * The embedded store's file: how it is opened, what protects it, and its tables.
 *
 * WAL: readers never wait for the writer, and a process that is killed leaves a file that the next one
 * recovers. SQLite gives the -wal and -shm files the mode of the main file, so 0600 is set before it writes.
 */
import { chmodSync, closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";

const VERSION = 1;

/** How long a statement waits for another process's transaction (which takes about one fsync), ms. */
const BUSY_TIMEOUT = 500;

const SCHEMA = `
  CREATE TABLE store (id TEXT NOT NULL);
  INSERT INTO store VALUES (lower(hex(randomblob(8))));

  -- "fixed" never changes after creation; "rotation" is the RotationState. Both are JSON.
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
  PRAGMA user_version = ${VERSION};
`;

/** Opens or creates the file; directories that it makes are 0700, the file is 0600. Throws what SQLite or the system says. */
export function openDatabase(path: string): DatabaseSync {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  closeSync(openSync(path, "a", 0o600));
  chmodSync(path, 0o600);
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT });
  try {
    db.exec("PRAGMA journal_mode = WAL");
    migrate(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function migrate(db: DatabaseSync): void {
  db.exec("BEGIN IMMEDIATE"); // two processes may start on one new file
  try {
    const version = Number(db.prepare("PRAGMA user_version").get()?.user_version);
    if (version > VERSION) throw new Error(`made by a newer version of this service (schema ${version})`);
    if (version === 0) db.exec(SCHEMA);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}
