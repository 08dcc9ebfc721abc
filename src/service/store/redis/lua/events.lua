#!lua flags=allow-oom
-- Returns the events of a session, of a subject's sessions, or of the logouts of everyone.
-- KEYS  1 partition
-- ARGV  1 a subject, or ''; 2 a sid, '*' for the logouts of everyone, or ''
-- Returns a text for each session. Each text has any number of events, and each event ends with a newline.
-- @include lib/deadline.lua
-- @include lib/session_events.lua: LAST_SESSIONS, creation_of
-- @include lib/sizes.lua: ID
local partition, subject, texts = KEYS[1], ARGV[1], {}
if ARGV[2] == '*' then return { redis.call('GET', partition .. KEY.ends) or '' } end

local sids, current = ARGV[2], ''
if sids == '' then
  sids = redis.call('GET', partition .. KEY.last_sessions .. subject) or ''
  current = string.sub(redis.call('HGET', partition .. KEY.few_sessions, subject) or '', -LAST_SESSIONS * ID)
  for _, entry in ipairs(redis.call('ZREVRANGEBYLEX', partition .. KEY.many_sessions .. subject, '+', '-', 'LIMIT', 0, LAST_SESSIONS)) do
    current = current .. string.sub(entry, -ID)
  end
end
local listed = sids .. current
for from = 1, #listed, ID do
  local sid = string.sub(listed, from, from + ID - 1)
  if from <= #sids or not string.find(sids, sid, 1, true) then
    local note = redis.call('HGET', partition .. KEY.creations, sid)
    local record = note and redis.call('GET', partition .. KEY.session .. sid)
    texts[#texts + 1] = (record and creation_of(sid, record, note) or '') .. (redis.call('GET', partition .. KEY.events .. sid) or '')
  end
end
return texts
