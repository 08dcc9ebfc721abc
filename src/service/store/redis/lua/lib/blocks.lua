-- The parts of a record after its head: the texts, the blocks of blocks.ts and the device key.
-- @include lib/partition.lua: BODY, DEVICE_TAIL, SINCE, THUMBPRINT, WITH_DEVICE
-- @include lib/head.lua: length_at

-- Returns the position in a record at which the device key begins. Without a device key, that is the position after the end.
local function device_at(record)
  if string.byte(record) % (2 * WITH_DEVICE) < WITH_DEVICE then return #record + 1 end
  local _, length = struct.unpack(DEVICE_TAIL, record, #record + 1 + SINCE)
  return #record + 1 + THUMBPRINT - length
end

-- Returns where a text of a record begins, with its length, and the position after it. Five texts follow the subject; `number` counts them.
local function text_at(record, number)
  local _, from = struct.unpack('>I2c0', record, BODY)
  while true do
    local length, after = length_at(record, from)
    if number == 1 then return from, after + length end
    from, number = after + length, number - 1
  end
end

-- The first bytes of the blocks that may follow the texts of a record, in ascending order (blocks.ts), and of the claims.
local AUTHENTICATION, FACTS, VERSION, LAST_SEEN, CLAIMS = 1, 2, 3, 4, 123

-- Returns where a block of a record begins, and the position after it. If the record lacks the block, both are the position for it.
local function block_at(record, kind)
  local _, from = text_at(record, 5)
  local stop = device_at(record)
  local function next_after(at)
    local byte = string.byte(record, at)
    if byte == CLAIMS then return stop end
    if byte == VERSION then return at + 9 end
    local length, text = struct.unpack('>I2', record, at + (byte == AUTHENTICATION and 7 or 1))
    return text + length
  end
  while from < stop and string.byte(record, from) < kind do from = next_after(from) end
  if from < stop and string.byte(record, from) == kind then return from, next_after(from) end
  return from, from
end

-- Returns a record with other bytes in place of those from a position to the one before `after`.
local function replace(record, bytes, from, after)
  return string.sub(record, 1, from - 1) .. bytes .. string.sub(record, after)
end
