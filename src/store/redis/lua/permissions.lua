#!lua
-- Whether this user may run all commands that are needed. That the script runs at all shows that Redis takes writes: it is no
-- read-only replica, has memory and replicas enough, and has not failed to write its disk.
-- ARGV  commands, their words parted by spaces
-- Returns those that it may not run.
local denied = {}
for _, command in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(command, '%S+') do words[#words + 1] = word end
  if not redis.acl_check_cmd(unpack(words)) then denied[#denied + 1] = command end
end
return denied
