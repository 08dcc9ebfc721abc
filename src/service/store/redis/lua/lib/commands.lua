-- The permissions of the user.

-- Returns whether the user may run a command on the keys of a partition. Servers with the latest security fixes want all arguments of the
-- command. Each is the partition, because every argument of some commands is a key.
local function may(command, partition)
  if command == 'PEXPIRETIME' then return redis.acl_check_cmd(command, partition) end
  if command == 'HGET' then return redis.acl_check_cmd(command, partition, partition) end
  return redis.acl_check_cmd(command, partition, partition, partition)
end

-- Checks that the user may run commands on the keys of a partition. Redis does not roll back a script that fails. Only a missing
-- permission can make a script fail halfway, so a step of several writes that belong together checks all of its commands before the first.
local function require_commands(partition, commands)
  for command in string.gmatch(commands, '%u+') do
    if not may(command, partition) then error({ err = 'NOPERM no permission to run ' .. command }) end
  end
end
