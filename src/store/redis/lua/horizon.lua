#!lua flags=allow-oom
-- Determines a time after which no session of these partitions was created.
-- KEYS  any partitions of one slot
-- Returns it, ms.
local latest = now
for _, partition in ipairs(KEYS) do
  latest = math.max(latest, tonumber(redis.call('GET', partition .. 'n') or 0))
end
return string.format('%.0f', latest)
