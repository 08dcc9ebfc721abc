#!lua
-- Makes a session end with another one, that of its actor.
-- KEYS  1 the partition of the actor's session
-- ARGV  the first locals, in this order
-- Returns 'attached'; 'ended' if the actor's session is not live; 'full' if too many end with it.
-- @include lib/deadline.lua: ARGC, now
-- @include lib/live.lua: live
-- @include lib/lives.lua: slack
-- @include lib/sizes.lua: ATTACHED, ID
local actor_sid, sid, -- the actor's session, and the one that ends with it
  life, -- how long that one lives at most, ms
  most -- how many may end with one session
  = unpack(ARGV, 1, ARGC)
local partition = KEYS[1]
if not live(partition, actor_sid, now) then return 'ended' end
local attached, entries, count, latest = redis.call('GET', partition .. KEY.attached) or '', {}, 0, now + tonumber(life)
entries[1] = actor_sid .. sid .. struct.pack('>I6', latest)
for at = 1, #attached, ATTACHED do
  local entry = string.sub(attached, at, at + ATTACHED - 1)
  local expires = struct.unpack('>I6', entry, 2 * ID + 1)
  if now < expires and string.sub(entry, 1, 2 * ID) ~= actor_sid .. sid then
    entries[#entries + 1], latest = entry, math.max(latest, expires)
    if string.sub(entry, 1, ID) == actor_sid then count = count + 1 end
  end
end
if count >= tonumber(most) then return 'full' end
redis.call('SET', partition .. KEY.attached, table.concat(entries), 'PXAT', latest + slack(0))
return 'attached'
