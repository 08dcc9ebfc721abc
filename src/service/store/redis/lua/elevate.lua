#!lua
-- Replaces the authentication of a session's user in the session's record.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns one string: 'l', the time (six bytes) and the record, if the authentication was replaced; 'o' if the session has a later
-- authentication; 'a' if it has an actor; 'm' if it is revoked; 'u' if it is unknown.
-- @include lib/deadline.lua: ARGC, now
-- @include lib/actor.lua: actor_of
-- @include lib/blocks.lua: block_at, replace
-- @include lib/live.lua: live, was_revoked
-- @include lib/record.lua: AUTHENTICATION
-- @include lib/version.lua: count_version, version_of
local sid,
  time, -- of the authentication, ms
  authentication, -- in the form of the record (blocks.ts)
  stale_life -- for how long older access tokens are marked as stale, ms, or '' to keep them
  = unpack(ARGV, 1, ARGC)
local partition = KEYS[1]
local record = live(partition, sid, now)
if not record then return was_revoked(partition, sid, now) and 'm' or 'u' end
if actor_of(record) then return 'a' end

local at, after = block_at(record, AUTHENTICATION)
if at < after and tonumber(time) < struct.unpack('>I6', record, at + 1) then return 'o' end
local is_new, has_version = string.sub(record, at, after - 1) ~= authentication, version_of(record) > 0
record = replace(record, authentication, at, after)
local is_counted -- the rule of session/version.ts
if stale_life ~= '' then is_counted = is_new or not has_version else is_counted = is_new and has_version end
record = count_version(partition, sid, record, is_counted, tonumber(stale_life), now)
redis.call('SET', partition .. KEY.session .. sid, record, 'KEEPTTL')
return 'l' .. struct.pack('>I6', now) .. record
