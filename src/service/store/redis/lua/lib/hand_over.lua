-- Sessions that end with the sessions of their actors ({a7}A).
-- @include lib/sizes.lua: ATTACHED, ID, NOBODY

-- Notes which of the sessions that end with the sessions of their actors have to end: those for whose actor's session `has_ended`
-- returns true. Any instance ends them (attached.lua), because they are in other partitions.
local function hand_over(partition, attached, has_ended)
  local entries, found = {}, false
  for at = 1, #attached, ATTACHED do
    local actor = string.sub(attached, at, at + ID - 1)
    if has_ended(actor) then actor, found = NOBODY, true end
    entries[#entries + 1] = actor .. string.sub(attached, at + ID, at + ATTACHED - 1)
  end
  if not found then return end
  redis.call('SET', partition .. KEY.attached, table.concat(entries), 'KEEPTTL')
  redis.pcall('PUBLISH', string.sub(partition, 1, -5) .. 'session-revocations', '^')
end

-- Returns a function that tells whether a session is one of these.
local function one_of(sids)
  local known = {}
  for _, sid in ipairs(sids) do known[sid] = true end
  return function(sid) return known[sid] end
end
