#!/bin/sh
# Puts a Node that starts here on the path of the npm scripts: the pinned one; or else the machine's own, if it is new enough; or
# else the newest one that needs no libatomic. Idempotent.
#
# The pinned Node is no dependency of the root package: npm would link it, and run the install scripts of other packages on it,
# before anything finds out that it does not start.
set -eu
cd "$(dirname "$0")/../.."

# The oldest Node that runs the sources: it removes types without a flag, and the tools accept it.
OLDEST_MAJOR=24
reason="npm has no Node for this platform"

# Installs the Node of test/toolchain/$1 and links it. When it does not start, fails and sets $reason.
link() {
  from=test/toolchain/$1
  to=node_modules/.toolchain/$1
  if ! cmp -s "$from/package-lock.json" "$to/package-lock.json" || ! ls "$to"/node_modules/node-*/bin/node >/dev/null 2>&1; then
    mkdir -p "$to"
    cp "$from/package.json" "$from/package-lock.json" "$to"
    npm ci --prefix "$to" --include=optional --no-audit --no-fund --loglevel error >/dev/null || exit 1
  fi
  for node in "$to"/node_modules/node-*/bin/node; do
    [ -x "$node" ] || return 1
    if ! reason=$("$node" --version 2>&1); then return 1; fi
    mkdir -p node_modules/.bin
    ln -sf "../${node#node_modules/}" node_modules/.bin/node
  done
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
