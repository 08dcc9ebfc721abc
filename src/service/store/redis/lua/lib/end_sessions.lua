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

-- Ends sessions of `subject`: deletes them, marks them as ended, appends to the revocation log, and leaves due records with the text `note`
-- (event-text.ts) unless that is ''. Returns their ids, each followed by the subject of the session's actor, if it has one. The caller
-- updates the index afterwards.
local function end_sessions(partition, sids, reason, now, marker_life, note, subject)
  if #sids == 0 then return {} end
  require_commands(partition, 'DEL SET MGET ZADD ZRANGE ZREM ZREVRANGEBYLEX ZREMRANGEBYSCORE PEXPIREAT PEXPIRETIME GET HGET HSET HDEL')
  -- @include lib/order.lua: remove_from_order
  -- @include lib/session_events.lua: complete_creation
  local expires = now + marker_life
  local keys, entries, order_entries, due, ends, names = {}, {}, {}, {}, {}, {}
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
    entries[k] = sid .. ' ' .. now .. ' ' .. expires .. ' ' .. reason
    if signal_state then ends[k] = { sid, reason, record, subject } end
    local actor, own = record and actor_of(record), note
    if actor then own = string.sub(note, 1, -2) .. (#note > 2 and ',"x":' or '"x":') .. cjson.encode(actor) .. '}' end
    due[2 * k - 1], due[2 * k] = sid, table.concat({ now, now, reason, own, subject }, '\n')
    names[k] = sid .. (actor or '')
  end
  remove_from_order(partition .. KEY.order, order_entries)
  redis.call('DEL', unpack(keys))
  if note ~= '' then
    redis.call('HSET', partition .. KEY.due, unpack(due))
    redis.call('PEXPIREAT', partition .. KEY.due, now + shift + LOG_SLACK)
  end
  if signal_state then append_signals(partition, signal_state, ends, now) end
  append_to_log(partition, entries, now, marker_life)
  if attached then hand_over(partition, attached, one_of(sids)) end
  return names
end
