-- The definitions in this file are part of every script. All keys of a partition begin with its hash tag, such as {a7}, so
-- that they lie in one slot of a cluster. Before it is REDIS_KEY_PREFIX, which is empty by default:
--
--   {a7}s<sid>      a session: a packed record, see HEAD. Expires a while after the session.
--   {a7}u           index of the subjects that have few sessions, a HASH: subject -> the ids of its sessions (23 characters
--                   each), one after the other, in order of creation. Some may have expired. (One key for each subject would
--                   take 50 % more memory.)
--   {a7}i<subject>  index of a subject that has had many sessions (index_functions): a ZSET of entries (created I6, sid) that all
--                   have the score 0, thus in order of creation. Some may have expired.
--   {a7}k<subject>  a time until which none of the subject's many sessions expires, ms. sweep.lua determines it.
--   {a7}h           logouts of subjects with many sessions that are not complete yet, see HORIZON. The key is absent most of the time.
--   {a7}d<id>       how many sessions such a logout has ended. The key exists for a minute after the logout was completed.
--   {a7}o           order of creation, a ZSET of chunks that all have the score 0: up to 32 entries (created I6, sid), one after
--                   the other. Redis orders chunks by their bytes, thus by their first entries. Some entries may have expired.
--                   (One member for each session would take three times the memory.)
--   {a7}m<sid>      marker of an ended session. Its value is the time at which the marker expires, ms.
--   {a7}t<sid>      the id was used for a session that is created once (create.lua). Its value is the time until which that counts, ms.
--   {a7}T<hash>     a token of an identity provider was used. Its value is the time until which that counts, ms.
--   {a7}e           a time, ms: all sessions that were created until then have ended (RevokeAllSessions). The key is absent if no
--                   session has ended in this way.
--   {a7}y           the instance that looks for expired sessions, and the time until which no other one does, ms (expire.lua).
--   {a7}n           when the newest session was created, ms.
--   {a7}l           revocation log: ZSET of entries '<sid> <revoked at> <expires at> <reason>' in the order in which they were appended
--                   (append_to_log). A logout of everyone is '* <created until> <expires at> revoked_all'.
--   {a7}A           sessions that end with a session of this partition, that of their actor: each the id of the actor's session, its own id
--                   and the time at which it expires (I6). The first id is NOBODY from the end of the actor's session on, until any
--                   instance has ended the session (attached.lua). The key is absent if there are none.
--   {a7}U<login>    the sessions that came from a login at an identity provider, a ZSET by absolute expiry. The name is a hash
--                   (upstream.ts).
--   {a7}r           due records (src/service/session/events/events.ts), a HASH. A field is the sid of a session that has ended, '+' and the sid of one
--                   that was created, or '*' and the time until which sessions have ended. Its value has five lines: since when the
--                   record is due, when the event was, its kind, the request (event-text.ts) and the subject. record.lua removes a due
--                   record, mostly a moment later.
--   {a7}g           for how long signals are kept, ms, how many were ever appended, and the sid of the last one, or '-'. The key exists
--                   while there are subscriptions to signals.
--   {a7}p           the subscriptions that also want signals of creations and updates, a line each: the id, and after it ' created',
--                   ' new_device', ' updated' or several of them. The key is absent if there is none.
--   {a7}z           signal log (src/service/signals/ports.ts), a ZSET by number: '<number> <sid> <ended at> <reason> <length of the client id, bytes>
--                   <client id><subject>'.
--                   If the session had an actor, the time begins with 0, and {a7}A<sid> has the subject of the actor.
--   {a7}f           the readers of the signal log, a HASH. The field '*' is the lease of the instance that reads: '<holder> <fence>
--                   <until>'. The field of a subscription is '<number> <sid> <delivered> <dead letters>': number and sid of the last
--                   signal that it has read ('-' if there was none), and its counters.
--   {a7}j           a logout of everyone whose signals are still to be appended: '<created after> <created until> <ended at>
--                   <entry>'. The entry of the order of creation is the one after which to continue.
--   {a7}C           of each session that is stored: what its record lacks of the event of its creation (event-text.ts), a HASH. The field
--                   '*' says how long events are kept, ms. (A key for each session would take 150 bytes more.)
--   {a7}v<sid>      the other events of a session, a line of JSON each; once the session has ended, that of its creation, too.
--   {a7}w<subject>  the last sessions of a subject that have such events; their ids, one after the other.
--   {a7}a<subject>  earlier sessions of a subject that have events, a ZSET by the time until which they have some.
--   {00}q           whose deployment this is: the issuer, and the ids of the keys of the ring (owner.ts).
--   {00}b           subscriptions, a HASH. The field with a subscription's id has its definition. The field with '=' and the id has six
--                   lines: time of creation, state, reason, failures, last error, time of that error.
--
-- HEAD is the format of the head of a record. After it come the subject (I2 length, text), and data that only the service reads
-- (record.ts). The fields of the head are: version, then the state of rotation.ts: g, n (two words), c (two words), f, cs, ct; then the
-- time of creation, the idle timeout, the absolute lifetime.
-- The version is a sum: 1; 2 if there is a device key; 4 if the session must have one; 8 if it is refreshed by cookie only; 16 if it is
-- refreshed by the token endpoint only. The device key is at the end of the record: the key itself, its thumbprint (32 bytes), the time
-- since which it is registered or bound (I6), the length of the key (I2), its kind (B). Of a key that each request proves (DPoP), only
-- the thumbprint is needed. In place of the key, the record has the time since which it is bound (I6; 0: since the creation of the
-- session), and the usual place of that time has 0.
local HEAD = '>BI4I4I4I4I4I6I6I6I6I5I5'
local BODY = 56 -- the position after the head
local ID = 23
local ENTRY = 6 + ID
local UPSTREAM = 22 -- the length of the name of a login
local ATTACHED = 2 * ID + 6
local NOBODY = string.rep('-', ID)
local CHUNK = 32 * ENTRY

-- One script ends at most this many sessions, or examines at most this many in an index. For more sessions several scripts run, so
-- that no script delays all other commands for long. A subject with more sessions than this counts as one with many.
local MOST = 128

-- HORIZON is the format of the description of a logout of a subject with many sessions: the times after which and until which the ended
-- sessions were created, how many of them have been marked and logged so far, the id of the logout, the session that does not end (or
-- blanks), the reason, the text of the due records, the subject. All of these sessions have ended as soon as the description is written
-- (end_all.lua). Their markers and their entries in the log are written later (end_rest.lua).
local HORIZON = '>I6I6I4c11c23Bc0I2c0I2c0'

-- All times are the store's: the node's clock minus a shift (window.lua). But Redis expires keys by the node's clock, which may be set
-- forward by mistake for a while, and must not lose data then. So a session's key lives longer than the session: by a sixteenth of the
-- idle timeout, and by two minutes, within which expire.lua logs the expiry. The log lives a month longer, because the loss of an entry
-- would make a revoked token valid again.
local shift = tonumber(ARGV[#ARGV])
local LOG_SLACK = 32 * 86400000
local function slack(idle) return shift + 120000 + math.floor(idle / 16) end

local function subject_of(record)
  return (struct.unpack('>I2c0', record, BODY))
end
