#!lua flags=allow-oom
-- Adds a subscription to the readers of partitions, at the present end of their signal logs ('add'), moves it to that end ('restart'),
-- or removes it. Signals are logged only while there are readers, and those of creations only while one wants them.
-- KEYS  any partitions of one slot
-- ARGV  the first locals, in this order
-- Returns a list of 'done'
-- @include lib/deadline.lua
-- @include lib/partition.lua: ARGC
local verb, -- 'add', 'restart' or 'remove'
  subscription,
  retention, -- for how long signals are kept, ms
  wanted_notices -- what 'add' wants beside endings, each after a blank, or ''
  = unpack(ARGV, 1, ARGC)
local line = '\n' .. subscription .. wanted_notices .. '\n'
for _, partition in ipairs(KEYS) do
  local readers, switch, notices = partition .. 'f', partition .. 'g', partition .. 'p'
  -- In a cluster every second key names no partition (link.ts).
  if string.sub(partition, -1) ~= '}' then
    -- there is nothing to do for a key without a partition
  elseif verb == 'add' then
    local log = redis.call('GET', switch)
    if not log then redis.call('SET', switch, retention .. ' 0 -') end
    if not redis.call('HGET', readers, subscription) then
      redis.call('HSET', readers, subscription, (log and string.match(log, '^%d+ (.*)$') or '0 -') .. ' 0 0')
    end
    local wanted = wanted_notices ~= '' and (redis.call('GET', notices) or '')
    if wanted and not string.find(wanted, line, 1, true) then redis.call('SET', notices, wanted .. line) end
  elseif verb == 'restart' then
    local log, before = redis.call('GET', switch), redis.call('HGET', readers, subscription)
    if log and before then
      redis.call('HSET', readers, subscription, string.match(log, '^%d+ (.*)$') .. string.match(before, ' %d+ %d+$'))
    end
  else
    redis.call('HDEL', readers, subscription)
    local wanted = redis.call('GET', notices)
    local rest = wanted and string.gsub(wanted, '\n' .. subscription .. ' [^\n]*\n', '')
    if rest == '' then redis.call('DEL', notices) elseif rest and rest ~= wanted then redis.call('SET', notices, rest) end
    local left = redis.call('HRANDFIELD', readers, 2)
    if #left == 0 or (#left == 1 and left[1] == '*') then
      redis.call('DEL', switch, readers, partition .. 'z', partition .. 'j', notices)
    end
  end
end
return { 'done' }
