#!lua flags=allow-oom
-- Claims a due record: from now on, the time since which it is due is the present.
-- KEYS  1 partition
-- ARGV  1 its key, 2 since when it is there, as it was read
-- Returns 'claimed', or 'gone' if another instance was faster.
local records = KEYS[1] .. 'r'
local since, rest = string.match(redis.call('HGET', records, ARGV[1]) or '', '^(%d+)(.*)$')
if since ~= ARGV[2] then return 'gone' end
redis.call('HSET', records, ARGV[1], string.format('%.0f', now) .. rest)
return 'claimed'
