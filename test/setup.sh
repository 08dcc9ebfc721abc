#!/bin/sh
# Installs what the tests need and npm cannot install. It may be run again, and prints nothing if everything is there.
set -eu

# Missing programs are collected first, so that nothing large is installed on a machine where the tests cannot run.
missing=""
for program in curl git redis-server strace unzip shellcheck valkey-server zsh fish firefox-esr nginx haproxy caddy; do
  command -v "$program" >/dev/null || missing="$missing $program"
done
[ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates"
[ -x /usr/bin/chromium ] || missing="$missing chromium"
[ -x /usr/bin/chromium-headless-shell ] || missing="$missing chromium-headless-shell"
# shellcheck disable=SC2010
ls /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1 2>/dev/null | grep -q . || missing="$missing libfaketime"
command -v WebKitWebDriver >/dev/null || missing="$missing webkit2gtk-driver"
command -v xvfb-run >/dev/null || missing="$missing xvfb xauth"
command -v certutil >/dev/null || missing="$missing libnss3-tools"
command -v systemd-analyze >/dev/null || missing="$missing systemd"
command -v promtool >/dev/null || missing="$missing prometheus"
command -v strip >/dev/null || missing="$missing binutils"
command -v protoc >/dev/null || missing="$missing protobuf-compiler"
command -v grpc_python_plugin >/dev/null || missing="$missing protobuf-compiler-grpc"
/usr/bin/python3 -c 'import grpc' 2>/dev/null || missing="$missing python3-grpcio"
for program in protoc-gen-go protoc-gen-go-grpc; do command -v "$program" >/dev/null || missing="$missing $program"; done
command -v go >/dev/null || missing="$missing golang-go"
[ -d /usr/share/gocode/src/google.golang.org/grpc ] || missing="$missing golang-google-grpc-dev"
/usr/bin/python3 -c 'import cryptography' 2>/dev/null || missing="$missing python3-cryptography"
/usr/bin/python3 -c 'import django' 2>/dev/null || missing="$missing python3-django"
/usr/bin/python3 -c 'import jwt' 2>/dev/null || missing="$missing python3-jwt"
[ -x /usr/bin/mypy ] || missing="$missing mypy"
[ "${SPRING:-}${CLIENTS:-}" = "" ] || command -v mvn >/dev/null || missing="$missing maven"
[ "${SPRING:-}${CLIENTS:-}" = "" ] || command -v javac >/dev/null || missing="$missing openjdk-17-jdk-headless"
[ "${CONTAINER:-}" != long ] || command -v buildah >/dev/null || missing="$missing buildah"
[ "${CONTAINER:-}${BARE:-}" = "" ] || command -v debootstrap >/dev/null || missing="$missing debootstrap"
# `npm ci` links another Node if the pinned one lacks a library, but the tests need the pinned one.
node=node_modules/.toolchain/pinned/bin/node
[ ! -x $node ] || $node --version >/dev/null 2>&1 || missing="$missing libatomic1"

# Installs Debian packages without starting their services, because the tests start the servers themselves.
install_packages() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2
  # On Debian 12, Valkey is among the backports. They are added to a copy of the sources, so that those of the machine do not change.
  sources=$(mktemp -d)
  [ ! -d /etc/apt/sources.list.d ] || cp -r /etc/apt/sources.list.d/. "$sources"
  if ! apt-cache show valkey-server >/dev/null 2>&1; then
    release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    # shellcheck disable=SC2016
    repository=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $release" | head -n 1)
    echo "deb $repository $release-backports main" >"$sources/backports.list"
    apt-get -o "Dir::Etc::SourceParts=$sources" update -qq >&2
  fi
  RUNLEVEL=1 apt-get -o "Dir::Etc::SourceParts=$sources" install -y -qq --no-install-recommends "$@" >&2
  rm -r "$sources"
}

if [ -n "$missing" ] && { [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; }; then
  echo "the tests need these packages of Debian, or what your system has in their place: install$missing and run this again" >&2
  exit 1
fi

# Installs the packages of the directory $1 with further options of npm. Prints nothing if they are installed.
install_npm() {
  directory=$1
  shift
  if cmp -s "$directory/package-lock.json" "$directory/node_modules/.installed"; then return; fi
  sh test/dependencies/npm-ci.sh --prefix "$directory" "$@"
  # The lock file marks a complete installation, so it is copied last.
  cp "$directory/package-lock.json" "$directory/node_modules/.installed"
}

# The installations run at the same time, because each keeps little more than one core busy. Debian's begins when these have begun.
pids=""
# The oldest Node that the published packages promise to run on.
install_npm test/dependencies/oldest-node & pids="$pids $!"
# A mock server of the OpenAPI documents.
install_npm test/dependencies/mock-server --ignore-scripts & pids="$pids $!"
# The frameworks with which the server kit is tested. Their install scripts are not needed.
install_npm test/dependencies/frameworks --ignore-scripts & pids="$pids $!"
# The oldest and the newest versions of what projects have beside the published packages.
install_npm test/dependencies/peers/oldest --ignore-scripts & pids="$pids $!"
install_npm test/dependencies/peers/newest --ignore-scripts & pids="$pids $!"
# The packages of signal receivers. Their install scripts are not needed.
install_npm test/dependencies/receivers --ignore-scripts & pids="$pids $!"
# The systems whose sessions are migrated. Their peers, such as Next.js, are not needed.
install_npm test/dependencies/migration --ignore-scripts --legacy-peer-deps & pids="$pids $!"
# The runtimes other than Node and browsers. Their install scripts would only link the program of the platform.
install_npm test/runtimes --ignore-scripts & pids="$pids $!"

if [ -n "$missing" ]; then
  echo "installing for the tests, from Debian:$missing" >&2
  # shellcheck disable=SC2086
  install_packages $missing
  sh test/toolchain/install.sh
fi
# It uses unzip.
sh test/dependencies/tools/install.sh & pids="$pids $!"

failed=0
for pid in $pids; do wait "$pid" || failed=1; done
exit $failed
