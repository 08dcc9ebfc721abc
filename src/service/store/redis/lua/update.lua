#!lua
-- Replaces the claims and the audiences of a session in its record.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns one string: 'l', the time (six bytes) and the record, or 'n' in place of 'l' if the record was the same before; 'c' if the
-- session has another version; 'm' if it is revoked; 'u' if it is unknown.
-- @include lib/deadline.lua: ARGC, now
-- @include lib/blocks.lua: block_at, replace
-- @include lib/commands.lua: require_commands
-- @include lib/live.lua: live, was_revoked
-- @include lib/record.lua: AUDIENCES, CLAIMS
-- @include lib/signal_log.lua: append_signals
-- @include lib/texts.lua: text_at
-- @include lib/version.lua: count_version, version_of
local sid,
  if_version, -- the version that the session must have, or ''
  audiences, -- in the form of the record (record.ts), or '' to keep them
  claims, -- '=' and the claims in the form of the record, or '' to keep them
  stale_life -- for how long older access tokens are marked as stale, ms, or '' to keep them
  = unpack(ARGV, 1, ARGC)
local partition = KEYS[1]
local before = live(partition, sid, now)
if not before then return was_revoked(partition, sid, now) and 'm' or 'u' end
if if_version ~= '' and tonumber(if_version) ~= version_of(before) then return 'c' end
local record = before
if audiences ~= '' then record = replace(record, audiences, text_at(record, AUDIENCES)) end
if claims ~= '' then record = replace(record, string.sub(claims, 2), block_at(record, CLAIMS)) end
require_commands(partition, 'SET ZADD ZRANGE ZREM ZREMRANGEBYSCORE PEXPIREAT')
record = count_version(partition, sid, record, record ~= before, tonumber(stale_life), now)
if record == before then return 'n' .. struct.pack('>I6', now) .. record end
redis.call('SET', partition .. KEY.session .. sid, record, 'KEEPTTL')
local version = version_of(record)
local signals = redis.call('MGET', partition .. KEY.signal_state, partition .. KEY.notices)
if version ~= version_of(before) and signals[1] and string.find(signals[2] or '', ' updated%s') then
  append_signals(partition, signals[1], { { sid, 'updated:' .. version, record } }, now)
end
return 'l' .. struct.pack('>I6', now) .. record
