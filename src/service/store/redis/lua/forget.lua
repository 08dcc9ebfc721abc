#!lua flags=allow-oom
-- Removes the events, the due records and the index entries of a subject, except those of its live sessions.
-- KEYS  1 partition
-- ARGV  1 subject
-- Returns the outcome and how many events were removed. The outcome is 'done'; 'again', if the caller must run the script again; 'busy', if
-- a logout of the subject's sessions has to be completed first; or 'full', if there are too many due records to find those of the subject.
-- @include lib/deadline.lua: now
-- @include lib/bulk_logouts.lua: find_bulk_logout
-- @include lib/index.lua: settle_index, write_index
-- @include lib/live.lua: live
-- @include lib/sizes.lua: ID, MOST
local MOST_DUE = 1024 -- the most due records that one run examines, in about 1 ms
local partition, subject = KEYS[1], ARGV[1]
if find_bulk_logout(redis.call('GET', partition .. KEY.bulk_logouts) or '', subject) then return { 'busy', '0' } end

-- Returns the live ones of these sessions, without separators, and a list of the others.
local function split(sids)
  local kept, gone = {}, {}
  for from = 1, #sids, ID do
    local sid = string.sub(sids, from, from + ID - 1)
    if live(partition, sid, now) then kept[#kept + 1] = sid else gone[#gone + 1] = sid end
  end
  return table.concat(kept), gone
end

local sids, unfinished = settle_index(partition, subject, now)
if unfinished then return { 'again', '0' } end
if sids then
  write_index(partition, subject, (split(sids)))
else
  local many = partition .. KEY.many_sessions .. subject
  local entries, gone = redis.call('ZRANGEBYLEX', many, '-', '+', 'LIMIT', 0, MOST), {}
  for _, entry in ipairs(entries) do
    if not live(partition, string.sub(entry, -ID), now) then gone[#gone + 1] = entry end
  end
  if #gone > 0 then redis.call('ZREM', many, unpack(gone)) end
  if #gone == MOST then return { 'again', '0' } end
end
if redis.call('ZCARD', partition .. KEY.many_sessions .. subject) == 0 then redis.call('DEL', partition .. KEY.clean_until .. subject) end

local removed = 0
local function remove_events(gone)
  for _, sid in ipairs(gone) do
    local _, count = string.gsub(redis.call('GET', partition .. KEY.events .. sid) or '', '\n', '')
    -- An instance of 0.2 that ends a session leaves its note.
    removed = removed + count + redis.call('HDEL', partition .. KEY.creations, sid)
    redis.call('DEL', partition .. KEY.events .. sid)
  end
end

local recent, past = partition .. KEY.last_sessions .. subject, partition .. KEY.earlier_sessions .. subject
local kept, gone = split(redis.call('GET', recent) or '')
remove_events(gone)
if kept == '' then redis.call('DEL', recent) else redis.call('SET', recent, kept, 'KEEPTTL') end
local _, gone_before = split(table.concat(redis.call('ZRANGE', past, 0, MOST - 1)))
remove_events(gone_before)
if #gone_before > 0 then redis.call('ZREM', past, unpack(gone_before)) end
if #gone_before == MOST then return { 'again', tostring(removed) } end

local due, suffix = redis.call('HRANDFIELD', partition .. KEY.due, MOST_DUE, 'WITHVALUES'), '\n' .. subject
for at = 1, #due, 2 do
  local sid = string.gsub(due[at], '^%+', '')
  if string.sub(due[at + 1], -#suffix) == suffix and not live(partition, sid, now) then
    redis.call('HDEL', partition .. KEY.due, due[at])
  end
end
return { #due == 2 * MOST_DUE and 'full' or 'done', tostring(removed) }
