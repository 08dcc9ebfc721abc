#!lua flags=allow-oom
-- Ends a session.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns one of these lists. In them, `names` is the subject, and in a last line of its own that of the actor (`names_of`).
--   'ended', names          the session was ended
--   'proof_missing', names  it has a key and the client proves none (judgeEnd of src/service/session/devices/binding.ts): nothing was done
--   'other_key', names      the client proves another key: nothing was done
--   'pending'               it has ended in a logout of its subject, and end_rest.lua has yet to mark and log it: nothing was done
--   'already_ended'         it was revoked before
--   'marked'                there was no live session, and none that was revoked: its end is marked and logged nevertheless
-- @include lib/deadline.lua: ARGC, now
-- @include lib/actor.lua: names_of
-- @include lib/end_sessions.lua: end_sessions
-- @include lib/head.lua: created_of, subject_of
-- @include lib/index.lua: unindex
-- @include lib/live.lua: was_revoked, within_lifetimes
local sid, reason,
  marker_life, -- how long ended sessions stay marked, ms
  note, -- the text of the due record (event-text.ts), or ''
  known_subject, -- the subject, in case the session does not exist, or ''
  holder -- what the holder of a refresh token presents, if one ends the session (device-record.ts), or ''
  = unpack(ARGV, 1, ARGC)
local partition = KEYS[1]
local record, ended_with = within_lifetimes(partition, sid, now)
if ended_with == 'subject' then return { 'pending' } end
record = not ended_with and record
if not record and was_revoked(partition, sid, now) then return { 'already_ended' } end
if record and holder ~= '' then
  -- @include lib/device.lua: decode_presentation, device_of, refusal_of_end
  local presented = decode_presentation(holder)
  local refusal = refusal_of_end(device_of(record), created_of(record), presented.issued_at, presented.proof)
  if refusal then return { refusal, names_of(record) } end
end
local subject = record and subject_of(record) or known_subject
local stored = record or redis.call('GET', partition .. KEY.session .. sid) -- of a session that has expired
end_sessions(partition, { sid }, reason, now, tonumber(marker_life), (record or subject ~= '') and note or '', subject)
if stored then unindex(partition, sid, stored) end
return record and { 'ended', names_of(record) } or { 'marked' }
