/** The tables of the embedded store, as the steps that make them, each from the schema of the version before it. */

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

/** The values of `sessions.actor`, apart from session ids (`SessionRow` in rows.ts). `HANDED_OVER` is less than every session id. */
export const NO_ACTOR = null;
export const UNATTACHED = "";
export const HANDED_OVER = "!";

/** Each step changes the schema of the version before it. Its text is never edited: check.ts compares it with a file's schema. */
export const SCHEMA_VERSIONS = [
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
  // Bulk logouts, of subjects that have many sessions. The sessions of the subject that were created after `created_after` and not after
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
  // The signals (signals/ports.ts), the subscriptions with their cursors, and one row that names the process that reads the signals. While
  // signals of a logout of everyone still have to be appended, that row also names the last session whose signal was appended.
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
  // Sessions by the login at an identity provider that they came from. Few sessions have one, or all have.
  `CREATE INDEX sessions_by_upstream_session ON sessions (fixed ->> '$.upstream.sessionId')
     WHERE fixed ->> '$.upstream.sessionId' IS NOT NULL;
   CREATE INDEX sessions_by_upstream_subject ON sessions (fixed ->> '$.upstream.subject')
     WHERE fixed ->> '$.upstream.subject' IS NOT NULL;`,
] as const;
