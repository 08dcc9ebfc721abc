#!lua flags=allow-oom
-- Agrees with the instances on the time. The store's time is the clock of this node less a shift, so that it continues evenly when
-- that clock is set, or when another node takes over. An instance notices this, since its own clock is steady. An instance whose own
-- clock was stopped with its machine would report the same. But then another instance has seen the time that it missed.
-- KEYS  1 partition
-- ARGV  1 from when and 2 until when the instance expects this to run, by this clock, ms; 3 the shift with which the store's
--       time continues evenly, if the instance has noticed that this clock was set, or ''
-- Returns the time of this clock, the shift, and 1 if this ran when it was expected to.
local SLACK = 250 -- how much the reports of instances may differ, ms
local now, key = clock(), KEYS[1] .. 'c'
local shift, seen = string.match(redis.call('GET', key) or '0 0', '^(%S+) (%S+)$')
shift, seen = tonumber(shift), tonumber(seen)
local expected = now >= tonumber(ARGV[1]) and now <= tonumber(ARGV[2])
if expected then
  local step = (tonumber(ARGV[3]) or shift) - shift
  if step < -SLACK or (step > SLACK and seen <= now - step + SLACK) then shift = shift + step end
  redis.call('SET', key, string.format('%.0f %.0f', shift, now))
end
return { string.format('%.0f', now), string.format('%.0f', shift), expected and '1' or '0' }
