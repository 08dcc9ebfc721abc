#!lua
-- Makes a session end with another one, that of its actor.
-- KEYS  1 the partition of the actor's session
-- ARGV  1 the actor's session, 2 the session that ends with it, 3 how long that one lives at most, ms, 4 how many may end with one session
-- Returns 'attached'; 'ended' if the actor's session is not live; 'full' if too many end with it.
local partition, actor, sid, most = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[4])
if not live(partition, actor, now) then return 'ended' end
local attached, entries, count, latest = redis.call('GET', partition .. 'A') or '', {}, 0, now + tonumber(ARGV[3])
entries[1] = actor .. sid .. struct.pack('>I6', latest)
for at = 1, #attached, ATTACHED do
  local entry = string.sub(attached, at, at + ATTACHED - 1)
  local expires = struct.unpack('>I6', entry, 2 * ID + 1)
  if now < expires and string.sub(entry, 1, 2 * ID) ~= actor .. sid then
    entries[#entries + 1], latest = entry, math.max(latest, expires)
    if string.sub(entry, 1, ID) == actor then count = count + 1 end
  end
end
if count >= most then return 'full' end
redis.call('SET', partition .. 'A', table.concat(entries), 'PXAT', latest + slack(0))
return 'attached'
