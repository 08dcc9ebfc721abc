#!lua flags=allow-oom
-- Adds a subscription to the readers of partitions, at the present end of their signal logs ('add'), moves it to that end ('restart'),
-- or removes it. Signals are logged only while there are readers, and those of creations only while one wants them.
-- KEYS  any partitions of one slot
-- ARGV  the first locals, in this order
-- Returns a list of 'done'
-- @include lib/deadline.lua: ARGC
local verb, -- 'add', 'restart' or 'remove'
  subscription,
  retention, -- for how long signals are kept, ms
  wanted_notices -- what 'add' wants beside endings, each after a blank, or ''
  = unpack(ARGV, 1, ARGC)
local line = '\n' .. subscription .. wanted_notices .. '\n'
for _, partition in ipairs(KEYS) do
  local readers, state_key, notices_key = partition .. KEY.signal_readers, partition .. KEY.signal_state, partition .. KEY.notices
  -- In a cluster every second key names no partition (script-runner.ts).
  if string.sub(partition, -1) ~= '}' then
    -- there is nothing to do for a key without a partition
  elseif verb == 'add' then
    local signal_state = redis.call('GET', state_key)
    if not signal_state then redis.call('SET', state_key, retention .. ' 0 -') end
    if not redis.call('HGET', readers, subscription) then
      redis.call('HSET', readers, subscription, (signal_state and string.match(signal_state, '^%d+ (.*)$') or '0 -') .. ' 0 0')
    end
    local wanted = wanted_notices ~= '' and (redis.call('GET', notices_key) or '')
    if wanted and not string.find(wanted, line, 1, true) then redis.call('SET', notices_key, wanted .. line) end
  elseif verb == 'restart' then
    local signal_state, before = redis.call('GET', state_key), redis.call('HGET', readers, subscription)
    if signal_state and before then
      redis.call('HSET', readers, subscription, string.match(signal_state, '^%d+ (.*)$') .. string.match(before, ' %d+ %d+$'))
    end
  else
    redis.call('HDEL', readers, subscription)
    local wanted = redis.call('GET', notices_key)
    local rest = wanted and string.gsub(wanted, '\n' .. subscription .. ' [^\n]*\n', '')
    if rest == '' then redis.call('DEL', notices_key) elseif rest and rest ~= wanted then redis.call('SET', notices_key, rest) end
    local left = redis.call('HRANDFIELD', readers, 2)
    if #left == 0 or (#left == 1 and left[1] == '*') then
      redis.call('DEL', state_key, readers, partition .. KEY.signals, partition .. KEY.unsignalled, notices_key)
    end
  end
end
return { 'done' }
