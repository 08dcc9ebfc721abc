#!lua flags=allow-oom
-- Returns the cursors and counters of subscriptions.
-- KEYS  any partitions of one slot
-- Returns for each partition how many texts follow, then subscription, value, subscription, value, …
local found = {}
for _, partition in ipairs(KEYS) do
  local fields = redis.call('HRANDFIELD', partition .. 'f', 1000, 'WITHVALUES')
  found[#found + 1] = tostring(#fields)
  for _, text in ipairs(fields) do found[#found + 1] = text end
end
return found
