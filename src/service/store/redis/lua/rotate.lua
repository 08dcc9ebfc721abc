#!lua
-- Rotates the stored state of a session for one presented token: first the verdict of `judgeDevice` (lib/device.lua), then the rules of
-- `decide` (src/service/session/rotation/rotation.ts), then what is stored.
-- KEYS  1 partition
-- ARGV  the first locals, in this order. Those after marker_life may be left out (benches do it), and are nil then.
-- Returns one string. These letters are followed by the time (I6) and the session's record:
--   p repeat, r rotate, h heal, v recover; in upper case if the request had a fresh device cookie or a proof of the session's key,
--   and preceded by b if this request has bound the key
--   x reuse, y two holders: the session was ended
--   d the device cookie is missing, q a device key is required: the session is unchanged
--   n a proof of the session's key is missing, k the proof is of another key: the session is unchanged
-- These letters stand alone: m revoked, u unknown, i idle, e expired, t the token may not be presented in this way, w the proof would be
--   the session's first, but the client is not that of the session
-- @include lib/deadline.lua: ARGC, now
-- @include lib/lives.lua: slack
-- @include lib/record.lua: BODY, HEAD, LAST_SEEN, PLAIN, WITH_DEVICE
local sid,
  generation, nonce1, nonce2, issued_at, -- the presented refresh token
  fresh1, fresh2, -- the nonce of the token that may follow it
  reuse_interval, -- ms
  marker_life, -- how long ended sessions stay marked, ms
  seen, -- what the session keeps of this request (JSON), or ''
  device_life, -- how long a device cookie lives, ms
  presentation -- what the request presents of its device (device-record.ts), or ''
  = unpack(ARGV, 1, ARGC)
local NEVER = 2 ^ 48 - 1 -- a time later than any token
local partition = KEYS[1]
local key = partition .. KEY.session .. sid
local found = redis.call('MGET', key, partition .. KEY.all_ended, partition .. KEY.bulk_logouts)
local record, all_ended_until, bulk_logouts = found[1], tonumber(found[2] or 0), found[3]
if not record then
  -- @include lib/live.lua: was_revoked
  return was_revoked(partition, sid, now) and 'm' or 'u'
end

-- The state of rotation.ts, with each nonce as two words.
local flags, state_generation, state_nonce1, state_nonce2, child_nonce1, child_nonce2, siblings_since, child_served_at, child_minted_at,
  created, idle, life = struct.unpack(HEAD, record)
local absolute = created + life
if now >= absolute then return 'e' end
if now >= math.max(created, child_served_at) + idle then return 'i' end
if created <= all_ended_until then return 'm' end
if bulk_logouts then
  -- @include lib/head.lua: subject_of
  -- @include lib/live.lua: ended_with_subject
  if ended_with_subject(bulk_logouts, subject_of(record), sid, created) then return 'm' end
end

generation, nonce1, nonce2 = tonumber(generation), tonumber(nonce1), tonumber(nonce2)
issued_at, reuse_interval = tonumber(issued_at), tonumber(reuse_interval)
local function within(time, limit) return math.abs(now - time) <= limit end

local verdict, presented = 'unproven', {}
local has_presentation = presentation and presentation ~= ''
if flags > PLAIN or has_presentation then
  -- @include lib/device.lua: decode_presentation, device_of, judge_device
  if has_presentation then presented = decode_presentation(presentation) end
  presented.issued_at, presented.device_life = issued_at, device_life and tonumber(device_life) or math.huge
  verdict = judge_device(record, device_of(record), created, presented, now, reuse_interval)
  local ALONE = { wrong_transport = 't', wrong_client = 'w' }
  local WITH_SESSION = { device_proof_missing = 'd', device_required = 'q', proof_missing = 'n', other_key = 'k' }
  if ALONE[verdict] then return ALONE[verdict] end
  if WITH_SESSION[verdict] then return WITH_SESSION[verdict] .. struct.pack('>I6', now) .. record end
end

-- The rules of `decide`, by its numbers and with its names. The outcomes, of which it lacks TWO_HOLDERS, are letters of the reply.
local REPEAT, ROTATE, HEAL, RECOVER, REUSE, TWO_HOLDERS = 'p', 'r', 'h', 'v', 'x', 'y'
local held = verdict == 'held'
local ahead = generation - state_generation
local is_child_nonce = nonce1 == child_nonce1 and nonce2 == child_nonce2
local is_state_nonce = nonce1 == state_nonce1 and nonce2 == state_nonce2
local child = ahead == 1 and (held or is_child_nonce or issued_at >= child_minted_at - 2 * reuse_interval)
-- The holder of the session's key may still have old tokens.
local confirmed = ahead == 0 and (is_state_nonce or issued_at >= siblings_since) or held and ahead <= 0
-- The token was replaced only recently, so its tab may have sent the request before it received the newer token.
local late = (ahead == 0 or ahead == -1) and within(siblings_since, 2 * reuse_interval)
local outcome
if verdict == 'two_holders' then
  outcome = TWO_HOLDERS
elseif within(child_minted_at, reuse_interval) and (child or confirmed or late) then
  outcome, child_served_at = REPEAT, now -- rule 1
elseif child then
  outcome, siblings_since = ROTATE, within(child_served_at, reuse_interval) and child_minted_at or NEVER -- rule 2
elseif ahead > 1 then
  outcome, siblings_since = HEAL, now -- rule 3
elseif confirmed then
  outcome = RECOVER -- rule 4
else
  outcome = REUSE -- rule 5
end
if outcome == ROTATE or outcome == HEAL then state_generation, state_nonce1, state_nonce2 = generation, nonce1, nonce2 end
if outcome ~= REPEAT then child_nonce1, child_nonce2, child_minted_at, child_served_at = fresh1, fresh2, now, now end

if outcome == REUSE or outcome == TWO_HOLDERS then
  -- @include lib/end_sessions.lua: end_sessions
  -- @include lib/head.lua: subject_of
  -- @include lib/index.lua: unindex
  local note = outcome == TWO_HOLDERS and '{"h":1}' or '{}' -- REUSE_NOTES of event-text.ts
  end_sessions(partition, { sid }, 'reuse', now, tonumber(marker_life), note, subject_of(record))
  unindex(partition, sid, record)
else
  local body = string.sub(record, BODY)
  if seen and seen ~= '' and outcome ~= REPEAT then
    -- @include lib/blocks.lua: block_at
    local at, after = block_at(record, LAST_SEEN)
    body = string.sub(record, BODY, at - 1) .. struct.pack('>BI2', LAST_SEEN, #seen) .. seen .. string.sub(record, after)
  end
  local binds = verdict == 'first_use' or verdict == 'first_proof' and outcome ~= REPEAT -- `provenBy` of binding.ts
  if verdict == 'first_use' then
    -- @include lib/device.lua: body_with_key_in_use
    body = body_with_key_in_use(body, now)
  elseif binds then
    -- @include lib/device.lua: body_with_bound_key
    flags, body = flags + WITH_DEVICE, body_with_bound_key(body, presented.proof, now)
  end
  record = struct.pack(HEAD, flags, state_generation, state_nonce1, state_nonce2, child_nonce1, child_nonce2, siblings_since,
    child_served_at, child_minted_at, created, idle, life) .. body
  redis.call('SET', key, record, 'PXAT', math.min(math.max(created, child_served_at) + idle, absolute) + slack(idle))
  if binds then
    outcome = 'b' .. string.upper(outcome)
  elseif held or verdict == 'proven' then
    outcome = string.upper(outcome)
  end
end
return outcome .. struct.pack('>I6', now) .. record
