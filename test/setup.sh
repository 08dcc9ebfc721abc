#!/bin/sh
# Everything that the tests need and npm cannot install. Idempotent; quiet when there is nothing to do.
set -eu
command -v redis-server >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing Debian's redis-server for the tests" >&2
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2
  # Only the binary is wanted: the tests start servers of their own, on ports of their own.
  RUNLEVEL=1 apt-get install -y -qq --no-install-recommends redis-server >&2
  exit 0
fi
echo "the tests need redis-server 7.0 or newer on the PATH: install it and run this again" >&2
exit 1
