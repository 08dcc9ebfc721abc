#!lua flags=allow-oom
-- Continues the logout of a subject with many sessions: deletes some of the sessions that have ended, oldest first, marks them and appends
-- them to the revocation log.
-- KEYS  1 partition
-- ARGV  1 the id of the logout, or '' for any that is under way, 2 how long ended sessions stay marked, ms
-- Returns 'more' or 'done', how many sessions this logout has ended so far, and the ids of those that this run has ended, each followed by
-- its actor (`end_sessions`); 'none' if there is no such logout.
-- @include lib/deadline.lua: now
-- @include lib/bulk_logouts.lua: BULK_LOGOUT
-- @include lib/end_sessions.lua: end_sessions
-- @include lib/live.lua: within_lifetimes
-- @include lib/sizes.lua: ID
local AT_ONCE = 64 -- the number of sessions that one run ends, in about 1 ms
local partition, id = KEYS[1], ARGV[1]
local bulk_logouts = redis.call('GET', partition .. KEY.bulk_logouts) or ''
local from, after = 1, 1
local created_after, created_until, count, name, spared, reason, note, subject
repeat
  if after > #bulk_logouts then
    local done = id ~= '' and redis.call('GET', partition .. KEY.bulk_logout .. id)
    return done and { 'done', done } or { 'none' }
  end
  from = after
  created_after, created_until, count, name, spared, reason, note, subject, after = struct.unpack(BULK_LOGOUT, bulk_logouts, from)
until id == '' or name == id

local many, reply, ended, entries = partition .. KEY.many_sessions .. subject, { 'more', '' }, {}, {}
local oldest = redis.call('ZRANGEBYLEX', many, '-', '(' .. struct.pack('>I6', created_until + 1), 'LIMIT', 0, AT_ONCE)
for _, entry in ipairs(oldest) do
  local sid = string.sub(entry, -ID)
  if sid ~= spared then
    entries[#entries + 1] = entry
    if within_lifetimes(partition, sid, now) and struct.unpack('>I6', entry) > created_after then ended[#ended + 1] = sid end
  end
end
for k, name in ipairs(end_sessions(partition, ended, reason, now, tonumber(ARGV[2]), note, subject)) do reply[k + 2] = name end
if #entries > 0 then redis.call('ZREM', many, unpack(entries)) end

local done = #oldest < AT_ONCE
local rest = done and ''
  or struct.pack(BULK_LOGOUT, created_after, created_until, count + #ended, name, spared, #reason, reason, #note, note,
    #subject, subject)
local left = string.sub(bulk_logouts, 1, from - 1) .. rest .. string.sub(bulk_logouts, after)
if left == '' then redis.call('DEL', partition .. KEY.bulk_logouts) else redis.call('SET', partition .. KEY.bulk_logouts, left) end
if done then
  reply[1] = 'done'
  redis.call('SET', partition .. KEY.bulk_logout .. name, count + #ended, 'PX', 60000)
end
reply[2] = string.format('%.0f', count + #ended)
return reply
