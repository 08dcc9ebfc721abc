#!lua flags=allow-oom
-- Reads and changes subscriptions to signals.
-- KEYS  1 the first partition
-- ARGV  1 the operation, 2 the subscription, then for
--       'create': the definition, the time and the greatest number of subscriptions
--       'define': the new definition and the expected present one
--       'state': the new state and its reason, and the expected present ones, or '' and '' for any
--       'attempt': an error and its time, or '' and '' if the attempt succeeded
--       'delete', 'get' and 'list': nothing
-- Returns for 'get' and 'list' field, value, field, value, …; otherwise 'done' or 'missing'; for 'define' and 'state' also 'changed', if
-- the present value is not the expected one; for 'create' also 'there', if the subscription exists, or 'full'
-- @include lib/deadline.lua: ARGC
local subscriptions, verb, id = KEYS[1] .. KEY.subscriptions, ARGV[1], ARGV[2]
if verb == 'list' then return redis.call('HRANDFIELD', subscriptions, 1000, 'WITHVALUES') end

local before = redis.call('HGET', subscriptions, id)
if verb == 'get' then return before and { id, before, '=' .. id, redis.call('HGET', subscriptions, '=' .. id) } or {} end
if verb == 'create' then
  local definition, created_at, most = unpack(ARGV, 3, ARGC)
  if before then return before == definition and 'done' or 'there' end
  if #redis.call('HRANDFIELD', subscriptions, 1000) >= 2 * tonumber(most) then return 'full' end
  redis.call('HSET', subscriptions, id, definition, '=' .. id, created_at .. '\nactive\n\n0\n\n')
  return 'done'
end
if not before then return 'missing' end
local created, state, reason, failures, failed, time =
  string.match(redis.call('HGET', subscriptions, '=' .. id), '^(.*)\n(.*)\n(.*)\n(.*)\n(.*)\n(.*)$')
if verb == 'define' then
  local definition, expected = unpack(ARGV, 3, ARGC)
  if before ~= expected then return 'changed' end
  redis.call('HSET', subscriptions, id, definition)
elseif verb == 'delete' then
  redis.call('HDEL', subscriptions, id, '=' .. id)
else
  if verb == 'state' then
    local new_state, new_reason, expected_state, expected_reason = unpack(ARGV, 3, ARGC)
    if expected_state ~= '' and (expected_state ~= state or expected_reason ~= reason) then return 'changed' end
    state, reason = new_state, new_reason
    if state == 'active' then failures = '0' end
  else
    local failure, failed_at = unpack(ARGV, 3, ARGC)
    if failure == '' then
      failures = '0'
    else
      failures, failed, time = string.format('%.0f', failures + 1), failure, failed_at
    end
  end
  redis.call('HSET', subscriptions, '=' .. id, table.concat({ created, state, reason, failures, failed, time }, '\n'))
end
return 'done'
