-- Logins at an identity provider ({a7}U<login>).
-- @include lib/record.lua: BODY
-- @include lib/sizes.lua: UPSTREAM

-- Removes a session that has ended from those of the login at an identity provider that it came from, if it came from one. The names are
-- those of upstream.ts. As in `actor_of`, the blocks of most records are not read.
local function leave_logins(partition, sid, record)
  if not string.find(record, '"upstream":', BODY, true) then return end
  -- @include lib/blocks.lua: facts_of
  local login = facts_of(record).upstream -- If they cannot be read, the entry goes when it expires.
  if not login then return end
  for kind, name in pairs({ sid = login.sessionId, sub = login.subject }) do
    local hashed = redis.sha1hex(#login.issuer .. ':' .. login.issuer .. kind .. ':' .. name)
    redis.call('ZREM', partition .. KEY.login .. string.sub(hashed, 1, UPSTREAM), sid)
  end
end
