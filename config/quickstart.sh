#!/bin/bash
# quickstart.sh [--stop] - builds rmemfs, starts a server on this machine with a 3 GiB export, mounts
# it at /mnt/rmem, copies files in and out and compares them. --stop ends and removes all of it.
#
# Safe to run again: it uses what already runs. The server's memory and socket are its own, apart
# from those of an installed service. RMEMFS_QUICKSTART_MOUNT names another mount point; --stop
# knows the one that was used. RMEMFS_QUICKSTART_MIB makes the export larger or smaller; the copied
# file has a third of it.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
bin=$root/build/release/bin
run=/run/rmemfs-quickstart
mnt=$(realpath -m "${RMEMFS_QUICKSTART_MOUNT:-/mnt/rmem}")
memory=/dev/shm/rmemfs-quickstart
socket=$run/server.sock
key=$run/quickstart.key
tree=/usr/include
export_mib=${RMEMFS_QUICKSTART_MIB:-3072}
# shellcheck source=config/packages.sh
. "$root/config/packages.sh"

say() {
	printf '%s\n' "$@"
}

die() {
	printf 'quickstart: %s\n' "$@" >&2
	exit 1
}

# ---- what runs already ---------------------------------------------------------------------------

# The server that we started. The file may name a process long gone, whose number another process
# has now. A zombie does not count: where process 1 of a container is no init, nobody waits for it.
is_running() {
	readlink "/proc/$1/exe" >/dev/null
}

server_pid() {
	local pid exe
	[ -s $run/server.pid ] || return 1
	pid=$(cat $run/server.pid)
	exe=$(readlink "/proc/$pid/exe") || return 1
	[[ $exe == "$bin/rmemfs-server"* ]] || return 1
	echo "$pid"
}

# The mount point of an earlier run, if it is still mounted; perhaps another one than this run's.
mount_point_in_use() {
	local earlier
	earlier=$(cat $run/mountpoint 2>/dev/null) || return 0
	[ "$(mounted_type "$earlier")" != fuse.rmemfs ] || echo "$earlier"
}

mounted_type() {
	awk -v at="$1" '$5 == at { for (i = 6; i <= NF; i++) if ($i == "-") type = $(i + 1) }
		END { print type }' /proc/self/mountinfo
}

stop() {
	local pid deadline
	if [ ! -e $run ] && [ ! -e $memory ]; then
		say "nothing of the quick start runs here"
		return
	fi
	mnt=$(mount_point_in_use)
	if [ -n "$mnt" ]; then
		umount "$mnt" || die "$mnt is in use: leave it (cd /), and run this again"
		say "unmounted $mnt"
	fi
	if pid=$(server_pid); then
		kill -TERM "$pid"
		deadline=$((SECONDS + 30))
		while server_pid >/dev/null; do
			[ $SECONDS -lt $deadline ] || die "the server (process $pid) does not end"
			sleep 0.1
		done
		say "stopped the server"
	fi
	[ ! -e $memory/lock ] || flock -n $memory/lock true ||
		die "another server uses $memory: stop it, and run this again"
	remove_mount_points
	rm -rf $memory $run
	say "its memory is free again"
}

# Removes the mount points that we have made, but none into which others have put something since.
remove_mount_points() {
	local made
	[ -e $run/made ] || return 0
	while read -r made; do
		rmdir "$made" 2>/dev/null || true
	done <$run/made
}

# ---- requirements --------------------------------------------------------------------------------

# A server that runs already keeps the size that it was started with.
need_same_size() {
	local there
	server_pid >/dev/null || return 0
	there=$(find $memory/regions -name 'default.*' -printf '%s\n' | awk '{ n += $1 } END { printf "%d", n / 1048576 }')
	[ "$there" -eq "$export_mib" ] ||
		die "the server runs already with $there MiB, not with $export_mib:" \
			"end it first: config/quickstart.sh --stop"
}

need_memory() {
	local free available need=$(((export_mib + export_mib / 16 + 64) << 10))
	[ ! -d $memory ] || return 0
	free=$(df --output=avail -k /dev/shm | tail -n 1)
	[ "$free" -ge $need ] || die "/dev/shm has $((free >> 10)) MiB free; $((need >> 10)) are needed." \
		"Make it larger: mount -o remount,size=$(((need >> 20) + 1))G /dev/shm" \
		"(in a container: docker run --shm-size=$(((need >> 20) + 1))g ...)"
	available=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
	[ "$available" -ge $need ] ||
		die "$((available >> 10)) MiB of memory are available; $((need >> 10)) are needed."
}

need_mount_point() {
	local other
	other=$(mount_point_in_use)
	[ "$other" != "$mnt" ] || return 0
	[ -z "$other" ] || die "it is mounted at $other already: umount $other, to mount it at $mnt"
	[ -z "$(mounted_type "$mnt")" ] ||
		die "something else is mounted at $mnt: umount $mnt, or choose another place:" \
			"RMEMFS_QUICKSTART_MOUNT=/mnt/other config/quickstart.sh"
	[ ! -e "$mnt" ] || [ -d "$mnt" ] || die "$mnt is no directory: choose another place:" \
		"RMEMFS_QUICKSTART_MOUNT=/mnt/other config/quickstart.sh"
	[ ! -e "$mnt" ] || [ -z "$(ls -A "$mnt")" ] || die "$mnt is not empty: choose another place:" \
		"RMEMFS_QUICKSTART_MOUNT=/mnt/other config/quickstart.sh"
	[ -c /dev/fuse ] || modprobe fuse 2>/dev/null || true
	[ -c /dev/fuse ] || die "there is no /dev/fuse (in a container: docker run --device /dev/fuse" \
		"--cap-add SYS_ADMIN --security-opt apparmor=unconfined ...)"
}

need_disk() {
	local free need=$((2 * file_mib + 150))
	free=$(df --output=avail -m "$tmp" | tail -n 1)
	[ "$free" -ge $need ] || die "$tmp has $free MiB free; $need are needed for the files to compare." \
		"Choose another folder: TMPDIR=/some/where config/quickstart.sh"
}

build() {
	say "building (log: $root/build/quickstart.log)"
	mkdir -p "$root/build"
	(
		cd "$root"
		cmake --preset release
		cmake --build --preset release --target rmemfs rmemfs-server rmemfsctl
	) </dev/null >"$root/build/quickstart.log" 2>&1 || {
		tail -n 30 "$root/build/quickstart.log" >&2
		die "the build failed"
	}
}

# ---- server and mount ----------------------------------------------------------------------------

# An IPv4 address that belongs to an active RDMA device's interface; nothing if there is none.
rdma_address() {
	local port state netdev address
	for port in /sys/class/infiniband/*/ports/*; do
		state=$(cat "$port/state" 2>/dev/null) || continue
		[[ $state == *ACTIVE* ]] || continue
		netdev=$(cat "$port/gid_attrs/ndevs/0" 2>/dev/null) || continue
		address=$(ip -4 -o addr show dev "$netdev" | awk '{ sub("/.*", "", $4); print $4 }')
		address=${address%%$'\n'*}
		if [ -n "$address" ]; then
			echo "$address"
			return
		fi
	done
}

# Over the network the mount needs a key; --stop removes it.
make_key() {
	[ "$transport" = verbs ] || return 0
	options+=,key=$key
	[ -e "$key" ] || "$bin/rmemfsctl" keygen quickstart "$key" 2>/dev/null || die "no key can be made in $run"
}

choose_transport() {
	local address=
	[ ! -e /sys/class/infiniband ] || address=$(rdma_address)
	if [ -n "$address" ]; then
		transport=verbs source=$address:/default
		listen=(--listen "verbs:$address" --listen "shm:$socket" --key "$key")
		say "transport: verbs, by the RDMA device at $address"
	else
		transport=shm source=$socket:/default
		listen=(--listen "shm:$socket")
		say "transport: shm (this machine has no RDMA device)"
	fi
}

# server_answers PID: whether that process answers, and not another one that had the socket before
# it.
server_answers() {
	grep -q ", pid $1," < <("$bin/rmemfsctl" status "$socket" 2>/dev/null)
}

start_server() {
	local pid deadline
	mkdir -p $run
	options=transport=$transport
	make_key
	if server_pid >/dev/null; then
		say "the server runs already"
		return
	fi
	ulimit -l unlimited 2>/dev/null || true
	setsid "$bin/rmemfs-server" -c /dev/null --memory-dir $memory \
		--export "default:${export_mib}MiB" "${listen[@]}" </dev/null >>$run/server.log 2>&1 &
	pid=$!
	echo $pid >$run/server.pid
	deadline=$((SECONDS + 120))
	until server_answers $pid; do
		if ! is_running $pid || [ $SECONDS -ge $deadline ]; then
			tail -n 20 $run/server.log >&2
			die "the server did not start; its log is $run/server.log"
		fi
		sleep 0.1
	done
	say "server started with an export of $export_mib MiB (log: $run/server.log)"
}

# Notes the missing folders of its path, the last one first: we made them and may remove them again.
make_mount_point() {
	local at=$mnt
	until [ -e "$at" ]; do
		echo "$at" >>$run/made
		at=$(dirname "$at")
	done
	mkdir -p "$mnt"
}

mount_it() {
	if [ "$(mounted_type "$mnt")" = fuse.rmemfs ]; then
		if stat -f "$mnt" >/dev/null 2>&1; then
			say "$mnt is mounted already"
			return
		fi
		umount -l "$mnt"
	fi
	make_mount_point
	echo "$mnt" >$run/mountpoint
	"$bin/rmemfs" -c /dev/null -o "$options" "$source" "$mnt" </dev/null ||
		die "mounting failed; the server's log is $run/server.log"
	say "mounted $source at $mnt"
}

# ---- copying -------------------------------------------------------------------------------------

# timed TEXT MIB COMMAND...
timed() {
	local text=$1 mib=$2 begin ms
	shift 2
	begin=$(date +%s%N)
	"$@"
	ms=$((($(date +%s%N) - begin) / 1000000 + 1))
	say "  $text: $mib MiB in $ms ms, $((mib * 1000 / ms)) MiB/s"
}

need_export_room() {
	local need
	need=$(($(du -sm $tree | cut -f 1) + file_mib + 1))
	[ "$need" -le "$export_mib" ] ||
		die "RMEMFS_QUICKSTART_MIB: an export of $export_mib MiB has no room for $tree and a file" \
			"of $file_mib MiB: they need $need"
}

copy_tree() {
	say "copying $tree in and comparing"
	rm -rf "$mnt/quickstart"
	mkdir "$mnt/quickstart"
	timed "tree in" "$(du -sm --apparent-size $tree | cut -f 1)" cp -a $tree "$mnt/quickstart/tree"
	diff -r --no-dereference $tree "$mnt/quickstart/tree" || die "the trees differ"
	say "  $(find "$mnt/quickstart/tree" | wc -l) files and folders are equal"
}

copy_file() {
	local sum back
	say "copying a file of $file_mib MiB in and out and comparing"
	head -c ${file_mib}M /dev/urandom >"$tmp/in"
	timed "file in" $file_mib cp "$tmp/in" "$mnt/quickstart/file"
	timed "file out, onto disk" $file_mib cp "$mnt/quickstart/file" "$tmp/out"
	timed "file read" $file_mib dd if="$mnt/quickstart/file" of=/dev/null bs=1M iflag=direct status=none
	sum=$(sha256sum <"$tmp/in")
	back=$(sha256sum <"$tmp/out")
	[ "$sum" = "$back" ] || die "the file came back different: sha256 $sum, then $back"
	say "  sha256 of both: ${sum%% *}"
}

main() {
	[ $# -eq 0 ] || [ "$*" = --stop ] || die "usage: config/quickstart.sh [--stop]"
	[ "$(id -u)" -eq 0 ] || die "mounting takes root: sudo config/quickstart.sh"
	if [ $# -eq 1 ]; then
		stop
		return
	fi
	[[ $export_mib =~ ^[1-9][0-9]{0,8}$ ]] ||
		die "RMEMFS_QUICKSTART_MIB: '$export_mib': must be a whole number"
	file_mib=$((export_mib / 3))
	tmp=$(mktemp -d "${TMPDIR:-/var/tmp}/rmemfs-quickstart.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	need_mount_point
	need_same_size
	need_memory
	need_disk
	packages_install "${PACKAGES_BUILD[@]}" "${PACKAGES_RUN[@]}" diffutils
	need_export_room
	build
	choose_transport
	start_server
	mount_it
	copy_tree
	copy_file
	say "" "$mnt is yours. What the server says: $bin/rmemfsctl status $socket" \
		"Unmount: umount $mnt    Unmount, stop the server, free its memory: config/quickstart.sh --stop"
}

main "$@"
