#!lua flags=allow-oom
-- Claims a due record for one instance, by replacing the time since which the record is due with the present time.
-- KEYS  1 partition
-- ARGV  1 the key of the record, 2 the time since which it is due, as the instance has read it
-- Returns 'claimed', or 'gone' if another instance has claimed or removed the record in the meantime.
-- @include lib/deadline.lua: now
local records = KEYS[1] .. KEY.due
local since, rest = string.match(redis.call('HGET', records, ARGV[1]) or '', '^(%d+)(.*)$')
if since ~= ARGV[2] then return 'gone' end
redis.call('HSET', records, ARGV[1], string.format('%.0f', now) .. rest)
return 'claimed'
