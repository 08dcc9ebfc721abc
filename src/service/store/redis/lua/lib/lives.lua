-- How long keys live. All times are the store's: the node's clock minus a shift (deadline.lua). But Redis expires keys by the node's clock,
-- which may be set forward by mistake for a while, and must not lose data then. So a session's key lives longer than the session: by a
-- sixteenth of the idle timeout, and by two minutes, within which expire.lua logs the expiry. The log lives a month longer, because the
-- loss of an entry would make a revoked token valid again.
-- @include lib/deadline.lua: shift

local LOG_SLACK = 32 * 86400000
local function slack(idle) return shift + 120000 + math.floor(idle / 16) end
