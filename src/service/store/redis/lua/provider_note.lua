#!lua flags=allow-oom
-- Notes what an identity provider has said, such as that a token was used, or looks whether it is noted.
-- KEYS  1 partition of the note
-- ARGV  1 its hash, 2 for how long to note it, ms; 0 to look
-- Returns 'used' if it is noted, or ''.
-- @include lib/deadline.lua: now, shift
local key, life = KEYS[1] .. KEY.provider_note .. ARGV[1], tonumber(ARGV[2])
if life == 0 then
  local used_until = redis.call('GET', key)
  return used_until and now < tonumber(used_until) and 'used' or ''
end
local used_until = string.format('%.0f', now + life)
redis.call('SET', key, used_until, 'PXAT', string.format('%.0f', now + life + shift))
return ''
