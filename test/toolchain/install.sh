#!/bin/sh
# Puts a Node that starts on this machine on the path of the npm scripts: the pinned one; or else the
# machine's own, if it is new enough; or else the newest one that needs no libatomic. It may be run again.
#
# The pinned Node is not a dependency of the root package. Otherwise npm would run the install scripts of
# other packages on it before anything could find out that it does not start.
set -eu
cd "$(dirname "$0")/../.."

# The oldest Node that can run the sources: it removes types without a flag, and the tools support it.
OLDEST_MAJOR=24
reason="npm has no Node for this platform"

# Unpacks the Node of test/toolchain/$1 and links it. If that Node does not start, the function fails and sets $reason.
link() {
  lock=test/toolchain/$1/package-lock.json
  to=node_modules/.toolchain/$1
  if ! cmp -s "$lock" "$to/package-lock.json" || [ ! -x "$to/bin/node" ]; then
    node test/toolchain/unpack.js "$lock" "$to" >&2 || exit 1
    [ -x "$to/bin/node" ] || return 1
    # The lock file marks a complete installation, so it is copied last.
    cp "$lock" "$to"
  fi
  if ! reason=$("$to/bin/node" --version 2>&1); then return 1; fi
  mkdir -p node_modules/.bin
  ln -sf "../.toolchain/$1/bin/node" node_modules/.bin/node
}

if link pinned; then exit 0; fi
rm -f node_modules/.bin/node
not_pinned="The pinned Node does not start here (${reason#*: })"
if node -e "if (Number.parseInt(process.versions.node) < $OLDEST_MAJOR) process.exit(1)"; then
  echo "$not_pinned: npm scripts run on the machine's own, $(node --version)." >&2
elif link without-libatomic; then
  echo "$not_pinned: npm scripts run on $reason, which npm has installed." >&2
else
  echo "$not_pinned, nor does an older one (${reason#*: }): install Node $OLDEST_MAJOR or newer, or the missing library (Debian: apt-get install libatomic1), and run this again." >&2
  exit 1
fi
