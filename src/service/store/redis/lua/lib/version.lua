-- The version of a session, which tells which of its access tokens are stale.
-- @include lib/blocks.lua: block_at, replace
-- @include lib/commands.lua: require_commands
-- @include lib/record.lua: VERSION
-- @include lib/revocation_log.lua: append_to_log

-- Returns the version of a session, and the version below which its access tokens are stale.
local function version_of(record)
  local at, after = block_at(record, VERSION)
  if at == after then return 0, 0 end
  return struct.unpack('>I4I4', record, at + 1)
end

-- Counts a change of a session in the version of its record. If `mark_life` is given, marks access tokens of earlier versions as stale for
-- so long (ms): in the record, and in the revocation log, where an older instance finds no session id in '~<sid>' and skips the entry. If
-- all of them are stale already, appends nothing. Returns the record, which the caller writes.
local function count_version(partition, sid, record, is_changed, mark_life, now)
  local version, stale_below = version_of(record)
  if is_changed then version = version + 1 end
  if mark_life and version > stale_below then
    require_commands(partition, 'SET ZADD ZRANGE ZREMRANGEBYSCORE PEXPIREAT')
    append_to_log(partition, { table.concat({ '~' .. sid, now, now + mark_life, version }, ' ') }, now, mark_life)
    stale_below = version
  end
  if version == 0 then return record end
  return replace(record, struct.pack('>BI4I4', VERSION, version, stale_below), block_at(record, VERSION))
end
