/**
 * The keys of a partition: the hash tag of the partition, such as {a7}, and a letter, some with a name after it. The tag, before which is
 * REDIS_KEY_PREFIX, keeps all keys of a partition in one slot of a cluster. docs/reference/redis-schema.md has the types, lives and
 * examples of keys, and the record of a session.
 *
 * Scripts use the same names: scripts.ts replaces each by its letter when it reads a script, so that a name costs no time.
 *
 * The forms of these keys save memory: a key for each subject that has few sessions ({a7}u) would take 50 % more, a member of the order of
 * creation ({a7}o) for each session in place of chunks three times as much, and a key for the note of each creation ({a7}C) 150 bytes more.
 * Entries of {a7}o and {a7}i<subject> are the time of creation (6 bytes) and the sid. All members have the score 0: Redis orders them by
 * their bytes, thus by their first entries.
 * An entry of {a7}A has two ids and the expiry (6 bytes) of the second one. The first id, that of the actor's session, is NOBODY from the
 * end of that session on, until any instance has ended the second one (attached.lua).
 * {a7}j is '<created after> <created until> <ended at> <entry>'. The entry of the order of creation is the one after which to continue.
 * If the session of a signal in {a7}z had an actor, the time begins with 0.
 */
export const KEY = {
  // Sessions and their indexes:
  session: "s", // <session>: the session: a record
  few_sessions: "u", // the sessions of each subject with few
  many_sessions: "i", // <subject>: those of a subject with many
  clean_until: "k", // <subject>: until when none of these expires
  order: "o", // the order of creation: all sessions in chunks
  newest: "n", // when the newest session was created
  attached: "A", // the sessions that end with those of their actors
  login: "U", // <login>: the sessions of a login at an identity provider
  // What has ended:
  marker: "m", // <session>: the marker of an ended session: until when
  log: "l", // the revocation log
  all_ended: "e", // until which creation all sessions have ended (RevokeAllSessions)
  bulk_logouts: "h", // the bulk logouts (of subjects with many sessions) that are under way
  bulk_logout: "d", // <end>: how many sessions such a logout has ended, once it is complete
  expiry_turn: "y", // which instance looks for expired sessions
  reserved: "t", // <session>: until when the id of a migrated session is reserved
  provider_note: "T", // <token>: until when a note of an identity provider counts as known
  // Events:
  due: "r", // due records: what is to be recorded of creations and endings
  creations: "C", // what the records lack of the events of creations
  events: "v", // <session>: the other events of a session
  last_sessions: "w", // <subject>: the last sessions of a subject with events
  earlier_sessions: "a", // <subject>: earlier ones
  ends: "x", // the ends of all sessions, only in {00}
  // Signals:
  signal_state: "g", // the state of the signal log: how long it keeps them, how many there were, the last session
  signals: "z", // the signal log
  actor: "A", // <session>: the actor of a session that has a signal
  signal_readers: "f", // the lease of the log's reader, and the cursor of each subscription
  notices: "p", // which subscriptions want signals of creations and updates ('notices')
  unsignalled: "j", // a logout of everyone whose signals are to be appended
  subscriptions: "b", // the subscriptions, only in {00}
  // The deployment:
  shift: "c", // the shift of the node's clock (sync.lua)
  owner: "q", // which deployment owns the keys (claim_owner.lua), only in {00}
} as const;
