import type { DatabaseSync } from "node:sqlite";
import { SWEEP } from "./schema.ts";

export function eventStatements(db: DatabaseSync) {
  return {
    leaveDue: db.prepare("INSERT OR REPLACE INTO due (key, since, at, what, note, subject) VALUES (?, ?, ?, ?, ?, ?)"),
    due: db.prepare("SELECT * FROM due ORDER BY since LIMIT ?"),
    claimDue: db.prepare("UPDATE due SET since = ? WHERE key = ? AND since = ?"),
    takeDue: db.prepare("DELETE FROM due WHERE key = ?"),

    // The event may exist already, if an earlier attempt to write it had an unclear outcome.
    recordEvent: db.prepare(
      `INSERT INTO events (sid, subject, expires_at, text) SELECT :sid, :subject, :expires_at, :text
       WHERE NOT EXISTS (SELECT 1 FROM events WHERE sid = :sid AND text = :text)`,
    ),
    countEvents: db.prepare("SELECT count(*) AS count FROM events WHERE sid = ?"),
    subjectOfEvents: db.prepare("SELECT subject FROM events WHERE sid = ? AND subject IS NOT NULL LIMIT 1"),
    eventsOf: db.prepare("SELECT text FROM events WHERE sid = ? AND expires_at > ? ORDER BY seq"),
    eventSessions: db.prepare("SELECT sid FROM events WHERE subject = ? GROUP BY sid ORDER BY max(seq) DESC LIMIT ?"),
    trimEvents: db.prepare(
      "DELETE FROM events WHERE sid = ? AND seq NOT IN (SELECT seq FROM events WHERE sid = ? ORDER BY seq DESC LIMIT ?)",
    ),
    sweepEvents: db.prepare(
      `DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE expires_at <= ? ORDER BY expires_at LIMIT ${SWEEP})`,
    ),
  };
}
