#!lua flags=allow-oom
-- Ends all sessions of a subject, except one that may be spared. If the subject has many sessions, all of them end in this step, and
-- end_rest.lua then deletes, marks and logs them.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns a list: 'ended' and the ids of the sessions that were ended, oldest first, each followed by its actor (`end_sessions`); 'begun',
-- if the subject has many sessions. If nothing was ended, it returns 'caller_ended', if the session that must be live is not; 'again', if
-- the caller must run the script again; or 'busy', while another bulk logout has to be completed first.
-- @include lib/deadline.lua: ARGC, now
-- @include lib/bulk_logouts.lua: BULK_LOGOUT, find_bulk_logout
-- @include lib/end_sessions.lua: end_sessions
-- @include lib/head.lua: subject_of
-- @include lib/index.lua: settle_index, write_index
-- @include lib/live.lua: live, read_all_ended_until
-- @include lib/sizes.lua: ID
local subject, reason,
  marker_life, -- how long ended sessions stay marked, ms
  except, -- the session to spare, or ''
  caller_sid, -- the session that must be live, or ''
  id, -- an id of this logout
  note -- the text of the due records (event-text.ts), or ''
  = unpack(ARGV, 1, ARGC)
local MOST_BULK_LOGOUTS = 16 -- the most logouts of many sessions that may be under way in a partition
local partition = KEYS[1]
local bulk_logouts = redis.call('GET', partition .. KEY.bulk_logouts) or ''
if string.find(bulk_logouts, id, 1, true) or redis.call('GET', partition .. KEY.bulk_logout .. id) then return { 'begun' } end
if caller_sid ~= '' then
  local caller = live(partition, caller_sid, now)
  if not caller or subject_of(caller) ~= subject then return { 'caller_ended' } end
end
local sids, unfinished = settle_index(partition, subject, now)
if unfinished then return { 'again' } end
local many = partition .. KEY.many_sessions .. subject
if not sids then
  local at, count = 1, 0
  while at <= #bulk_logouts do at, count = select(9, struct.unpack(BULK_LOGOUT, bulk_logouts, at)), count + 1 end
  if find_bulk_logout(bulk_logouts, subject) or count >= MOST_BULK_LOGOUTS then return { 'busy' } end
  local newest = redis.call('ZREVRANGEBYLEX', many, '+', '-', 'LIMIT', 0, 1)[1]
  local created_until = math.max(now, (struct.unpack('>I6', newest)))
  local spared = except == '' and string.rep(' ', ID) or except
  redis.call('SET', partition .. KEY.bulk_logouts, bulk_logouts
    .. struct.pack(BULK_LOGOUT, read_all_ended_until(partition), created_until, 0, id, spared, #reason, reason, #note, note,
      #subject, subject))
  return { 'begun' }
end

local reply, ended, spared = { 'ended' }, {}, ''
for from = 1, #sids, ID do
  local sid = string.sub(sids, from, from + ID - 1)
  if sid == except then
    spared = sid
  elseif live(partition, sid, now) then
    ended[#ended + 1] = sid
  end
end
for k, name in ipairs(end_sessions(partition, ended, reason, now, tonumber(marker_life), note, subject)) do reply[k + 1] = name end
write_index(partition, subject, spared)
return reply
