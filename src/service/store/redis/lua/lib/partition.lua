-- What all scripts with a deadline share (deadline.lua includes this file): the keys of a partition, the head of a record, sizes and times.
--
-- A key is the hash tag of its partition, such as {a7}, and a letter, some with a name after it. The tag, before which is REDIS_KEY_PREFIX,
-- keeps all keys of a partition in one slot of a cluster. docs/reference/redis-schema.md has the types, lives and examples of keys, and the
-- record of a session.
--
-- Sessions and their indexes:
--   s<session>      the session: a record
--   u               the sessions of each subject with few
--   i<subject>      those of a subject with many
--   k<subject>      until when none of these expires
--   o               the order of creation: all sessions in chunks
--   n               when the newest session was created
--   A               the sessions that end with those of their actors (without a name; for A<session> see below)
--   U<login>        the sessions of a login at an identity provider
-- What has ended:
--   m<session>      the marker of an ended session: until when
--   l               the revocation log
--   e               until which creation all sessions have ended (RevokeAllSessions)
--   h               the logouts of subjects with many sessions that are under way (HORIZON)
--   d<end>          how many sessions such a logout has ended, once it is complete
--   y               which instance looks for expired sessions
--   t<session>      until when the id of a migrated session is claimed
--   T<token>        until when a token of an identity provider counts as used
-- Events:
--   r               due records: what is to be recorded of creations and endings
--   C               what the records lack of the events of creations
--   v<session>      the other events of a session
--   w<subject>      the last sessions of a subject with events
--   a<subject>      earlier ones
--   x               the ends of all sessions, only in {00}
-- Signals:
--   g               the state of the signal log: for how long it keeps signals, how many there have been, the session of the last
--   z               the signal log
--   A<session>      the actor of a session that has a signal
--   f               the lease of the log's reader, and the cursor of each subscription
--   p               which subscriptions want signals of creations and updates ('notices')
--   j               a logout of everyone whose signals are to be appended
--   b               the subscriptions, only in {00}
-- The deployment:
--   c               the shift of the node's clock (sync.lua)
--   q               which deployment owns the keys (claim_owner.lua), only in {00}
--
-- The forms of these keys save memory: a key for each subject that has few sessions ({a7}u) would take 50 % more, a member of the order of
-- creation ({a7}o) for each session in place of chunks three times as much, and a key for the note of each creation ({a7}C) 150 bytes more.
-- Entries of {a7}o and {a7}i<subject> are the time of creation (I6) and the sid. All members have the score 0: Redis orders them by their
-- bytes, thus by their first entries.
-- An entry of {a7}A has two ids and the expiry (I6) of the second one. The first id, that of the actor's session, is NOBODY from the end of
-- that session on, until any instance has ended the second one (attached.lua).
-- {a7}j is '<created after> <created until> <ended at> <entry>'. The entry of the order of creation is the one after which to continue.
-- If the session of a signal in {a7}z had an actor, the time begins with 0.
--
-- HEAD is the format of the head of a record. Of a key that each request proves (DPoP), only the thumbprint is needed. In place of the key,
-- the record has the time since which it is bound (I6; 0: since the creation of the session), and the usual place of that time has 0.
local HEAD = '>BI4I4I4I4I4I6I6I6I6I5I5'
local BODY = 56 -- the position after the head
local CREATED, CREATED_END = 40, 45 -- where the head has the time of creation
local ID = 23
local ENTRY = 6 + ID
local UPSTREAM = 22 -- the length of the name of a login
local ATTACHED = 2 * ID + 6
local NOBODY = string.rep('-', ID)
local CHUNK = 32 * ENTRY
local WITH_DEVICE, DEVICE_REQUIRED, BY_COOKIE, BY_TOKEN = 2, 4, 8, 16 -- the flags in the first byte of a record (record.ts)
-- A record with a device key ends with the thumbprint of the key and DEVICE_TAIL: when the key was registered or bound, its length, its
-- kind. THUMBPRINT and SINCE are the offsets of both from the end (device-record.ts).
local DEVICE_TAIL, THUMBPRINT, SINCE = '>I6I2B', -41, -9
local PROOF_KEY_BYTES = 6 -- the length of what a record has in place of a key that each request proves
local BOUND = 2 -- the bit in the kind of a device key that says that the key has been used
local PROOF = 4 -- the bit in the kind of a key that says that each request must prove the key

-- One script ends at most this many sessions, or examines at most this many in an index. For more sessions several scripts run, so
-- that no script delays all other commands for long. A subject with more sessions than this counts as one with many.
local MOST = 128

-- HORIZON is the format of the description of a logout of a subject with many sessions: the times after which and until which the ended
-- sessions were created, how many of them have been marked and logged so far, the id of the logout, the session that does not end (or
-- blanks), the reason, the text of the due records, the subject. All of these sessions have ended as soon as the description is written
-- (end_all.lua). Their markers and their entries in the log are written later (end_rest.lua).
local HORIZON = '>I6I6I4c11c23Bc0I2c0I2c0'

local ARGC = #ARGV - 3 -- how many arguments the script has of its own, before those of deadline.lua

-- All times are the store's: the node's clock minus a shift (deadline.lua). But Redis expires keys by the node's clock, which may be set
-- forward by mistake for a while, and must not lose data then. So a session's key lives longer than the session: by a sixteenth of the
-- idle timeout, and by two minutes, within which expire.lua logs the expiry. The log lives a month longer, because the loss of an entry
-- would make a revoked token valid again.
local shift = tonumber(ARGV[ARGC + 3])
local LOG_SLACK = 32 * 86400000
local function slack(idle) return shift + 120000 + math.floor(idle / 16) end

local function subject_of(record)
  return (struct.unpack('>I2c0', record, BODY))
end
