#!lua flags=allow-oom
-- Lists the live sessions of a subject. Brings its index in order: see `settle_index`, and entries of expired sessions are removed.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns, for a subject with few sessions, 'few', sid, record, sid, record, …: all of them, oldest first. For a subject with many it
-- returns 'many', entry, record, entry, record, …, newest first, with '' for the record of a session that is not live. It returns only
-- 'again' if the caller must run the script again.
-- @include lib/deadline.lua: ARGC, now
-- @include lib/index.lua: settle_index
-- @include lib/live.lua: live, within_lifetimes
-- @include lib/sizes.lua: ID, MOST
local subject,
  before, -- an entry of the order of creation: sessions before it are returned
  count -- how many sessions to examine
  = unpack(ARGV, 1, ARGC)
local partition = KEYS[1]
local sids, unfinished = settle_index(partition, subject, now)
if unfinished then return { 'again' } end
local found = { sids and 'few' or 'many' }
if sids then
  for from = 1, #sids, ID do
    local sid = string.sub(sids, from, from + ID - 1)
    local record = live(partition, sid, now)
    if record then found[#found + 1], found[#found + 2] = sid, record end
  end
  return found
end
local many, expired = partition .. KEY.many_sessions .. subject, {}
local entries = redis.call('ZREVRANGEBYLEX', many, '(' .. before, '-', 'LIMIT', 0, math.min(tonumber(count), MOST))
for _, entry in ipairs(entries) do
  local record, ended = within_lifetimes(partition, string.sub(entry, -ID), now)
  if not record then expired[#expired + 1] = entry end
  found[#found + 1], found[#found + 2] = entry, not ended and record or ''
end
if #expired > 0 then redis.call('ZREM', many, unpack(expired)) end
return found
