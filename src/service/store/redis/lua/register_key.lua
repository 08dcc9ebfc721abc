#!lua
-- Gives a session the key of its device, unless it has another key that is in use or was registered a moment ago.
-- KEYS  1 partition
-- ARGV  1 sid, 2 generation of the refresh token, 3 the key, 4 its thumbprint, 5 its kind (record.ts), 6 reuse interval, ms
-- Returns one string: l (the session has this key now), the time (I6) and the record; or only a letter: k, the session has another key;
-- o, the token is outdated; m, the session was revoked; u, it is unknown.
local BOUND = 2 -- the bit in the kind of a key that says that the key has been used
local PROOF = 4 -- the bit in the kind of a key that says that each request must prove the key
local partition, sid = KEYS[1], ARGV[1]
local record = live(partition, sid, now)
if not record then return marked(partition, sid, now) and 'm' or 'u' end
local version, generation = struct.unpack('>BI4', record)
if tonumber(ARGV[2]) < generation - 1 then return 'o' end

local from = device_at(record)
if from <= #record then
  local since, _, kind = struct.unpack('>I6I2B', record, #record - 8)
  if kind < PROOF and string.sub(record, -41, -10) == ARGV[4] then return 'l' .. struct.pack('>I6', now) .. record end
  if kind >= BOUND or math.abs(now - since) <= 2 * tonumber(ARGV[6]) then return 'k' end
else
  version = version + 2
end
record = string.char(version) .. string.sub(record, 2, from - 1) .. ARGV[3] .. ARGV[4]
  .. struct.pack('>I6I2B', now, #ARGV[3], tonumber(ARGV[5]))
redis.call('SET', partition .. 's' .. sid, record, 'KEEPTTL')
return 'l' .. struct.pack('>I6', now) .. record
