-- A late command does nothing. Its caller gave up long ago, but it may have waited in a socket, a proxy or a stalled Redis.
-- ARGV  the last two of every script: from when and until when, by this clock, the command may act, ms
-- Otherwise the reply is the error 'LATE' and the time.
local now = clock()
if now < tonumber(ARGV[#ARGV - 1]) or now > tonumber(ARGV[#ARGV]) then
  return redis.error_reply(string.format('LATE %.0f', now))
end
