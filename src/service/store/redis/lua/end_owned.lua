#!lua flags=allow-oom
-- Ends a session at the request of another session of the same subject.
-- KEYS  1 partition of both
-- ARGV  the first locals, in this order
-- Returns 'ended' and the subject of the ended session's actor, if it has one; 'caller_ended' if the session that asks is not live;
-- 'not_found' if the other is not live, or belongs to another subject.
-- @include lib/deadline.lua: ARGC, now
-- @include lib/actor.lua: actor_of
-- @include lib/end_sessions.lua: end_sessions
-- @include lib/head.lua: subject_of
-- @include lib/index.lua: unindex
-- @include lib/live.lua: live
local caller_sid, sid, -- the session that asks, and the one that ends
  reason,
  marker_life, -- how long ended sessions stay marked, ms
  note -- the text of the due record (event-text.ts), or ''
  = unpack(ARGV, 1, ARGC)
local partition = KEYS[1]
local caller = live(partition, caller_sid, now)
if not caller then return 'caller_ended' end
local record = live(partition, sid, now)
if not record or subject_of(record) ~= subject_of(caller) then return 'not_found' end
end_sessions(partition, { sid }, reason, now, tonumber(marker_life), note, subject_of(record))
unindex(partition, sid, record)
return 'ended' .. (actor_of(record) or '')
