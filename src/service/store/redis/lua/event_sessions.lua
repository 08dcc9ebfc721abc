#!lua flags=allow-oom
-- Returns sessions of a subject that have events.
-- KEYS  1 partition
-- ARGV  1 subject, 2 how many of each index earlier runs have read, 3 how many this one reads
-- Returns the ids of some of the sessions, without separators, and '' if no more follow
-- @include lib/deadline.lua
-- @include lib/sizes.lua: ID
local partition, subject, from, count = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local earlier = redis.call('ZRANGE', partition .. KEY.earlier_sessions .. subject, from, from + count - 1)
local many = redis.call('ZRANGE', partition .. KEY.many_sessions .. subject, from, from + count - 1)
local more = (#earlier == count or #many == count) and '+' or ''
local found = { redis.call('GET', partition .. KEY.last_sessions .. subject) or '', table.concat(earlier) }
local few = redis.call('HGET', partition .. KEY.few_sessions, subject) or ''
for at = 1, #few, ID do many[#many + 1] = string.sub(few, at, at + ID - 1) end
for _, entry in ipairs(many) do
  local sid = string.sub(entry, -ID)
  if redis.call('HGET', partition .. KEY.creations, sid) then found[#found + 1] = sid end
end
return { table.concat(found), more }
