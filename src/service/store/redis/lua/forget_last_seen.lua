#!lua flags=allow-oom
-- Removes from a session's record what was kept of the request that last refreshed it.
-- KEYS  1 partition
-- ARGV  1 sid
-- @include lib/deadline.lua: now
-- @include lib/blocks.lua: block_at
-- @include lib/live.lua: live
-- @include lib/record.lua: LAST_SEEN
local partition, sid = KEYS[1], ARGV[1]
local record = live(partition, sid, now)
if not record then return '' end
local at, after = block_at(record, LAST_SEEN)
if at == after then return '' end
redis.call('SET', partition .. KEY.session .. sid, string.sub(record, 1, at - 1) .. string.sub(record, after), 'KEEPTTL')
return ''
