#!lua flags=allow-oom
-- Ends every session of a partition that was created up to a time.
-- KEYS  1 partition
-- ARGV  1 that time, ms, 2 marker life, ms, 3 the note of the due record, or '', 4 its key
-- Returns 'ended'
local partition = KEYS[1]
local log, expires = partition .. 'l', now + tonumber(ARGV[2])
local created_until = string.format('%.0f', math.max(tonumber(ARGV[1]), ended_until(partition)))
local entry = '* ' .. created_until .. ' ' .. expires .. ' revoked_all'
redis.call('SET', partition .. 'e', created_until)
redis.call('ZADD', log, now, entry)
redis.call('PEXPIREAT', log, expires + shift + LOG_SLACK)
if ARGV[3] ~= '' then
  redis.call('HSET', partition .. 'r', ARGV[4], table.concat({ now, now, 'revoked_all', ARGV[3], '' }, '\n'))
  redis.call('PEXPIREAT', partition .. 'r', now + shift + LOG_SLACK)
end
redis.pcall('PUBLISH', 'session-revocations', entry) -- only a hint
return 'ended'
