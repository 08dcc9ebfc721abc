#!lua flags=allow-oom
-- Returns for each subscription of a partition the first signal that it has not read, if there is one, and how many it has not read.
-- KEYS  1 partition
-- Returns subscription, '<sid> <ended at> <count>', subscription, '<sid> <ended at> <count>', …
-- @include lib/deadline.lua
local partition, found = KEYS[1], {}
local count = tonumber(string.match(redis.call('GET', partition .. KEY.signal_state) or '', '^%d+ (%d+)') or 0)
local fields = redis.call('HRANDFIELD', partition .. KEY.signal_readers, 1000, 'WITHVALUES')
for at = 1, #fields, 2 do
  local number = fields[at] ~= '*' and tonumber(string.match(fields[at + 1], '^%d+'))
  if number and number < count then
    local first = redis.call('ZRANGE', partition .. KEY.signals, number + 1, '+inf', 'BYSCORE', 'LIMIT', 0, 1)[1]
    local signal = string.match(first or '', '^%d+ (%S+ %d+) ')
    if signal then
      found[#found + 1], found[#found + 2] = fields[at], signal .. ' ' .. string.format('%.0f', count - number)
    end
  end
end
return found
