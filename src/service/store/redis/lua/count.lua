#!lua flags=allow-oom
-- Estimates how many sessions are live, from a random sample of the chunks of the order of creation (lib/order.lua).
-- KEYS  any partitions of one slot
-- ARGV  1 how many chunks of each partition to look at
-- Returns the number as text. It is exact for partitions with no more chunks than that.
-- @include lib/deadline.lua: now
-- @include lib/live.lua: live
-- @include lib/sizes.lua: ENTRY, ID
local sum = 0
for _, partition in ipairs(KEYS) do
  local order = partition .. KEY.order
  local chunks, found = redis.call('ZCARD', order), 0
  local drawn = chunks > 0 and redis.call('ZRANDMEMBER', order, ARGV[1]) or {}
  for _, chunk in ipairs(drawn) do
    for at = ENTRY, #chunk, ENTRY do
      if live(partition, string.sub(chunk, at - ID + 1, at), now) then found = found + 1 end
    end
  end
  if #drawn > 0 then sum = sum + found * chunks / #drawn end
end
return string.format('%.2f', sum)
