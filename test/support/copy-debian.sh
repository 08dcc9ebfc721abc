#!/bin/sh
# Copies Debian's minbase variant, and packages, from this machine, which is a Debian: copy-debian.sh <directory> <package>...
set -eu
root=$1
shift
cd /
minbase=$(dpkg-query -W -f '${Priority} ${Essential} ${Package}\n' | sed -n 's/^required [a-z]* \|^[a-z]* yes //p')
# shellcheck disable=SC2086
packages=$(apt-cache depends --recurse --installed --important apt $minbase "$@" | grep '^[a-z]' | sort -u)
for directory in bin sbin lib lib64; do
  mkdir -p "$root/usr/$directory"
  ln -s "usr/$directory" "$root/$directory"
done
# dpkg-query fails for packages that are not installed. Those are only alternatives to installed ones, so the
# failure is ignored.
# shellcheck disable=SC2086
{ dpkg-query -L $packages 2>/dev/null || true; } | sed -E 's,^/,,; /^(bin|sbin|lib|lib64)$/d' | sort -u | while read -r path; do
  if [ -L "$path" ] || [ -f "$path" ]; then echo "$path"; fi
done | tar -cf - -T - etc/alternatives | tar -xf - -C "$root"
ldconfig -r "$root"
mkdir -p "$root/dev" "$root/proc" "$root/root" "$root/run" "$root/tmp"
chmod 1777 "$root/tmp"
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
