-- The signals of sessions ({a7}z).
-- @include lib/deadline.lua: shift
-- @include lib/actor.lua: actor_of
-- @include lib/head.lua: subject_of
-- @include lib/lives.lua: LOG_SLACK
-- @include lib/record.lua: CLIENT_ID
-- @include lib/texts.lua: text_of

-- Appends signals of sessions to the signal log, such as that they ended. `signal_state` is the value of the key {a7}g: for how long
-- signals are kept, and how many were ever appended. Each of `ends` is { sid, reason, record or false, subject }; the subject is used if
-- there is no record.
local function append_signals(partition, signal_state, ends, now)
  local MOST_SIGNALS = 16384 -- the most that a partition keeps; each takes some 150 bytes
  local log, keep, count = partition .. KEY.signals, string.match(signal_state, '^(%d+) (%d+) ')
  local added = {}
  for _, ending in ipairs(ends) do
    local sid, reason, record, subject = unpack(ending)
    local client, flag = '', ''
    if record then
      local actor = actor_of(record)
      if actor then
        flag = '0' -- an older instance reads the same time
        redis.call('SET', partition .. KEY.actor .. sid, actor, 'PXAT', now + keep + shift)
      end
      subject, client = subject_of(record), text_of(record, CLIENT_ID)
    end
    count = count + 1
    local number = string.format('%.0f', count)
    added[#added + 1] = number
    added[#added + 1] = table.concat({ number, sid, flag .. string.format('%.0f', now), reason, #client, client .. subject }, ' ')
  end
  redis.call('ZADD', log, unpack(added))
  redis.call('SET', partition .. KEY.signal_state, table.concat({ keep, string.format('%.0f', count), ends[#ends][1] }, ' '))
  redis.call('ZREMRANGEBYSCORE', log, '-inf', count - MOST_SIGNALS)
  -- Examines the oldest signals, one more than were added, and removes those that are too old. So old signals never accumulate.
  for _, signal in ipairs(redis.call('ZRANGE', log, '-inf', '+inf', 'BYSCORE', 'LIMIT', 0, #ends + 1)) do
    if now - string.match(signal, '^%S+ %S+ (%d+)') > tonumber(keep) then redis.call('ZREM', log, signal) end
  end
  redis.call('PEXPIREAT', log, now + keep + shift + LOG_SLACK)
end

-- Returns a signal; if its session has an actor (its time begins with 0), with the actor in a line of its own.
local function with_actor(partition, signal)
  local sid = string.match(signal, '^%S+ (%S+) 0%d')
  return sid and signal .. '\n' .. (redis.call('GET', partition .. KEY.actor .. sid) or '') or signal
end
