#!lua flags=allow-oom
-- Returns the last position in the signal log of each partition.
-- KEYS  any partitions of one slot
-- Returns for each partition the number and the sid of its last signal, followed by '+' if signals of a logout of everyone still have to
-- be appended.
-- @include lib/deadline.lua
local ends = {}
for k, partition in ipairs(KEYS) do
  local states = redis.call('MGET', partition .. KEY.signal_state, partition .. KEY.unsignalled)
  ends[k] = (string.match(states[1] or '', '^%d+ (.*)$') or '0 -') .. (states[1] and states[2] and '+' or '')
end
return ends
