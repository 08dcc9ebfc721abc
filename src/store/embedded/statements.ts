import type { DatabaseSync } from "node:sqlite";
import { ENDED, ENDED_UNTIL } from "./ended.ts";
import { eventStatements } from "./event-statements.ts";
import { SWEEP } from "./schema.ts";
import { signalStatements } from "./signal-statements.ts";
import { subjectStatements } from "./subject-statements.ts";

export type Statements = ReturnType<typeof prepareStatements>;

/**
 * Prepares all statements of the embedded store. A session is live while `now < idle_expires_at` (never later than the absolute expiry),
 * unless it has ended in a logout of its subject or of everyone.
 */
export function prepareStatements(db: DatabaseSync) {
  return {
    ...subjectStatements(db),

    storeId: db.prepare("SELECT id FROM store"),
    // Writes a page of the file even if nothing changes. An UPDATE that sets a column to its present value would write nothing.
    touch: db.prepare("PRAGMA application_id = 0x73657373"),
    dataVersion: db.prepare("PRAGMA data_version"),

    session: db.prepare(`SELECT *, ${ENDED} AS ended FROM sessions WHERE sid = ?`),
    endedUntil: db.prepare(`SELECT ${ENDED_UNTIL} AS time`),
    newest: db.prepare("SELECT newest AS time FROM store"),
    created: db.prepare("UPDATE store SET newest = max(newest, ?)"),
    endAll: db.prepare("UPDATE store SET ended_until = max(ended_until, ?)"),
    insert: db.prepare(
      `INSERT INTO sessions (sid, subject, created_at, last_refreshed_at, idle_expires_at, absolute_expires_at, fixed, rotation, examined_at)
       VALUES (:sid, :subject, :created_at, :last_refreshed_at, :idle_expires_at, :absolute_expires_at, :fixed, :rotation, :idle_expires_at)`,
    ),
    slide: db.prepare("UPDATE sessions SET last_refreshed_at = ?, idle_expires_at = ?, rotation = ? WHERE sid = ?"),
    examineLater: db.prepare("UPDATE sessions SET examined_at = idle_expires_at WHERE sid = ?"),
    fix: db.prepare("UPDATE sessions SET fixed = ? WHERE sid = ?"),
    remove: db.prepare("DELETE FROM sessions WHERE sid = ?"),
    // The sessions are in order of creation. Without the inner ORDER BY SQLite would sort all sessions of the subject.
    ofSubject: db.prepare(
      `SELECT sid, idle_expires_at FROM
       (SELECT sid, idle_expires_at, rowid AS position FROM sessions
        WHERE subject = ? AND created_at > ${ENDED_UNTIL} ORDER BY created_at LIMIT ?)
       ORDER BY position`,
    ),
    // The cost of a page depends only on its limit, because the rows are read in the order of an index.
    page: db.prepare(
      `SELECT *, ${ENDED} AS ended FROM sessions
       WHERE subject = ? AND created_at > ${ENDED_UNTIL} AND (created_at, sid) < (?, ?)
       ORDER BY created_at DESC, sid DESC LIMIT ?`,
    ),

    // Expired sessions are included, so that the cost depends only on the limit.
    byCreation: db.prepare(
      `SELECT *, ${ENDED} AS ended FROM sessions WHERE created_at > ${ENDED_UNTIL} AND (created_at, sid) < (?, ?)
       ORDER BY created_at DESC, sid DESC LIMIT ?`,
    ),
    rowRange: db.prepare("SELECT min(rowid) AS first, max(rowid) AS last FROM sessions"),
    countRows: db.prepare(
      `SELECT count(*) AS count FROM sessions
       WHERE rowid BETWEEN ? AND ? AND idle_expires_at > ? AND ${ENDED} = 0`,
    ),
    // Selects the sessions that may have expired, except those whose subject is being logged out.
    toExamine: db.prepare(
      `SELECT sid, subject, idle_expires_at, ${ENDED} AS ended FROM sessions
       WHERE examined_at <= ? AND ${ENDED} <> 2 ORDER BY examined_at LIMIT ?`,
    ),

    ...eventStatements(db),
    ...signalStatements(db),

    marker: db.prepare("SELECT 1 FROM log WHERE sid = ? AND expires_at > ? AND reason <> 'expired' LIMIT 1"),
    append: db.prepare("INSERT INTO log (sid, revoked_at, expires_at, reason) VALUES (?, ?, ?, ?)"),
    after: db.prepare("SELECT * FROM log WHERE seq > ? AND expires_at > ? ORDER BY seq"),
    // Reads only the oldest entries of the log, because entries expire in the order in which they were written.
    sweepLog: db.prepare(
      `DELETE FROM log WHERE expires_at <= ? AND seq IN (SELECT seq FROM log ORDER BY seq LIMIT ${SWEEP})`,
    ),
  };
}
