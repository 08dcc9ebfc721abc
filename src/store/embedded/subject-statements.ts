import type { DatabaseSync } from "node:sqlite";
import { ENDED, ENDED_UNTIL } from "./ended.ts";

/** Statements on the sessions of one subject, of which there may be many (subject-steps.ts). */
export function subjectStatements(db: DatabaseSync) {
  return {
    // The statement reads the index alone.
    countOf: db.prepare("SELECT count(*) AS count FROM sessions WHERE subject = ? AND created_at > ?"),
    newestOf: db.prepare("SELECT max(created_at) AS time FROM sessions WHERE subject = ?"),
    countExpired: db.prepare(
      "SELECT count(*) AS count FROM (SELECT 1 FROM sessions WHERE idle_expires_at <= ? LIMIT ?)",
    ),
    countExpiredOf: db.prepare(
      `SELECT count(*) AS count FROM sessions INDEXED BY sessions_by_subject
       WHERE idle_expires_at <= ? AND subject = ? AND created_at > ?`,
    ),
    countExpiredOfMany: db.prepare(
      `SELECT count(*) AS count FROM sessions INDEXED BY sessions_by_expiry
       WHERE idle_expires_at <= ? AND subject = ? AND created_at > ?`,
    ),
    oldestOfFew: db.prepare(
      `SELECT sid FROM sessions WHERE subject = ? AND idle_expires_at > ? AND ${ENDED} = 0 ORDER BY rowid LIMIT ?`,
    ),
    oldest: db.prepare(
      `SELECT sid FROM sessions WHERE subject = ? AND idle_expires_at > ? AND ${ENDED} = 0
       ORDER BY created_at, sid LIMIT ?`,
    ),
    beginEnd: db.prepare(`INSERT INTO subject_ends VALUES (?, ?, ${ENDED_UNTIL}, ?, ?, ?, ?, 0, ?)`),
    endOf: db.prepare("SELECT * FROM subject_ends WHERE subject = ? AND created_until > 0"),
    endById: db.prepare("SELECT * FROM subject_ends WHERE id = ?"),
    ending: db.prepare(
      `SELECT sid, idle_expires_at FROM sessions
       WHERE subject = ? AND created_at > ? AND created_at <= ? AND sid <> ?
       ORDER BY created_at, sid LIMIT ?`,
    ),
    countEnded: db.prepare("UPDATE subject_ends SET count = ? WHERE id = ?"),
    finishEnd: db.prepare("UPDATE subject_ends SET created_until = 0, count = ?, changed_at = ? WHERE id = ?"),
    forgetEnds: db.prepare("DELETE FROM subject_ends WHERE created_until = 0 AND changed_at < ?"),
    endsUnderWay: db.prepare("SELECT id, count FROM subject_ends WHERE created_until > 0"),
  };
}
