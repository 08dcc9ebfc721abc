#!lua
-- Creates a session, and ends the subject's least recently used sessions if it has more than the cap or the limit allows, or creates
-- none. A second run with the same id returns the session that the first one created.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns one of the following lists. In them, `ended…` are the ids of the sessions that were ended, in order, each followed by its actor
-- (`close`). `new` is 'new' if no live session of the subject, of the newest MOST, has the user agent of this one, otherwise ''; with
-- `claim_life` it is always ''.
--   record, replaced, new, ended…   the session. `replaced` is the id of the session to replace if it was live, or ''
--   record, 'existing', ''          with `claim_life`: an earlier run has created the session, which is live
--   'ended', '', ''                 with `claim_life`: an earlier run has created the session, which has ended
--   'refused', '', '', id, record…  the limit refuses the session; nothing was changed. The sessions that count, least recently used first
--   'again', '', new, ended…        one run is not enough: the caller runs the script again
--   'sweep', '', new, ended…        the same, but the caller runs sweep.lua first
--   'more', progress, ''            the same, with this `progress`
-- @include lib/deadline.lua: now
-- @include lib/partition.lua: ARGC, CHUNK, ENTRY, HEAD, ID, LOG_SLACK, MOST, UPSTREAM, shift, slack, subject_of
-- @include lib/actor.lua: actor_of
-- @include lib/blocks.lua: text_at
-- @include lib/close.lua: close
-- @include lib/head.lua: entry_of
-- @include lib/index.lua: entries_after, horizon_of, index_of, lengthen_index, unindex, write_index
-- @include lib/limit.lua: alike, group_of, in_group, live_sessions, take_excess
-- @include lib/live.lua: live
-- @include lib/order.lua: earlier
-- @include lib/signal_log.lua: append_signals
local sid, subject,
  child1, child2, -- the nonce of the first refresh token
  idle_timeout, absolute_lifetime, -- ms
  body, -- the record after its head
  cap, -- how many sessions the subject may have
  marker_life, -- how long ended sessions stay marked, ms
  replaces, -- a session of this partition to end before the creation, or ''
  version, -- of the record
  ended_note, -- the text of the due records (event-text.ts) of sessions that end, or ''
  created_note, -- that of the created session, or ''
  limit, -- 'subject', 'client_id' or 'client_kind', how many, and 'end_least_recently_used', 'end_oldest' or 'refuse', with spaces; or ''
  claim_life, -- for how long the id is claimed, ms: until then no second session is created with it; or ''
  logins, -- the names of the logins at an identity provider that it came from (upstream.ts), one after the other; or ''
  progress -- what an earlier run has found (result 'more'), or ''
  = unpack(ARGV, 1, ARGC)
local partition = KEYS[1]
cap, marker_life = tonumber(cap), tonumber(marker_life)
local idle, life = tonumber(idle_timeout), tonumber(absolute_lifetime)
local existing = live(partition, sid, now)
if existing then return { existing, claim_life == '' and '' or 'existing', '' } end
local claim = claim_life ~= '' and redis.call('GET', partition .. 't' .. sid)
if claim and now < tonumber(claim) then return { 'ended', '', '' } end

local index, many, clean = partition .. 'u', partition .. 'i' .. subject, partition .. 'k' .. subject
local sids, unfinished = index_of(partition, subject, now)
if unfinished then return { 'again', '', '' } end

local found = redis.call('MGET', partition .. 'n', partition .. 'e', partition .. 'h', partition .. 'g', partition .. 'p')
local ended = math.max(tonumber(found[2] or 0), found[3] and horizon_of(found[3], subject) or 0)
local old = replaces ~= '' and live(partition, replaces, now)

-- A session counts as ended if it was not created after the last logout of its subject and of everyone. So this session gets a later time
-- of creation, even if the clock shows an earlier time.
local created = math.max(now, ended + 1)
local expires = created + math.min(idle, life)
local record = struct.pack(HEAD, version, 0, 0, 0, child1, child2, 0, 0, 0, created, idle, life) .. body
local entry = entry_of(record, sid)
-- Whether somebody uses the session in place of its subject. Such sessions count apart from the others.
local acts = actor_of(record) ~= nil

-- Returns the user agent of a session.
local function agent_of(record)
  local from, after = text_at(record, 3)
  return string.sub(record, from, after - 1)
end

-- Returns whether none of the subject's newest live sessions has the user agent of this one.
local function is_new_device()
  local agent = agent_of(record)
  if agent == '\0' then return false end
  local newest = sids or table.concat(redis.call('ZREVRANGEBYLEX', many, '+', '-', 'LIMIT', 0, MOST))
  local step = sids and ID or ENTRY
  for last = #newest, 1, -step do
    local other = live(partition, string.sub(newest, last - ID + 1, last), now)
    if other and agent_of(other) == agent then return false end
  end
  return true
end
local new = claim_life == '' and is_new_device() and 'new' or ''

-- Of how many sessions, the oldest, the least recently used one ends. So the work does not grow with the number of sessions.
local WINDOW = 64

-- Ends sessions for the cap or the limit.
local evicted = {}
local function evict(sessions)
  local ending, entries = {}, {}
  for k, session in ipairs(sessions) do
    ending[k], entries[k] = session.sid, entry_of(session.record, session.sid)
  end
  for _, name in ipairs(close(partition, ending, 'session_limit', now, marker_life, ended_note, subject)) do
    evicted[#evicted + 1] = name
  end
  if not sids and #entries > 0 then redis.call('ZREM', many, unpack(entries)) end
  for _, other in ipairs(sids and ending or {}) do
    local at = string.find(sids, other, 1, true)
    sids = string.sub(sids, 1, at - 1) .. string.sub(sids, at + ID)
  end
  if sids and #ending > 0 then write_index(partition, subject, sids) end
end
local function reply_evicted(reply)
  for _, other in ipairs(evicted) do reply[#reply + 1] = other end
  return reply
end

-- Makes room within the limit. Returns the reply with which the script ends; nil if the session may be created.
local function make_room_within_limit()
  local MOST_LISTED = 10 -- how many live sessions a refusal lists
  local scope, most, action = string.match(limit, '^(%S+) (%d+) (%S+)$')
  most = tonumber(most)
  if sids and #sids < most * ID then return nil end
  local group = group_of(record, scope)
  if old and subject_of(old) == subject and not actor_of(old) and group_of(old, scope) == group then return nil end
  local known, entries = sids, {}
  if not sids then
    local from = progress == '' and entries_after(tonumber(found[2] or 0)) or '(' .. string.sub(progress, 1, ENTRY)
    entries = redis.call('ZRANGEBYLEX', many, from, '+', 'LIMIT', 0, MOST)
    local added = {}
    for k, entry in ipairs(entries) do added[k] = string.sub(entry, -ID) end
    known = string.sub(progress, ENTRY + 1) .. table.concat(added)
  end
  local counted = in_group(alike(live_sessions(partition, known, now), acts), scope, group)
  local is_all, window = #entries < MOST, action == 'end_oldest' and 1 or WINDOW
  if not is_all and #counted < most + window then
    local found = { entries[#entries] }
    for _, session in ipairs(counted) do found[#found + 1] = session.sid end
    return { 'more', table.concat(found), '' }
  end
  local excess = #counted - most + 1
  if excess <= 0 then return nil end
  if action == 'refuse' then
    local reply = { 'refused', '', '' }
    for _, session in ipairs(take_excess(counted, MOST_LISTED, WINDOW)) do
      reply[#reply + 1], reply[#reply + 2] = session.sid, session.record
    end
    return reply
  end
  -- If further parts of the list follow, sessions of this part end only while a whole WINDOW of them is left: the next part may have a
  -- session that was used less recently.
  local ending = math.min(excess, MOST, is_all and excess or #counted - window + 1)
  evict(take_excess(counted, ending, window))
  return (ending < excess or not is_all) and reply_evicted({ 'again', '', new }) or nil
end

-- Returns the sessions with an actor of a subject with many, oldest first. They live for a short time, so only the newest MOST are read.
local function acting_of_many(from)
  local newest, sids = redis.call('ZREVRANGEBYLEX', many, '+', from, 'LIMIT', 0, MOST), {}
  for k, entry in ipairs(newest) do sids[#newest - k + 1] = string.sub(entry, -ID) end
  local found = {}
  for _, session in ipairs(live_sessions(partition, table.concat(sids), now)) do
    if session.sid ~= replaces and actor_of(session.record) then found[#found + 1] = session end
  end
  return found
end

-- Makes room within the cap of a subject with many sessions. Returns the reply that ends the script; nil if the session may be created.
local function make_room_among_many()
  local from = entries_after(ended)
  if acts then
    local acting = acting_of_many(from)
    evict(take_excess(acting, #acting - cap + 1, WINDOW))
    return nil
  end
  local replaced = old and subject_of(old) == subject
  local excess = redis.call('ZLEXCOUNT', many, from, '+') - (replaced and 1 or 0) - cap + 1
  if excess > 0 then excess = excess - #acting_of_many(from) end
  if excess <= 0 then return nil end
  if now >= tonumber(redis.call('GET', clean) or 0) then return reply_evicted({ 'sweep', '', new }) end
  local most = math.min(excess, MOST - WINDOW)
  local oldest, lost, listed = redis.call('ZRANGEBYLEX', many, from, '+', 'LIMIT', 0, most + WINDOW), {}, {}
  for k, entry in ipairs(oldest) do oldest[k], lost[string.sub(entry, -ID)] = string.sub(entry, -ID), entry end
  for _, session in ipairs(live_sessions(partition, table.concat(oldest), now)) do
    lost[session.sid] = nil
    if session.sid ~= replaces and not actor_of(session.record) then listed[#listed + 1] = session end
  end
  local removed = 0
  for _, entry in pairs(lost) do removed = removed + redis.call('ZREM', many, entry) end
  evict(take_excess(listed, most - removed, WINDOW))
  return excess > most and reply_evicted({ 'again', '', new }) or nil
end

-- Returns a subject's sessions without the expired ones at the front of the list. The sessions at the front are the oldest, and usually
-- expire first.
local function drop_expired(sids)
  local from, most = 1, math.min(#sids, MOST * ID)
  while from <= most and not live(partition, string.sub(sids, from, from + ID - 1), now) do from = from + ID end
  return string.sub(sids, from)
end

-- Makes room within the cap of a subject with few sessions.
local function make_room_among_few()
  if #sids < math.min(cap, MOST) * ID then
    sids = drop_expired(sids)
    return
  end
  local kept, listed = live_sessions(partition, sids, now), {}
  for k, session in ipairs(kept) do listed[k] = session.sid end
  sids = table.concat(listed)
  local counted = alike(kept, acts)
  evict(take_excess(counted, #counted - cap + 1, WINDOW))
end

-- Ends the session that this one replaces. Returns its id.
local function end_replaced()
  local replaced = close(partition, { replaces }, 'replaced', now, marker_life, ended_note, subject_of(old))[1]
  unindex(partition, replaces, old)
  if sids then sids = redis.call('HGET', index, subject) or '' end
  return replaced
end

-- Writes until when the id is claimed, the event of the creation, and its signals.
local function write_notes()
  if claim_life ~= '' then
    local claimed_until = string.format('%.0f', now + claim_life)
    redis.call('SET', partition .. 't' .. sid, claimed_until, 'PXAT', claimed_until + shift)
  end
  if created_note ~= '' then
    local note = new == '' and created_note or string.sub(created_note, 1, -2) .. ',"d":1}'
    redis.call('HSET', partition .. 'r', '+' .. sid, table.concat({ now, now, 'created', note, subject }, '\n'))
    redis.call('PEXPIREAT', partition .. 'r', now + shift + LOG_SLACK)
  end
  if found[4] and found[5] then
    local signals, wanted = {}, string.gsub(found[5], '\n', ' ')
    if string.find(wanted, ' created ', 1, true) then signals[1] = { sid, 'created', record } end
    if new ~= '' and string.find(wanted, ' new_device ', 1, true) then signals[#signals + 1] = { sid, 'new_device', record } end
    if #signals > 0 then append_signals(partition, redis.call('GET', partition .. 'g'), signals, now) end
  end
end

-- Sets the expiry of a key so that the key lives at least as long as every session in it.
local function keep(key)
  redis.call('PEXPIREAT', key, math.max(redis.call('PEXPIRETIME', key), created + life + slack(idle)))
end

-- Adds the session to those of its subject.
local function add_to_subject()
  if sids and #sids < MOST * ID then
    write_index(partition, subject, sids .. sid)
    keep(index)
    return
  end
  if sids then lengthen_index(partition, subject, sids, now) end
  redis.call('ZADD', many, 0, entry)
  keep(many)
  local clean_until = redis.call('GET', clean)
  if clean_until and expires < tonumber(clean_until) then redis.call('SET', clean, expires, 'KEEPTTL') end
end

-- Adds the session to those of its login, and removes those that have expired without a trace.
local function add_to_logins()
  for at = 1, #logins, UPSTREAM do
    local login = partition .. 'U' .. string.sub(logins, at, at + UPSTREAM - 1)
    redis.call('ZREMRANGEBYSCORE', login, '-inf', now)
    redis.call('ZADD', login, created + life, sid)
    keep(login)
  end
end

-- Inserts the session in the order of creation, mostly at its end. The new chunk is added before the old one is removed, because Redis
-- deletes a key that is empty for a moment, and its expiry with it.
local function add_to_order()
  local order = partition .. 'o'
  local chunk = redis.call('ZREVRANGEBYLEX', order, '[' .. entry, '-', 'LIMIT', 0, 1)[1]
  if not chunk or earlier(string.sub(chunk, -ENTRY), entry) then
    local fits = chunk and #chunk < CHUNK
    redis.call('ZADD', order, 0, fits and chunk .. entry or entry)
    if fits then redis.call('ZREM', order, chunk) end
  else
    local entries = { entry }
    for at = 1, #chunk, ENTRY do entries[#entries + 1] = string.sub(chunk, at, at + ENTRY - 1) end
    table.sort(entries, earlier)
    local half = #entries * ENTRY > CHUNK and math.floor(#entries / 2) or #entries
    redis.call('ZADD', order, 0, table.concat(entries, '', 1, half))
    if half < #entries then redis.call('ZADD', order, 0, table.concat(entries, '', half + 1)) end
    redis.call('ZREM', order, chunk)
  end
  keep(order)
end

-- When the last session of a subject expires, nothing removes the subject from the index. So each creation examines two random subjects,
-- and removes those without live sessions. That keeps the subjects without live sessions few.
local function drop_empty_subjects()
  local drawn = redis.call('HRANDFIELD', index, -2, 'WITHVALUES')
  for at = 1, #drawn, 2 do
    if drop_expired(drawn[at + 1]) == '' then redis.call('HDEL', index, drawn[at]) end
  end
end

local reply = limit ~= '' and make_room_within_limit() or not sids and make_room_among_many()
if reply then return reply end
-- The newest time of creation is stored, so that the next logout of everyone includes this session.
if created > tonumber(found[1] or 0) then redis.call('SET', partition .. 'n', created) end
local replaced = old and end_replaced() or ''
if sids then make_room_among_few() end
redis.call('SET', partition .. 's' .. sid, record, 'PXAT', expires + slack(idle))
write_notes()
add_to_subject()
add_to_logins()
add_to_order()
drop_empty_subjects()
return reply_evicted({ record, replaced, new })
