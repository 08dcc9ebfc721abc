#!lua flags=allow-oom
-- Moves the cursor of a subscription forward, and drops the signals that all subscriptions have read.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns 'moved'; 'lost' if another instance has the lease, the cursor has changed, or there is no such subscription; 'rewound' if the
-- log has no such signal.
-- @include lib/deadline.lua: ARGC
local holder, -- of the lease, or '' for a subscription that is polled
  position, -- the fence of the lease; for a subscription that is polled, its present cursor ('<number> <sid>')
  subscription,
  number, sid, -- of the last signal that was read
  delivered, given_up -- how many signals were
  = unpack(ARGV, 1, ARGC)
local partition = KEYS[1]
number = tonumber(number)
local readers, log = partition .. KEY.signal_readers, partition .. KEY.signals
local owner, fence = string.match(redis.call('HGET', readers, '*') or '', '^(%S+) (%d+) ')
local before = redis.call('HGET', readers, subscription)
if not before then return 'lost' end
if holder == '' then
  if string.match(before, '^%d+ %S+') ~= position then return 'lost' end
elseif owner ~= holder or fence ~= position then
  return 'lost'
end
local at, at_sid, delivered_before, given_up_before = string.match(before, '^(%d+) (%S+) (%d+) (%d+)$')
if number > tonumber(string.match(redis.call('GET', partition .. KEY.signal_state) or '', '^%d+ (%d+)') or 0) then return 'rewound' end
local there = redis.call('ZRANGE', log, number, number, 'BYSCORE')[1]
if there and sid ~= '-' and string.match(there, '^%d+ (%S+) ') ~= sid then return 'rewound' end
local before_number = tonumber(at)
if number > before_number then at, at_sid = string.format('%.0f', number), sid end
delivered, given_up = string.format('%.0f', delivered_before + delivered), string.format('%.0f', given_up_before + given_up)
redis.call('HSET', readers, subscription, table.concat({ at, at_sid, delivered, given_up }, ' '))

-- Dropping signals requires reading the cursors of all subscriptions, so it is done only once in 32 signals.
if math.floor(number / 32) == math.floor(before_number / 32) then return 'moved' end
local least, fields = math.huge, redis.call('HRANDFIELD', readers, 1000, 'WITHVALUES')
for k = 1, #fields, 2 do
  if fields[k] ~= '*' then least = math.min(least, tonumber(string.match(fields[k + 1], '^%d+'))) end
end
-- The last signal that all subscriptions have read stays. If a reader does not find that signal, the log was replaced (signals.lua).
redis.call('ZREMRANGEBYSCORE', log, '-inf', '(' .. least)
return 'moved'
