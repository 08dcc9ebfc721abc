-- Bulk logouts: those of a subject with many sessions that are under way ({a7}h).

-- The format of one: the times after which and until which the ended sessions were created, how many of them have been marked and logged
-- so far, the id of the logout, the session that does not end (or blanks), the reason, the text of the due records, the subject. All of
-- these sessions have ended as soon as this is written (end_all.lua). Their markers and log entries are written later (end_rest.lua).
local BULK_LOGOUT = '>I6I6I4c11c23Bc0I2c0I2c0'

-- Returns until which time the sessions were created that a logout of their subject ends, and which session it spares; nil if there is no
-- such logout. A subject has at most one.
local function find_bulk_logout(bulk_logouts, subject)
  local at = 1
  while at <= #bulk_logouts do
    local _, created_until, _, _, spared, _, _, whose, after = struct.unpack(BULK_LOGOUT, bulk_logouts, at)
    if whose == subject then return created_until, spared end
    at = after
  end
  return nil
end
