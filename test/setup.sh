#!/bin/sh
# Everything that the tests need and npm cannot install. Idempotent; quiet when there is nothing to do.
set -eu

# The oldest Node that the published packages promise to run on.
[ -d test/oldest-node/node_modules ] || npm ci --prefix test/oldest-node --no-audit --no-fund --loglevel error >&2

# A mock server of the OpenAPI documents.
[ -d test/mock-server/node_modules ] || npm ci --prefix test/mock-server --ignore-scripts --no-audit --no-fund --loglevel error >&2

missing=""
command -v redis-server >/dev/null || missing="$missing redis-server"
command -v strace >/dev/null || missing="$missing strace"
[ -x /usr/bin/chromium ] || missing="$missing chromium"
ls /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1 2>/dev/null | grep -q . || missing="$missing libfaketime"
command -v firefox-esr >/dev/null || missing="$missing firefox-esr"
command -v WebKitWebDriver >/dev/null || missing="$missing webkit2gtk-driver"
command -v xvfb-run >/dev/null || missing="$missing xvfb xauth"
command -v certutil >/dev/null || missing="$missing libnss3-tools"
for proxy in nginx haproxy caddy; do command -v "$proxy" >/dev/null || missing="$missing $proxy"; done
command -v systemd-analyze >/dev/null || missing="$missing systemd"
command -v promtool >/dev/null || missing="$missing prometheus"
command -v strip >/dev/null || missing="$missing binutils"
command -v protoc >/dev/null || missing="$missing protobuf-compiler"
command -v grpc_python_plugin >/dev/null || missing="$missing protobuf-compiler-grpc"
/usr/bin/python3 -c 'import grpc' 2>/dev/null || missing="$missing python3-grpcio"
for program in protoc-gen-go protoc-gen-go-grpc; do command -v "$program" >/dev/null || missing="$missing $program"; done
for shell in zsh fish; do command -v "$shell" >/dev/null || missing="$missing $shell"; done
if [ "${CONTAINER:-}" = long ]; then
  for program in buildah debootstrap; do command -v "$program" >/dev/null || missing="$missing $program"; done
fi
for program in unzip shellcheck; do command -v "$program" >/dev/null || missing="$missing $program"; done

if [ -z "$missing" ]; then
  exec sh test/tools/install.sh
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing for the tests, from Debian:$missing" >&2
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2
  # Only the programs are wanted: the tests start servers of their own, on ports of their own.
  # shellcheck disable=SC2086
  RUNLEVEL=1 apt-get install -y -qq --no-install-recommends $missing >&2
  exec sh test/tools/install.sh
fi
echo "the tests need redis-server 7.0 or newer, strace, proxies, systemd, prometheus, certutil, zsh, fish, browsers and their drivers: install$missing and run this again" >&2
exit 1
