-- The sessions of a subject: {a7}u if they are few, {a7}i<subject> if they are many.
-- @include lib/head.lua: entry_of, subject_of
-- @include lib/live.lua: live
-- @include lib/sizes.lua: ID, MOST

-- Writes the list of sessions of a subject that has few.
local function write_index(partition, subject, sids)
  if sids == '' then
    redis.call('HDEL', partition .. KEY.few_sessions, subject)
  else
    redis.call('HSET', partition .. KEY.few_sessions, subject, sids)
  end
end

-- Removes one session from its subject's index.
local function unindex(partition, sid, record)
  local subject = subject_of(record)
  local sids = redis.call('HGET', partition .. KEY.few_sessions, subject) or ''
  local at = string.find(sids, sid, 1, true)
  if at then
    write_index(partition, subject, string.sub(sids, 1, at - 1) .. string.sub(sids, at + ID))
  else
    redis.call('ZREM', partition .. KEY.many_sessions .. subject, entry_of(record, sid))
  end
end

-- Moves sessions of a subject, oldest first, from the index of subjects with few sessions to that of subjects with many.
local function lengthen_index(partition, subject, sids, now)
  local index, many, members = partition .. KEY.few_sessions, partition .. KEY.many_sessions .. subject, {}
  local moved = string.sub(sids, 1, MOST * ID)
  for from = 1, #moved, ID do
    local sid = string.sub(moved, from, from + ID - 1)
    local record = live(partition, sid, now)
    if record then members[#members + 1], members[#members + 2] = 0, entry_of(record, sid) end
  end
  if #members > 0 then
    redis.call('ZADD', many, unpack(members))
    local expires = math.max(redis.call('PEXPIRETIME', many), redis.call('PEXPIRETIME', index))
    if expires > 0 then redis.call('PEXPIREAT', many, expires) end
  end
  write_index(partition, subject, string.sub(sids, #moved + 1))
end

-- Moves the sessions of a subject that has come to have many to the index of such subjects. Returns the ids of all its sessions, without
-- separators, if it has few; otherwise false, and whether some are still to be moved: one run moves at most MOST, and the caller runs the
-- script again.
local function settle_index(partition, subject, now)
  local index, many = partition .. KEY.few_sessions, partition .. KEY.many_sessions .. subject
  local sids = redis.call('HGET', index, subject) or ''
  if #sids <= MOST * ID and redis.call('ZCARD', many) == 0 then return sids end
  if sids ~= '' then lengthen_index(partition, subject, sids, now) end
  return false, #sids > MOST * ID
end

-- Returns the lower bound of the sessions that were created after a time, in the index of a subject with many sessions.
local function entries_after(time)
  return '[' .. struct.pack('>I6', time + 1)
end
