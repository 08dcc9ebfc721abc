#!lua flags=allow-oom
-- What the logs of partitions hold.
-- KEYS  any partitions of one slot
-- ARGV  1 the least time of revocation, ms, 2 the most entries to return
-- Returns the time, then the entries '<sid> <revoked at> <expires at> <reason>'; for each partition where ends of many sessions of a
-- subject are under way 'ending <partition> <what changes as they go on>'; and if there may be more, 'rest <partition> <time>': all of
-- the partitions before it have been read, and of this one what was revoked before that time.
local found, left = { string.format('%.0f', now) }, tonumber(ARGV[2])
for _, partition in ipairs(KEYS) do
  local log = partition .. 'l'
  local entries = redis.call('ZRANGEBYSCORE', log, ARGV[1], '+inf', 'LIMIT', 0, left)
  for _, entry in ipairs(entries) do found[#found + 1] = entry end
  local horizons = redis.call('GET', partition .. 'h')
  if horizons then found[#found + 1] = 'ending ' .. partition .. ' ' .. redis.sha1hex(horizons) end
  left = left - #entries
  if left == 0 then
    local last = redis.call('ZRANGEBYSCORE', log, ARGV[1], '+inf', 'LIMIT', #entries - 1, 1, 'WITHSCORES')
    found[#found + 1] = 'rest ' .. partition .. ' ' .. last[2]
    break
  end
end
return found
