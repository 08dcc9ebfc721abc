-- The index of a subject, for the scripts that read or write all of it.

-- Moves sessions of a subject, oldest first, to the form of the index for those that have many.
local function lengthen_index(partition, subject, sids, now)
  local index, many, members = partition .. 'u', partition .. 'i' .. subject, {}
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

-- The sessions of a subject: the ids of all, one after the other, if it has few. If it has many: false, and whether some of them
-- are still to be moved to that form of the index, for which the script is run again. No script moves more than it may.
local function index_of(partition, subject, now)
  local index, many = partition .. 'u', partition .. 'i' .. subject
  local sids = redis.call('HGET', index, subject) or ''
  if #sids <= MOST * ID and redis.call('ZCARD', many) == 0 then return sids end
  if sids ~= '' then lengthen_index(partition, subject, sids, now) end
  return false, #sids > MOST * ID
end

-- What is under way for a subject: until when its sessions were created that end; 0 if nothing is. And the session that is spared.
local function horizon_of(horizons, subject)
  local at = 1
  while at <= #horizons do
    local _, created_until, _, _, spared, _, _, whose, after = struct.unpack(HORIZON, horizons, at)
    if whose == subject then return created_until, spared end
    at = after
  end
  return 0, ''
end

-- Where the entries begin of sessions that were created after a time, in the index of a subject with many.
local function entries_after(time)
  return '[' .. struct.pack('>I6', time + 1)
end
