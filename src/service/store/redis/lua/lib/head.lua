-- The head of a record.
-- @include lib/partition.lua: BODY, HEAD

-- Returns the idle expiry, the absolute expiry, the time of creation and that of the last refresh or the creation, at which the idle
-- timeout begins. The last refresh is when the newest refresh token was issued.
local function expiries(record)
  local _, _, _, _, _, _, _, _, minted, created, idle, life = struct.unpack(HEAD, record)
  local absolute, used = created + life, math.max(created, minted)
  return math.min(used + idle, absolute), absolute, created, used
end

-- Returns the text that stands for a session in the order of creation: its time of creation and its id.
local function entry_of(record, sid)
  return string.sub(record, 40, 45) .. sid
end

-- Returns the record of a session that has ended without the data of its user: its times, its rotation and its client are left.
local function blank(record)
  local _, at = struct.unpack('>I2c0', record, BODY)
  local length, after = string.byte(record, at), at + 1
  if length == 255 then length, after = struct.unpack('>I2', record, after) end
  return '\1' .. string.sub(record, 2, BODY - 1) .. '\0\0' .. string.sub(record, at, after + length - 1) .. '\0\0\0\0'
end
