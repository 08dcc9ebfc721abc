#!lua flags=allow-oom
-- Removes the data of a subject from the records of its sessions that have ended or expired and are still stored. No index names them any
-- more, so some of the partition's sessions are examined, in the order of creation.
-- KEYS  1 partition
-- ARGV  1 subject, 2 the entry to continue after, or ''
-- Returns the entry to continue after; '' if no more follow.
-- @include lib/deadline.lua: now
-- @include lib/head.lua: subject_of
-- @include lib/live.lua: live
-- @include lib/logins.lua: leave_logins
-- @include lib/session_events.lua: complete_creation
-- @include lib/sizes.lua: ENTRY, ID
-- @include lib/texts.lua: blank
local CHUNKS = 4 -- the number of chunks that one run examines, in about 0.2 ms
local partition, subject, from = KEYS[1], ARGV[1], ARGV[2]
local order = partition .. KEY.order
local first = from ~= '' and redis.call('ZREVRANGEBYLEX', order, '[' .. from .. '\255', '-', 'LIMIT', 0, 1)[1]
local chunks = redis.call('ZRANGEBYLEX', order, first and '[' .. first or '-', '+', 'LIMIT', 0, CHUNKS)
for _, chunk in ipairs(chunks) do
  local keys, sids = {}, {}
  for at = ENTRY, #chunk, ENTRY do
    sids[#sids + 1] = string.sub(chunk, at - ID + 1, at)
    keys[#keys + 1] = partition .. KEY.session .. sids[#sids]
  end
  for k, record in ipairs(redis.call('MGET', unpack(keys))) do
    if record and subject_of(record) == subject and not live(partition, sids[k], now) then
      leave_logins(partition, sids[k], record)
      complete_creation(partition, sids[k], record, now)
      redis.call('SET', keys[k], blank(record), 'KEEPTTL')
    end
  end
end
return #chunks == CHUNKS and string.sub(chunks[CHUNKS], -ENTRY) or ''
