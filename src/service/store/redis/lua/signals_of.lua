#!lua flags=allow-oom
-- Returns the signals of a subject among some signals of a partition, or removes the subject from those of sessions that are not live. A
-- reader of the log that still has a changed signal in its memory loses its lease, and reads the signal again.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns the number of the last signal that was examined, or '' if no more follow; then signal (with_actor), subscriptions that have not
-- read it yet (their ids, with spaces between), signal, subscriptions, …
-- @include lib/deadline.lua: ARGC, now
-- @include lib/live.lua: live
-- @include lib/signal_log.lua: with_actor
local subject,
  after, -- the number of the last signal before them
  most, -- how many to return at most
  verb -- 'read' or 'forget'
  = unpack(ARGV, 1, ARGC)
local EXAMINED = 256 -- the number of signals that one run examines, in about 0.3 ms
local partition = KEYS[1]
local log, readers = partition .. KEY.signals, partition .. KEY.signal_readers
local cursors = redis.call('HRANDFIELD', readers, 1000, 'WITHVALUES')
local found, last, is_waiting = { '' }, '', false

local function waiting_for(number)
  local ids = {}
  for at = 1, #cursors, 2 do
    local read = cursors[at] ~= '*' and tonumber(string.match(cursors[at + 1], '^%d+'))
    if read and read < number then ids[#ids + 1] = cursors[at] end
  end
  return table.concat(ids, ' ')
end

local signals = redis.call('ZRANGE', log, '(' .. after, '+inf', 'BYSCORE', 'LIMIT', 0, EXAMINED)
for _, signal in ipairs(signals) do
  local head, number, sid, length = string.match(signal, '^((%d+) (%S+) %d+ %S+ (%d+) )')
  local client_end = #head + tonumber(length)
  last = number
  if string.sub(signal, client_end + 1) == subject and (verb == 'read' or not live(partition, sid, now)) then
    local waits = waiting_for(tonumber(number))
    found[#found + 1], found[#found + 2] = with_actor(partition, signal), waits
    if verb == 'forget' then
      is_waiting = is_waiting or waits ~= ''
      -- The new one is added before the old one is removed, because Redis deletes a key that is empty for a moment, and its expiry with it.
      redis.call('ZADD', log, number, string.sub(signal, 1, client_end))
      redis.call('ZREM', log, signal)
    end
  end
  if #found > 2 * tonumber(most) then break end
end
if #signals == EXAMINED or #found > 2 * tonumber(most) then found[1] = last end
local owner, fence, held = string.match(is_waiting and redis.call('HGET', readers, '*') or '', '^(%S+) (%d+) (%d+)$')
if owner then redis.call('HSET', readers, '*', owner .. ' ' .. string.format('%.0f', fence + 1) .. ' ' .. held) end
return found
