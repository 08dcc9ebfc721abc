-- Chooses the sessions that end to make room for a new one (create.lua). No session ends here.
-- @include lib/actor.lua: actor_of
-- @include lib/blocks.lua: facts_of
-- @include lib/head.lua: subject_of
-- @include lib/index.lua: entries_after
-- @include lib/live.lua: live, live_sessions
-- @include lib/record.lua: CLIENT_ID
-- @include lib/sizes.lua: ENTRY, ID, MOST
-- @include lib/texts.lua: text_of

-- LIMIT_WINDOW and MAX_LISTED of src/service/session/admin/limit.ts. Of the WINDOW oldest sessions, the least recently used one ends, so
-- that the work does not grow with the number of sessions. A refusal lists at most MOST_LISTED.
local WINDOW, MOST_LISTED = 64, 10

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
    return text_of(record, CLIENT_ID)
  elseif scope == 'client_kind' then
    return facts_of(record).kind or ''
  end
  return ''
end

-- Returns which sessions of a list have an actor, or which have none.
local function alike(sessions, acts)
  local found = {}
  for _, session in ipairs(sessions) do
    if (actor_of(session.record) ~= nil) == acts then found[#found + 1] = session end
  end
  return found
end

-- Returns a subject's sessions without the expired ones at the front of the list. The sessions at the front are the oldest, and usually
-- expire first.
local function drop_expired(partition, sids, now)
  local from, most = 1, math.min(#sids, MOST * ID)
  while from <= most and not live(partition, string.sub(sids, from, from + ID - 1), now) do from = from + ID end
  return string.sub(sids, from)
end

-- Parses a limit, as create.lua gets it, for a new session.
local function parse_limit(text, record)
  local scope, most, action = string.match(text, '^(%S+) (%d+) (%S+)$')
  local window = action == 'end_oldest' and 1 or WINDOW
  return { scope = scope, most = tonumber(most), refuses = action == 'refuse', window = window, group = group_of(record, scope) }
end

-- Returns the live sessions of a subject that the limit counts, oldest first. It reads the sessions of a subject with many in parts: these
-- are those that earlier runs have found, whose ids are in `progress`, and those of the next part. The second result is the last entry of
-- that part, or nil if no more follow for certain; the next progress begins with it.
local function find_counted(partition, new, sids, limit, progress, all_ended_until, now)
  local last_read = nil
  if not sids then
    local from = progress == '' and entries_after(all_ended_until) or '(' .. string.sub(progress, 1, ENTRY)
    local entries = redis.call('ZRANGEBYLEX', partition .. KEY.many_sessions .. new.subject, from, '+', 'LIMIT', 0, MOST)
    local part = { string.sub(progress, ENTRY + 1) }
    for k, entry in ipairs(entries) do part[k + 1] = string.sub(entry, -ID) end
    sids, last_read = table.concat(part), entries[MOST]
  end
  local counted = {}
  for _, session in ipairs(alike(live_sessions(partition, sids, now), new.acts)) do
    if group_of(session.record, limit.scope) == limit.group then counted[#counted + 1] = session end
  end
  return counted, last_read
end

-- Returns whether the limit counts the session that the new one replaces, so that their number stays the same.
local function counts_replaced(new, limit)
  local old = new.replaced
  return old and subject_of(old) == new.subject and not actor_of(old) and group_of(old, limit.scope) == limit.group
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

-- The three functions below return which sessions have to end. If the new session may not be created after that, the first two also return
-- the reply with which the script ends. `new` describes the new session; `sids` are those of its subject if it has few, otherwise false.

-- Chooses for the limit.
local function choose_within_limit(partition, new, sids, limit, progress, all_ended_until, now)
  if sids and #sids < limit.most * ID or counts_replaced(new, limit) then return {} end
  local counted, last_read = find_counted(partition, new, sids, limit, progress, all_ended_until, now)
  if last_read and #counted < limit.most + limit.window then
    local texts = { last_read }
    for k, session in ipairs(counted) do texts[k + 1] = session.sid end
    return {}, { 'more', table.concat(texts) }
  end
  local excess = #counted - limit.most + 1
  if excess <= 0 then return {} end
  if limit.refuses then
    local reply = { 'refused' }
    for _, session in ipairs(take_excess(counted, MOST_LISTED, WINDOW)) do
      reply[#reply + 1], reply[#reply + 2] = session.sid, session.record
    end
    return {}, reply
  end
  -- If further parts of the list follow, sessions of this part end only while a whole window of them is left: the next part may have a
  -- session that was used less recently.
  local count = math.min(excess, MOST, last_read and #counted - limit.window + 1 or excess)
  return take_excess(counted, count, limit.window), (count < excess or last_read) and { 'again' } or nil
end

-- Chooses for the cap of a subject that has many sessions.
local function choose_among_many(partition, new, cap, subject_ended_until, now)
  local many_key, from = partition .. KEY.many_sessions .. new.subject, entries_after(subject_ended_until)
  if new.acts then
    local acting = acting_of_many(partition, many_key, from, new.replaces, now)
    return take_excess(acting, #acting - cap + 1, WINDOW)
  end
  local is_replaced = new.replaced and subject_of(new.replaced) == new.subject
  local excess = redis.call('ZLEXCOUNT', many_key, from, '+') - (is_replaced and 1 or 0) - cap + 1
  if excess > 0 then excess = excess - #acting_of_many(partition, many_key, from, new.replaces, now) end
  if excess <= 0 then return {} end
  if now >= tonumber(redis.call('GET', partition .. KEY.clean_until .. new.subject) or 0) then return {}, { 'sweep' } end
  local most = math.min(excess, MOST - WINDOW)
  local oldest, removed = oldest_of_many(partition, many_key, from, most + WINDOW, new.replaces, now)
  local chosen = take_excess(oldest, most - removed, WINDOW)
  -- A run that has found none to end is not repeated: the next one would find the same.
  return chosen, excess > most and #chosen + removed > 0 and { 'again' } or nil
end

-- Chooses for the cap of a subject that has few sessions. It also returns the subject's sessions without those that have
-- expired (below the cap only at the front).
local function choose_among_few(partition, new, sids, cap, now)
  if #sids < math.min(cap, MOST) * ID then return {}, drop_expired(partition, sids, now) end
  local kept, listed = live_sessions(partition, sids, now), {}
  for k, session in ipairs(kept) do listed[k] = session.sid end
  local counted = alike(kept, new.acts)
  return take_excess(counted, #counted - cap + 1, WINDOW), table.concat(listed)
end
