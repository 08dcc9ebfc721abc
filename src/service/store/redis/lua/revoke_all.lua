#!lua flags=allow-oom
-- Ends every session of a partition that was created up to a time.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns 'ended'
-- @include lib/deadline.lua: ARGC, now, shift
-- @include lib/hand_over.lua: hand_over
-- @include lib/head.lua: created_of
-- @include lib/live.lua: read_all_ended_until
-- @include lib/lives.lua: LOG_SLACK
-- @include lib/revocation_log.lua: append_to_log
-- @include lib/sizes.lua: NOBODY
local all_ended_until, -- that time, ms
  marker_life, -- how long ended sessions stay marked, ms
  note, -- the text of the due record (event-text.ts), or ''
  due_key -- its key
  = unpack(ARGV, 1, ARGC)
local partition = KEYS[1]
marker_life = tonumber(marker_life)
local before = read_all_ended_until(partition)
all_ended_until = string.format('%.0f', math.max(tonumber(all_ended_until), before))
if redis.call('GET', partition .. KEY.signal_state) then
  local after, from = string.match(redis.call('GET', partition .. KEY.unsignalled) or '', '^(%d+) %d+ %d+ (.*)$')
  local times = string.format('%s %s %.0f ', after or string.format('%.0f', before), all_ended_until, now)
  redis.call('SET', partition .. KEY.unsignalled, times .. (from or ''))
end
redis.call('SET', partition .. KEY.all_ended, all_ended_until)
if note ~= '' then
  redis.call('HSET', partition .. KEY.due, due_key, table.concat({ now, now, 'revoked_all', note, '' }, '\n'))
  redis.call('PEXPIREAT', partition .. KEY.due, now + shift + LOG_SLACK)
end
local attached = redis.call('GET', partition .. KEY.attached)
if attached then
  hand_over(partition, attached, function(actor)
    local record = actor ~= NOBODY and redis.call('GET', partition .. KEY.session .. actor)
    return record and created_of(record) <= tonumber(all_ended_until)
  end)
end
append_to_log(partition, { '* ' .. all_ended_until .. ' ' .. now + marker_life .. ' revoked_all' }, now, marker_life)
return 'ended'
