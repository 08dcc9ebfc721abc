-- The head of a record and the subject, which follows it.
-- @include lib/record.lua: BODY, CREATED, CREATED_END, HEAD

-- Returns when a session expires, when it was created, and when it was last refreshed or created, at which the idle timeout begins. A
-- refresh that got the same refresh token again counts, too.
local function expiry_of(record)
  local _, _, _, _, _, _, _, served, _, created, idle, life = struct.unpack(HEAD, record)
  local used = math.max(created, served)
  return math.min(used + idle, created + life), created, used
end

local function created_of(record)
  return (struct.unpack('>I6', record, CREATED))
end

-- Returns the idle timeout and the absolute lifetime, ms.
local function lifetimes_of(record)
  local idle, life = select(11, struct.unpack(HEAD, record))
  return idle, life
end

-- Returns the text that stands for a session in the order of creation: its time of creation and its id.
local function entry_of(record, sid)
  return string.sub(record, CREATED, CREATED_END) .. sid
end

local function subject_of(record)
  return (struct.unpack('>I2c0', record, BODY))
end
