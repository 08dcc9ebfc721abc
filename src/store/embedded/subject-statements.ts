import type { DatabaseSync } from "node:sqlite";
import { ENDED, ENDED_UNTIL } from "./ended.ts";

/** Prepares the statements for the sessions of one subject, of which there may be many (subject-steps.ts). */
export function subjectStatements(db: DatabaseSync) {
  return {
    // This statement reads only an index, not the rows.
    countOf: db.prepare(
      "SELECT count(*) AS count FROM (SELECT 1 FROM sessions WHERE subject = ? AND created_at > ? LIMIT ?)",
    ),
    newestOf: db.prepare("SELECT max(created_at) AS time FROM sessions WHERE subject = ?"),
    countToExamine: db.prepare("SELECT count(*) AS count FROM (SELECT 1 FROM sessions WHERE examined_at <= ? LIMIT ?)"),
    countLiveOf: db.prepare(
      `SELECT count(*) AS count FROM (SELECT 1 FROM sessions INDEXED BY sessions_by_subject
       WHERE subject = ? AND created_at > ? AND idle_expires_at > ? LIMIT ?)`,
    ),
    countExpiredOfMany: db.prepare(
      `SELECT count(*) AS count FROM sessions INDEXED BY sessions_by_examination
       WHERE examined_at <= ?1 AND idle_expires_at <= ?1 AND subject = ?2 AND created_at > ?3`,
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
