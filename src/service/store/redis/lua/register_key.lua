#!lua
-- Gives a session the key of its device, unless it has another key that is in use or was registered a moment ago.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns one string: l (the session has this key now), the time (I6) and the record; or only a letter: k, the session has another key;
-- o, the token is outdated; m, the session was revoked; u, it is unknown.
-- @include lib/deadline.lua: ARGC, now
-- @include lib/blocks.lua: device_at
-- @include lib/device.lua: device_of
-- @include lib/live.lua: live, was_revoked
-- @include lib/record.lua: DEVICE_TAIL, WITH_DEVICE
local sid,
  generation, -- of the refresh token
  key, thumbprint, kind, -- kind: device-record.ts
  reuse_interval -- ms
  = unpack(ARGV, 1, ARGC)
local partition = KEYS[1]
local record = live(partition, sid, now)
if not record then return was_revoked(partition, sid, now) and 'm' or 'u' end
local flags, confirmed = struct.unpack('>BI4', record)
if tonumber(generation) < confirmed - 1 then return 'o' end

local device = device_of(record)
if device then
  if not device.is_proof_key and device.thumbprint == thumbprint then return 'l' .. struct.pack('>I6', now) .. record end
  if device.is_bound or math.abs(now - device.since) <= 2 * tonumber(reuse_interval) then return 'k' end
else
  flags = flags + WITH_DEVICE
end
record = string.char(flags) .. string.sub(record, 2, device_at(record) - 1) .. key .. thumbprint
  .. struct.pack(DEVICE_TAIL, now, #key, tonumber(kind))
redis.call('SET', partition .. KEY.session .. sid, record, 'KEEPTTL')
return 'l' .. struct.pack('>I6', now) .. record
