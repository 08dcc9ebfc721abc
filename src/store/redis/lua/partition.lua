-- What follows is shared by all scripts. All keys of a partition begin with its hash tag, such as {a7}, so that they lie in
-- one slot of a cluster:
--
--   {a7}s<sid>      a session: a packed record, see HEAD. Expires a while after the session.
--   {a7}u           index of the subjects that have few sessions, a HASH: subject -> the ids of its sessions (23 characters
--                   each), one after the other, in order of creation. Some may have expired. (One key for each subject would
--                   take 50 % more memory.)
--   {a7}i<subject>  index of a subject that has had many sessions (index_functions): a ZSET of entries (created I6, sid) that all
--                   have the score 0, thus in order of creation. Some may have expired.
--   {a7}k<subject>  a time until which none of the subject's many sessions expires, ms. sweep.lua determines it.
--   {a7}h           the ends of many sessions of a subject that are under way, see HORIZON. The key is absent most of the time.
--   {a7}d<id>       how many sessions such an end has ended, for a minute after it.
--   {a7}o           order of creation, a ZSET of chunks that all have the score 0: up to 32 entries (created I6, sid), one after
--                   the other. Redis orders chunks by their bytes, thus by their first entries. Some entries may have expired.
--                   (One member for each session would take three times the memory.)
--   {a7}m<sid>      marker of an ended session: when it expires.
--   {a7}e           a time, ms: all sessions that were created until then have ended (RevokeAllSessions). Without the key none has
--                   ended in this way.
--   {a7}y           the instance that looks for expired sessions, and the time until which no other one does, ms (expire.lua).
--   {a7}n           when the newest session was created, ms.
--   {a7}l           revocation log: ZSET of entries '<sid> <revoked at> <expires at> <reason>' in the order in which they were appended
--                   (append_to_log). The end of all is '* <created until> <expires at> revoked_all'.
--   {a7}r           due records (src/session/events.ts), a HASH. A field is the sid of a session that has ended, '+' and the sid of one
--                   that was created, or '*' and the time until which sessions have ended. Its value has five lines: since when the
--                   record is due, when the event was, its kind, who asked (due-text.ts) and the subject. record.lua removes a due
--                   record, mostly a moment later.
--   {a7}g           for how long signals are kept, ms, how many there have been, and the sid of the last one, or '-'. Present while there
--                   are subscriptions to signals.
--   {a7}z           signal log (src/signals/ports.ts), a ZSET by number: '<number> <sid> <ended at> <reason> <length of the client id, bytes>
--                   <client id><subject>'.
--   {a7}f           who reads it, a HASH. The field '*' is the lease: '<holder> <fence> <until>'. A subscription has '<number> <sid> <delivered>
--                   <dead letters>': its cursor, with the sid of the last signal before it ('-' where there was none), and its counters.
--   {a7}j           an end of all whose signals are to be appended: '<created after> <created until> <ended at> <entry>', the entry of the order
--                   of creation to continue after.
--   {00}b           subscriptions, a HASH. The field of an id has the definition; that of '=' and the id has six lines: time of
--                   creation, state, reason, failures, last error, time of it.
--
-- This is the head of a record. The subject (I2 length, text) follows it, and then what only the service reads (record.ts).
-- The fields are: version, g, n (two words), c (two words), f, cs, ct, created, idle timeout, absolute lifetime
-- The version is 1, 2 more with a device key, 4 more for a session that must have one, 8 more for one that is refreshed
-- by cookie only, 16 more for one that is refreshed by the token endpoint only. The device key is at the end of the record: the key
-- itself, its thumbprint (32 bytes), since when it is registered or bound (I6), its length (I2), its kind (B). A key that each request
-- proves (DPoP) is not in the record: in its place is since when it is bound (I6; 0: since the creation), and 0 at the place of that.
local HEAD = '>BI4I4I4I4I4I6I6I6I6I5I5'
local BODY = 56 -- the position after the head
local ID = 23
local ENTRY = 6 + ID
local CHUNK = 32 * ENTRY

-- One script ends this many sessions at the most, or examines as many in an index. More of them take several scripts, so that no
-- script delays all other commands for long. A subject with more sessions than that counts as one with many.
local MOST = 128

-- Describes an end of many sessions of a subject: after when and until when they were created (all earlier ones had ended already), how
-- many of them have been ended so far, the id of the end, the session that is spared (or blanks), the reason, the note of the due
-- records, the subject. All of these sessions have ended as soon as the description is written (end_all.lua). Their markers and their
-- entries in the log follow (end_rest.lua).
local HORIZON = '>I6I6I4c11c23Bc0I2c0I2c0'

-- All times are the store's: the node's clock less a shift (window.lua). Redis itself expires keys by the node's clock, so
-- while that is set forward, by mistake and for a while, it must not drop what will be missed later: an idle session waits
-- for a sixteenth of its idle timeout more, and for two minutes, in which its expiry is logged (expire.lua); and the log, which would un-revoke, for a month.
local shift = tonumber(ARGV[#ARGV])
local LOG_SLACK = 32 * 86400000
local function slack(idle) return shift + 120000 + math.floor(idle / 16) end

local function subject_of(record)
  return (struct.unpack('>I2c0', record, BODY))
end
