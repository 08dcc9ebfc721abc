#!lua flags=allow-oom
-- What the logs of partitions hold.
-- KEYS  any partitions of one slot
-- ARGV  1 the least time of revocation, ms
-- Returns the time, then the entries '<sid> <revoked at> <expires at> <reason>'; and for each partition where ends of many sessions
-- of a subject are under way 'ending <partition> <what changes as they go on>'.
local found = { string.format('%.0f', now) }
for _, partition in ipairs(KEYS) do
  for _, entry in ipairs(redis.call('ZRANGEBYSCORE', partition .. 'l', ARGV[1], '+inf')) do
    found[#found + 1] = entry
  end
  local horizons = redis.call('GET', partition .. 'h')
  if horizons then found[#found + 1] = 'ending ' .. partition .. ' ' .. redis.sha1hex(horizons) end
end
return found
