#!lua flags=allow-oom
-- Ends the expired sessions in a part of the order of creation. One step removes them from the order and logs them, so each of them ends
-- once. Their records stay until Redis drops them, so that refreshes are still refused for the same reason. The data of the user is removed
-- from them at once, because no index names them any more and ForgetSubject could not find them. A session that has ended in a logout of
-- everyone stays until its signal has been appended, because the signal contains data of the record.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns 'held' and for how long, ms, if another instance holds the partition. Otherwise 'swept'; the entry to continue with, or '';
-- for how long none of the examined sessions expires, ms, or '' if none is left; then id and names (end.lua) of each that has ended.
-- @include lib/deadline.lua: ARGC, now, shift
-- @include lib/commands.lua: require_commands
-- @include lib/end_sessions.lua: add_end, write_ends
-- @include lib/head.lua: expiry_of, lifetimes_of, subject_of
-- @include lib/index.lua: unindex
-- @include lib/live.lua: ended_with_subject, read_all_ended_until
-- @include lib/lives.lua: slack
-- @include lib/logins.lua: leave_logins
-- @include lib/order.lua: remove_from_order
-- @include lib/session_events.lua: complete_creation
-- @include lib/sizes.lua: ENTRY, ID
-- @include lib/texts.lua: blank
local instance,
  lease, -- how long it holds the partition, ms
  from_entry, -- the entry to begin at, or ''
  to_entry, -- the entry to stop before, or '' for the end
  marker_life, -- how long ended sessions stay marked, ms
  expired_note -- the text of the due records (event-text.ts)
  = unpack(ARGV, 1, ARGC)
local CHUNKS = 2 -- the number of chunks that one run examines, in about 0.1 ms
local partition = KEYS[1]
lease, marker_life = tonumber(lease), tonumber(marker_life)
require_commands(partition, 'GET SET PEXPIREAT PEXPIRETIME ZADD ZRANGE ZREM HSET HDEL HGET ZREMRANGEBYSCORE')

local owner, held = string.match(redis.call('GET', partition .. KEY.expiry_turn) or '', '^(%S+) (%d+)$')
local left = owner and tonumber(held) - now or 0
if owner ~= instance and left > 0 and left <= lease then return { 'held', string.format('%.0f', left) } end
if owner ~= instance or left < lease / 2 then
  redis.call('SET', partition .. KEY.expiry_turn, instance .. ' ' .. string.format('%.0f', now + lease), 'PXAT', now + lease + shift)
end

-- Reads the chunks of this part. The first chunk may begin before the part, since chunks are joined. If the part has no end, the last
-- chunk is left for a later run, since sessions are still added to it.
local order, open = partition .. KEY.order, to_entry == ''
local first = redis.call('ZREVRANGEBYLEX', order, '[' .. from_entry .. '\255', '-', 'LIMIT', 0, 1)[1]
local from, to = first and from_entry ~= '' and '[' .. first or '-', open and '+' or '(' .. to_entry
local chunks = redis.call('ZRANGEBYLEX', order, from, to, 'LIMIT', 0, CHUNKS + 1)
local rest = ''
if #chunks > CHUNKS or (open and #chunks > 1) then rest = string.sub(table.remove(chunks), 1, ENTRY) end

local reply, least, gone, ends = { 'swept', rest, '' }, math.huge, {}, { sids = {}, signals = {}, entries = {}, due = {} }
local all_ended_until = read_all_ended_until(partition)
local states = redis.call('MGET', partition .. KEY.bulk_logouts, partition .. KEY.unsignalled, partition .. KEY.signal_state,
  partition .. KEY.attached)
local bulk_logouts, unsignalled, signal_state, attached = unpack(states)

local function examine(entry, record)
  local sid, created = string.sub(entry, -ID), struct.unpack('>I6', entry)
  local expiry = record and expiry_of(record) or 0
  if now < expiry then
    least = math.min(least, expiry)
  elseif created > all_ended_until and record and ended_with_subject(bulk_logouts, subject_of(record), sid, created) then
    least = now -- it has ended with its subject's sessions, but may have no marker yet
  elseif created <= all_ended_until and unsignalled then
    -- The session ended in a logout of everyone, and its signal may still have to be appended to the signal log (signals.lua). The record
    -- is kept until then, because the signal contains data of it.
    least = now
    if record then
      redis.call('PEXPIREAT', partition .. KEY.session .. sid, now + slack((lifetimes_of(record))))
    end
  else
    gone[#gone + 1] = entry
    complete_creation(partition, sid, record, now)
    if record then
      leave_logins(partition, sid, record)
      redis.call('SET', partition .. KEY.session .. sid, blank(record), 'KEEPTTL')
    end
    if created <= all_ended_until then return end
    local subject = record and subject_of(record) or ''
    if record then unindex(partition, sid, record) end
    local actor = add_end(ends, sid, record, 'expired', now, now + marker_life, expired_note, subject)
    reply[#reply + 1], reply[#reply + 2] = sid, subject .. '\n' .. actor
  end
end

for _, chunk in ipairs(chunks) do
  local keys, entries = {}, {}
  for at = 1, #chunk, ENTRY do
    entries[#entries + 1] = string.sub(chunk, at, at + ENTRY - 1)
    keys[#keys + 1] = partition .. KEY.session .. string.sub(entries[#entries], -ID)
  end
  local records = redis.call('MGET', unpack(keys))
  for k, entry in ipairs(entries) do examine(entry, records[k]) end
end

if #gone > 0 then remove_from_order(order, gone) end
if #ends.sids > 0 then write_ends(partition, ends, signal_state, attached, now, marker_life) end
if least < math.huge then reply[3] = string.format('%.0f', math.max(0, least - now)) end
return reply
