#!lua
-- Replaces the authentication of a session's user in the session's record.
-- KEYS  1 partition
-- ARGV  1 sid, 2 time of the authentication, ms, 3 the authentication in the form of the record (blocks.ts), 4 for how long older access
--       tokens are marked as stale, ms, or '' to keep them
-- Returns one string: 'l', the time (six bytes) and the record, if the authentication was replaced; 'o' if the session has a later
-- authentication; 'a' if it has an actor; 'm' if it is revoked; 'u' if it is unknown.
local partition, sid = KEYS[1], ARGV[1]
local record = live(partition, sid, now)
if not record then return marked(partition, sid, now) and 'm' or 'u' end
if actor_of(record) then return 'a' end

local at, after = block_at(record, AUTHENTICATION)
if at < after and tonumber(ARGV[2]) < struct.unpack('>I6', record, at + 1) then return 'o' end
record = replace(record, ARGV[3], at, after)
if ARGV[4] ~= '' then record = count_version(partition, sid, record, true, tonumber(ARGV[4]), now) end
redis.call('SET', partition .. 's' .. sid, record, 'KEEPTTL')
return 'l' .. struct.pack('>I6', now) .. record
