#!lua flags=allow-oom
-- Returns the cursors and counters of subscriptions.
-- KEYS  any partitions of one slot
-- ARGV  1 a subscription, or '' for all
-- Returns for each partition the number of texts that belong to it, then these: subscription, value, subscription, value, …
-- @include lib/deadline.lua
local found = {}
for _, partition in ipairs(KEYS) do
  local readers, fields = partition .. KEY.signal_readers
  if ARGV[1] == '' then
    fields = redis.call('HRANDFIELD', readers, 1000, 'WITHVALUES')
  else
    local value = redis.call('HGET', readers, ARGV[1])
    fields = value and { ARGV[1], value } or {}
  end
  found[#found + 1] = tostring(#fields)
  for _, text in ipairs(fields) do found[#found + 1] = text end
end
return found
