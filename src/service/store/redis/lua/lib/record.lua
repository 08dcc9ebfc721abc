-- What all scripts with a deadline share (deadline.lua includes this file): the head of a record, sizes and times.
--
-- HEAD is the format of the head of a record. Of a key that each request proves (DPoP), the record has only the thumbprint. Before it, in
-- place of a key, is the time since which it is bound (I6), or 0 if the session was created with it. The field in which other keys have
-- that time is 0.
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

-- BULK_LOGOUT is the format of the description of a bulk logout, of a subject with many sessions: the times after which and until which the
-- ended sessions were created, how many of them have been marked and logged so far, the id of the logout, the session that does not end (or
-- blanks), the reason, the text of the due records, the subject. All of these sessions have ended as soon as the description is written
-- (end_all.lua). Their markers and their entries in the log are written later (end_rest.lua).
local BULK_LOGOUT = '>I6I6I4c11c23Bc0I2c0I2c0'

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
