-- Adds a new session to what leads to it. `new` describes the session (create.lua).
-- @include lib/deadline.lua: shift
-- @include lib/eviction.lua: drop_expired
-- @include lib/index.lua: lengthen_index, write_index
-- @include lib/lives.lua: LOG_SLACK
-- @include lib/order.lua: earlier
-- @include lib/signal_log.lua: append_signals
-- @include lib/sizes.lua: CHUNK, ENTRY, ID, MOST, UPSTREAM

-- Sets the expiry of a key so that the key lives at least as long as every session in it.
local function keep(key, expires)
  redis.call('PEXPIREAT', key, math.max(redis.call('PEXPIRETIME', key), expires))
end

-- Adds the session to those of its subject. `sids` are the others if they are few, otherwise false.
local function add_to_subject(partition, new, sids, now)
  local index, many_key = partition .. KEY.few_sessions, partition .. KEY.many_sessions .. new.subject
  if sids and #sids < MOST * ID then
    write_index(partition, new.subject, sids .. new.sid)
    keep(index, new.key_expires)
    return
  end
  if sids then lengthen_index(partition, new.subject, sids, now) end
  redis.call('ZADD', many_key, 0, new.entry)
  keep(many_key, new.key_expires)
  local clean_key = partition .. KEY.clean_until .. new.subject
  local clean_until = redis.call('GET', clean_key)
  if clean_until and new.expires < tonumber(clean_until) then redis.call('SET', clean_key, new.expires, 'KEEPTTL') end
end

-- Adds the session to those of its logins at an identity provider, and removes those that have expired without a trace.
local function add_to_logins(partition, new, logins, now)
  for at = 1, #logins, UPSTREAM do
    local login = partition .. KEY.login .. string.sub(logins, at, at + UPSTREAM - 1)
    redis.call('ZREMRANGEBYSCORE', login, '-inf', now)
    redis.call('ZADD', login, new.created + new.life, new.sid)
    keep(login, new.key_expires)
  end
end

-- Inserts the session in the order of creation, mostly at its end. The new chunk is added before the old one is removed, because Redis
-- deletes a key that is empty for a moment, and its expiry with it.
local function add_to_order(partition, new)
  local order, entry = partition .. KEY.order, new.entry
  local chunk = redis.call('ZREVRANGEBYLEX', order, '[' .. entry, '-', 'LIMIT', 0, 1)[1]
  if not chunk or earlier(string.sub(chunk, -ENTRY), entry) then
    local fits = chunk and #chunk < CHUNK
    redis.call('ZADD', order, 0, fits and chunk .. entry or entry)
    if fits then redis.call('ZREM', order, chunk) end
  else
    local entries = { entry }
    for at = 1, #chunk, ENTRY do entries[#entries + 1] = string.sub(chunk, at, at + ENTRY - 1) end
    table.sort(entries, earlier)
    local half = #entries * ENTRY > CHUNK and math.floor(#entries / 2) or #entries
    redis.call('ZADD', order, 0, table.concat(entries, '', 1, half))
    if half < #entries then redis.call('ZADD', order, 0, table.concat(entries, '', half + 1)) end
    redis.call('ZREM', order, chunk)
  end
  keep(order, new.key_expires)
end

-- Writes the event of the creation: its text is `note`, or there is none.
local function add_event(partition, new, note, now)
  if note == '' then return end
  local text = new.is_new_device and string.sub(note, 1, -2) .. ',"d":1}' or note
  redis.call('HSET', partition .. KEY.due, '+' .. new.sid, table.concat({ now, now, 'created', text, new.subject }, '\n'))
  redis.call('PEXPIREAT', partition .. KEY.due, now + shift + LOG_SLACK)
end

-- Appends the signals of the creation that subscriptions want. `notices` has their names, one in each line.
local function add_signals(partition, new, notices, now)
  local signals, wanted = {}, string.gsub(notices, '\n', ' ')
  if string.find(wanted, ' created ', 1, true) then signals[1] = { new.sid, 'created', new.record } end
  if new.is_new_device and string.find(wanted, ' new_device ', 1, true) then
    signals[#signals + 1] = { new.sid, 'new_device', new.record }
  end
  -- The state is read now: the signals of sessions that this run has ended have changed it.
  if #signals > 0 then append_signals(partition, redis.call('GET', partition .. KEY.signal_state), signals, now) end
end

-- When the last session of a subject expires, nothing removes the subject from the index. So each creation examines two random subjects,
-- and removes those without live sessions. That keeps the subjects without live sessions few.
local function drop_empty_subjects(partition, now)
  local index = partition .. KEY.few_sessions
  local drawn = redis.call('HRANDFIELD', index, -2, 'WITHVALUES')
  for at = 1, #drawn, 2 do
    if drop_expired(partition, drawn[at + 1], now) == '' then redis.call('HDEL', index, drawn[at]) end
  end
end
