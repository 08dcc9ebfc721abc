#!lua flags=allow-oom
-- Ends a session.
-- KEYS  1 partition
-- ARGV  1 sid, 2 reason, 3 marker life, ms, 4 the note of its due record, or '', 5 the subject of a session that is not there, or '';
--       from a client that presents a refresh token: 6 when that was issued, ms, 7 to 14 the thumbprint of a key that it proves, in words.
--       Arguments are absent where nothing was presented
-- Returns 'ending', and does nothing, if the session has ended with the others of its subject and end_rest.lua has yet to mark and log
-- it; 'n' or 'k', followed by the subject, if the session has a key that the client does not prove, or proves another one
-- (judgeEnd of src/session/device-binding.ts); 'ended' followed at once by the subject; 'already' if its marker is there; 'marked' if there was neither session nor marker.
local PROOF = 4 -- marks the kind of a key that each request must prove
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
    if proof ~= key then return (proof and 'k' or 'n') .. subject_of(record) end
  end
end
local subject = record and subject_of(record) or ARGV[5]
close(partition, { sid }, ARGV[2], now, tonumber(ARGV[3]), (record or subject ~= '') and ARGV[4] or '', subject)
if record then unindex(partition, sid, record) end
return record and 'ended' .. subject or 'marked'
