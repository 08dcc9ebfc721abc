#!lua flags=allow-oom
-- Ends what a subject has, but one.
-- KEYS  1 partition
-- ARGV  1 subject, 2 reason, 3 marker life, ms, 4 the session to spare, or '', 5 the session that must be live, or '',
--       6 the note of the due records, or ''
-- Returns a list: 'actor_ended'; or 'ended' and the ids of the sessions that were ended, oldest first.
local partition, subject = KEYS[1], ARGV[1]
if ARGV[5] ~= '' then
  local actor = live(partition, ARGV[5], now)
  if not actor or subject_of(actor) ~= subject then return { 'actor_ended' } end
end
local sids = redis.call('HGET', partition .. 'u', subject) or ''
local reply, ended, spared = { 'ended' }, {}, ''
for from = 1, #sids, ID do
  local sid = string.sub(sids, from, from + ID - 1)
  if sid == ARGV[4] then
    spared = sid
  elseif live(partition, sid, now) then
    ended[#ended + 1], reply[#reply + 1] = sid, sid
  end
end
close(partition, ended, ARGV[2], now, tonumber(ARGV[3]), ARGV[6], subject)
write_index(partition, subject, spared)
return reply
