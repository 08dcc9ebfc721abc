#!lua
-- Keeps events of sessions, beside what the service relies on.
-- KEYS  1 partition
-- ARGV  1 how long, ms, 2 the most of a session, 3 the most sessions of a subject; then for each event
--       its sid, or '*' for the end of all; the subject, or ''; 'ended' or ''; and its text, without a newline
local partition, expires = KEYS[1], now + shift + tonumber(ARGV[1])
for at = 4, #ARGV - 6, 4 do
  local sid, subject, is_end, text = ARGV[at], ARGV[at + 1], ARGV[at + 2] ~= '', ARGV[at + 3]
  local key = partition .. (sid == '*' and 'x' or 'v' .. sid)
  local before = redis.call('GET', key) or ''
  local _, count = string.gsub(before, '\n', '')
  if sid == '*' then
    while count >= tonumber(ARGV[2]) do before, count = string.gsub(before, '^[^\n]*\n', ''), count - 1 end
  end
  if is_end or count < tonumber(ARGV[2]) then redis.call('SET', key, before .. text .. '\n', 'PXAT', expires) end
  if subject ~= '' then
    local index = partition .. 'w' .. subject
    local sids = redis.call('GET', index) or ''
    local known = string.find(sids, sid, 1, true)
    if known then sids = string.sub(sids, 1, known - 1) .. string.sub(sids, known + ID) end
    redis.call('SET', index, string.sub(sids, ID * (1 - tonumber(ARGV[3]))) .. sid, 'PXAT', expires)
  end
end
return ''
