#!lua flags=allow-oom
-- Ends a session.
-- KEYS  1 partition
-- ARGV  1 sid, 2 reason, 3 marker life, ms, 4 the note of its due record, or '', 5 the subject of a session that is not there, or ''
-- Returns 'ending', and does nothing, if the session has ended with the others of its subject and end_rest.lua has yet to mark and log
-- it; 'ended' followed at once by the subject; 'already' if its marker is there; 'marked' if there was neither session nor marker.
local partition, sid = KEYS[1], ARGV[1]
local record, with = within_lifetimes(partition, sid, now)
if with == 'subject' then return 'ending' end
record = not with and record
if not record and marked(partition, sid, now) then return 'already' end
local subject = record and subject_of(record) or ARGV[5]
close(partition, { sid }, ARGV[2], now, tonumber(ARGV[3]), (record or subject ~= '') and ARGV[4] or '', subject)
if record then unindex(partition, sid, record) end
return record and 'ended' .. subject or 'marked'
