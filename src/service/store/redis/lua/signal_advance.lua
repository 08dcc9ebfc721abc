#!lua flags=allow-oom
-- Moves the cursor of a subscription forward, and drops the signals that all subscriptions have read.
-- KEYS  1 partition
-- ARGV  1 the holder of the lease, 2 its fence; for a subscription that is polled, 1 is '' and 2 the present cursor, as "number sid";
--       3 the subscription, 4 the number of the last signal that was read, 5 the id of its session, 6 how many signals were delivered, 7 how many
--       were given up
-- Returns 'moved'; 'lost' if another instance has the lease, the cursor has changed, or there is no such subscription; 'rewound' if the
-- log has no such signal.
local partition, id, number = KEYS[1], ARGV[3], tonumber(ARGV[4])
local readers, log = partition .. 'f', partition .. 'z'
local owner, fence = string.match(redis.call('HGET', readers, '*') or '', '^(%S+) (%d+) ')
local before = redis.call('HGET', readers, id)
if not before then return 'lost' end
if ARGV[1] == '' then
  if string.match(before, '^%d+ %S+') ~= ARGV[2] then return 'lost' end
elseif owner ~= ARGV[1] or fence ~= ARGV[2] then
  return 'lost'
end
local at, sid, delivered, dead = string.match(before, '^(%d+) (%S+) (%d+) (%d+)$')
if number > tonumber(string.match(redis.call('GET', partition .. 'g') or '', '^%d+ (%d+)') or 0) then return 'rewound' end
local there = redis.call('ZRANGE', log, number, number, 'BYSCORE')[1]
if there and ARGV[5] ~= '-' and string.match(there, '^%d+ (%S+) ') ~= ARGV[5] then return 'rewound' end
local before_number = tonumber(at)
if number > before_number then at, sid = string.format('%.0f', number), ARGV[5] end
delivered, dead = string.format('%.0f', delivered + ARGV[6]), string.format('%.0f', dead + ARGV[7])
redis.call('HSET', readers, id, table.concat({ at, sid, delivered, dead }, ' '))

-- Dropping signals requires reading the cursors of all subscriptions, so it is done only once in 32 signals.
if math.floor(number / 32) == math.floor(before_number / 32) then return 'moved' end
local least, fields = math.huge, redis.call('HRANDFIELD', readers, 1000, 'WITHVALUES')
for k = 1, #fields, 2 do
  if fields[k] ~= '*' then least = math.min(least, tonumber(string.match(fields[k + 1], '^%d+'))) end
end
-- The last signal that all subscriptions have read stays. If a reader does not find that signal, the log was replaced (signals.lua).
redis.call('ZREMRANGEBYSCORE', log, '-inf', '(' .. least)
return 'moved'
