#!lua flags=allow-oom
-- Decides the store's time for all instances of the service, which is the clock of this node minus a shift. The shift changes when the
-- node's clock is set or another node takes over, so that the store's time continues evenly. An instance detects such a step by its
-- monotonic clock. If the machine of an instance was suspended, that instance reports a step, too. Such a report is ignored if another
-- instance has run this script during the suspension.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns the time of the node's clock, the shift, and 1 if the script ran within the expected time, otherwise 0.
-- @include lib/clock.lua: clock
local earliest, latest, -- the times, by the node's clock, between which the instance expects the script to run, ms
  even_shift -- the shift with which the store's time continues evenly, if the instance has detected a step, or ''
  = unpack(ARGV)
local SLACK = 250 -- the greatest difference of two reports about the same step, ms
local now, key = clock(), KEYS[1] .. KEY.shift
local shift, seen = string.match(redis.call('GET', key) or '0 0', '^(%S+) (%S+)$')
shift, seen = tonumber(shift), tonumber(seen)
local expected = now >= tonumber(earliest) and now <= tonumber(latest)
if expected then
  local step = (tonumber(even_shift) or shift) - shift
  if step < -SLACK or (step > SLACK and seen <= now - step + SLACK) then shift = shift + step end
  redis.call('SET', key, string.format('%.0f %.0f', shift, now))
end
return { string.format('%.0f', now), string.format('%.0f', shift), expected and '1' or '0' }
