-- Refuses a command that runs too late. The command may have waited in a socket, a proxy or a stalled Redis until its caller gave up.
-- ARGV  the last three of every script that includes this file: the earliest and the latest time, by this node's clock, at which the
--       command may act, and the shift by which that clock is ahead of the store's time (lua/sync.lua), ms
-- At any other time the reply is the error 'LATE' with the time of the node's clock.
-- @include lib/clock.lua: clock
local ARGC = #ARGV - 3 -- how many arguments the script has of its own
local shift = tonumber(ARGV[ARGC + 3])
local now = clock()
if now < tonumber(ARGV[ARGC + 1]) or now > tonumber(ARGV[ARGC + 2]) then
  return redis.error_reply(string.format('LATE %.0f', now))
end
now = now - shift
