#!lua
-- Creates a session; beyond the cap, the subject's oldest end. Run twice, it finds the session there.
-- KEYS  1 partition
-- ARGV  1 sid, 2 subject, 3 4 nonce of the first child, 5 idle timeout, ms, 6 absolute lifetime, ms,
--       7 the record after its head, 8 cap, 9 marker life, ms, 10 a session of this partition to end before, or '', 11 the version
--       of the record, 12 the note of the due records of sessions that end, or '', 13 that of the session, or ''
-- Returns the session's record; the one to end if it was live, or ''; the ids of the others that were ended, oldest first.
local partition, sid = KEYS[1], ARGV[1]
local existing = live(partition, sid, now)
if existing then return { existing, '' } end

-- After all that have ended, whatever the clock shows, and so that it ends with the next end of all.
local newest = tonumber(redis.call('GET', partition .. 'n') or 0)
local created = math.max(now, ended_until(partition) + 1)
if created > newest then redis.call('SET', partition .. 'n', created) end

local old = ARGV[10] ~= '' and live(partition, ARGV[10], now)
if old then
  close(partition, { ARGV[10] }, 'replaced', now, tonumber(ARGV[9]), ARGV[12], subject_of(old))
  unindex(partition, ARGV[10], old)
end

-- A subject's sessions without those at the front, which mostly expire first, that have expired.
local function drop_expired(sids)
  local from = 1
  while from <= #sids and not live(partition, string.sub(sids, from, from + ID - 1), now) do from = from + ID end
  return string.sub(sids, from)
end

local index = partition .. 'u'
local sids = redis.call('HGET', index, ARGV[2]) or ''
local reply, evicted, cap = { '', old and ARGV[10] or '' }, {}, tonumber(ARGV[8])
if #sids < cap * ID then
  sids = drop_expired(sids)
else
  local kept = {}
  for from = 1, #sids, ID do
    local other = string.sub(sids, from, from + ID - 1)
    if live(partition, other, now) then kept[#kept + 1] = other end
  end
  for k = 1, #kept - cap + 1 do evicted[k], reply[k + 2] = kept[k], kept[k] end
  sids = table.concat(kept, '', #evicted + 1)
end
close(partition, evicted, 'session_limit', now, tonumber(ARGV[9]), ARGV[12], ARGV[2])

local idle, life = tonumber(ARGV[5]), tonumber(ARGV[6])
local record = struct.pack(HEAD, ARGV[11], 0, 0, 0, ARGV[3], ARGV[4], 0, 0, 0, created, idle, life) .. ARGV[7]
redis.call('SET', partition .. 's' .. sid, record, 'PXAT', created + math.min(idle, life) + slack(idle))
write_index(partition, ARGV[2], sids .. sid)
if ARGV[13] ~= '' then
  redis.call('HSET', partition .. 'r', '+' .. sid, table.concat({ now, now, 'created', ARGV[13], ARGV[2] }, '\n'))
  redis.call('PEXPIREAT', partition .. 'r', now + shift + LOG_SLACK)
end
local expires = math.max(redis.call('PEXPIRETIME', index), created + life + slack(idle))
redis.call('PEXPIREAT', index, expires)

-- Into the order of creation: mostly at its end.
local earlier, replace_chunk = order_functions()
local order, entry = partition .. 'o', entry_of(record, sid)
local chunk = redis.call('ZREVRANGEBYLEX', order, '[' .. entry, '-', 'LIMIT', 0, 1)[1]
if not chunk or earlier(string.sub(chunk, -ENTRY), entry) then
  local fits = chunk and #chunk < CHUNK
  if fits then redis.call('ZREM', order, chunk) end
  redis.call('ZADD', order, 0, fits and chunk .. entry or entry)
else
  local entries = { entry }
  for at = 1, #chunk, ENTRY do entries[#entries + 1] = string.sub(chunk, at, at + ENTRY - 1) end
  table.sort(entries, earlier)
  local half = #entries * ENTRY > CHUNK and math.floor(#entries / 2) or #entries
  redis.call('ZREM', order, chunk)
  redis.call('ZADD', order, 0, table.concat(entries, '', 1, half))
  if half < #entries then redis.call('ZADD', order, 0, table.concat(entries, '', half + 1)) end
end
redis.call('PEXPIREAT', order, expires)

-- Three entries of a random chunk are looked at for each one that comes: for the same reason as the subjects below. Where in the
-- chunk is random too, as the session's id is: many sessions may be created at one time.
local LOOKS = 3
local anywhere = 64 * string.byte(sid, -2) + string.byte(sid, -1)
local drawn = redis.call('ZRANDMEMBER', order)
local count, rest = #drawn / ENTRY, drawn
for k = 1, math.min(LOOKS, count) do
  local at = (anywhere + k) % count * ENTRY
  local other = string.sub(drawn, at + 1, at + ENTRY)
  local found = redis.call('GET', partition .. 's' .. string.sub(other, -ID))
  if not found or now >= expiries(found) then
    local from = string.find(rest, other, 1, true)
    rest = string.sub(rest, 1, from - 1) .. string.sub(rest, from + ENTRY)
  end
end
if rest ~= drawn then replace_chunk(order, drawn, rest) end

-- Two random subjects are looked at for each one that comes, so that those whose sessions have all expired,
-- which nothing reports, stay fewer than the others.
local drawn = redis.call('HRANDFIELD', index, -2, 'WITHVALUES')
for at = 1, #drawn, 2 do
  if drop_expired(drawn[at + 1]) == '' then redis.call('HDEL', index, drawn[at]) end
end

reply[1] = record
return reply
