#!lua flags=allow-oom
-- Returns the latest time at which a session of these partitions may have been created.
-- KEYS  any partitions of one slot
-- Returns the time, ms.
-- @include lib/deadline.lua: now
local latest = now
for _, partition in ipairs(KEYS) do
  latest = math.max(latest, tonumber(redis.call('GET', partition .. KEY.newest) or 0))
end
return string.format('%.0f', latest)
