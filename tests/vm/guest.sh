#!/bin/bash
# guest.sh - builds the guest that run.sh boots: Debian's generic kernel, which has Soft-RoCE, and an
# initramfs that turns the host's root into the guest's. Nothing is installed on the host: packages
# are downloaded and unpacked into the cache ($RMEMFS_VM_CACHE, /var/tmp/rmemfs-vm). The guest is
# built once, and again when initramfs-init changes. Prints the cache folder.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${RMEMFS_VM_CACHE:-/var/tmp/rmemfs-vm}

die() {
	echo "guest.sh: $*" >&2
	exit 1
}

need() {
	command -v "$1" >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ||
		die "$1 is missing: apt-get install $2"
}

# unpack PACKAGE FOLDER
unpack() {
	local tmp
	tmp=$(mktemp -d "$cache/download.XXXXXX")
	(cd "$tmp" && apt-get -q download "$1" >&2) || {
		rm -rf "$tmp"
		die "cannot download the package $1 (apt-get update may help)"
	}
	rm -rf "$2"
	dpkg -x "$tmp"/*.deb "$2"
	rm -rf "$tmp"
}

fetch_kernel() {
	local package
	package=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ {print $2; exit}')
	[ -n "$package" ] || die "the package lists do not know linux-image-amd64: apt-get update"
	unpack "$package" "$cache/kernel.new"
	depmod -b "$cache/kernel.new" "$(ls "$cache/kernel.new/lib/modules")"
	rm -rf "$cache/kernel"
	mv "$cache/kernel.new" "$cache/kernel"
}

# busybox-static conflicts with busybox, so it is unpacked and never installed.
fetch_busybox() {
	unpack busybox-static "$cache/busybox.new"
	mv "$cache/busybox.new/bin/busybox" "$cache/busybox"
	rm -rf "$cache/busybox.new"
}

build_initramfs() {
	local root=$cache/root module file release
	release=$(ls "$cache/kernel/lib/modules")
	rm -rf "$root"
	mkdir -p "$root"/{bin,proc,sys,dev,modules,lower,rw,root}
	cp "$cache/busybox" "$root/bin/"
	cp "$here/initramfs-init" "$root/init"
	chmod 755 "$root/init"
	ln -s busybox "$root/bin/sh"
	for module in virtio_pci 9pnet_virtio 9p overlay; do
		modprobe -d "$cache/kernel" -S "$release" --show-depends "$module"
	done | awk '/^insmod/ && !seen[$2]++ {print $2}' | while read -r file; do
		cp "$file" "$root/modules/"
		basename "$file" >>"$root/modules.list"
	done
	(cd "$root" && find . | cpio -o -H newc --quiet -R 0:0 | gzip -1) >"$cache/initramfs.new"
	rm -rf "$root"
	mv "$cache/initramfs.new" "$cache/initramfs.gz"
}

need apt-get apt
need dpkg dpkg
need cpio cpio
need depmod kmod
need modprobe kmod
PATH=$PATH:/usr/sbin:/sbin
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
[ -d "$cache/kernel" ] || fetch_kernel
[ -e "$cache/busybox" ] || fetch_busybox
if [ ! -e "$cache/initramfs.gz" ] || [ "$here/initramfs-init" -nt "$cache/initramfs.gz" ] ||
	[ "$cache/kernel" -nt "$cache/initramfs.gz" ]; then
	build_initramfs
fi
echo "$cache"
