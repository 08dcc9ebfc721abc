#!lua flags=allow-oom
-- Returns the sessions that came from a login at an identity provider, and maybe some that have expired.
-- KEYS  any partitions of one slot
-- ARGV  1 the name of the login (upstream.ts)
-- @include lib/deadline.lua
local found = {}
for _, partition in ipairs(KEYS) do
  for _, sid in ipairs(redis.call('ZRANGE', partition .. KEY.login .. ARGV[1], 0, -1)) do found[#found + 1] = sid end
end
return found
