#!lua flags=allow-oom
-- Stores events of sessions and removes their due records. If the due record of an event is gone, the event was stored before and is
-- skipped. An event that has no due record is skipped if its session is not live and has no events: they were removed (forget.lua). The
-- script may run when memory is full, since a due record takes as much memory as its event.
-- KEYS  1 partition
-- ARGV  1 how long to keep events, ms; 0: not at all, 2 how many events to keep of a session, 3 of how many sessions of a subject; then
--       for each event the key of its due record, or '' if it has none; its sid, or '*' for a logout of everyone; the subject, or ''; and
--       its text, without a newline
local partition, keep, most = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local expires = now + shift + keep

-- Returns false if the event is skipped because the events of its session were removed.
local function append(sid, due, subject, text)
  local key = partition .. (sid == '*' and 'x' or 'v' .. sid)
  local before = redis.call('GET', key) or ''
  if due == '' and before == '' and not live(partition, sid, now) then return false end
  if string.find('\n' .. before, '\n' .. text .. '\n', 1, true) then return true end
  local _, count = string.gsub(before, '\n', '')
  if sid == '*' then
    while count >= most do before, count = string.gsub(before, '^[^\n]*\n', ''), count - 1 end
  end
  if due ~= sid and count >= most then return true end
  -- Events are found by the subject, so none lives longer than what names them (`index`).
  if subject == '' and before ~= '' and sid ~= '*' then
    redis.call('SET', key, before .. text .. '\n', 'KEEPTTL')
  else
    redis.call('SET', key, before .. text .. '\n', 'PXAT', expires)
  end
  return true
end

-- Names the session among the last ones of its subject. Earlier ones move to a list of their own, for as long as they have events.
local function index(subject, sid)
  local key, past = partition .. 'w' .. subject, partition .. 'a' .. subject
  local sids = redis.call('GET', key) or ''
  local known = string.find(sids, sid, 1, true)
  if known then sids = string.sub(sids, 1, known - 1) .. string.sub(sids, known + ID) end
  local last = math.max(redis.call('PEXPIRETIME', key), expires)
  local from = math.max(1, #sids - ID * (tonumber(ARGV[3]) - 1) + 1)
  for at = 1, from - 1, ID do
    local earlier = string.sub(sids, at, at + ID - 1)
    local until_time = redis.call('PEXPIRETIME', partition .. 'v' .. earlier)
    if until_time > 0 then
      redis.call('ZADD', past, until_time, earlier)
      redis.call('ZREMRANGEBYSCORE', past, '-inf', now + shift)
      redis.call('PEXPIREAT', past, math.max(redis.call('PEXPIRETIME', past), until_time))
    end
  end
  redis.call('SET', key, string.sub(sids, from) .. sid, 'PXAT', last)
end

for at = 4, #ARGV - 6, 4 do
  local due, sid, subject, text = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  if (due == '' or redis.call('HDEL', partition .. 'r', due) == 1) and keep > 0 then
    if append(sid, due, subject, text) and subject ~= '' then index(subject, sid) end
  end
end
return ''
