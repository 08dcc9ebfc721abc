#!lua flags=allow-oom
-- Returns signals of a partition. Before that, it appends some of the signals of a logout of everyone that are not appended yet.
-- KEYS  1 partition
-- ARGV  the first locals, in this order
-- Returns 'rewound' if the log has another signal with that number, or has never reached it; 'behind' and the number of the oldest
-- signal in the log (of the next one, if the log is empty), if signals after the last one were dropped; otherwise 'more' or 'end' and
-- the signals; after a signal whose time begins with 0, in a line of its own, the actor (`with_actor`).
-- @include lib/deadline.lua: ARGC
-- @include lib/order.lua: earlier
-- @include lib/signal_log.lua: append_signals, with_actor
-- @include lib/sizes.lua: ENTRY, ID
local after, sid, -- the number of the last signal before them, and its session or '-'
  most -- how many to return at most
  = unpack(ARGV, 1, ARGC)
local CHUNKS = 2 -- the number of chunks that one run examines, in about 0.1 ms
local partition = KEYS[1]
after, most = tonumber(after), tonumber(most)
local log = partition .. KEY.signals

-- Appends the signals of sessions that ended in a logout of everyone, in order of creation.
local function continue(job, signal_state)
  local created_after, created_until, ended_at, from = string.match(job, '^(%d+) (%d+) (%d+) (.*)$')
  local order = partition .. KEY.order
  local first = from ~= '' and redis.call('ZREVRANGEBYLEX', order, '[' .. from .. '\255', '-', 'LIMIT', 0, 1)[1]
  local chunks = redis.call('ZRANGEBYLEX', order, first and '[' .. first or '-', '+', 'LIMIT', 0, CHUNKS)
  local entries, keys, ends, done = {}, {}, {}, #chunks < CHUNKS
  for _, chunk in ipairs(chunks) do
    for at = 1, #chunk, ENTRY do
      local entry = string.sub(chunk, at, at + ENTRY - 1)
      local created = struct.unpack('>I6', entry)
      if created > tonumber(created_until) then
        done = true
      elseif from == '' or earlier(from, entry) then
        from = entry
        if created > tonumber(created_after) then
          entries[#entries + 1], keys[#keys + 1] = entry, partition .. KEY.session .. string.sub(entry, -ID)
        end
      end
    end
  end
  local records = #keys > 0 and redis.call('MGET', unpack(keys))
  for k, entry in ipairs(entries) do ends[k] = { string.sub(entry, -ID), 'revoked_all', records[k], '' } end
  if #ends > 0 then append_signals(partition, signal_state, ends, tonumber(ended_at)) end
  if done then
    redis.call('DEL', partition .. KEY.unsignalled)
  else
    redis.call('SET', partition .. KEY.unsignalled, table.concat({ created_after, created_until, ended_at, from }, ' '))
  end
  return not done
end

local states = redis.call('MGET', partition .. KEY.signal_state, partition .. KEY.unsignalled)
local more = states[1] and states[2] and continue(states[2], states[1])
local count = tonumber(string.match(redis.call('GET', partition .. KEY.signal_state) or '', '^%d+ (%d+)') or 0)
if after > count then return { 'rewound' } end
local found = redis.call('ZRANGE', log, after, '+inf', 'BYSCORE', 'LIMIT', 0, most + 1)
local number, name = string.match(found[1] or '', '^(%d+) (%S+) ')
if number and tonumber(number) == after then
  if name ~= sid then return { 'rewound' } end
  table.remove(found, 1)
else
  local oldest = tonumber(number or count + 1)
  if oldest > after + 1 then return { 'behind', string.format('%.0f', oldest) } end
  found[most + 1] = nil
end
for k, signal in ipairs(found) do found[k] = with_actor(partition, signal) end
table.insert(found, 1, (more or #found == most) and 'more' or 'end')
return found
