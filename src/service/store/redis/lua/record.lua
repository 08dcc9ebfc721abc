#!lua flags=allow-oom
-- Stores events of sessions and removes their due records. If the due record of an event is gone, the event was stored before and is
-- skipped. The script may run when memory is full, since a due record takes as much memory as its event.
-- KEYS  1 partition
-- ARGV  1 how long to keep events, ms; 0: not at all, 2 how many events to keep of a session, 3 of how many sessions of a subject; then
--       for each event the key of its due record, or '' if it has none; its sid, or '*' for a logout of everyone; the subject, or ''; and
--       its text, without a newline
local partition, keep, most = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local expires = now + shift + keep

local function append(sid, is_end, text)
  local key = partition .. (sid == '*' and 'x' or 'v' .. sid)
  local before = redis.call('GET', key) or ''
  if string.find('\n' .. before, '\n' .. text .. '\n', 1, true) then return end
  local _, count = string.gsub(before, '\n', '')
  if sid == '*' then
    while count >= most do before, count = string.gsub(before, '^[^\n]*\n', ''), count - 1 end
  end
  if is_end or count < most then redis.call('SET', key, before .. text .. '\n', 'PXAT', expires) end
end

local function index(subject, sid)
  local key = partition .. 'w' .. subject
  local sids = redis.call('GET', key) or ''
  local known = string.find(sids, sid, 1, true)
  if known then sids = string.sub(sids, 1, known - 1) .. string.sub(sids, known + ID) end
  redis.call('SET', key, string.sub(sids, ID * (1 - tonumber(ARGV[3]))) .. sid, 'PXAT', expires)
end

for at = 4, #ARGV - 6, 4 do
  local due, sid, subject, text = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  if (due == '' or redis.call('HDEL', partition .. 'r', due) == 1) and keep > 0 then
    append(sid, due == sid, text)
    if subject ~= '' then index(subject, sid) end
  end
end
return ''
