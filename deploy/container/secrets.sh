#!/bin/sh
# Creates the files with secrets that compose.yaml needs: .env, and users.acl with the Redis user. They are created once, in the directory
# that the argument names, which is by default that of compose.yaml.
set -eu
directory=${1:-$(dirname "$0")}
if [ -e "$directory/.env" ]; then
  echo "$directory/.env is there already; nothing was changed" >&2
  exit 0
fi
umask 077
random() { od -An -tx1 -N32 /dev/urandom | tr -d ' \n'; }
password=$(random)
sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
hash=$(printf %s "$password" | sha256 | cut -d ' ' -f 1)
# The rights are those that `session-service redis-acl` prints; a test compares them. Other users may read the file, because Redis runs as
# another user. The file contains only the hash of the password. Nobody signs in as the default user, but it keeps its rights: by them Redis
# replays the transactions of its append-only file, and without them a restart drops those.
cat >"$directory/users.acl" <<ACL
user default off ~* &* +@all
user session-service on #$hash resetkeys ~{* resetchannels &session-revocations -@all +info +eval +evalsha +subscribe +publish +time +get +set +del +hget +hset +hdel +hrandfield +mget +pexpireat +pexpiretime +zadd +zcard +zlexcount +zrandmember +zrange +zrangebylex +zrank +zrem +zremrangebyscore +zrevrangebylex
ACL
chmod 644 "$directory/users.acl"
printf 'REDIS_PASSWORD=%s\nADMIN_TOKEN=%s\n' "$password" "$(random)" >"$directory/.env"
