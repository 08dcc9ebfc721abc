#!lua flags=allow-oom
-- Takes, extends or gives back the right to read the signal log of partitions.
-- KEYS  any partitions of one slot
-- ARGV  the first locals, in this order
-- Returns for each partition the fence, a number that grows with each new holder, or '0' if the holder does not have the lease.
-- @include lib/deadline.lua: ARGC, now
local holder,
  life, -- for how long, ms; 0 to give it back
  retention -- for how long signals are kept, ms
  = unpack(ARGV, 1, ARGC)
local fences = {}
life = tonumber(life)
for k, partition in ipairs(KEYS) do
  local readers, signal_state = partition .. KEY.signal_readers, redis.call('GET', partition .. KEY.signal_state)
  fences[k] = '0'
  if signal_state then
    local owner, fence, held = string.match(redis.call('HGET', readers, '*') or '', '^(%S+) (%d+) (%d+)$')
    local left = owner and tonumber(held) - now or 0
    if owner == holder or left <= 0 or left > math.max(life, 600000) then
      fence = owner == holder and fence or string.format('%.0f', (fence or 0) + 1)
      if owner == holder or life > 0 then
        redis.call('HSET', readers, '*', holder .. ' ' .. fence .. ' ' .. string.format('%.0f', now + life))
      end
      fences[k] = life > 0 and fence or '0'
    end
    local keep, rest = string.match(signal_state, '^(%d+)( .*)$')
    if keep ~= retention then redis.call('SET', partition .. KEY.signal_state, retention .. rest) end
  end
end
return fences
