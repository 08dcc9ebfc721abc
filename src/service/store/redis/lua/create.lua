#!lua
-- Creates a session, and ends the subject's least recently used sessions if it has more than the cap or the limit allows, or creates
-- none. A second run with the same id returns the session that the first one created.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns one of these lists. In them, `ended…` are the ids of the sessions that were ended, in order, each followed by its actor
-- (`end_sessions`). `is_new` is 'new' if no live session of the subject, of the newest MOST, has the user agent of this one; otherwise,
-- and with `reserved_life`, it is ''.
--   'created', record, replaced, is_new, ended…   `replaced` is the session that this one has replaced, with its actor, or ''
--   'existing', record       with `reserved_life`: an earlier run has created the session, which is live
--   'ended'                  with `reserved_life`: an earlier run has created the session, which has ended
--   'refused', id, record…   the limit refuses the session; nothing was changed. The sessions that count, least recently used first
--   'more', progress         the caller runs the script again, with this `progress`
--   'again', is_new, ended…  the caller runs the script again
--   'sweep', is_new, ended…  the same, but the caller runs sweep.lua first
-- @include lib/deadline.lua: ARGC, now, shift
-- @include lib/actor.lua: actor_of
-- @include lib/bulk_logouts.lua: find_bulk_logout
-- @include lib/commands.lua: require_commands
-- @include lib/end_sessions.lua: end_sessions
-- @include lib/eviction.lua: choose_among_few, choose_among_many, choose_within_limit, parse_limit
-- @include lib/head.lua: entry_of, subject_of
-- @include lib/index.lua: settle_index, unindex, write_index
-- @include lib/insertion.lua: add_event, add_signals, add_to_logins, add_to_order, add_to_subject, drop_empty_subjects
-- @include lib/live.lua: live
-- @include lib/lives.lua: slack
-- @include lib/record.lua: HEAD, USER_AGENT
-- @include lib/sizes.lua: ENTRY, ID, MOST
-- @include lib/texts.lua: text_of
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
  reserved_life, -- for how long the id is reserved, ms: until then no second session is created with it; or ''
  logins, -- the names of the logins at an identity provider that it came from (upstream.ts), one after the other; or ''
  progress -- what an earlier run has found (result 'more'), or ''
  = unpack(ARGV, 1, ARGC)
local partition = KEYS[1]
cap, marker_life = tonumber(cap), tonumber(marker_life)
local idle, life = tonumber(idle_timeout), tonumber(absolute_lifetime)
local existing = live(partition, sid, now)
if existing then return reserved_life == '' and { 'created', existing, '', '' } or { 'existing', existing } end
local reserved = reserved_life ~= '' and redis.call('GET', partition .. KEY.reserved .. sid)
if reserved and now < tonumber(reserved) then return { 'ended' } end

require_commands(partition, 'GET SET HGET HSET HDEL HRANDFIELD ZADD ZRANGE ZREM ZREVRANGEBYLEX ZREMRANGEBYSCORE PEXPIREAT PEXPIRETIME')
local sids, unfinished = settle_index(partition, subject, now)
if unfinished then return { 'again', '' } end

local newest_time, all_ended_until, bulk_logouts, signal_state, notices =
  unpack(redis.call('MGET', partition .. KEY.newest, partition .. KEY.all_ended, partition .. KEY.bulk_logouts,
    partition .. KEY.signal_state, partition .. KEY.notices))
all_ended_until = tonumber(all_ended_until or 0)
-- All sessions of the subject that were created up to this time have ended.
local subject_ended_until = math.max(all_ended_until, bulk_logouts and find_bulk_logout(bulk_logouts, subject) or 0)

-- A session counts as ended if it was not created after the last logout of its subject and of everyone. So this session gets a later time
-- of creation, even if the clock shows an earlier time.
local created = math.max(now, subject_ended_until + 1)
local record = struct.pack(HEAD, flags, 0, 0, 0, child1, child2, 0, 0, 0, created, idle, life) .. body
local new = {
  sid = sid,
  subject = subject,
  record = record,
  entry = entry_of(record, sid),
  created = created,
  life = life,
  expires = created + math.min(idle, life), -- if it is never refreshed
  key_expires = created + life + slack(idle), -- of the keys of lists that have it
  acts = actor_of(record) ~= nil, -- whether somebody uses it in place of its subject. Such sessions count apart from the others
  replaces = replaces,
  replaced = replaces ~= '' and live(partition, replaces, now), -- the record of that session, if it is live
}

-- Returns whether none of the subject's newest live sessions has the user agent of this one.
local function is_new_device()
  local agent = text_of(record, USER_AGENT)
  if agent == '' then return false end
  local newest = sids or table.concat(redis.call('ZREVRANGEBYLEX', partition .. KEY.many_sessions .. subject, '+', '-', 'LIMIT', 0, MOST))
  local step = sids and ID or ENTRY
  for last = #newest, 1, -step do
    local other = live(partition, string.sub(newest, last - ID + 1, last), now)
    if other and text_of(other, USER_AGENT) == agent then return false end
  end
  return true
end
new.is_new_device = reserved_life == '' and is_new_device()

local evicted = {} -- the sessions that end for the limit or the cap, as `end_sessions` returns them

-- Ends sessions for the limit or the cap, and removes them from their subject's index.
local function evict(sessions)
  if #sessions == 0 then return end
  local ending, entries = {}, {}
  for k, session in ipairs(sessions) do
    ending[k], entries[k] = session.sid, entry_of(session.record, session.sid)
  end
  for _, name in ipairs(end_sessions(partition, ending, 'session_limit', now, marker_life, ended_note, subject)) do
    evicted[#evicted + 1] = name
  end
  if not sids then
    redis.call('ZREM', partition .. KEY.many_sessions .. subject, unpack(entries))
    return
  end
  for _, other in ipairs(ending) do
    local at = string.find(sids, other, 1, true)
    sids = string.sub(sids, 1, at - 1) .. string.sub(sids, at + ID)
  end
  write_index(partition, subject, sids)
end

-- Returns a reply with what such replies end with: whether the device is new, and the sessions that have ended.
local function reply_evicted(reply)
  reply[#reply + 1] = new.is_new_device and 'new' or ''
  for _, name in ipairs(evicted) do reply[#reply + 1] = name end
  return reply
end

-- Ends the chosen sessions. Returns the reply with which the script ends; nil if the session may be created.
local function make_room(chosen, reply)
  evict(chosen)
  local is_repeated = reply and (reply[1] == 'again' or reply[1] == 'sweep')
  return is_repeated and reply_evicted(reply) or reply
end

-- Ends the session that this one replaces. Returns its id.
local function end_replaced()
  local name = end_sessions(partition, { replaces }, 'replaced', now, marker_life, ended_note, subject_of(new.replaced))[1]
  unindex(partition, replaces, new.replaced)
  if sids then sids = redis.call('HGET', partition .. KEY.few_sessions, subject) or '' end
  return name
end

local reply = nil
if limit ~= '' then
  reply = make_room(choose_within_limit(partition, new, sids, parse_limit(limit, record), progress, all_ended_until, now))
end
if not reply and not sids then reply = make_room(choose_among_many(partition, new, cap, subject_ended_until, now)) end
if reply then return reply end
-- The newest time of creation is stored, so that the next logout of everyone includes this session.
if created > tonumber(newest_time or 0) then redis.call('SET', partition .. KEY.newest, created) end
local replaced = new.replaced and end_replaced() or ''
if sids then
  local chosen, kept = choose_among_few(partition, new, sids, cap, now)
  sids = kept
  evict(chosen)
end
redis.call('SET', partition .. KEY.session .. sid, record, 'PXAT', new.expires + slack(idle))
if reserved_life ~= '' then
  local reserved_until = string.format('%.0f', now + reserved_life)
  redis.call('SET', partition .. KEY.reserved .. sid, reserved_until, 'PXAT', reserved_until + shift)
end
add_event(partition, new, created_note, now)
if signal_state and notices then add_signals(partition, new, notices, now) end
add_to_subject(partition, new, sids, now)
add_to_logins(partition, new, logins, now)
add_to_order(partition, new)
drop_empty_subjects(partition, now)
return reply_evicted({ 'created', record, replaced })
