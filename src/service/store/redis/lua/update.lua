#!lua
-- Replaces the claims and the audiences of a session in its record.
-- KEYS  1 partition
-- ARGV  1 sid, 2 the version that the session must have, or '', 3 its audiences in the form of the record (record.ts), or '' to keep them,
--       4 '=' and its claims in the form of the record, or '' to keep them, 5 for how long older access tokens are marked as stale, ms, or ''
--       to keep them
-- Returns one string: 'l', the time (six bytes) and the record, or 'n' in place of 'l' if the record was the same before; 'c' if the session
-- has another version; 'm' if it is revoked; 'u' if it is unknown.
local partition, sid = KEYS[1], ARGV[1]
local before = live(partition, sid, now)
if not before then return marked(partition, sid, now) and 'm' or 'u' end
if ARGV[2] ~= '' and tonumber(ARGV[2]) ~= version_of(before) then return 'c' end
local record = before
if ARGV[3] ~= '' then record = replace(record, ARGV[3], text_at(record, 2)) end
if ARGV[4] ~= '' then record = replace(record, string.sub(ARGV[4], 2), block_at(record, CLAIMS)) end
require_commands(partition, 'SET ZADD ZRANGE ZREM ZREMRANGEBYSCORE PEXPIREAT')
record = count_version(partition, sid, record, record ~= before, tonumber(ARGV[5]), now)
if record == before then return 'n' .. struct.pack('>I6', now) .. record end
redis.call('SET', partition .. 's' .. sid, record, 'KEEPTTL')
local version = version_of(record)
local signals = redis.call('MGET', partition .. 'g', partition .. 'p')
if version ~= version_of(before) and signals[1] and string.find(signals[2] or '', ' updated%s') then
  append_signals(partition, signals[1], { { sid, 'updated:' .. version, record } }, now)
end
return 'l' .. struct.pack('>I6', now) .. record
