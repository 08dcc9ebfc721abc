#!/bin/sh
# Puts Node, the libraries that it loads, and the files that every program expects into a directory: system.sh <node> <directory>
set -eu
node=$1
out=$2
umask 022
mkdir -p "$out/usr/local/bin" "$out/etc/ssl/certs" "$out/var/lib/dpkg/status.d"
mkdir -m 1777 "$out/tmp"

# Removing the symbols, which only native debuggers read, makes Node a fifth smaller.
strip -o "$out/usr/local/bin/node" "$node"
chmod 755 "$out/usr/local/bin/node"

ldd "$node" | grep -o '/[^ ]*' | while read -r library; do
  # Scanners of images read which packages are installed, so the library's package is recorded. Its license is copied too. The package may
  # list the library below /lib or below /usr/lib, because Debian has merged these directories.
  package=$(dpkg-query -S "$(realpath "$library")" "/usr$library" "$library" 2>/dev/null | sed -n '1s/:.*//p')
  dpkg-query -s "$package" >"$out/var/lib/dpkg/status.d/$package"
  cp -L --parents "$library" "$out"
  [ ! -e "/usr/share/doc/$package/copyright" ] || cp --parents "/usr/share/doc/$package/copyright" "$out"
done

cp -L /etc/os-release /etc/debian_version "$out/etc"
cp -L /etc/ssl/certs/ca-certificates.crt "$out/etc/ssl/certs"
echo 'hosts: files dns' >"$out/etc/nsswitch.conf"
printf '%s\n' 'root:x:0:0:root:/:/sbin/nologin' 'session-service:x:65532:65532::/data:/sbin/nologin' >"$out/etc/passwd"
printf '%s\n' 'root:x:0:' 'session-service:x:65532:' >"$out/etc/group"
