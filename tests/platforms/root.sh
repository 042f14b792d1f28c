#!/bin/bash
# root.sh RELEASE [build|arm64|machine|guest|container] - makes a clean root of a Debian release (bookworm, trixie);
# prints its folder. Needs root. The root has nothing that its kind does not need:
#   build (the default)  the build, the fuzzers and the unit tests
#   arm64                a cross-build for arm64, and its unit tests
#   machine, guest       systemd; a guest has a kernel, too
#   container            the installation of packages, as images of containers begin
#
# Roots are kept in $RMEMFS_PLATFORMS_CACHE (/var/tmp/rmemfs-platforms). A root is made again when
# the list of packages or the mirror has changed, or after 30 days. enter.sh runs commands in it,
# and leaves it unchanged. The mirror and the keys are those of this machine's own apt.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
release=${1:?bookworm or trixie}
kind=${2:-build}
cache=${RMEMFS_PLATFORMS_CACHE:-/var/tmp/rmemfs-platforms}
days=30

die() {
	echo "root.sh: $*" >&2
	exit 1
}

find_mirror() {
	# shellcheck disable=SC2016 # apt's variable
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 'Component: main' |
		sort -u | head -n 1
}

# The mirror as apt knows it, in whichever form its sources are written.
mirror=$(find_mirror)
if [ -z "$mirror" ]; then
	apt-get -q update >&2 || die "apt-get update failed"
	mirror=$(find_mirror)
fi
[ -n "$mirror" ] || die "the machine's apt has no Debian mirror: see sources.list(5)"
command -v mmdebstrap >/dev/null || die "mmdebstrap is missing: apt-get install mmdebstrap"
compgen -G "/usr/share/keyrings/debian-archive-$release-stable.*" >/dev/null ||
	die "the keys of $release are missing: apt-get install debian-archive-keyring"
architectures=$(dpkg --print-architecture)
case $kind in
build) packages=$({ "$here/../run.sh" --packages unit fuzz && printf '%s\n' dpkg-dev file; } | paste -sd ,) ;;
arm64)
	packages=$("$here/../run.sh" --packages unit | sed -E 's/^lib.*-dev$/&:arm64/; s/^pkg-config$/&:arm64/' | paste -sd ,)
	packages+=,gcc-aarch64-linux-gnu,qemu-user
	architectures+=,arm64
	;;
machine) packages=systemd,systemd-sysv,dbus,jq ;;
guest)
	packages=systemd,systemd-sysv,dbus,udev,jq,kmod,iproute2,procps,linux-image-amd64,initramfs-tools
	packages+=,rdma-core,ibverbs-providers
	;;
container) packages=apt ;;
*) die "$kind: must be build, arm64, machine, guest or container" ;;
esac
key="$mirror $packages"
name=$release
[ "$kind" = build ] || name+=.$kind

mkdir -p "$cache"
exec 9>"$cache/lock.$name"
flock 9
root=$cache/$name
if [ -d "$root" ] && [ "$(cat "$root.key")" = "$key" ] &&
	[ -n "$(find "$root.key" -mtime "-$days")" ]; then
	echo "$root"
	exit
fi
rm -rf "$root.key" "$root" "$root.new"
mmdebstrap --quiet --mode=root --variant=minbase "--architectures=$architectures" --include="$packages" \
	"$release" "$root.new" "$mirror" >&2 9>&- || {
	rm -rf "$root.new"
	die "mmdebstrap could not make $release from $mirror"
}
mv "$root.new" "$root"
echo "$key" >"$root.key"
echo "$root"
