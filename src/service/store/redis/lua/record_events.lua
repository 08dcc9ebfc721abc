#!lua flags=allow-oom
-- Stores events of sessions and removes their due records. If the due record of an event is gone, the event was stored before and is
-- skipped. An event that has no due record is skipped if its session is not live and has no events: they were removed (forget.lua). The
-- script may run when memory is full, since a due record takes as much memory as its event.
-- KEYS  1 partition
-- ARGV  1 how long to keep events, ms; 0: not at all, 2 how many events to keep of a session; then for each event the key of its due
--       record, or '' if it has none; its sid, or '*' for a logout of everyone; the subject, or ''; its text, without a newline; and for
--       the creation of a session what its record lacks of that text, else ''
-- @include lib/deadline.lua: ARGC, now, shift
-- @include lib/commands.lua: require_commands
-- @include lib/head.lua: created_of, lifetimes_of, subject_of
-- @include lib/live.lua: live
-- @include lib/lives.lua: slack
-- @include lib/session_events.lua: index_events
local partition, keep, most = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
require_commands(partition, 'GET MGET SET HGET HSET HDEL HRANDFIELD ZADD ZREMRANGEBYSCORE PEXPIREAT PEXPIRETIME')
local expires = now + shift + keep

-- Returns false if the event is skipped because the events of its session were removed.
local function append(sid, due, subject, text)
  local key = partition .. (sid == '*' and KEY.ends or KEY.events .. sid)
  local before = redis.call('GET', key) or ''
  if due == '' and before == '' and not live(partition, sid, now) then return false end
  if string.find('\n' .. before, '\n' .. text .. '\n', 1, true) then return true end
  local _, count = string.gsub(before, '\n', '')
  if sid == '*' then
    while count >= most do before, count = string.gsub(before, '^[^\n]*\n', ''), count - 1 end
  elseif redis.call('HGET', partition .. KEY.creations, sid) then
    count = count + 1
  end
  if due ~= sid and count >= most then return true end
  -- Events are found by the subject, so none lives longer than what names them (`index_events`).
  if subject == '' and before ~= '' and sid ~= '*' then
    redis.call('SET', key, before .. text .. '\n', 'KEEPTTL')
  else
    redis.call('SET', key, before .. text .. '\n', 'PXAT', expires)
  end
  return true
end

-- Notes what the record of a session lacks of the event of its creation. Returns false if the record is gone.
local function note_creation(sid, subject, note)
  local notes, record = partition .. KEY.creations, redis.call('GET', partition .. KEY.session .. sid)
  if not record or subject_of(record) ~= subject then return false end
  local idle, life = lifetimes_of(record)
  redis.call('HSET', notes, '*', ARGV[1], sid, note)
  redis.call('PEXPIREAT', notes, math.max(redis.call('PEXPIRETIME', notes), created_of(record) + life + slack(idle)))
  -- An instance of 0.2 that ends a session leaves its note. So each creation examines two random ones.
  for _, other in ipairs(redis.call('HRANDFIELD', notes, -2)) do
    if other ~= '*' and not redis.call('GET', partition .. KEY.session .. other) then redis.call('HDEL', notes, other) end
  end
  return true
end

if keep == 0 and redis.call('HGET', partition .. KEY.creations, '*') then redis.call('HSET', partition .. KEY.creations, '*', 0) end
for at = 3, ARGC, 5 do
  local due, sid, subject, text, note = unpack(ARGV, at, at + 4)
  if (due == '' or redis.call('HDEL', partition .. KEY.due, due) == 1) and keep > 0 then
    local is_noted = note ~= '' and note_creation(sid, subject, note)
    if not is_noted and append(sid, due, subject, text) and subject ~= '' then index_events(partition, subject, sid, expires) end
  end
end
return ''
