-- Finds the sessions among which some end to make room for a new one (create.lua).
-- @include lib/partition.lua: ENTRY, ID, MOST
-- @include lib/actor.lua: actor_of
-- @include lib/limit.lua: live_sessions
-- @include lib/live.lua: live

-- How many of the oldest sessions are compared. Of these, the least recently used one ends. So the work does not grow with the number of
-- sessions.
local WINDOW = 64

-- Returns a subject's sessions without the expired ones at the front of the list. The sessions at the front are the oldest, and usually
-- expire first.
local function drop_expired(partition, sids, now)
  local from, most = 1, math.min(#sids, MOST * ID)
  while from <= most and not live(partition, string.sub(sids, from, from + ID - 1), now) do from = from + ID end
  return string.sub(sids, from)
end

-- A limit reads the sessions of a subject with many in parts. The progress from part to part is the last entry that was read, and the ids
-- of the sessions so far that count.
local function progress_of(last_read, counted)
  local texts = { last_read }
  for k, session in ipairs(counted) do texts[k + 1] = session.sid end
  return table.concat(texts)
end

-- Returns the ids in the progress and in the part that follows it, without separators, and the last entry of the part, or nil if no
-- more follow for certain. The first part has the progress '', and begins at `from`.
local function next_part(many_key, from, progress)
  if progress ~= '' then from = '(' .. string.sub(progress, 1, ENTRY) end
  local entries, sids = redis.call('ZRANGEBYLEX', many_key, from, '+', 'LIMIT', 0, MOST), {}
  for k, entry in ipairs(entries) do sids[k] = string.sub(entry, -ID) end
  return string.sub(progress, ENTRY + 1) .. table.concat(sids), entries[MOST]
end

-- Returns the sessions with an actor of a subject with many, oldest first, except one. They live for a short time, so only the newest MOST
-- are read.
local function acting_of_many(partition, many_key, from, except, now)
  local newest, sids = redis.call('ZREVRANGEBYLEX', many_key, '+', from, 'LIMIT', 0, MOST), {}
  for k, entry in ipairs(newest) do sids[#newest - k + 1] = string.sub(entry, -ID) end
  local found = {}
  for _, session in ipairs(live_sessions(partition, table.concat(sids), now)) do
    if session.sid ~= except and actor_of(session.record) then found[#found + 1] = session end
  end
  return found
end

-- Examines the oldest sessions of a subject with many. Removes those that are not live from its index. Returns the others without an actor,
-- oldest first, except one; and how many were removed.
local function oldest_of_many(partition, many_key, from, count, except, now)
  local sids, entries_left = {}, {} -- by sid, the entries of sessions that have not been found live
  for k, entry in ipairs(redis.call('ZRANGEBYLEX', many_key, from, '+', 'LIMIT', 0, count)) do
    sids[k] = string.sub(entry, -ID)
    entries_left[sids[k]] = entry
  end
  local found, removed = {}, 0
  for _, session in ipairs(live_sessions(partition, table.concat(sids), now)) do
    entries_left[session.sid] = nil
    if session.sid ~= except and not actor_of(session.record) then found[#found + 1] = session end
  end
  for _, entry in pairs(entries_left) do removed = removed + redis.call('ZREM', many_key, entry) end
  return found, removed
end
