#!/bin/sh
# Puts the pinned Node on the path of the npm scripts where npm has not done so (npm 10 installs it, but links nothing).
set -eu
cd "$(dirname "$0")/../.."
[ ! -e node_modules/.bin/node ] || exit 0
for node in node_modules/node-*/bin/node; do
  [ -x "$node" ] && ln -s "../${node#node_modules/}" node_modules/.bin/node && exit 0
done
