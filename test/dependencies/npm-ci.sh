#!/bin/sh
# Runs `npm ci` with further options. npm can wait indefinitely for a registry whose connections have died, so a run takes at most ten
# minutes, and there are two at most: the second one has the packages of the first one in npm's cache.
set -eu
for left in 1 0; do
  if timeout --foreground -k 10 600 npm ci --no-audit --no-fund --loglevel error "$@" >&2; then exit 0; fi
  [ $left = 0 ] || echo "npm ci $*: failed or took too long, trying once more" >&2
done
exit 1
