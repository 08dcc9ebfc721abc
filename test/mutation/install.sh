#!/bin/sh
# Installs StrykerJS. It is separate from the root's dependencies and from test/dependencies, because only `npm run mutation` needs it.
set -eu
cd "$(dirname "$0")"
cmp -s package-lock.json node_modules/.installed && exit 0
npm ci --legacy-peer-deps --ignore-scripts --no-audit --no-fund --loglevel error >&2
# The lock file marks a complete installation, so it is copied last.
cp package-lock.json node_modules/.installed
