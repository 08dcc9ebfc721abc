-- The texts of a record, which follow the subject.
-- @include lib/record.lua: BODY, CLIENT_ID, DISPLAY_NAME, PLAIN

-- Returns where a text of a record begins with its length, the position after it, and where its characters begin. The length is one byte,
-- or the byte 255 and two bytes.
local function text_at(record, number)
  local _, from = struct.unpack('>I2c0', record, BODY)
  while true do
    local length, start = string.byte(record, from), from + 1
    if length == 255 then length, start = struct.unpack('>I2', record, start) end
    if number == CLIENT_ID then return from, start + length, start end
    from, number = start + length, number - 1
  end
end

local function text_of(record, number)
  local _, after, start = text_at(record, number)
  return string.sub(record, start, after - 1)
end

-- Returns the record of a session that has ended without the data of its user: its times, its rotation and its client are left.
local function blank(record)
  local from, after = text_at(record, CLIENT_ID)
  local others = string.rep('\0', DISPLAY_NAME - CLIENT_ID)
  return string.char(PLAIN) .. string.sub(record, 2, BODY - 1) .. '\0\0' .. string.sub(record, from, after - 1) .. others
end
