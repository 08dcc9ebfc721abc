-- The order in which the sessions of a partition were created ({a7}o).
-- @include lib/sizes.lua: CHUNK, ENTRY

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
local function remove_from_order(order, entries)
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
