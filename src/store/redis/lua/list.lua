#!lua flags=allow-oom
-- The live sessions of a subject.
-- KEYS  1 partition
-- ARGV  1 subject
-- Returns sid, record, sid, record, …
local found = {}
local sids = redis.call('HGET', KEYS[1] .. 'u', ARGV[1]) or ''
for from = 1, #sids, ID do
  local sid = string.sub(sids, from, from + ID - 1)
  local record = live(KEYS[1], sid, now)
  if record then
    found[#found + 1] = sid
    found[#found + 1] = record
  end
end
return found
