-- The events of sessions ({a7}v<sid>), and what names the sessions that have some.
-- @include lib/deadline.lua: shift
-- @include lib/clock.lua: clock
-- @include lib/head.lua: created_of, subject_of
-- @include lib/record.lua: ADDRESS, CLIENT_ID, DISPLAY_NAME, USER_AGENT
-- @include lib/sizes.lua: ID
-- @include lib/texts.lua: text_of

local LAST_SESSIONS = 64 -- how many sessions of a subject {a7}w<subject> names (MAX_EVENT_SESSIONS of events.ts)

-- Returns the event of a session's creation, as a line: what the note in {a7}C says, and what the record says.
local function creation_of(sid, record, note)
  local texts = {}
  for k, number in ipairs({ CLIENT_ID, USER_AGENT, ADDRESS, DISPLAY_NAME }) do texts[k] = text_of(record, number) end
  local time = string.format('%.0f', created_of(record) + shift)
  return table.concat({ string.sub(note, 1, -2), #note > 2 and ',' or '', '"t":', time, ',"k":"created","s":"', sid, '","u":',
    cjson.encode(subject_of(record)), ',"c":', cjson.encode(texts), '}\n' })
end

-- Names a session among the last ones of its subject that have events. Earlier ones move to a list of their own while they have events.
local function index_events(partition, subject, sid, expires)
  local key, past = partition .. KEY.last_sessions .. subject, partition .. KEY.earlier_sessions .. subject
  local sids = redis.call('GET', key) or ''
  local known = string.find(sids, sid, 1, true)
  if known then sids = string.sub(sids, 1, known - 1) .. string.sub(sids, known + ID) end
  local last = math.max(redis.call('PEXPIRETIME', key), expires)
  local from = math.max(1, #sids - ID * (LAST_SESSIONS - 1) + 1)
  for at = 1, from - 1, ID do
    local earlier = string.sub(sids, at, at + ID - 1)
    local until_time = redis.call('PEXPIRETIME', partition .. KEY.events .. earlier)
    if until_time > 0 then
      redis.call('ZADD', past, until_time, earlier)
      redis.call('ZREMRANGEBYSCORE', past, '-inf', clock())
      redis.call('PEXPIREAT', past, math.max(redis.call('PEXPIRETIME', past), until_time))
    end
  end
  redis.call('SET', key, string.sub(sids, from) .. sid, 'PXAT', last)
end

-- Turns the note of a session's creation into an event. The session ends, so its record, which has the rest of the event, is removed, and
-- the list of its subject does not name it any more.
local function complete_creation(partition, sid, record, now)
  local notes = partition .. KEY.creations
  local note = redis.call('HGET', notes, sid)
  if not note then return end
  redis.call('HDEL', notes, sid)
  local key, keep = partition .. KEY.events .. sid, tonumber(redis.call('HGET', notes, '*'))
  if keep == 0 or not record then return end
  local expires = now + shift + keep
  redis.call('SET', key, creation_of(sid, record, note) .. (redis.call('GET', key) or ''), 'PXAT', expires)
  index_events(partition, subject_of(record), sid, expires)
end
