-- The head of a record.
-- @include lib/partition.lua: BODY, CREATED, CREATED_END, HEAD

-- Returns the idle expiry, the absolute expiry, the time of creation and that of the last refresh or the creation, at which the idle
-- timeout begins. A refresh that got the same refresh token again counts, too.
local function expiries(record)
  local _, _, _, _, _, _, _, served, _, created, idle, life = struct.unpack(HEAD, record)
  local absolute, used = created + life, math.max(created, served)
  return math.min(used + idle, absolute), absolute, created, used
end

-- Returns the text that stands for a session in the order of creation: its time of creation and its id.
local function entry_of(record, sid)
  return string.sub(record, CREATED, CREATED_END) .. sid
end

-- Returns the length of a text of a record, and where it begins. The length is one byte, or the byte 255 and two bytes.
local function length_at(record, at)
  local length = string.byte(record, at)
  if length < 255 then return length, at + 1 end
  return struct.unpack('>I2', record, at + 1)
end

-- Returns the client of a session. It is the text that follows the subject.
local function client_of(record)
  local _, at = struct.unpack('>I2c0', record, BODY)
  local length, from = length_at(record, at)
  return string.sub(record, from, from + length - 1)
end

-- Returns the record of a session that has ended without the data of its user: its times, its rotation and its client are left.
local function blank(record)
  local _, at = struct.unpack('>I2c0', record, BODY)
  local length, from = length_at(record, at)
  return '\1' .. string.sub(record, 2, BODY - 1) .. '\0\0' .. string.sub(record, at, from + length - 1) .. '\0\0\0\0'
end
