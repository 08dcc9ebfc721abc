-- The functions in this file read and end the sessions of a partition. Most scripts define them at once. A refresh defines them only when
-- it needs them (scripts.ts), because defining unused functions costs time.

-- Returns the text that stands for a session in the order of creation: its time of creation and its id.
local function entry_of(record, sid)
  return string.sub(record, 40, 45) .. sid
end

-- Returns the subject of a session's actor, who uses it in place of its own subject; nil if there is none. Few records have the text that
-- is looked for first, so that the blocks of the others are not read.
local function actor_of(record)
  if not string.find(record, '"actor":', BODY, true) then return nil end
  local block_at, facts = block_function()
  local at, after = block_at(record, facts)
  local actor = at < after and cjson.decode(string.sub(record, at + 3, after - 1)).actor
  return actor and actor.subject or nil
end

-- Removes a session that has ended from those of the login at an identity provider that it came from, if it came from one. The names are
-- those of upstream.ts. As in `actor_of`, the blocks of most records are not read.
local function leave_logins(partition, sid, record)
  if not string.find(record, '"upstream":', BODY, true) then return end
  local block_at, facts = block_function()
  local at, after = block_at(record, facts)
  -- A name of the provider that is no valid text cannot be read here. Its entry goes when it expires.
  local ok, found = pcall(cjson.decode, string.sub(record, at + 3, after - 1))
  local login = ok and found.upstream
  if not login then return end
  for kind, name in pairs({ sid = login.sessionId, sub = login.subject }) do
    local hashed = redis.sha1hex(#login.issuer .. ':' .. login.issuer .. kind .. ':' .. name)
    redis.call('ZREM', partition .. 'U' .. string.sub(hashed, 1, UPSTREAM), sid)
  end
end

-- Returns the subject of a session, and in a last line of its own that of its actor; the line is empty if it has none.
local function names_of(record)
  return subject_of(record) .. '\n' .. (actor_of(record) or '')
end

-- Creates the functions that change and read the order of creation. A script that needs none of them does not call `order_functions`.
local function order_functions()
  -- Returns whether entry `a` precedes entry `b` in the order of their bytes. Lua's own comparison depends on the locale.
  local function earlier(a, b)
    for at = 1, ENTRY do
      local x, y = string.byte(a, at), string.byte(b, at)
      if x ~= y then return x < y end
    end
    return false
  end

  -- Replaces a chunk with its remaining entries, joined with the chunk before it if both fit into one. The new chunk is added before
  -- the old one is removed, because Redis deletes a key that is empty for a moment, and its expiry with it.
  local function replace_chunk(order, chunk, rest)
    local before = rest ~= '' and redis.call('ZREVRANGEBYLEX', order, '(' .. chunk, '-', 'LIMIT', 0, 1)[1]
    local joins = before and #before + #rest <= CHUNK
    if rest ~= '' then redis.call('ZADD', order, 0, joins and before .. rest or rest) end
    if joins then redis.call('ZREM', order, before) end
    redis.call('ZREM', order, chunk)
  end

  -- Removes sessions from the order of creation. A chunk that has several of these sessions is replaced only once.
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

-- Returns the idle expiry, the absolute expiry, the time of creation and that of the last refresh or the creation, at which the idle
-- timeout begins. The last refresh is when the newest refresh token was issued.
local function expiries(record)
  local _, _, _, _, _, _, _, _, minted, created, idle, life = struct.unpack(HEAD, record)
  local absolute, used = created + life, math.max(created, minted)
  return math.min(used + idle, absolute), absolute, created, used
end

-- Creates the functions that change and read the events of sessions. A script that needs none of them does not call `event_functions`.
local function event_functions()
  local LAST = 64 -- how many sessions of a subject {a7}w<subject> names (MAX_EVENT_SESSIONS of events.ts)

  -- Returns the event of a session's creation, as a line: what the note in {a7}C says, and what the record says.
  local function creation_of(sid, record, note)
    local subject, at = struct.unpack('>I2c0', record, BODY)
    local texts, length = {}, nil
    for k = 1, 5 do
      length, at = struct.unpack('B', record, at)
      if length == 255 then length, at = struct.unpack('>I2', record, at) end
      texts[k], at = string.sub(record, at, at + length - 1), at + length
    end
    table.remove(texts, 2) -- the audiences
    local time = string.format('%.0f', select(3, expiries(record)) + shift)
    return table.concat({ string.sub(note, 1, -2), #note > 2 and ',' or '', '"t":', time, ',"k":"created","s":"', sid, '","u":',
      cjson.encode(subject), ',"c":', cjson.encode(texts), '}\n' })
  end

  -- Names a session among the last ones of its subject that have events. Earlier ones move to a list of their own while they have events.
  local function index(partition, subject, sid, expires)
    local key, past = partition .. 'w' .. subject, partition .. 'a' .. subject
    local sids = redis.call('GET', key) or ''
    local known = string.find(sids, sid, 1, true)
    if known then sids = string.sub(sids, 1, known - 1) .. string.sub(sids, known + ID) end
    local last = math.max(redis.call('PEXPIRETIME', key), expires)
    local from = math.max(1, #sids - ID * (LAST - 1) + 1)
    for at = 1, from - 1, ID do
      local earlier = string.sub(sids, at, at + ID - 1)
      local until_time = redis.call('PEXPIRETIME', partition .. 'v' .. earlier)
      if until_time > 0 then
        redis.call('ZADD', past, until_time, earlier)
        redis.call('ZREMRANGEBYSCORE', past, '-inf', clock())
        redis.call('PEXPIREAT', past, math.max(redis.call('PEXPIRETIME', past), until_time))
      end
    end
    redis.call('SET', key, string.sub(sids, from) .. sid, 'PXAT', last)
  end

  -- Turns the note of a session's creation into an event. The session ends, so its record, which has the rest of the event, is removed, and
  -- the list of its subject does not name it any more.
  local function complete(partition, sid, record, now)
    local notes = partition .. 'C'
    local note = redis.call('HGET', notes, sid)
    if not note then return end
    redis.call('HDEL', notes, sid)
    local key, keep = partition .. 'v' .. sid, tonumber(redis.call('HGET', notes, '*'))
    if keep == 0 or not record then return end
    local expires = now + shift + keep
    redis.call('SET', key, creation_of(sid, record, note) .. (redis.call('GET', key) or ''), 'PXAT', expires)
    index(partition, subject_of(record), sid, expires)
  end

  return creation_of, index, complete, LAST
end

-- Returns the time up to which every session that was created has ended (RevokeAllSessions); 0 if there is none.
local function ended_until(partition)
  return tonumber(redis.call('GET', partition .. 'e') or 0)
end

-- Returns whether a session has ended in a logout of its subject that is under way. `horizons` describes these logouts (HORIZON).
local function ends_with_subject(horizons, subject, sid, created)
  local at = 1
  while at <= #horizons do
    local _, created_until, _, _, spared, _, _, whose, after = struct.unpack(HORIZON, horizons, at)
    if whose == subject and created <= created_until and sid ~= spared then return true end
    at = after
  end
  return false
end

-- Returns the session's record if it is within both lifetimes. The second result is 'all' if the session has ended in a logout of everyone,
-- 'subject' if it has ended in a logout of its subject.
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

-- For a session that is not live, returns true if it was revoked, and false if it has expired or never existed.
local function marked(partition, sid, now)
  local expires = redis.call('GET', partition .. 'm' .. sid)
  if expires and now < tonumber(expires) then return true end
  local _, ended = within_lifetimes(partition, sid, now)
  return ended and true or false
end

-- Returns the record of a session that has ended without the data of its user: its times, its rotation and its client are left.
local function blank(record)
  local _, at = struct.unpack('>I2c0', record, BODY)
  local length, after = string.byte(record, at), at + 1
  if length == 255 then length, after = struct.unpack('>I2', record, after) end
  return '\1' .. string.sub(record, 2, BODY - 1) .. '\0\0' .. string.sub(record, at, after + length - 1) .. '\0\0\0\0'
end

-- Appends entries to the revocation log of a partition, drops those whose access tokens have all expired, and publishes the entries. The
-- score of an entry is the time, but always greater than all earlier scores, even if the clock was set back or another node has taken
-- over. So a reader that continues after the last entry that it has read misses no entry.
local STEP = 1 / 1024 -- the distance between the scores of two entries of the same ms; doubles as great as a time are 1 / 4096 apart
local function append_to_log(partition, entries, now, marker_life)
  local log, scored = partition .. 'l', {}
  local newest = redis.call('ZRANGE', log, 0, 0, 'REV', 'WITHSCORES')[2]
  local score = newest and math.max(now, newest + STEP) or now
  for k, entry in ipairs(entries) do
    scored[2 * k - 1], scored[2 * k] = score + (k - 1) * STEP, entry
  end
  redis.call('ZADD', log, 'NX', unpack(scored)) -- NX keeps the position of an existing entry, because readers may have read it
  redis.call('ZREMRANGEBYSCORE', log, '-inf', '(' .. now - marker_life)
  redis.call('PEXPIREAT', log, now + marker_life + shift + LOG_SLACK)
  -- A lost notification does no harm, because readers also read the log at intervals.
  redis.pcall('PUBLISH', string.sub(partition, 1, -5) .. 'session-revocations', table.concat(entries, '\n'))
end

-- Appends the signals of ended sessions to the signal log. `switch` is the value of the key {a7}g (partition.lua): for how long signals are
-- kept, and how many were ever appended. Each of `ends` is { sid, reason, record or false, subject }; the subject is used if there is no
-- record.
local function append_signals(partition, switch, ends, now)
  local MOST_SIGNALS = 16384 -- the most that a partition keeps; each takes some 150 bytes
  local log, keep, count = partition .. 'z', string.match(switch, '^(%d+) (%d+) ')
  local added = {}
  for _, ending in ipairs(ends) do
    local sid, reason, record, subject = unpack(ending)
    local client, flag = '', ''
    if record then
      local actor = actor_of(record)
      if actor then
        flag = '0' -- an older instance reads the same time
        redis.call('SET', partition .. 'A' .. sid, actor, 'PXAT', now + keep + shift)
      end
      local length, at
      subject, length, at = struct.unpack('>I2c0B', record, BODY)
      client = length == 255 and struct.unpack('>I2c0', record, at) or string.sub(record, at, at + length - 1)
    end
    count = count + 1
    local number = string.format('%.0f', count)
    added[#added + 1] = number
    added[#added + 1] = table.concat({ number, sid, flag .. string.format('%.0f', now), reason, #client, client .. subject }, ' ')
  end
  redis.call('ZADD', log, unpack(added))
  redis.call('SET', partition .. 'g', table.concat({ keep, string.format('%.0f', count), ends[#ends][1] }, ' '))
  redis.call('ZREMRANGEBYSCORE', log, '-inf', count - MOST_SIGNALS)
  -- Examines the oldest signals, one more than were added, and removes those that are too old. So old signals never accumulate.
  for _, signal in ipairs(redis.call('ZRANGE', log, '-inf', '+inf', 'BYSCORE', 'LIMIT', 0, #ends + 1)) do
    if now - string.match(signal, '^%S+ %S+ (%d+)') > tonumber(keep) then redis.call('ZREM', log, signal) end
  end
  redis.call('PEXPIREAT', log, now + keep + shift + LOG_SLACK)
end

-- Returns a signal; if its session has an actor (its time begins with 0), with the actor in a line of its own.
local function with_actor(partition, signal)
  local sid = string.match(signal, '^%S+ (%S+) 0%d')
  return sid and signal .. '\n' .. (redis.call('GET', partition .. 'A' .. sid) or '') or signal
end

-- Returns whether the user may run a command on the keys of a partition. Servers with the latest security fixes want all arguments of the
-- command. Each is the partition, because every argument of some commands is a key.
local function may(command, partition)
  if command == 'PEXPIRETIME' then return redis.acl_check_cmd(command, partition) end
  if command == 'HGET' then return redis.acl_check_cmd(command, partition, partition) end
  return redis.acl_check_cmd(command, partition, partition, partition)
end

-- Checks that the user may run commands on the keys of a partition. Redis does not roll back a script that fails. Only a missing
-- permission can make a script fail halfway, so those of all its commands are checked before anything is written.
local function require_commands(partition, commands)
  for command in string.gmatch(commands, '%u+') do
    if not may(command, partition) then error({ err = 'NOPERM no permission to run ' .. command }) end
  end
end

-- Notes which of the sessions that end with the sessions of their actors have to end: those for whose actor's session `has_ended`
-- returns true. Any instance ends them (attached.lua), because they are in other partitions.
local function hand_over(partition, attached, has_ended)
  local entries, found = {}, false
  for at = 1, #attached, ATTACHED do
    local actor = string.sub(attached, at, at + ID - 1)
    if has_ended(actor) then actor, found = NOBODY, true end
    entries[#entries + 1] = actor .. string.sub(attached, at + ID, at + ATTACHED - 1)
  end
  if not found then return end
  redis.call('SET', partition .. 'A', table.concat(entries), 'KEEPTTL')
  redis.pcall('PUBLISH', string.sub(partition, 1, -5) .. 'session-revocations', '^')
end

-- Returns a function that tells whether a session is one of these.
local function one_of(sids)
  local known = {}
  for _, sid in ipairs(sids) do known[sid] = true end
  return function(sid) return known[sid] end
end

-- Ends sessions of `subject`: deletes them, marks them as ended, appends to the revocation log, and leaves due records with the text `note`
-- (event-text.ts) unless that is ''. Returns their ids, each followed by the subject of the session's actor, if it has one. The caller
-- updates the index afterwards.
local function close(partition, sids, reason, now, marker_life, note, subject)
  if #sids == 0 then return {} end
  require_commands(partition, 'DEL SET MGET ZADD ZRANGE ZREM ZREVRANGEBYLEX ZREMRANGEBYSCORE PEXPIREAT PEXPIRETIME HGET HSET HDEL')
  local _, _, remove_from_order = order_functions()
  local _, _, complete = event_functions()
  local expires = now + marker_life
  local keys, entries, order_entries, due, ends, names = {}, {}, {}, {}, {}, {}
  for k, sid in ipairs(sids) do keys[k] = partition .. 's' .. sid end
  local records = redis.call('MGET', partition .. 'g', partition .. 'A', unpack(keys))
  local switch, attached = table.remove(records, 1), table.remove(records, 1)
  for k, sid in ipairs(sids) do
    local record = records[k]
    if record then
      order_entries[#order_entries + 1] = entry_of(record, sid)
      leave_logins(partition, sid, record)
      complete(partition, sid, record, now)
    end
    redis.call('SET', partition .. 'm' .. sid, expires, 'PXAT', expires + shift)
    entries[k] = sid .. ' ' .. now .. ' ' .. expires .. ' ' .. reason
    if switch then ends[k] = { sid, reason, record, subject } end
    local actor, own = record and actor_of(record), note
    if actor then own = string.sub(note, 1, -2) .. (#note > 2 and ',"x":' or '"x":') .. cjson.encode(actor) .. '}' end
    due[2 * k - 1], due[2 * k] = sid, table.concat({ now, now, reason, own, subject }, '\n')
    names[k] = sid .. (actor or '')
  end
  remove_from_order(partition .. 'o', order_entries)
  redis.call('DEL', unpack(keys))
  if note ~= '' then
    redis.call('HSET', partition .. 'r', unpack(due))
    redis.call('PEXPIREAT', partition .. 'r', now + shift + LOG_SLACK)
  end
  if switch then append_signals(partition, switch, ends, now) end
  append_to_log(partition, entries, now, marker_life)
  if attached then hand_over(partition, attached, one_of(sids)) end
  return names
end

-- Writes the list of sessions of a subject that has few.
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
