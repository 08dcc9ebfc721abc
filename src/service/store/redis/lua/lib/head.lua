-- The head of a record and the subject, which follows it.
-- @include lib/record.lua: BODY, CREATED, CREATED_END, HEAD

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

local function subject_of(record)
  return (struct.unpack('>I2c0', record, BODY))
end
