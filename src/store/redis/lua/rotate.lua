#!lua
-- Rotation, as src/session/rotation.ts states it, on the stored state. One token, one step.
-- KEYS  1 partition
-- ARGV  1 sid; the token: 2 generation, 3 4 nonce, 5 issued at; 6 7 a fresh nonce; 8 reuse interval, ms; 9 marker life, ms
-- Returns one string: a letter for the outcome and
--   p repeat, r rotate, h heal, v recover: the time (I6) and the session's record
--   x reuse: the same, of the session that was ended
--   m revoked, u unknown, i idle, e expired: nothing
local NEVER = 2 ^ 48 - 1 -- later than any token
local partition, sid = KEYS[1], ARGV[1]
local key = partition .. 's' .. sid
local record = redis.call('GET', key)
if not record then return marked(partition, sid, now) and 'm' or 'u' end

local version, g, n1, n2, c1, c2, f, cs, ct, created, idle, life = struct.unpack(HEAD, record)
local absolute = created + life
if now >= absolute then return 'e' end
if now >= math.max(created, ct) + idle then return 'i' end
if created <= ended_until(partition) then return 'm' end

local G, N1, N2, I = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local R = tonumber(ARGV[8])
local function within(time, limit) return math.abs(now - time) <= limit end

local child = G == g + 1 and ((N1 == c1 and N2 == c2) or I >= ct - 2 * R)
local confirmed = G == g and ((N1 == n1 and N2 == n2) or I >= f)
local late = (G == g or G == g - 1) and within(f, 2 * R)
local outcome
if within(ct, R) and (child or confirmed or late) then
  outcome, cs = 'p', now -- rule 1
elseif child then
  outcome, f = 'r', within(cs, R) and ct or NEVER -- rule 2
elseif G > g + 1 then
  outcome, f = 'h', now -- rule 3
elseif confirmed then
  outcome = 'v' -- rule 4
else
  outcome = 'x' -- rule 5
end
if outcome == 'r' or outcome == 'h' then g, n1, n2 = G, N1, N2 end
if outcome ~= 'p' then c1, c2, ct, cs = ARGV[6], ARGV[7], now, now end

if outcome == 'x' then
  close(partition, { sid }, 'reuse', now, tonumber(ARGV[9]))
  unindex(partition, sid, record)
else
  record = struct.pack(HEAD, version, g, n1, n2, c1, c2, f, cs, ct, created, idle, life) .. string.sub(record, BODY)
  redis.call('SET', key, record, 'PXAT', math.min(math.max(created, ct) + idle, absolute) + slack(idle))
end
return outcome .. struct.pack('>I6', now) .. record
