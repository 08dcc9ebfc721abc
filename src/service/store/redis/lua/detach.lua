#!lua flags=allow-oom
-- Removes the note that a session has to end, once it has ended.
-- KEYS  1 the partition of the note
-- ARGV  1 the session
-- Returns 'detached'
-- @include lib/deadline.lua
-- @include lib/sizes.lua: ATTACHED, ID, NOBODY
local key, entries = KEYS[1] .. KEY.attached, {}
local attached = redis.call('GET', key) or ''
for at = 1, #attached, ATTACHED do
  local entry = string.sub(attached, at, at + ATTACHED - 1)
  if string.sub(entry, 1, 2 * ID) ~= NOBODY .. ARGV[1] then entries[#entries + 1] = entry end
end
if #entries == 0 then redis.call('DEL', key) else redis.call('SET', key, table.concat(entries), 'KEEPTTL') end
return 'detached'
