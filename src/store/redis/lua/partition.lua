-- What the scripts share. All keys of a partition begin with its hash tag, such as {a7}, so that they lie in
-- one slot of a cluster:
--
--   {a7}s<sid>      a session: a packed record, see HEAD. Expires a while after the session.
--   {a7}u           index, a HASH: subject -> the ids of its sessions (23 characters each), one after the other, in
--                   order of creation. Some may have expired. (A key per subject would cost half as much again.)
--   {a7}o           order of creation, a ZSET of chunks that all have the score 0: up to 32 entries (created I6, sid), one after
--                   the other. Redis orders chunks by their bytes, thus by their first entries. Some entries may have expired.
--                   (A member for each session would cost three times as much.)
--   {a7}m<sid>      marker of an ended session: when it expires.
--   {a7}e           until when sessions were created that have all ended (RevokeAllSessions), ms. Not there: none.
--   {a7}n           when the newest session was created, ms.
--   {a7}l           revocation log: ZSET of entries '<sid> <revoked at> <expires at> <reason>' by revoked at. The end of
--                   all is '* <created until> <expires at> revoked_all'.
--   {a7}r           due records (src/session/events.ts), a HASH: sid of a session that has ended, '+' and the sid of one that was
--                   created, or '*' and until when sessions have ended -> since when, when, what, who asked (due-text.ts) and the
--                   subject, each on a line. Mostly there for the moment until record.lua has taken them away.
--
-- The head of a record; after it come the subject (I2 length, text) and what only the service reads (record.ts).
-- version, g, n (two words), c (two words), f, cs, ct, created, idle timeout, absolute lifetime
-- The version is 1, 2 more with a device key, 4 more for a session that must have one. The key is at the end: the key itself, its
-- thumbprint (32 bytes), since when it is registered or bound (I6), its length (I2), its kind (B).
local HEAD = '>BI4I4I4I4I4I6I6I6I6I5I5'
local BODY = 56 -- where the head has ended
local ID = 23
local ENTRY = 6 + ID
local CHUNK = 32 * ENTRY

-- All times are the store's: the node's clock less a shift (window.lua). Redis itself expires keys by the node's clock, so
-- while that is set forward, by mistake and for a while, it must not drop what will be missed later: an idle session waits
-- for a sixteenth of its idle timeout more, and the log, which would un-revoke, for a month.
local shift = tonumber(ARGV[#ARGV])
local LOG_SLACK = 32 * 86400000
local function slack(idle) return shift + math.floor(idle / 16) end

local function subject_of(record)
  return (struct.unpack('>I2c0', record, BODY))
end

-- Where the device key begins; beyond the record if it has none.
local function device_at(record)
  if string.byte(record) % 4 < 2 then return #record + 1 end
  return #record - 40 - struct.unpack('>I2', record, #record - 2)
end

-- A session in the order of creation.
local function entry_of(record, sid)
  return string.sub(record, 40, 45) .. sid
end

-- What changes and reads the order of creation. Made when asked for: a refresh would pay for functions that it does not call.
local function order_functions()
  -- Whether an entry comes before another one, by its bytes: Lua's own comparison goes by a locale.
  local function earlier(a, b)
    for at = 1, ENTRY do
      local x, y = string.byte(a, at), string.byte(b, at)
      if x ~= y then return x < y end
    end
    return false
  end

  -- Writes what is left of a chunk, with the chunk before it if the two make one.
  local function replace_chunk(order, chunk, rest)
    local before = rest ~= '' and redis.call('ZREVRANGEBYLEX', order, '(' .. chunk, '-', 'LIMIT', 0, 1)[1]
    redis.call('ZREM', order, chunk)
    if before and #before + #rest <= CHUNK then
      redis.call('ZREM', order, before)
      rest = before .. rest
    end
    if rest ~= '' then redis.call('ZADD', order, 0, rest) end
  end

  -- Takes a session that is there out of the order.
  local function remove(partition, sid)
    local record = redis.call('GET', partition .. 's' .. sid)
    if not record then return end
    local order, entry = partition .. 'o', entry_of(record, sid)
    local chunk = redis.call('ZREVRANGEBYLEX', order, '[' .. entry .. '\255', '-', 'LIMIT', 0, 1)[1]
    local at = chunk and string.find(chunk, entry, 1, true)
    if at then replace_chunk(order, chunk, string.sub(chunk, 1, at - 1) .. string.sub(chunk, at + ENTRY)) end
  end

  return earlier, replace_chunk, remove
end

-- Idle expiry, absolute expiry and creation. Every minting slides the idle expiry, so the child's mint time is the last refresh.
local function expiries(record)
  local _, _, _, _, _, _, _, _, minted, created, idle, life = struct.unpack(HEAD, record)
  local absolute = created + life
  return math.min(math.max(created, minted) + idle, absolute), absolute, created
end

-- Until when sessions were created that have all ended; 0 if none have.
local function ended_until(partition)
  return tonumber(redis.call('GET', partition .. 'e') or 0)
end

-- The session's record, if it is within both lifetimes; and whether it ended with all others.
local function within_lifetimes(partition, sid, now)
  local record = redis.call('GET', partition .. 's' .. sid)
  if not record then return false end
  local idle_expiry, _, created = expiries(record)
  if now >= idle_expiry then return false end
  return record, created <= ended_until(partition)
end

-- The session's record, if it is live.
local function live(partition, sid, now)
  local record, ended = within_lifetimes(partition, sid, now)
  return not ended and record
end

-- Of a session that is not live: whether it was ended.
local function marked(partition, sid, now)
  local expires = redis.call('GET', partition .. 'm' .. sid)
  if expires and now < tonumber(expires) then return true end
  local _, ended = within_lifetimes(partition, sid, now)
  return ended
end

-- Ends sessions: deletes them, writes their markers, appends to the log, leaves what is to be recorded of it (`note`, of sessions
-- of `subject`; not where it is '') and wakes the readers. The index is the caller's business, after this. Redis takes back nothing of a script that fails, and what can fail on the way is that
-- the user may not: so that is asked before anything is written.
local function close(partition, sids, reason, now, marker_life, note, subject)
  if #sids == 0 then return end
  for command in string.gmatch('DEL SET ZADD ZREM ZREVRANGEBYLEX ZREMRANGEBYSCORE PEXPIREAT HGET HSET HDEL', '%u+') do
    if not redis.acl_check_cmd(command, partition) then error({ err = 'NOPERM no permission to run ' .. command }) end
  end
  local _, _, remove_from_order = order_functions()
  local log, expires, entries = partition .. 'l', now + marker_life, {}
  for k, sid in ipairs(sids) do
    remove_from_order(partition, sid)
    redis.call('DEL', partition .. 's' .. sid)
    redis.call('SET', partition .. 'm' .. sid, expires, 'PXAT', expires + shift)
    entries[k] = sid .. ' ' .. now .. ' ' .. expires .. ' ' .. reason
    redis.call('ZADD', log, now, entries[k])
    if note ~= '' then redis.call('HSET', partition .. 'r', sid, table.concat({ now, now, reason, note, subject }, '\n')) end
  end
  if note ~= '' then redis.call('PEXPIREAT', partition .. 'r', now + shift + LOG_SLACK) end
  redis.call('ZREMRANGEBYSCORE', log, '-inf', '(' .. now - marker_life)
  redis.call('PEXPIREAT', log, expires + shift + LOG_SLACK)
  redis.pcall('PUBLISH', 'session-revocations', table.concat(entries, '\n')) -- only a hint
end

-- Writes what is left of a subject's sessions.
local function write_index(partition, subject, sids)
  if sids == '' then
    redis.call('HDEL', partition .. 'u', subject)
  else
    redis.call('HSET', partition .. 'u', subject, sids)
  end
end

-- Takes one session out of its subject's index.
local function unindex(partition, sid, record)
  local subject = subject_of(record)
  local sids = redis.call('HGET', partition .. 'u', subject) or ''
  local at = string.find(sids, sid, 1, true)
  if at then write_index(partition, subject, string.sub(sids, 1, at - 1) .. string.sub(sids, at + ID)) end
end
