#!lua flags=allow-oom
-- Finds a session, and changes nothing.
-- KEYS  1 partition
-- ARGV  1 sid
-- Returns one string: l (live), the time (I6) and the record; or m revoked, u unknown.
-- @include lib/deadline.lua: now
-- @include lib/live.lua: live, was_revoked
local record = live(KEYS[1], ARGV[1], now)
if record then return 'l' .. struct.pack('>I6', now) .. record end
return was_revoked(KEYS[1], ARGV[1], now) and 'm' or 'u'
