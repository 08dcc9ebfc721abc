#!lua flags=allow-oom
-- Removes expired sessions from the index of a subject with many sessions, oldest first, so that they do not count towards the cap.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns the entry to continue after, or '' if this run has reached the end or found an expired session; and the earliest expiry of the
-- examined sessions, ms.
-- @include lib/deadline.lua: ARGC, now, shift
-- @include lib/head.lua: expiry_of
-- @include lib/live.lua: within_lifetimes
-- @include lib/sizes.lua: ID, MOST
local subject,
  after, -- the entry to continue after, or ''
  least -- the earliest time at which one of the sessions up to that entry expires, ms
  = unpack(ARGV, 1, ARGC)
local partition, many = KEYS[1], KEYS[1] .. KEY.many_sessions .. subject
local from = after == '' and '-' or '(' .. after
local entries = redis.call('ZRANGEBYLEX', many, from, '+', 'LIMIT', 0, MOST)
local expired = {}
least = tonumber(least)
for _, entry in ipairs(entries) do
  local record = within_lifetimes(partition, string.sub(entry, -ID), now)
  if record then least = math.min(least, (expiry_of(record))) else expired[#expired + 1] = entry end
end
if #expired > 0 then redis.call('ZREM', many, unpack(expired)) end
local at_end = #entries < MOST
if at_end then redis.call('SET', partition .. KEY.clean_until .. subject, string.format('%.0f', least), 'PXAT', least + shift) end
return { (at_end or #expired > 0) and '' or entries[#entries], string.format('%.0f', least) }
