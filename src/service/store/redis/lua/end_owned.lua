#!lua flags=allow-oom
-- Ends a session at the request of another session of the same subject.
-- KEYS  1 partition of both
-- ARGV  1 actor, 2 target, 3 reason, 4 how long ended sessions stay marked, ms, 5 the text of its due record (event-text.ts), or ''
-- Returns 'ended' and the subject of the target's actor, if it has one; 'actor_ended' if the actor is not live; 'not_found' if the target is not live, or belongs to another subject.
local partition, target = KEYS[1], ARGV[2]
local actor = live(partition, ARGV[1], now)
if not actor then return 'actor_ended' end
local record = live(partition, target, now)
if not record or subject_of(record) ~= subject_of(actor) then return 'not_found' end
close(partition, { target }, ARGV[3], now, tonumber(ARGV[4]), ARGV[5], subject_of(record))
unindex(partition, target, record)
return 'ended' .. (actor_of(record) or '')
