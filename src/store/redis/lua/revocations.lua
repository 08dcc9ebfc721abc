#!lua flags=allow-oom
-- What was appended to the logs of partitions since they were read.
-- KEYS  any partitions of one slot
-- ARGV  1 the most entries to return, then for each of the partitions the last entry that was read, or ''
-- Returns the time; for each partition where ends of many sessions of a subject are under way 'ending <partition> <what changes as they
-- go on>'; for each with news 'log <partition>' and then the entries, in the order in which they were appended; and if there may be more,
-- 'rest <partition>': what follows of this partition and of those after it has not been read. 'next <entry>' follows entries of which some
-- are to be read again: those after that entry. An instance of version 0.1 gives each entry the time as its score, so until this
-- millisecond is over an entry may still come before them.
-- An entry precedes in the log whatever was appended after it, also on a node that has taken over (append_to_log). If that node has not received
-- the last entry that was read, or if it has been dropped, all that the log holds is returned.
local found, left, of_ends = { string.format('%.0f', now) }, tonumber(ARGV[1]), {}
local count = #ARGV - 4
for k = 1, count do of_ends[k] = KEYS[k] .. 'h' end
local horizons = redis.call('MGET', unpack(of_ends))
for k = 1, count do
  if horizons[k] then found[#found + 1] = 'ending ' .. KEYS[k] .. ' ' .. redis.sha1hex(horizons[k]) end
end
for k = 1, count do
  if left == 0 then
    found[#found + 1] = 'rest ' .. KEYS[k]
    break
  end
  local log, last = KEYS[k] .. 'l', ARGV[k + 1]
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
