#!lua flags=allow-oom
-- Returns the stored events of a session, of a subject's sessions, or of the logouts of everyone.
-- KEYS  1 partition
-- ARGV  1 a subject, or ''; 2 a sid, '*' for the logouts of everyone, or ''
-- Returns texts. Each text has any number of events, and each event ends with a newline.
local partition, texts = KEYS[1], {}
if ARGV[2] == '*' then return { redis.call('GET', partition .. 'x') or '' } end
local sids = ARGV[2] ~= '' and ARGV[2] or redis.call('GET', partition .. 'w' .. ARGV[1]) or ''
for from = 1, #sids, ID do
  texts[#texts + 1] = redis.call('GET', partition .. 'v' .. string.sub(sids, from, from + ID - 1)) or ''
end
return texts
