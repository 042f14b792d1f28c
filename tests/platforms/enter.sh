#!/bin/bash
# enter.sh ROOT FOLDER COMMAND... - runs a command in a root that root.sh has made. This tree is at
# /src (read-only), FOLDER/build at /build, FOLDER/tmp at /tmp. The command has processes, mounts,
# memory and an environment of its own. Its other writes are gone when it ends: the root stays as it
# is.
set -euo pipefail

if [ "${1:-}" != --inside ]; then
	exec unshare --mount --propagation private --pid --fork --kill-child --mount-proc -- "$0" --inside "$@"
fi
lower=$(realpath "${2:?the root}")
folder=$(realpath "${3:?a folder}")
tree=$(cd "$(dirname "$0")/../.." && pwd)
shift 3

mkdir -p "$folder"/{build,tmp,layer}
mount -t tmpfs -o mode=755 none "$folder/layer"
mkdir "$folder/layer"/{upper,work,root}
root=$folder/layer/root
mount -t overlay -o "lowerdir=$lower,upperdir=$folder/layer/upper,workdir=$folder/layer/work" none "$root"
mkdir "$root/src" "$root/build" "$root/host"
mount --bind "$tree" "$root/src"
mount -o remount,bind,ro "$root/src"
mount --bind "$folder/build" "$root/build"
mount --bind "$folder/tmp" "$root/tmp"
chmod 1777 "$root/tmp"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs none "$root/dev/shm"
mount -t tmpfs -o mode=755 none "$root/run"
# As the installer leaves it.
printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n' >"$root/etc/hosts"
ln -sf ../proc/self/mounts "$root/etc/mtab"

# Not by chroot(2): processes under it can't make user namespaces.
cd "$root"
pivot_root . host
cd /src
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
umount -l /host
rmdir /host
exec env -i PATH="$PATH" HOME=/root LC_ALL=C.UTF-8 "$@"
