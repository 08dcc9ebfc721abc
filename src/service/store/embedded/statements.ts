import type { DatabaseSync, StatementSync } from "node:sqlite";
import { SWEEP } from "./schema.ts";
import { HANDED_OVER } from "./schema-versions.ts";
import { signalStatements } from "./signal-statements.ts";

/** Selects the time of the last logout of everyone: all sessions that were created up to then have ended. */
const ENDED_UNTIL = "(SELECT ended_until FROM store)";

/** Computes whether a session ended in a logout of everyone (1), in a logout of its subject (2), or in neither (0). */
const ENDED = `CASE
  WHEN created_at <= ${ENDED_UNTIL} THEN 1
  WHEN EXISTS (
    SELECT 1 FROM subject_ends AS e
    WHERE e.subject = sessions.subject AND sessions.created_at <= e.created_until AND sessions.sid <> e.spared
  ) THEN 2
  ELSE 0 END`;

/** Computes when a session was last refreshed, also with the same refresh token as before, or else created (`usedAtOf` of rows.ts). */
const USED_AT = "max(created_at, json_extract(rotation, '$.childServedAt'))";

const SAVE_REFRESH = "UPDATE sessions SET last_refreshed_at = ?, idle_expires_at = ?, rotation = ?";

export type Statements = ReturnType<typeof prepareStatements>;

/**
 * Prepares all statements of the embedded store. A session is live while `now < idle_expires_at` (never later than the absolute expiry),
 * unless it has ended in a logout of its subject or of everyone.
 */
export function prepareStatements(db: DatabaseSync) {
  return {
    ...subjectStatements(db),

    storeId: db.prepare("SELECT id FROM store"),
    // Writes a page of the file although nothing changes, for transactions that must write to the disk. An UPDATE that sets a column to its
    // present value would write nothing.
    touch: db.prepare("PRAGMA application_id = 0x73657373"),
    dataVersion: db.prepare("PRAGMA data_version"),

    session: sessionStatement(db),
    endedUntil: db.prepare(`SELECT ${ENDED_UNTIL} AS time`),
    newest: db.prepare("SELECT newest AS time FROM store"),
    created: db.prepare("UPDATE store SET newest = max(newest, ?)"),
    endEveryone: db.prepare("UPDATE store SET ended_until = max(ended_until, ?)"),
    insert: db.prepare(
      `INSERT INTO sessions (sid, subject, created_at, last_refreshed_at, idle_expires_at, absolute_expires_at, fixed, rotation, actor, examined_at)
       VALUES (:sid, :subject, :created_at, :last_refreshed_at, :idle_expires_at, :absolute_expires_at, :fixed, :rotation, :actor, :idle_expires_at)`,
    ),
    saveRefresh: db.prepare(`${SAVE_REFRESH} WHERE rowid = ?`),
    saveRefreshAndDetails: db.prepare(`${SAVE_REFRESH}, fixed = ? WHERE rowid = ?`),
    examineAtIdleExpiry: db.prepare("UPDATE sessions SET examined_at = idle_expires_at WHERE sid = ?"),
    saveDetails: db.prepare("UPDATE sessions SET fixed = ? WHERE sid = ?"),
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

    ...attachedStatements(db),
    ...eventStatements(db),
    ...signalStatements(db),
    ...forgetStatements(db),

    marker: db.prepare("SELECT 1 FROM log WHERE sid = ? AND expires_at > ? AND reason <> 'expired' LIMIT 1"),
    append: db.prepare("INSERT INTO log (sid, revoked_at, expires_at, reason) VALUES (?, ?, ?, ?)"),
    after: db.prepare("SELECT * FROM log WHERE seq > ? AND expires_at > ? ORDER BY seq"),
    // Reads only the oldest entries of the log, because entries expire in the order in which they were written.
    sweepLog: db.prepare(
      `DELETE FROM log WHERE expires_at <= ? AND seq IN (SELECT seq FROM log ORDER BY seq LIMIT ${SWEEP})`,
    ),
  };
}

/**
 * Prepares the statement that reads a session, with the columns of `FoundColumns` in rows.ts. Each refresh runs it, so it returns the row
 * as an array: for a row that is an object, node:sqlite makes a new hidden class, which takes 72 bytes of V8's old generation until the
 * next full garbage collection. Before Node 22.16 the row is an object nevertheless.
 */
function sessionStatement(db: DatabaseSync): StatementSync {
  const statement = db.prepare(
    `SELECT rowid, subject, created_at, last_refreshed_at, idle_expires_at, absolute_expires_at, fixed, rotation, actor, examined_at,
     ${ENDED} AS ended FROM sessions WHERE sid = ?`,
  );
  (statement as Partial<StatementSync>).setReturnArrays?.(true);
  return statement;
}

/**
 * Prepares the statements for sessions that end with something else: with the session of who uses them in place of their subject, or with a
 * login at an identity provider. The latter name the expressions of two indexes.
 */
function attachedStatements(db: DatabaseSync) {
  return {
    attach: db.prepare("UPDATE sessions SET actor = ? WHERE sid = ?"),
    countAttached: db.prepare("SELECT count(*) AS count FROM sessions WHERE actor = ?"),
    handOver: db.prepare(`UPDATE sessions SET actor = '${HANDED_OVER}' WHERE actor = ?`),
    handOverAll: db.prepare(
      `UPDATE sessions SET actor = '${HANDED_OVER}'
       WHERE actor > '${HANDED_OVER}' AND (SELECT created_at FROM sessions AS own WHERE own.sid = sessions.actor) <= ?`,
    ),
    handedOver: db.prepare(`SELECT sid, subject FROM sessions WHERE actor = '${HANDED_OVER}'`),
    ofUpstreamSession: db.prepare(
      `SELECT sid FROM sessions WHERE fixed ->> '$.upstream.sessionId' = ? AND fixed ->> '$.upstream.issuer' = ?`,
    ),
    ofUpstreamSubject: db.prepare(
      `SELECT sid FROM sessions WHERE fixed ->> '$.upstream.subject' = ? AND fixed ->> '$.upstream.issuer' = ?`,
    ),
    detailsOfActor: db.prepare("SELECT fixed FROM sessions WHERE sid = ? AND actor IS NOT NULL"),
  };
}

function eventStatements(db: DatabaseSync) {
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
    keepEvents: db.prepare("UPDATE events SET expires_at = ? WHERE sid = ?"),
    // The event of a creation is kept as if the session lived until its absolute expiry (events.ts).
    endCreation: db.prepare(
      `UPDATE events SET expires_at = expires_at - (SELECT absolute_expires_at FROM sessions WHERE sid = :sid) + :now
       WHERE sid = :sid AND text ->> '$.k' = 'created'`,
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

/** Prepares the statements that remove the data of a subject (forget.ts). */
function forgetStatements(db: DatabaseSync) {
  return {
    endedOf: db.prepare(`SELECT * FROM sessions WHERE subject = ? AND (idle_expires_at <= ? OR ${ENDED} <> 0) LIMIT ?`),
    blank: db.prepare("UPDATE sessions SET subject = '', fixed = ? WHERE sid = ?"),
    eventSessionsOf: db.prepare("SELECT DISTINCT sid FROM events WHERE subject = ? AND sid > ? ORDER BY sid LIMIT ?"),
    forgetEvents: db.prepare("DELETE FROM events WHERE sid = ?"),
    dueOf: db.prepare("SELECT key FROM due WHERE subject = ?"),
    forgetEndsOf: db.prepare("DELETE FROM subject_ends WHERE subject = ? AND created_until = 0"),
    // Sessions that have ended do not have their subject any more.
    unreadSignalsOf: db.prepare(
      `SELECT count(*) AS count FROM signals WHERE subject = ? AND number > (SELECT min(number) FROM subscriptions)
       AND sid NOT IN (SELECT sid FROM sessions WHERE subject = ?)`,
    ),
    forgetSignals: db.prepare(
      "UPDATE signals SET subject = '' WHERE subject = ? AND sid NOT IN (SELECT sid FROM sessions WHERE subject = ?)",
    ),
    signalsOf: db.prepare("SELECT * FROM signals WHERE subject = ? AND number > ? ORDER BY number LIMIT ?"),
    changeFence: db.prepare("UPDATE signal_state SET fence = fence + 1"),
  };
}

/** Prepares the statements for the sessions of one subject, of which there may be many (end-many.ts, limits.ts). */
function subjectStatements(db: DatabaseSync) {
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
       WHERE examined_at <= ? AND idle_expires_at <= ? AND subject = ? AND created_at > ?`,
    ),
    oldestOfFew: db.prepare(
      `SELECT sid, ${USED_AT} AS usedAt FROM sessions
       WHERE subject = ? AND actor IS NULL AND idle_expires_at > ? AND ${ENDED} = 0 ORDER BY rowid LIMIT ?`,
    ),
    hasAgent: db.prepare(
      `SELECT 1 FROM (
         SELECT fixed FROM sessions WHERE subject = ? AND idle_expires_at > ? AND ${ENDED} = 0
         ORDER BY created_at DESC, sid DESC LIMIT ?
       ) WHERE json_extract(fixed, '$.client.userAgent') = ? LIMIT 1`,
    ),
    oldest: db.prepare(
      `SELECT sid, ${USED_AT} AS usedAt FROM sessions
       WHERE subject = ? AND actor IS NULL AND idle_expires_at > ? AND ${ENDED} = 0 ORDER BY created_at, sid LIMIT ?`,
    ),
    actingOf: db.prepare(
      `SELECT sid, ${USED_AT} AS usedAt FROM sessions INDEXED BY sessions_by_subject_with_actor
       WHERE subject = ? AND actor IS NOT NULL AND idle_expires_at > ? AND ${ENDED} = 0 ORDER BY rowid`,
    ),
    // The sessions of a subject after a position, oldest first, by which limits count them.
    ofSubjectAfter: db.prepare(
      `SELECT *, rowid, ${ENDED} AS ended FROM sessions
       WHERE subject = ? AND created_at > ${ENDED_UNTIL} AND (created_at, sid) > (?, ?)
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
