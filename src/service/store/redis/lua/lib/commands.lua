-- The permissions of the user.

-- Returns whether the user may run a command on the keys of a partition. Servers with the latest security fixes want all arguments of the
-- command. Each is the partition, because every argument of some commands is a key.
local function may(command, partition)
  if command == 'GET' or command == 'PEXPIRETIME' then return redis.acl_check_cmd(command, partition) end
  if command == 'HGET' then return redis.acl_check_cmd(command, partition, partition) end
  return redis.acl_check_cmd(command, partition, partition, partition)
end

-- Checks that the user may run commands on the keys of a partition. Redis does not roll back a script that fails, and a permission may be
-- taken away at any time. So a step whose writes belong together, and that a second run would not complete, checks its commands first.
local function require_commands(partition, commands)
  for command in string.gmatch(commands, '%u+') do
    if not may(command, partition) then error({ err = 'NOPERM no permission to run ' .. command }) end
  end
end
