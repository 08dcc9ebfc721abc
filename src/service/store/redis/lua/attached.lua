#!lua flags=allow-oom
-- Returns the sessions whose actors' sessions have ended.
-- KEYS  any partitions of one slot
-- Returns for each partition how many it has, and then their ids.
-- @include lib/deadline.lua
-- @include lib/sizes.lua: ATTACHED, ID, NOBODY
local found = {}
for _, partition in ipairs(KEYS) do
  local attached, first = redis.call('GET', partition .. KEY.attached) or '', #found + 1
  found[first] = ''
  for at = 1, #attached, ATTACHED do
    if string.sub(attached, at, at + ID - 1) == NOBODY then found[#found + 1] = string.sub(attached, at + ID, at + 2 * ID - 1) end
  end
  found[first] = tostring(#found - first)
end
return found
