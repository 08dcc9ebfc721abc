import type { DatabaseSync } from "node:sqlite";
import { SWEEP } from "./schema.ts";

/**
 * How many signals one statement deletes, in about 1 ms, of those that all subscriptions have read. It deletes more than are read at once,
 * so that such signals never accumulate.
 */
const TRIM = 512;

export function signalStatements(db: DatabaseSync) {
  return {
    isSubscribed: db.prepare("SELECT 1 FROM subscriptions LIMIT 1"),
    isWanted: db.prepare(
      "SELECT 1 FROM subscriptions, json_each(definition, '$.filter.events') AS event WHERE event.value = ? LIMIT 1",
    ),
    appendSignal: db.prepare(
      "INSERT INTO signals (sid, ended_at, reason, client, subject, actor) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    sweepSignals: db.prepare(
      `DELETE FROM signals WHERE ended_at < ? AND number IN (SELECT number FROM signals ORDER BY number LIMIT ${SWEEP})`,
    ),
    // The last signal that all subscriptions have read stays. If a reader does not find it, the file was replaced by an older one.
    trimSignals: db.prepare(
      `DELETE FROM signals WHERE number IN
       (SELECT number FROM signals WHERE number < (SELECT min(number) FROM subscriptions) ORDER BY number LIMIT ${TRIM})`,
    ),
    clearSignals: db.prepare("DELETE FROM signals"),
    signalsAfter: db.prepare("SELECT * FROM signals WHERE number >= ? ORDER BY number LIMIT ?"),
    waitingSignals: db.prepare(
      `SELECT subscriptions.id, signals.sid, signals.ended_at,
       (SELECT seq FROM sqlite_sequence WHERE name = 'signals') - subscriptions.number AS count
       FROM subscriptions JOIN signals
       ON signals.number = (SELECT min(later.number) FROM signals AS later WHERE later.number > subscriptions.number)`,
    ),
    signal: db.prepare("SELECT sid FROM signals WHERE number = ?"),
    lastSignal: db.prepare(
      `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'signals'), 0) AS number,
       coalesce((SELECT sid FROM signals ORDER BY number DESC LIMIT 1), '-') AS sid`,
    ),

    signalState: db.prepare("SELECT * FROM signal_state"),
    holdSignals: db.prepare("UPDATE signal_state SET holder = ?, fence = ?, held_until = ?"),
    giveBackSignals: db.prepare("UPDATE signal_state SET holder = '', held_until = 0"),
    beginSignals: db.prepare(
      "UPDATE signal_state SET created_after = ?, created_until = ?, ended_at = ?, from_time = ?, from_sid = ?",
    ),
    endedWithAll: db.prepare(
      `SELECT sid, subject, created_at, fixed FROM sessions
       WHERE (created_at, sid) > (?, ?) AND created_at > ? AND created_at <= ? ORDER BY created_at, sid LIMIT ?`,
    ),

    subscriptions: db.prepare("SELECT * FROM subscriptions ORDER BY id"),
    subscription: db.prepare("SELECT * FROM subscriptions WHERE id = ?"),
    countSubscriptions: db.prepare("SELECT count(*) AS count FROM subscriptions"),
    subscribe: db.prepare("INSERT INTO subscriptions (id, definition, created_at, number, sid) VALUES (?, ?, ?, ?, ?)"),
    define: db.prepare("UPDATE subscriptions SET definition = ? WHERE id = ? AND definition = ?"),
    pause: db.prepare("UPDATE subscriptions SET state = 'paused', because = ? WHERE id = ?"),
    resume: db.prepare("UPDATE subscriptions SET state = 'active', because = '', failures = 0 WHERE id = ?"),
    succeed: db.prepare("UPDATE subscriptions SET failures = 0 WHERE id = ?"),
    fail: db.prepare(
      "UPDATE subscriptions SET failures = failures + 1, last_error = ?, last_error_at = ? WHERE id = ?",
    ),
    unsubscribe: db.prepare("DELETE FROM subscriptions WHERE id = ?"),
    advance: db.prepare("UPDATE subscriptions SET number = ?, sid = ? WHERE id = ? AND number < ?"),
    restart: db.prepare("UPDATE subscriptions SET number = ?, sid = ? WHERE id = ?"),
    countDelivered: db.prepare(
      "UPDATE subscriptions SET delivered = delivered + ?, dead_letters = dead_letters + ? WHERE id = ?",
    ),
  };
}
