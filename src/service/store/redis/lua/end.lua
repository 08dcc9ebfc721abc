#!lua flags=allow-oom
-- Ends a session.
-- KEYS  1 partition
-- ARGV  the first locals, in this order. Those after the last one that is needed are left out, and nil here.
-- Returns one of these strings:
--   'ending'    the session has ended in a logout of its subject, and end_rest.lua has yet to mark and log it; nothing was done
--   'n' and the names   the session has a key and the client proves none
--   'k' and the names   the client proves another key (judgeEnd of src/service/session/devices/binding.ts)
--   'ended' and the names, without a separator: the subject, and in a last line of its own that of the actor
--   'already'   the session was revoked before
--   'marked'    there was no live session, and none that was revoked: the end of the session is marked and logged nevertheless
-- @include lib/deadline.lua: now
-- @include lib/partition.lua: ARGC, subject_of
-- @include lib/actor.lua: names_of
-- @include lib/close.lua: close
-- @include lib/head.lua: expiries
-- @include lib/index.lua: unindex
-- @include lib/live.lua: was_revoked, within_lifetimes
local sid, reason,
  marker_life, -- how long ended sessions stay marked, ms
  note, -- the text of the due record (event-text.ts), or ''
  known_subject, -- the subject, in case the session does not exist, or ''
  issued_at, -- when the refresh token that the client presents was issued, ms
  proof1, proof2, proof3, proof4, proof5, proof6, proof7, proof8 -- the thumbprint of the key that the client proves, in words
  = unpack(ARGV, 1, ARGC)
local partition = KEYS[1]
local record, ended_with = within_lifetimes(partition, sid, now)
if ended_with == 'subject' then return 'ending' end
record = not ended_with and record
if not record and was_revoked(partition, sid, now) then return 'already' end
if record and issued_at then
  -- @include lib/device.lua: bytes_of, device_of, refusal_of_end
  local proof = proof8 and bytes_of(proof1, proof2, proof3, proof4, proof5, proof6, proof7, proof8)
  local refusal = refusal_of_end(device_of(record), select(3, expiries(record)), tonumber(issued_at), proof)
  if refusal then return (refusal == 'proof_missing' and 'n' or 'k') .. names_of(record) end
end
local subject = record and subject_of(record) or known_subject
local stored = record or redis.call('GET', partition .. KEY.session .. sid) -- of a session that has expired
close(partition, { sid }, reason, now, tonumber(marker_life), (record or subject ~= '') and note or '', subject)
if stored then unindex(partition, sid, stored) end
return record and 'ended' .. names_of(record) or 'marked'
