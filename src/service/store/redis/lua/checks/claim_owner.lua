#!lua
-- Replaces the name of the deployment that owns the keys, unless another instance has changed it.
-- KEYS  its key, {00}q
-- ARGV  the expected value, or an empty text if there is none; the new value
-- Returns 1, or 0 if there was another value.
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
