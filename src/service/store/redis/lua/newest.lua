#!lua flags=allow-oom
-- Returns the newest entries of the order of creation. Some of their sessions may have expired.
-- KEYS  any partitions of one slot
-- ARGV  1 how many entries of each partition, 2 an entry: those before it are returned; '' for the newest
-- Returns one text for each partition: its entries, newest first, without separators.
-- @include lib/deadline.lua
-- @include lib/order.lua: earlier
-- @include lib/sizes.lua: ENTRY
local wanted, bound, replies = tonumber(ARGV[1]), ARGV[2], {}
for k, partition in ipairs(KEYS) do
  local found, below = {}, bound == '' and '+' or '(' .. bound
  while #found < wanted do
    local chunk = redis.call('ZREVRANGEBYLEX', partition .. KEY.order, below, '-', 'LIMIT', 0, 1)[1]
    if not chunk then break end
    for at = #chunk - ENTRY + 1, 1, -ENTRY do
      local entry = string.sub(chunk, at, at + ENTRY - 1)
      if #found < wanted and (bound == '' or earlier(entry, bound)) then found[#found + 1] = entry end
    end
    below = '(' .. chunk
  end
  replies[k] = table.concat(found)
end
return replies
