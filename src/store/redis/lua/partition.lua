-- These functions are shared by all scripts. All keys of a partition begin with its hash tag, such as {a7}, so that they lie in
-- one slot of a cluster:
--
--   {a7}s<sid>      a session: a packed record, see HEAD. Expires a while after the session.
--   {a7}u           index of the subjects that have few sessions, a HASH: subject -> the ids of its sessions (23 characters
--                   each), one after the other, in order of creation. Some may have expired. (One key for each subject would
--                   take 50 % more memory.)
--   {a7}i<subject>  index of a subject that has had many sessions (index_functions): a ZSET of entries (created I6, sid) that all
--                   have the score 0, thus in order of creation. Some may have expired.
--   {a7}k<subject>  a time until which none of the subject's many sessions expires, ms. sweep.lua determines it.
--   {a7}h           the ends of many sessions of a subject that are under way, see HORIZON. The key is absent most of the time.
--   {a7}d<id>       how many sessions such an end has ended, for a minute after it.
--   {a7}o           order of creation, a ZSET of chunks that all have the score 0: up to 32 entries (created I6, sid), one after
--                   the other. Redis orders chunks by their bytes, thus by their first entries. Some entries may have expired.
--                   (One member for each session would take three times the memory.)
--   {a7}m<sid>      marker of an ended session: when it expires.
--   {a7}e           a time, ms: all sessions that were created until then have ended (RevokeAllSessions). Without the key none has
--                   ended in this way.
--   {a7}y           the instance that looks for expired sessions, and the time until which no other one does, ms (expire.lua).
--   {a7}n           when the newest session was created, ms.
--   {a7}l           revocation log: ZSET of entries '<sid> <revoked at> <expires at> <reason>' in the order in which they were appended
--                   (append_to_log). The end of all is '* <created until> <expires at> revoked_all'.
--   {a7}r           due records (src/session/events.ts), a HASH. A field is the sid of a session that has ended, '+' and the sid of one
--                   that was created, or '*' and the time until which sessions have ended. Its value has five lines: since when the
--                   record is due, when the event was, its kind, who asked (due-text.ts) and the subject. record.lua removes a due
--                   record, mostly a moment later.
--   {a7}g           for how long signals are kept, ms, how many there have been, and the sid of the last one, or '-'. Present while there
--                   are subscriptions to signals.
--   {a7}z           signal log (src/signals/ports.ts), a ZSET by number: '<number> <sid> <ended at> <reason> <length of the client id, bytes>
--                   <client id><subject>'.
--   {a7}f           who reads it, a HASH. The field '*' is the lease: '<holder> <fence> <until>'. A subscription has '<number> <sid> <delivered>
--                   <dead letters>': its cursor, with the sid of the last signal before it ('-' where there was none), and its counters.
--   {a7}j           an end of all whose signals are to be appended: '<created after> <created until> <ended at> <entry>', the entry of the order
--                   of creation to continue after.
--   {00}b           subscriptions, a HASH. The field of an id has the definition; that of '=' and the id has six lines: time of
--                   creation, state, reason, failures, last error, time of it.
--
-- This is the head of a record. The subject (I2 length, text) follows it, and then what only the service reads (record.ts).
-- The fields are: version, g, n (two words), c (two words), f, cs, ct, created, idle timeout, absolute lifetime
-- The version is 1, 2 more with a device key, 4 more for a session that must have one, 8 more for one that is refreshed
-- by cookie only, 16 more for one that is refreshed by the token endpoint only. The device key is at the end of the record: the key
-- itself, its thumbprint (32 bytes), since when it is registered or bound (I6), its length (I2), its kind (B). A key that each request
-- proves (DPoP) is not in the record: in its place is since when it is bound (I6; 0: since the creation), and 0 at the place of that.
local HEAD = '>BI4I4I4I4I4I6I6I6I6I5I5'
local BODY = 56 -- the position after the head
local ID = 23
local ENTRY = 6 + ID
local CHUNK = 32 * ENTRY

-- One script ends this many sessions at the most, or examines as many in an index. More of them take several scripts, so that no
-- script delays all other commands for long. A subject with more sessions than that counts as one with many.
local MOST = 128

-- Describes an end of many sessions of a subject: after when and until when they were created (all earlier ones had ended already), how
-- many of them have been ended so far, the id of the end, the session that is spared (or blanks), the reason, the note of the due
-- records, the subject. All of these sessions have ended as soon as the description is written (end_all.lua). Their markers and their
-- entries in the log follow (end_rest.lua).
local HORIZON = '>I6I6I4c11c23Bc0I2c0I2c0'

-- All times are the store's: the node's clock less a shift (window.lua). Redis itself expires keys by the node's clock, so
-- while that is set forward, by mistake and for a while, it must not drop what will be missed later: an idle session waits
-- for a sixteenth of its idle timeout more, and for two minutes, in which its expiry is logged (expire.lua); and the log, which would un-revoke, for a month.
local shift = tonumber(ARGV[#ARGV])
local LOG_SLACK = 32 * 86400000
local function slack(idle) return shift + 120000 + math.floor(idle / 16) end

local function subject_of(record)
  return (struct.unpack('>I2c0', record, BODY))
end

-- Returns the position at which the device key begins: beyond the record if it has none.
local function device_at(record)
  if string.byte(record) % 4 < 2 then return #record + 1 end
  return #record - 40 - struct.unpack('>I2', record, #record - 2)
end

-- Returns the entry of a session in the order of creation.
local function entry_of(record, sid)
  return string.sub(record, 40, 45) .. sid
end

-- Makes the functions that change and read the order of creation. They are made on demand, because a refresh would pay for functions
-- that it does not call.
local function order_functions()
  -- Returns whether an entry precedes another one in the order of their bytes. Lua's own comparison depends on a locale.
  local function earlier(a, b)
    for at = 1, ENTRY do
      local x, y = string.byte(a, at), string.byte(b, at)
      if x ~= y then return x < y end
    end
    return false
  end

  -- Writes the rest of a chunk, joined with the chunk before it if both fit into one. It adds before it removes: Redis deletes a key
  -- that is empty for a moment, and its expiry with it.
  local function replace_chunk(order, chunk, rest)
    local before = rest ~= '' and redis.call('ZREVRANGEBYLEX', order, '(' .. chunk, '-', 'LIMIT', 0, 1)[1]
    local joins = before and #before + #rest <= CHUNK
    if rest ~= '' then redis.call('ZADD', order, 0, joins and before .. rest or rest) end
    if joins then redis.call('ZREM', order, before) end
    redis.call('ZREM', order, chunk)
  end

  -- Removes sessions from the order. Sessions that were created one after the other share chunks.
  local function remove(order, entries)
    local gone = {}
    for _, entry in ipairs(entries) do gone[entry] = true end
    for _, entry in ipairs(entries) do
      local chunk = gone[entry] and redis.call('ZREVRANGEBYLEX', order, '[' .. entry .. '\255', '-', 'LIMIT', 0, 1)[1]
      if chunk then
        local rest = {}
        for at = 1, #chunk, ENTRY do
          local other = string.sub(chunk, at, at + ENTRY - 1)
          if gone[other] then gone[other] = nil else rest[#rest + 1] = other end
        end
        if #rest * ENTRY < #chunk then replace_chunk(order, chunk, table.concat(rest)) end
      end
    end
  end

  return earlier, replace_chunk, remove
end

-- Returns the idle expiry, the absolute expiry and the time of creation. Every minting slides the idle expiry, so the child's mint
-- time is the time of the last refresh.
local function expiries(record)
  local _, _, _, _, _, _, _, _, minted, created, idle, life = struct.unpack(HEAD, record)
  local absolute = created + life
  return math.min(math.max(created, minted) + idle, absolute), absolute, created
end

-- Returns the time until which all sessions that were created have ended; 0 if there is none.
local function ended_until(partition)
  return tonumber(redis.call('GET', partition .. 'e') or 0)
end

-- Returns whether a session ends with the others of its subject. Only few ends are under way at a time.
local function ends_with_subject(horizons, subject, sid, created)
  local at = 1
  while at <= #horizons do
    local _, created_until, _, _, spared, _, _, whose, after = struct.unpack(HORIZON, horizons, at)
    if whose == subject and created <= created_until and sid ~= spared then return true end
    at = after
  end
  return false
end

-- Returns the session's record if it is within both lifetimes; and whether it has ended with 'all' sessions, or with those of its
-- 'subject'.
local function within_lifetimes(partition, sid, now)
  local found = redis.call('MGET', partition .. 's' .. sid, partition .. 'e', partition .. 'h')
  local record, horizons = found[1], found[3]
  if not record then return false end
  local idle_expiry, _, created = expiries(record)
  if now >= idle_expiry then return false end
  if created <= tonumber(found[2] or 0) then return record, 'all' end
  return record, horizons and ends_with_subject(horizons, subject_of(record), sid, created) and 'subject'
end

-- Returns the session's record if it is live.
local function live(partition, sid, now)
  local record, ended = within_lifetimes(partition, sid, now)
  return not ended and record
end

-- Returns, for a session that is not live, whether it was ended.
local function marked(partition, sid, now)
  local expires = redis.call('GET', partition .. 'm' .. sid)
  if expires and now < tonumber(expires) then return true end
  local _, ended = within_lifetimes(partition, sid, now)
  return ended and true or false
end

-- Appends entries to the log of a partition, drops those that no token can outlive, and wakes the readers. The score of an entry is the
-- time, but always greater than the scores before it: the clock may run behind them after it was set or another node took over. So a
-- reader that continues after the last entry that it has misses none.
local STEP = 1 / 1024 -- ms; a double of this size can grow by a quarter of it
local function append_to_log(partition, entries, now, marker_life)
  local log, scored = partition .. 'l', {}
  local newest = redis.call('ZRANGE', log, 0, 0, 'REV', 'WITHSCORES')[2]
  local score = newest and math.max(now, newest + STEP) or now
  for k, entry in ipairs(entries) do
    scored[2 * k - 1], scored[2 * k] = score + (k - 1) * STEP, entry
  end
  redis.call('ZADD', log, 'NX', unpack(scored)) -- an entry that is there already stays where readers have found it
  redis.call('ZREMRANGEBYSCORE', log, '-inf', '(' .. now - marker_life)
  redis.call('PEXPIREAT', log, now + marker_life + shift + LOG_SLACK)
  redis.pcall('PUBLISH', 'session-revocations', table.concat(entries, '\n')) -- a hint may be lost: readers read the log anyway
end

-- Appends to the signal log. `switch` is the value of {a7}g. Each of `ends` is { sid, reason, record or false, subject without a record }.
local function append_signals(partition, switch, ends, now)
  local MOST_SIGNALS = 16384 -- the most that a partition keeps; each takes some 150 bytes
  local log, keep, count = partition .. 'z', string.match(switch, '^(%d+) (%d+) ')
  local added = {}
  for _, ending in ipairs(ends) do
    local sid, reason, record, subject = unpack(ending)
    local client = ''
    if record then
      local length, at
      subject, length, at = struct.unpack('>I2c0B', record, BODY)
      client = length == 255 and struct.unpack('>I2c0', record, at) or string.sub(record, at, at + length - 1)
    end
    count = count + 1
    local number = string.format('%.0f', count)
    added[#added + 1] = number
    added[#added + 1] = table.concat({ number, sid, string.format('%.0f', now), reason, #client, client .. subject }, ' ')
  end
  redis.call('ZADD', log, unpack(added))
  redis.call('SET', partition .. 'g', table.concat({ keep, string.format('%.0f', count), ends[#ends][1] }, ' '))
  redis.call('ZREMRANGEBYSCORE', log, '-inf', count - MOST_SIGNALS)
  -- Looks at one more than were added, so that what is too old never accumulates.
  for _, signal in ipairs(redis.call('ZRANGE', log, '-inf', '+inf', 'BYSCORE', 'LIMIT', 0, #ends + 1)) do
    if now - string.match(signal, '^%S+ %S+ (%d+)') > tonumber(keep) then redis.call('ZREM', log, signal) end
  end
  redis.call('PEXPIREAT', log, now + keep + shift + LOG_SLACK)
end

-- Ends sessions of `subject`: deletes them, writes their markers, appends to the log, leaves due records with `note` unless that is '',
-- and wakes the readers. The caller updates the index afterwards. Redis undoes nothing of a script that fails, and a missing permission
-- is the only thing that can fail halfway. So the permissions are checked before anything is written.
local function close(partition, sids, reason, now, marker_life, note, subject)
  if #sids == 0 then return end
  for command in string.gmatch('DEL SET MGET ZADD ZRANGE ZREM ZREVRANGEBYLEX ZREMRANGEBYSCORE PEXPIREAT HGET HSET HDEL', '%u+') do
    if not redis.acl_check_cmd(command, partition) then error({ err = 'NOPERM no permission to run ' .. command }) end
  end
  local _, _, remove_from_order = order_functions()
  local expires = now + marker_life
  local keys, entries, order_entries, due, ends = {}, {}, {}, {}, {}
  for k, sid in ipairs(sids) do keys[k] = partition .. 's' .. sid end
  local records = redis.call('MGET', partition .. 'g', unpack(keys))
  local switch = table.remove(records, 1)
  for k, sid in ipairs(sids) do
    local record = records[k]
    if record then order_entries[#order_entries + 1] = entry_of(record, sid) end
    redis.call('SET', partition .. 'm' .. sid, expires, 'PXAT', expires + shift)
    entries[k] = sid .. ' ' .. now .. ' ' .. expires .. ' ' .. reason
    if switch then ends[k] = { sid, reason, record, subject } end
    due[2 * k - 1], due[2 * k] = sid, table.concat({ now, now, reason, note, subject }, '\n')
  end
  remove_from_order(partition .. 'o', order_entries)
  redis.call('DEL', unpack(keys))
  if note ~= '' then
    redis.call('HSET', partition .. 'r', unpack(due))
    redis.call('PEXPIREAT', partition .. 'r', now + shift + LOG_SLACK)
  end
  if switch then append_signals(partition, switch, ends, now) end
  append_to_log(partition, entries, now, marker_life)
end

-- Writes the remaining sessions of a subject that has few.
local function write_index(partition, subject, sids)
  if sids == '' then
    redis.call('HDEL', partition .. 'u', subject)
  else
    redis.call('HSET', partition .. 'u', subject, sids)
  end
end

-- Removes one session from its subject's index.
local function unindex(partition, sid, record)
  local subject = subject_of(record)
  local sids = redis.call('HGET', partition .. 'u', subject) or ''
  local at = string.find(sids, sid, 1, true)
  if at then
    write_index(partition, subject, string.sub(sids, 1, at - 1) .. string.sub(sids, at + ID))
  else
    redis.call('ZREM', partition .. 'i' .. subject, entry_of(record, sid))
  end
end
