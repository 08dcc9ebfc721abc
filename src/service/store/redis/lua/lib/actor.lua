-- Who uses a session.
-- @include lib/head.lua: subject_of
-- @include lib/record.lua: BODY

-- Returns the subject of a session's actor, who uses it in place of its own subject; nil if there is none. Few records have the text that
-- is looked for first, so that the blocks of the others are not read.
local function actor_of(record)
  if not string.find(record, '"actor":', BODY, true) then return nil end
  -- @include lib/blocks.lua: facts_of
  local actor = facts_of(record).actor
  return actor and actor.subject or nil
end

-- Returns the subject of a session, and in a last line of its own that of its actor; the line is empty if it has none.
local function names_of(record)
  return subject_of(record) .. '\n' .. (actor_of(record) or '')
end
