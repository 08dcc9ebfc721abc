-- Which sessions end when a subject has more than it may have.
-- @include lib/partition.lua: ID, subject_of
-- @include lib/actor.lua: actor_of
-- @include lib/blocks.lua: FACTS, block_at, text_at
-- @include lib/head.lua: expiries
-- @include lib/live.lua: ended_until, ended_with_subject

-- Returns which sessions of a list of ids without separators are live, in the same order: each { sid, record, used }, where `used` is the
-- time of the last refresh or the creation.
local function live_sessions(partition, sids, now)
  local keys, found = {}, {}
  for from = 1, #sids, ID do keys[#keys + 1] = partition .. 's' .. string.sub(sids, from, from + ID - 1) end
  if #keys == 0 then return found end
  local records = redis.call('MGET', unpack(keys))
  local ended, horizons = ended_until(partition), redis.call('GET', partition .. 'h')
  for k, record in ipairs(records) do
    if record then
      local sid, idle_expiry, _, created, used = string.sub(keys[k], -ID), expiries(record)
      local is_live = now < idle_expiry and created > ended
      if is_live and not (horizons and ended_with_subject(horizons, subject_of(record), sid, created)) then
        found[#found + 1] = { sid = sid, record = record, used = used }
      end
    end
  end
  return found
end

-- Removes sessions from a list in order of creation, and returns them: one after the other the least recently used of the `window` oldest
-- that are left. Of several that were used at the same time, the oldest is removed.
local function take_excess(sessions, excess, window)
  local taken = {}
  for _ = 1, math.min(excess, #sessions) do
    local least = 1
    for at = 2, math.min(window, #sessions) do
      if sessions[at].used < sessions[least].used then least = at end
    end
    taken[#taken + 1] = table.remove(sessions, least)
  end
  return taken
end

-- Returns what sessions have in common that a limit counts together.
local function group_of(record, scope)
  if scope == 'client_id' then
    local from, after = text_at(record, 1)
    return string.sub(record, from, after - 1)
  elseif scope == 'client_kind' then
    local at, after = block_at(record, FACTS)
    return at < after and cjson.decode(string.sub(record, at + 3, after - 1)).kind or ''
  end
  return ''
end

-- Returns which sessions of a list a limit counts.
local function in_group(sessions, scope, group)
  local found = {}
  for _, session in ipairs(sessions) do
    if group_of(session.record, scope) == group then found[#found + 1] = session end
  end
  return found
end

-- Returns which sessions of a list have an actor, or which have none.
local function alike(sessions, acts)
  local found = {}
  for _, session in ipairs(sessions) do
    if (actor_of(session.record) ~= nil) == acts then found[#found + 1] = session end
  end
  return found
end
