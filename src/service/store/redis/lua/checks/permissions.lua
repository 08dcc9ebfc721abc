#!lua
-- Checks whether this user may run all commands that are needed. The script runs only while Redis accepts writes. So its success
-- also shows that Redis is no read-only replica, has enough memory and replicas, and has not failed to write to its disk.
-- ARGV  commands, their words separated by spaces
-- Returns the commands that the user may not run, and with a leading ! those that the server does not know.

local acl_check_cmd = redis.acl_check_cmd
if not acl_check_cmd then return { '!redis.acl_check_cmd' } end -- Some servers that imitate Redis lack it. Other scripts call it, too.

-- Servers with the latest security fixes refuse to judge a command with too few arguments. It gets more until they accept it.
local function may_run(words)
  for _ = 1, 5 do
    local accepted, allowed = pcall(acl_check_cmd, unpack(words))
    if accepted then return allowed end
    words[#words + 1] = '0'
  end
  return nil
end

local denied = {}
for _, command in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(command, '%S+') do words[#words + 1] = word end
  local allowed = may_run(words)
  if allowed == nil then denied[#denied + 1] = '!' .. command end
  if allowed == false then denied[#denied + 1] = command end
end
return denied
