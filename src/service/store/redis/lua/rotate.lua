#!lua
-- Rotates the stored state of a session for one presented token, by the rules of src/service/session/rotation/rotation.ts. Before that, it
-- checks the conditions of src/service/session/devices/binding.ts.
-- KEYS  1 partition
-- ARGV  the first locals, in this order. Those after the last one that is needed are left out, and nil here.
-- Returns one string. These letters are followed by the time (I6) and the session's record:
--   p repeat, r rotate, h heal, v recover; in upper case if the request had a fresh device cookie or a proof of the session's key,
--   and preceded by b if this request has bound the key
--   x reuse, X two holders: the session was ended
--   d the device cookie is missing, q a device key is required: the session is unchanged
--   n a proof of the session's key is missing, k the proof is of another key: the session is unchanged
-- These letters stand alone: m revoked, u unknown, i idle, e expired, t the token may not be presented in this way, w the proof would be
--   the session's first, but the client is not that of the session
-- @include lib/deadline.lua: now
-- @include lib/partition.lua: ARGC, BODY, BOUND, BY_COOKIE, BY_TOKEN, DEVICE_REQUIRED, DEVICE_TAIL, HEAD, PROOF, PROOF_KEY_BYTES, SINCE
-- @include lib/partition.lua: THUMBPRINT, WITH_DEVICE, slack, subject_of
local sid,
  generation, nonce1, nonce2, issued_at, -- the presented refresh token
  fresh1, fresh2, -- the nonce of the token that may follow it
  reuse_interval, -- ms
  marker_life, -- how long ended sessions stay marked, ms
  seen, -- what the session keeps of this request (JSON), or ''
  device_life, -- how long a device cookie lives, ms
  presented_how, -- RENEWAL_SKIPPED: the browser could not renew that cookie; IN_BODY: the token came in the body, not in a cookie
  device_issued_at, device1, device2, device3, device4, -- the device cookie: ms, the first words of its thumbprint; zeros if there is none
  proof1, proof2, proof3, proof4, proof5, proof6, proof7, proof8, -- the thumbprint of the proven key, in words
  client -- the client that presents the token at the token endpoint
  = unpack(ARGV, 1, ARGC)
local NEVER = 2 ^ 48 - 1 -- a time later than any token
local partition = KEYS[1]
local key = partition .. 's' .. sid
local found = redis.call('MGET', key, partition .. 'e', partition .. 'h')
local record, horizons = found[1], found[3]
if not record then
  -- @include lib/live.lua: marked
  return marked(partition, sid, now) and 'm' or 'u'
end

-- The state of rotation.ts, with each nonce as two words.
local flags, state_generation, state_nonce1, state_nonce2, child_nonce1, child_nonce2, siblings_since, child_served_at, child_minted_at,
  created, idle, life = struct.unpack(HEAD, record)
local absolute = created + life
if now >= absolute then return 'e' end
if now >= math.max(created, child_minted_at) + idle then return 'i' end
if created <= tonumber(found[2] or 0) then return 'm' end
if horizons then
  -- @include lib/live.lua: ended_with_subject
  if ended_with_subject(horizons, subject_of(record), sid, created) then return 'm' end
end

generation, nonce1, nonce2 = tonumber(generation), tonumber(nonce1), tonumber(nonce2)
issued_at, reuse_interval = tonumber(issued_at), tonumber(reuse_interval)
local function within(time, limit) return math.abs(now - time) <= limit end

-- The rules of `judgeDevice` (devices/binding.ts). The comments name its verdicts.
local proven, first_use, two_holders, held, key_to_bind = false, false, false, false, nil
if flags > 1 or proof8 then
  local RENEWAL_SKIPPED, IN_BODY = '1', '2'
  local function has(flag) return flags % (2 * flag) >= flag end
  local max_age = device_life and tonumber(device_life) or math.huge
  local skipped, in_body = presented_how == RENEWAL_SKIPPED, presented_how == IN_BODY
  if has(in_body and BY_COOKIE or BY_TOKEN) then return 't' end -- wrong_transport
  local since, length, kind = 0, 0, 0
  if has(WITH_DEVICE) then since, length, kind = struct.unpack(DEVICE_TAIL, record, #record + 1 + SINCE) end
  local proof = proof8 and struct.pack('>I4I4I4I4I4I4I4I4', proof1, proof2, proof3, proof4, proof5, proof6, proof7, proof8)
  local proves_session_key = proof and length > 0 and string.sub(record, THUMBPRINT, SINCE - 1) == proof
  if length == 0 and in_body and not has(DEVICE_REQUIRED) then key_to_bind = proof end -- first_proof, if the client is that of the session
  if key_to_bind and client then
    local _, size, at = struct.unpack('>I2c0B', record, BODY)
    local own = size == 255 and struct.unpack('>I2c0', record, at) or string.sub(record, at, at + size - 1)
    if client ~= own then return 'w' end -- wrong_client
  end
  local cookie_matches = false
  if length > 0 and device4 then
    local w1, w2, w3, w4 = struct.unpack('>I4I4I4I4', record, #record + 1 + THUMBPRINT)
    cookie_matches = w1 == tonumber(device1) and w2 == tonumber(device2) and w3 == tonumber(device3) and w4 == tonumber(device4)
  end
  if kind >= PROOF and not proves_session_key then -- two_holders; otherwise other_key or proof_missing
    local bound = struct.unpack('>I6', record, #record + 1 + THUMBPRINT - PROOF_KEY_BYTES)
    two_holders = bound > created and issued_at < bound and not within(bound, 2 * reuse_interval)
    if not two_holders then return (proof and 'k' or 'n') .. struct.pack('>I6', now) .. record end
  elseif proves_session_key or cookie_matches then -- device_proof_missing (a stale cookie); otherwise first_use, held or proven
    proven = proves_session_key or within(tonumber(device_issued_at), max_age)
    if not proven then return 'd' .. struct.pack('>I6', now) .. record end
    first_use = kind < BOUND
    held = proves_session_key and not first_use
    if first_use then record = string.sub(record, 1, SINCE - 1) .. struct.pack(DEVICE_TAIL, now, length, kind + BOUND) end
  elseif kind < BOUND then -- device_required; otherwise unproven, or first_proof if there is a `key_to_bind`
    if has(DEVICE_REQUIRED) and now > created + max_age then return 'q' .. struct.pack('>I6', now) .. record end
  elseif not within(since, 2 * reuse_interval) then -- two_holders or device_proof_missing; within that time unproven
    two_holders = issued_at <= since + 2 * reuse_interval and not skipped
    if not two_holders then return 'd' .. struct.pack('>I6', now) .. record end
  end
end

local ahead = generation - state_generation
local is_child_nonce, is_state_nonce = nonce1 == child_nonce1 and nonce2 == child_nonce2, nonce1 == state_nonce1 and nonce2 == state_nonce2
local child = ahead == 1 and (held or is_child_nonce or issued_at >= child_minted_at - 2 * reuse_interval)
local confirmed = ahead == 0 and (is_state_nonce or issued_at >= siblings_since) or held and ahead <= 0
local late = (ahead == 0 or ahead == -1) and within(siblings_since, 2 * reuse_interval)
local outcome
if two_holders then
  outcome = 'X'
elseif within(child_minted_at, reuse_interval) and (child or confirmed or late) then
  outcome, child_served_at = 'p', now -- rule 1 of rotation.ts
elseif child then
  outcome, siblings_since = 'r', within(child_served_at, reuse_interval) and child_minted_at or NEVER -- rule 2 of rotation.ts
elseif ahead > 1 then
  outcome, siblings_since = 'h', now -- rule 3 of rotation.ts
elseif confirmed then
  outcome = 'v' -- rule 4 of rotation.ts
else
  outcome = 'x' -- rule 5 of rotation.ts
end
if outcome == 'r' or outcome == 'h' then state_generation, state_nonce1, state_nonce2 = generation, nonce1, nonce2 end
if outcome ~= 'p' then child_nonce1, child_nonce2, child_minted_at, child_served_at = fresh1, fresh2, now, now end

if outcome == 'x' or two_holders then
  -- @include lib/close.lua: close
  -- @include lib/index.lua: unindex
  close(partition, { sid }, 'reuse', now, tonumber(marker_life), two_holders and '{"h":1}' or '{}', subject_of(record))
  unindex(partition, sid, record)
else
  local body = string.sub(record, BODY)
  if seen and seen ~= '' and outcome ~= 'p' then
    -- @include lib/blocks.lua: LAST_SEEN, block_at
    local at, after = block_at(record, LAST_SEEN)
    body = string.sub(record, BODY, at - 1) .. struct.pack('>BI2', LAST_SEEN, #seen) .. seen .. string.sub(record, after)
  end
  if key_to_bind and outcome ~= 'p' then -- the session's first proof binds it to the key
    proven, first_use, flags = true, true, flags + WITH_DEVICE
    body = body .. struct.pack('>I6', now) .. key_to_bind .. struct.pack(DEVICE_TAIL, 0, PROOF_KEY_BYTES, PROOF + BOUND)
  end
  record = struct.pack(HEAD, flags, state_generation, state_nonce1, state_nonce2, child_nonce1, child_nonce2, siblings_since, child_served_at,
    child_minted_at, created, idle, life) .. body
  redis.call('SET', key, record, 'PXAT', math.min(math.max(created, child_minted_at) + idle, absolute) + slack(idle))
  if proven then outcome = string.upper(outcome) end
  if first_use then outcome = 'b' .. outcome end
end
return outcome .. struct.pack('>I6', now) .. record
