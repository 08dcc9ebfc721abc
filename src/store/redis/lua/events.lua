#!lua flags=allow-oom
-- Returns the events that are kept.
-- KEYS  1 partition
-- ARGV  1 a subject, or ''; 2 a sid, '*' for the ends of all, or ''
-- Returns texts. Each event in them ends with a newline.
local partition, texts = KEYS[1], {}
if ARGV[2] == '*' then return { redis.call('GET', partition .. 'x') or '' } end
local sids = ARGV[2] ~= '' and ARGV[2] or redis.call('GET', partition .. 'w' .. ARGV[1]) or ''
for from = 1, #sids, ID do
  texts[#texts + 1] = redis.call('GET', partition .. 'v' .. string.sub(sids, from, from + ID - 1)) or ''
end
return texts
