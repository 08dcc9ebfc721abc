-- Sizes of ids and entries (keys.ts), in bytes, and how much one script does.

local ID = 23
local ENTRY = 6 + ID
local CHUNK = 32 * ENTRY
local UPSTREAM = 22 -- the length of the name of a login
local ATTACHED = 2 * ID + 6
local NOBODY = string.rep('-', ID)

-- One script ends at most this many sessions, or examines at most this many in an index. For more sessions several scripts run, so
-- that no script delays all other commands for long. A subject with more sessions than this counts as one with many.
local MOST = 128
