#!lua flags=allow-oom
-- Returns some of the due records (lib/end_sessions.lua), chosen at random.
-- KEYS  any partitions of one slot
-- ARGV  1 how many records to return of each partition at most
-- Returns the time, then the records: key, value, key, value, …
-- @include lib/deadline.lua: now
local found = { string.format('%.0f', now) }
for _, partition in ipairs(KEYS) do
  for _, text in ipairs(redis.call('HRANDFIELD', partition .. KEY.due, ARGV[1], 'WITHVALUES')) do found[#found + 1] = text end
end
return found
