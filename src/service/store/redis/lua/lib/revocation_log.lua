-- The revocation log of a partition ({a7}l).
-- @include lib/deadline.lua: shift
-- @include lib/lives.lua: LOG_SLACK

-- Appends entries to the revocation log of a partition, drops those whose access tokens have all expired, and publishes the entries. The
-- score of an entry is the time, but always greater than all earlier scores, even if the clock was set back or another node has taken
-- over. So a reader that continues after the last entry that it has read misses no entry.
local STEP = 1 / 1024 -- the distance between the scores of two entries of the same ms; doubles as great as a time are 1 / 4096 apart
local function append_to_log(partition, entries, now, marker_life)
  local log, scored = partition .. KEY.log, {}
  local newest = redis.call('ZRANGE', log, 0, 0, 'REV', 'WITHSCORES')[2]
  local score = newest and math.max(now, newest + STEP) or now
  for k, entry in ipairs(entries) do
    scored[2 * k - 1], scored[2 * k] = score + (k - 1) * STEP, entry
  end
  redis.call('ZADD', log, 'NX', unpack(scored)) -- NX keeps the position of an existing entry, because readers may have read it
  redis.call('ZREMRANGEBYSCORE', log, '-inf', '(' .. now - marker_life)
  redis.call('PEXPIREAT', log, now + marker_life + shift + LOG_SLACK)
  -- A lost notification does no harm, because readers also read the log at intervals.
  redis.pcall('PUBLISH', string.sub(partition, 1, -5) .. 'session-revocations', table.concat(entries, '\n'))
end
