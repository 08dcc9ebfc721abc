-- How sessions end.
-- @include lib/deadline.lua: shift
-- @include lib/actor.lua: actor_of
-- @include lib/commands.lua: require_commands
-- @include lib/hand_over.lua: hand_over, one_of
-- @include lib/head.lua: entry_of
-- @include lib/lives.lua: LOG_SLACK
-- @include lib/logins.lua: leave_logins
-- @include lib/revocation_log.lua: append_to_log
-- @include lib/signal_log.lua: append_signals

-- Adds to `ends` what a session leaves that ends: its signal, its log entry, and a due record with the text `note` (event-text.ts) unless
-- that is ''. Returns the subject of its actor, or ''.
local function add_end(ends, sid, record, reason, now, expires, note, subject)
  local actor = record and actor_of(record)
  ends.sids[#ends.sids + 1] = sid
  ends.signals[#ends.signals + 1] = { sid, reason, record, subject }
  ends.entries[#ends.entries + 1] = table.concat({ sid, now, expires, reason }, ' ')
  if note ~= '' then
    if actor then note = string.sub(note, 1, -2) .. (#note > 2 and ',"x":' or '"x":') .. cjson.encode(actor) .. '}' end
    ends.due[#ends.due + 1], ends.due[#ends.due + 2] = sid, table.concat({ now, now, reason, note, subject }, '\n')
  end
  return actor or ''
end

-- Writes what sessions have left. `signal_state` and `attached` are the values of these keys.
local function write_ends(partition, ends, signal_state, attached, now, marker_life)
  if #ends.due > 0 then
    redis.call('HSET', partition .. KEY.due, unpack(ends.due))
    redis.call('PEXPIREAT', partition .. KEY.due, now + shift + LOG_SLACK)
  end
  if signal_state then append_signals(partition, signal_state, ends.signals, now) end
  append_to_log(partition, ends.entries, now, marker_life)
  if attached then hand_over(partition, attached, one_of(ends.sids)) end
end

-- Ends sessions of `subject`: deletes them, marks them as ended, and writes what they leave (`add_end`). Returns their ids, each followed
-- by the subject of the session's actor, if it has one. The caller updates the index afterwards.
local function end_sessions(partition, sids, reason, now, marker_life, note, subject)
  if #sids == 0 then return {} end
  require_commands(partition, 'DEL SET MGET ZADD ZRANGE ZREM ZREVRANGEBYLEX ZREMRANGEBYSCORE PEXPIREAT PEXPIRETIME GET HGET HSET HDEL')
  -- @include lib/order.lua: remove_from_order
  -- @include lib/session_events.lua: complete_creation
  local expires = now + marker_life
  local keys, order_entries, ended, ends = {}, {}, {}, { sids = {}, signals = {}, entries = {}, due = {} }
  for k, sid in ipairs(sids) do keys[k] = partition .. KEY.session .. sid end
  local records = redis.call('MGET', partition .. KEY.signal_state, partition .. KEY.attached, unpack(keys))
  local signal_state, attached = table.remove(records, 1), table.remove(records, 1)
  for k, sid in ipairs(sids) do
    local record = records[k]
    if record then
      order_entries[#order_entries + 1] = entry_of(record, sid)
      leave_logins(partition, sid, record)
      complete_creation(partition, sid, record, now)
    end
    redis.call('SET', partition .. KEY.marker .. sid, expires, 'PXAT', expires + shift)
    ended[k] = sid .. add_end(ends, sid, record, reason, now, expires, note, subject)
  end
  remove_from_order(partition .. KEY.order, order_entries)
  redis.call('DEL', unpack(keys))
  write_ends(partition, ends, signal_state, attached, now, marker_life)
  return ended
end
