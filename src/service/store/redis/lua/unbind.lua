#!lua
-- Removes the device key of a session.
-- KEYS  1 partition
-- ARGV  1 sid
-- Returns one string: l (the session had a key) or n (it had none), the time (I6) and the record; or only m (revoked) or u (unknown).
-- @include lib/deadline.lua: now
-- @include lib/blocks.lua: device_at
-- @include lib/live.lua: live, was_revoked
-- @include lib/record.lua: WITH_DEVICE
local partition, sid = KEYS[1], ARGV[1]
local record = live(partition, sid, now)
if not record then return was_revoked(partition, sid, now) and 'm' or 'u' end
local from = device_at(record)
if from > #record then return 'n' .. struct.pack('>I6', now) .. record end
record = string.char(string.byte(record) - WITH_DEVICE) .. string.sub(record, 2, from - 1)
redis.call('SET', partition .. KEY.session .. sid, record, 'KEEPTTL')
return 'l' .. struct.pack('>I6', now) .. record
