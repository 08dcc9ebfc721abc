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
local subscriptions, verb, id = KEYS[1] .. 'b', ARGV[1], ARGV[2]
if verb == 'list' then return redis.call('HRANDFIELD', subscriptions, 1000, 'WITHVALUES') end

local before = redis.call('HGET', subscriptions, id)
if verb == 'get' then return before and { id, before, '=' .. id, redis.call('HGET', subscriptions, '=' .. id) } or {} end
if verb == 'create' then
  if before then return before == ARGV[3] and 'done' or 'there' end
  if #redis.call('HRANDFIELD', subscriptions, 1000) >= 2 * tonumber(ARGV[5]) then return 'full' end
  redis.call('HSET', subscriptions, id, ARGV[3], '=' .. id, ARGV[4] .. '\nactive\n\n0\n\n')
  return 'done'
end
if not before then return 'missing' end
local created, state, reason, failures, failed, time =
  string.match(redis.call('HGET', subscriptions, '=' .. id), '^(.*)\n(.*)\n(.*)\n(.*)\n(.*)\n(.*)$')
if verb == 'define' then
  if before ~= ARGV[4] then return 'changed' end
  redis.call('HSET', subscriptions, id, ARGV[3])
elseif verb == 'delete' then
  redis.call('HDEL', subscriptions, id, '=' .. id)
else
  if verb == 'state' then
    if ARGV[5] ~= '' and (ARGV[5] ~= state or ARGV[6] ~= reason) then return 'changed' end
    state, reason = ARGV[3], ARGV[4]
    if state == 'active' then failures = '0' end
  elseif ARGV[3] == '' then
    failures = '0'
  else
    failures, failed, time = string.format('%.0f', failures + 1), ARGV[3], ARGV[4]
  end
  redis.call('HSET', subscriptions, '=' .. id, table.concat({ created, state, reason, failures, failed, time }, '\n'))
end
return 'done'
