#!lua
-- Replaces the authentication of a session's user in the session's record.
-- KEYS  1 partition
-- ARGV  1 sid, 2 time of the authentication, ms, 3 the authentication in the form of the record (record.ts)
-- Returns one string: 'l', the time (six bytes) and the record, if the authentication was replaced; 'o' if the session has a later
-- authentication; 'm' if it is revoked; 'u' if it is unknown.
local AUTHENTICATION = 1 -- the first byte of an authentication; the claims that follow it begin with {
local partition, sid = KEYS[1], ARGV[1]
local record = live(partition, sid, now)
if not record then return marked(partition, sid, now) and 'm' or 'u' end

-- In the record, five texts follow the subject. Each begins with its length, as one byte, or as the byte 255 and two bytes.
local _, at = struct.unpack('>I2c0', record, BODY)
for _ = 1, 5 do
  local length = string.byte(record, at)
  at = at + 1
  if length == 255 then length, at = struct.unpack('>I2', record, at) end
  at = at + length
end
local rest = at
if at < device_at(record) and string.byte(record, at) == AUTHENTICATION then
  local _, time, length, text = struct.unpack('>BI6I2', record, at)
  if tonumber(ARGV[2]) < time then return 'o' end
  rest = text + length
end
record = string.sub(record, 1, at - 1) .. ARGV[3] .. string.sub(record, rest)
redis.call('SET', partition .. 's' .. sid, record, 'KEEPTTL')
return 'l' .. struct.pack('>I6', now) .. record
