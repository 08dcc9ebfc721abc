-- The parts of a record after its texts: the blocks of blocks.ts, the claims and the device key.
-- @include lib/record.lua: AUTHENTICATION, CLAIMS, DEVICE_TAIL, DISPLAY_NAME, FACTS, SINCE, THUMBPRINT, VERSION, WITH_DEVICE
-- @include lib/texts.lua: text_at

-- Returns the position in a record at which the device key begins. Without a device key, that is the position after the end.
local function device_at(record)
  if string.byte(record) % (2 * WITH_DEVICE) < WITH_DEVICE then return #record + 1 end
  local _, length = struct.unpack(DEVICE_TAIL, record, #record + 1 + SINCE)
  return #record + 1 + THUMBPRINT - length
end

-- Returns where a block of a record begins, and the position after it. If the record lacks the block, both are the position for it.
local function block_at(record, kind)
  local _, from = text_at(record, DISPLAY_NAME)
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

-- Returns the fields of a session that its record has as JSON; none if they cannot be read here, as a provider's name that is no Unicode.
local function facts_of(record)
  local at, after = block_at(record, FACTS)
  if at == after then return {} end
  local ok, facts = pcall(cjson.decode, string.sub(record, at + 3, after - 1))
  return ok and facts or {}
end

-- Returns a record with other bytes in place of those from a position to the one before `after`.
local function replace(record, bytes, from, after)
  return string.sub(record, 1, from - 1) .. bytes .. string.sub(record, after)
end
