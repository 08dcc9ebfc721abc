-- Returns the time of this node's clock, ms. All instances read the same clock.
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
