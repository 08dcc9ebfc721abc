#!lua flags=allow-oom
-- Returns the entries that were appended to the logs of partitions since the caller last read these logs.
-- KEYS  any partitions of one slot
-- ARGV  1 the most entries to return, then for each of the partitions the last entry that was read, or ''
-- Returns, one after the other:
--   the time;
--   'ending <partition> <hash>' for each partition where logouts of many sessions are not complete. The hash changes with their progress;
--   '* <created until> 0 revoked_all' if some of these logs were not read before, and all sessions of their partitions have ended up to a
--   time: the log drops such an entry once the tokens of these sessions have expired;
--   'log <partition>' for each partition with new entries, and then these entries, in the order in which they were appended;
--   'next <entry>' after entries of which some must be read again, namely those after the named entry. An instance of version 0.1 gives
--   each entry the time as its score, so until this millisecond is over it may still insert an entry before them;
--   'rest <partition>' if the limit was reached: more entries of this partition, and all of the partitions after it, have not been read.
-- The order of the log is the order of appending, even after a failover to another node (append_to_log). If the log does not contain the
-- last entry that was read, because that node has not received it or because it was dropped, all entries of the log are returned.
-- @include lib/deadline.lua: ARGC, now
local found, left = { string.format('%.0f', now) }, tonumber(ARGV[1])
local count = ARGC - 1 -- In a cluster, KEYS has further keys, of no partition (script-runner.ts).
local bulk_logout_keys, all_ended_keys = {}, {}
for k = 1, count do
  bulk_logout_keys[k] = KEYS[k] .. KEY.bulk_logouts
  if ARGV[k + 1] == '' then all_ended_keys[#all_ended_keys + 1] = KEYS[k] .. KEY.all_ended end
end
local bulk_logouts = redis.call('MGET', unpack(bulk_logout_keys))
for k = 1, count do
  if bulk_logouts[k] then found[#found + 1] = 'ending ' .. KEYS[k] .. ' ' .. redis.sha1hex(bulk_logouts[k]) end
end
local all_ended_until = 0
for _, time in ipairs(#all_ended_keys > 0 and redis.call('MGET', unpack(all_ended_keys)) or {}) do
  all_ended_until = math.max(all_ended_until, tonumber(time or 0))
end
if all_ended_until > 0 then found[#found + 1] = string.format('* %.0f 0 revoked_all', all_ended_until) end
for k = 1, count do
  if left == 0 then
    found[#found + 1] = 'rest ' .. KEYS[k]
    break
  end
  local log, last = KEYS[k] .. KEY.log, ARGV[k + 1]
  local newest, score = unpack(redis.call('ZRANGE', log, 0, 0, 'REV', 'WITHSCORES'))
  if newest and newest ~= last then
    local rank = last ~= '' and redis.call('ZRANK', log, last)
    local from = rank and rank + 1 or 0
    local entries = redis.call('ZRANGE', log, from, from + left - 1)
    found[#found + 1] = 'log ' .. KEYS[k]
    for _, entry in ipairs(entries) do found[#found + 1] = entry end
    left = left - #entries
    if entries[#entries] ~= newest then
      found[#found + 1] = 'rest ' .. KEYS[k]
      break
    elseif tonumber(score) >= now then
      local before = redis.call('ZRANGE', log, '(' .. now, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
      found[#found + 1] = 'next ' .. (before or '')
    end
  end
end
return found
