-- Device binding, by the rules of src/service/session/devices/binding.ts, which has the reasons, and mostly with its names.
-- @include lib/record.lua: BOUND, BY_COOKIE, BY_TOKEN, CLIENT_ID, DEVICE_REQUIRED, DEVICE_TAIL, PROOF, PROOF_KEY_BYTES
-- @include lib/record.lua: SINCE, THUMBPRINT, WITH_DEVICE
-- @include lib/texts.lua: text_of

local function has_flag(record, flag) return string.byte(record) % (2 * flag) >= flag end

-- Returns the bytes of a thumbprint, or of its beginning, which a script gets as numbers of four bytes.
local function bytes_of(words)
  return struct.pack('>' .. string.rep('I4', #words), unpack(words))
end

-- Decodes what a request presents of its device (device-record.ts).
local function decode_presentation(text)
  local presented = cjson.decode(text)
  presented.proof = presented.proof and bytes_of(presented.proof)
  if presented.cookie then presented.cookie.thumbprint = bytes_of(presented.cookie.thumbprint) end
  return presented
end

-- Returns the session's key, or nil if it has none.
local function device_of(record)
  if not has_flag(record, WITH_DEVICE) then return nil end
  local since, _, kind = struct.unpack(DEVICE_TAIL, record, #record + 1 + SINCE)
  local is_proof_key = kind >= PROOF
  if is_proof_key then since = struct.unpack('>I6', record, #record + 1 + THUMBPRINT - PROOF_KEY_BYTES) end
  return { thumbprint = string.sub(record, THUMBPRINT, SINCE - 1), since = since, is_bound = kind >= BOUND, is_proof_key = is_proof_key }
end

-- Returns whether a token was issued before the key was bound (isBeforeBinding).
local function is_before_binding(device, created, issued_at)
  return device.since > created and issued_at < device.since
end

local function proof_refusal(proof)
  return proof and 'other_key' or 'proof_missing'
end

-- Returns the verdict of `judgeDevice`. `device` is the session's key or nil. `presented` is what the request presents: of its device, and
-- when its token was issued.
local function judge_device(record, device, created, presented, now, reuse_interval)
  local in_body = presented.transport == 'token'
  if has_flag(record, in_body and BY_COOKIE or BY_TOKEN) then return 'wrong_transport' end
  local is_required = has_flag(record, DEVICE_REQUIRED)
  local is_grace_over = is_required and now > created + presented.device_life
  local proof = presented.proof
  if not device then
    if is_grace_over then return 'device_required' end
    if not proof or not in_body or is_required then return 'unproven' end
    return (not presented.client or presented.client == text_of(record, CLIENT_ID)) and 'first_proof' or 'wrong_client'
  end
  if proof == device.thumbprint then return device.is_bound and 'held' or 'first_use' end
  local is_in_flight = math.abs(now - device.since) <= 2 * reuse_interval
  if device.is_proof_key then
    return is_before_binding(device, created, presented.issued_at) and not is_in_flight and 'two_holders' or proof_refusal(proof)
  end
  local cookie = presented.cookie
  if cookie and cookie.thumbprint == string.sub(device.thumbprint, 1, #cookie.thumbprint) then
    if math.abs(now - cookie.issued_at) > presented.device_life then return 'device_proof_missing' end
    return device.is_bound and 'proven' or 'first_use'
  end
  if not device.is_bound then return is_grace_over and 'device_required' or 'unproven' end
  if is_in_flight then return 'unproven' end
  local is_old = presented.issued_at <= device.since + 2 * reuse_interval
  return is_old and not presented.skipped and 'two_holders' or 'device_proof_missing'
end

-- Returns nil if the client may end its session with a refresh token, and otherwise the refusal of `judgeEnd`.
local function refusal_of_end(device, created, issued_at, proof)
  if not device or not device.is_proof_key or is_before_binding(device, created, issued_at) then return nil end
  return proof ~= device.thumbprint and proof_refusal(proof) or nil
end

-- Returns the end of a record, from BODY on, with the key of the session's first proof added to it. The key is bound to the session.
local function body_with_bound_key(body, proof, now)
  return body .. struct.pack('>I6', now) .. proof .. struct.pack(DEVICE_TAIL, 0, PROOF_KEY_BYTES, PROOF + BOUND)
end

-- Returns the end of a record, from BODY on, whose registered key is bound to the session now.
local function body_with_key_in_use(body, now)
  local _, length, kind = struct.unpack(DEVICE_TAIL, body, #body + 1 + SINCE)
  return string.sub(body, 1, SINCE - 1) .. struct.pack(DEVICE_TAIL, now, length, kind + BOUND)
end
