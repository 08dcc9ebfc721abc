-- Which sessions are live.
-- @include lib/bulk_logouts.lua: find_bulk_logout
-- @include lib/head.lua: expiry_of, subject_of
-- @include lib/sizes.lua: ID

-- Returns the time up to which every session that was created has ended (RevokeAllSessions); 0 if there is none.
local function read_all_ended_until(partition)
  return tonumber(redis.call('GET', partition .. KEY.all_ended) or 0)
end

-- Returns whether a session has ended in a bulk logout of its subject. `bulk_logouts` is false if none is under way.
local function ended_with_subject(bulk_logouts, subject, sid, created)
  if not bulk_logouts then return false end
  local created_until, spared = find_bulk_logout(bulk_logouts, subject)
  return created_until and created <= created_until and sid ~= spared
end

-- Returns the session's record if it is within both lifetimes. The second result is 'all' if the session has ended in a logout of everyone,
-- 'subject' if it has ended in a logout of its subject.
local function within_lifetimes(partition, sid, now)
  local found = redis.call('MGET', partition .. KEY.session .. sid, partition .. KEY.all_ended, partition .. KEY.bulk_logouts)
  local record, all_ended_until, bulk_logouts = found[1], tonumber(found[2] or 0), found[3]
  if not record then return false end
  local expiry, created = expiry_of(record)
  if now >= expiry then return false end
  if created <= all_ended_until then return record, 'all' end
  return record, ended_with_subject(bulk_logouts, subject_of(record), sid, created) and 'subject'
end

-- Returns the session's record if it is live.
local function live(partition, sid, now)
  local record, ended = within_lifetimes(partition, sid, now)
  return not ended and record
end

-- For a session that is not live, returns true if it was revoked, and false if it has expired or never existed.
local function was_revoked(partition, sid, now)
  local expires = redis.call('GET', partition .. KEY.marker .. sid)
  if expires and now < tonumber(expires) then return true end
  local _, ended = within_lifetimes(partition, sid, now)
  return ended and true or false
end

-- Returns which sessions of a list of ids without separators are live, in the same order: each { sid, record, used }, where `used` is the
-- time of the last refresh or the creation.
local function live_sessions(partition, sids, now)
  local keys, found = {}, {}
  for from = 1, #sids, ID do keys[#keys + 1] = partition .. KEY.session .. string.sub(sids, from, from + ID - 1) end
  if #keys == 0 then return found end
  local records = redis.call('MGET', unpack(keys))
  local all_ended_until, bulk_logouts = read_all_ended_until(partition), redis.call('GET', partition .. KEY.bulk_logouts)
  for k, record in ipairs(records) do
    if record then
      local sid, expiry, created, used = string.sub(keys[k], -ID), expiry_of(record)
      local is_live = now < expiry and created > all_ended_until
      if is_live and not ended_with_subject(bulk_logouts, subject_of(record), sid, created) then
        found[#found + 1] = { sid = sid, record = record, used = used }
      end
    end
  end
  return found
end
