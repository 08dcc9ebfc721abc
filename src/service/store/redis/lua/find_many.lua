#!lua flags=allow-oom
-- Returns those of the given sessions that are live.
-- KEYS  1 partition
-- ARGV  1 sids, without separators
-- Returns sid, record, sid, record, …
-- @include lib/deadline.lua: now
-- @include lib/live.lua: live
-- @include lib/sizes.lua: ID
local found = {}
for from = 1, #ARGV[1], ID do
  local sid = string.sub(ARGV[1], from, from + ID - 1)
  local record = live(KEYS[1], sid, now)
  if record then
    found[#found + 1] = sid
    found[#found + 1] = record
  end
end
return found
