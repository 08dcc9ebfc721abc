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
-- @include lib/room.lua: WINDOW, acting_of_many, drop_expired, next_part, oldest_of_many, progress_of
-- @include lib/signal_log.lua: append_signals
local sid, subject,
  child1, child2, -- the nonce of the first refresh token
  idle_timeout, absolute_lifetime, -- ms
  body, -- the record after its head
  cap, -- how many sessions the subject may have
  marker_life, -- how long ended sessions stay marked, ms
  replaces, -- a session of this partition to end before the creation, or ''
  flags, -- of the record
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

local index, many_key, clean_key = partition .. 'u', partition .. 'i' .. subject, partition .. 'k' .. subject
local sids, unfinished = index_of(partition, subject, now)
if unfinished then return { 'again', '', '' } end

local newest_time, revoked_until, horizons, signal_state, notices =
  unpack(redis.call('MGET', partition .. 'n', partition .. 'e', partition .. 'h', partition .. 'g', partition .. 'p'))
revoked_until = tonumber(revoked_until or 0)
-- All sessions of the subject that were created up to this time have ended.
local ended_time = math.max(revoked_until, horizons and horizon_of(horizons, subject) or 0)
local old = replaces ~= '' and live(partition, replaces, now)

-- A session counts as ended if it was not created after the last logout of its subject and of everyone. So this session gets a later time
-- of creation, even if the clock shows an earlier time.
local created = math.max(now, ended_time + 1)
local expires = created + math.min(idle, life)
local record = struct.pack(HEAD, flags, 0, 0, 0, child1, child2, 0, 0, 0, created, idle, life) .. body
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
  local newest = sids or table.concat(redis.call('ZREVRANGEBYLEX', many_key, '+', '-', 'LIMIT', 0, MOST))
  local step = sids and ID or ENTRY
  for last = #newest, 1, -step do
    local other = live(partition, string.sub(newest, last - ID + 1, last), now)
    if other and agent_of(other) == agent then return false end
  end
  return true
end
local new = claim_life == '' and is_new_device() and 'new' or ''

-- Ends sessions for the cap or the limit, and removes them from their subject's index.
local evicted = {}
local function evict(sessions)
  if #sessions == 0 then return end
  local ending, entries = {}, {}
  for k, session in ipairs(sessions) do
    ending[k], entries[k] = session.sid, entry_of(session.record, session.sid)
  end
  for _, name in ipairs(close(partition, ending, 'session_limit', now, marker_life, ended_note, subject)) do
    evicted[#evicted + 1] = name
  end
  if not sids then
    redis.call('ZREM', many_key, unpack(entries))
    return
  end
  for _, other in ipairs(ending) do
    local at = string.find(sids, other, 1, true)
    sids = string.sub(sids, 1, at - 1) .. string.sub(sids, at + ID)
  end
  write_index(partition, subject, sids)
end
local function reply_evicted(reply)
  for _, other in ipairs(evicted) do reply[#reply + 1] = other end
  return reply
end

-- Returns which sessions have to end for the limit; and if the session may not be created after that, the reply with which the script ends.
-- It changes nothing: `make_room` ends the sessions.
local function choose_within_limit()
  local MOST_LISTED = 10 -- how many live sessions a refusal lists
  local scope, most, action = string.match(limit, '^(%S+) (%d+) (%S+)$')
  most = tonumber(most)
  if sids and #sids < most * ID then return {} end
  local group = group_of(record, scope)
  if old and subject_of(old) == subject and not actor_of(old) and group_of(old, scope) == group then return {} end
  local known, last_read = sids, nil -- of few sessions all are known; many are read in parts
  if not sids then known, last_read = next_part(many_key, entries_after(revoked_until), progress) end
  local counted = in_group(alike(live_sessions(partition, known, now), acts), scope, group)
  local window = action == 'end_oldest' and 1 or WINDOW
  if last_read and #counted < most + window then return {}, { 'more', progress_of(last_read, counted), '' } end
  local excess = #counted - most + 1
  if excess <= 0 then return {} end
  if action == 'refuse' then
    local reply = { 'refused', '', '' }
    for _, session in ipairs(take_excess(counted, MOST_LISTED, WINDOW)) do
      reply[#reply + 1], reply[#reply + 2] = session.sid, session.record
    end
    return {}, reply
  end
  -- If further parts of the list follow, sessions of this part end only while a whole WINDOW of them is left: the next part may have a
  -- session that was used less recently.
  local count = math.min(excess, MOST, last_read and #counted - window + 1 or excess)
  return take_excess(counted, count, window), (count < excess or last_read) and { 'again', '', new } or nil
end

-- Returns the same for the cap, if the subject has many sessions.
local function choose_among_many()
  local from = entries_after(ended_time)
  if acts then
    local acting = acting_of_many(partition, many_key, from, replaces, now)
    return take_excess(acting, #acting - cap + 1, WINDOW)
  end
  local is_replaced = old and subject_of(old) == subject
  local excess = redis.call('ZLEXCOUNT', many_key, from, '+') - (is_replaced and 1 or 0) - cap + 1
  if excess > 0 then excess = excess - #acting_of_many(partition, many_key, from, replaces, now) end
  if excess <= 0 then return {} end
  if now >= tonumber(redis.call('GET', clean_key) or 0) then return {}, { 'sweep', '', new } end
  local most = math.min(excess, MOST - WINDOW)
  local oldest, removed = oldest_of_many(partition, many_key, from, most + WINDOW, replaces, now)
  local chosen = take_excess(oldest, most - removed, WINDOW)
  -- A run that has found none to end is not repeated: the next one would find the same.
  return chosen, excess > most and #chosen + removed > 0 and { 'again', '', new } or nil
end

-- Returns which sessions have to end for the cap, if the subject has few; and its sessions, without
-- those that have expired (below the cap only at the front).
local function choose_among_few()
  if #sids < math.min(cap, MOST) * ID then return {}, drop_expired(partition, sids, now) end
  local kept, listed = live_sessions(partition, sids, now), {}
  for k, session in ipairs(kept) do listed[k] = session.sid end
  local counted = alike(kept, acts)
  return take_excess(counted, #counted - cap + 1, WINDOW), table.concat(listed)
end

-- Ends the sessions that `choose` returns. Returns the reply with which the script ends; nil if the session may be created.
local function make_room(choose)
  local ending, reply = choose()
  evict(ending)
  return reply and reply_evicted(reply)
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
  if signal_state and notices then
    local signals, wanted = {}, string.gsub(notices, '\n', ' ')
    if string.find(wanted, ' created ', 1, true) then signals[1] = { sid, 'created', record } end
    if new ~= '' and string.find(wanted, ' new_device ', 1, true) then signals[#signals + 1] = { sid, 'new_device', record } end
    -- The state is read again: the signals of sessions that this run has ended have changed it.
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
  redis.call('ZADD', many_key, 0, entry)
  keep(many_key)
  local clean_until = redis.call('GET', clean_key)
  if clean_until and expires < tonumber(clean_until) then redis.call('SET', clean_key, expires, 'KEEPTTL') end
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
    if drop_expired(partition, drawn[at + 1], now) == '' then redis.call('HDEL', index, drawn[at]) end
  end
end

local reply = limit ~= '' and make_room(choose_within_limit) or not sids and make_room(choose_among_many)
if reply then return reply end
-- The newest time of creation is stored, so that the next logout of everyone includes this session.
if created > tonumber(newest_time or 0) then redis.call('SET', partition .. 'n', created) end
local replaced = old and end_replaced() or ''
if sids then
  local ending
  ending, sids = choose_among_few()
  evict(ending)
end
redis.call('SET', partition .. 's' .. sid, record, 'PXAT', expires + slack(idle))
write_notes()
add_to_subject()
add_to_logins()
add_to_order()
drop_empty_subjects()
return reply_evicted({ record, replaced, new })
