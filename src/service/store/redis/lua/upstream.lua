#!lua flags=allow-oom
-- Returns the sessions that came from a login at an identity provider, and maybe some that have ended.
-- KEYS  any partitions of one slot
-- ARGV  1 the name of the login (upstream.ts)
local found = {}
for _, partition in ipairs(KEYS) do
  local sids = redis.call('GET', partition .. 'U' .. ARGV[1]) or ''
  for at = 1, #sids, ID do found[#found + 1] = string.sub(sids, at, at + ID - 1) end
end
return found
