#!lua flags=allow-oom
-- Returns sessions of a subject that have events.
-- KEYS  1 partition
-- ARGV  1 subject, 2 how many of its earlier sessions were returned before
-- Returns the ids of its last sessions, without separators, and those of some earlier ones, likewise
local earlier = redis.call('ZRANGE', KEYS[1] .. 'a' .. ARGV[1], ARGV[2], ARGV[2] + 999)
return { redis.call('GET', KEYS[1] .. 'w' .. ARGV[1]) or '', table.concat(earlier) }
