#!lua flags=allow-oom
-- Ends a session.
-- KEYS  1 partition
-- ARGV  1 sid, 2 reason, 3 how long ended sessions stay marked, ms, 4 the text of the event that is still to be recorded (event-text.ts), or '', 5 the subject, in
--       case the session does not exist, or ''; if a client presents a refresh token: 6 when the token was issued, ms; if the client also
--       proves a key: 7 to 14 the thumbprint of the key, in words of 32 bits
-- Returns one of these strings:
--   'ending'    the session has ended in a logout of its subject, and end_rest.lua has yet to mark and log it; nothing was done
--   'n' and the names   the session has a key and the client proves none
--   'k' and the names   the client proves another key (judgeEnd of src/service/session/devices/binding.ts)
--   'ended' and the names, without a separator: the subject, and in a last line of its own that of the actor
--   'already'   the session has a marker
--   'marked'    there was neither a session nor a marker
local PROOF = 4 -- the bit in the kind of a key that says that each request must prove the key
local partition, sid = KEYS[1], ARGV[1]
local record, with = within_lifetimes(partition, sid, now)
if with == 'subject' then return 'ending' end
record = not with and record
if not record and marked(partition, sid, now) then return 'already' end
if record and #ARGV > 8 and string.byte(record) % 4 > 1 and string.byte(record, -1) >= PROOF then
  local since, key = struct.unpack('>I6c32', record, #record - 46)
  local _, _, created = expiries(record)
  if since <= created or tonumber(ARGV[6]) >= since then
    local proof = #ARGV > 16 and struct.pack('>I4I4I4I4I4I4I4I4', unpack(ARGV, 7, 14))
    if proof ~= key then return (proof and 'k' or 'n') .. names_of(record) end
  end
end
local subject = record and subject_of(record) or ARGV[5]
local stored = record or redis.call('GET', partition .. 's' .. sid) -- of a session that has expired
close(partition, { sid }, ARGV[2], now, tonumber(ARGV[3]), (record or subject ~= '') and ARGV[4] or '', subject)
if stored then unindex(partition, sid, stored) end
return record and 'ended' .. names_of(record) or 'marked'
