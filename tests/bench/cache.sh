#!/bin/bash
# cache.sh - what each cache mode is good for: copies, dd, random I/O, git and a C build on a mount in
# every mode and on a tmpfs, interleaved, so that what else the machine does falls on all alike.
# Prints the medians in seconds, and how many times the tmpfs's they are.
#
# usage: cache.sh [REPETITIONS]
#   RMEMFS_BIN: where the programs are; RMEMFS_TEST_TRANSPORT: shm or tcp
#   RMEMFS_BENCH_MODES, RMEMFS_BENCH_WORKS: some of them only; RMEMFS_BENCH_MIB: the files' size
set -euo pipefail

repetitions=${1:-5}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bin=${RMEMFS_BIN:-$root/build/release/bin}
transport=${RMEMFS_TEST_TRANSPORT:-shm}
read -r -a modes <<<"${RMEMFS_BENCH_MODES:-none shared exclusive}"
all="cp-in cp-out dd-4k-in dd-4k-out dd-1M-in dd-1M-out randread randwrite git-clone git-status build"
read -r -a works <<<"${RMEMFS_BENCH_WORKS:-$all}"
file_mib=${RMEMFS_BENCH_MIB:-256}
work=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-cache.XXXXXX")
memory=$(mktemp -d /dev/shm/rmemfs-cache.XXXXXX)
mnt=$work/mnt
server_pid=''

cleanup() {
	! mountpoint -q "$mnt" || umount "$mnt"
	if [ -n "$server_pid" ] && kill "$server_pid" 2>/dev/null; then wait "$server_pid" || :; fi
	rm -rf "$work" "$memory"
}
trap cleanup EXIT

# ---- places --------------------------------------------------------------------------------------

start_server() {
	local listen=("shm:$work/socket") line
	[ "$transport" = shm ] || listen=("$transport:127.0.0.1:17470")
	mkdir "$mnt"
	mkfifo "$work/log"
	exec 9<>"$work/log"
	"$bin/rmemfs-server" -c /dev/null --memory-dir "$memory/store" --export default:1GiB \
		--listen "${listen[0]}" 2>&9 9>&- &
	server_pid=$!
	until read -t 20 -r line <&9 && [[ $line == *ready* ]]; do
		kill -0 "$server_pid" || return 1
	done
}

# enter PLACE: makes $place an empty folder there.
enter() {
	if [ "$1" = tmpfs ]; then
		place=$memory/tmpfs
	else
		place=$mnt/$1
		if [ "$transport" = shm ]; then
			"$bin/rmemfs" -c /dev/null -o "transport=shm,cache=$1,log_level=warning" "$work/socket:/default" "$mnt"
		else
			"$bin/rmemfs" -c /dev/null -o "transport=$transport,port=17470,cache=$1,log_level=warning" \
				127.0.0.1:/default "$mnt"
		fi
	fi
	mkdir "$place"
}

# A mount's daemon gives the export back a moment after umount: the next mount waits for it.
leave() {
	rm -rf "$place"
	[ "$1" = tmpfs ] || umount "$mnt"
}

# Drops what the kernel has cached of a file, so that it is read from where it is.
uncache() {
	[ "$place" = "$memory/tmpfs" ] || "$bin/fsop" uncache "$place"
}

# ---- works: what is to be ready before one, and the work itself ------------------------------------

prepare() {
	case $1 in
	cp-out | dd-4k-out | dd-1M-out)
		cp "$memory/source" "$place/a"
		uncache
		;;
	randread | randwrite)
		[ -e "$place/r" ] || head -c 64M "$memory/source" >"$place/r"
		uncache
		;;
	git-status)
		[ -d "$place/clone" ] || git clone -q "$memory/repository" "$place/clone"
		;;
	build)
		mkdir "$place/build"
		cp -r "$root/common" "$place/build/"
		;;
	*) rm -f "$place/a" ;;
	esac
}

random_io() {
	fio --name=a --filename="$place/r" --size=64M --rw="$1" --bs=4k --ioengine=psync --io_size=64M \
		--end_fsync=1 --randseed=1 --output=/dev/null
}

build_here() (
	cd "$place/build"
	for source in common/[a-l]*.c; do
		cc -O2 -g -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DRMEMFS_VERSION='"0"' \
			-DRMEMFS_SYSCONFDIR='"/etc"' -I. -c "$source" -o "${source%.c}.o"
	done
	ar rcs libcommon.a common/*.o
)

run_work() {
	case $1 in
	cp-in) cp "$memory/source" "$place/a" ;;
	cp-out) cp "$place/a" "$memory/sink" ;;
	dd-4k-in) dd if="$memory/source" of="$place/a" bs=4k status=none ;;
	dd-4k-out) dd if="$place/a" of=/dev/null bs=4k status=none ;;
	dd-1M-in) dd if="$memory/source" of="$place/a" bs=1M status=none ;;
	dd-1M-out) dd if="$place/a" of=/dev/null bs=1M status=none ;;
	randread | randwrite) random_io "$1" ;;
	git-clone)
		rm -rf "$place/clone"
		git clone -q "$memory/repository" "$place/clone"
		;;
	git-status) git -C "$place/clone" status --short >/dev/null ;;
	build) build_here ;;
	esac
}

measure() {
	local begin end
	prepare "$1"
	begin=$EPOCHREALTIME
	run_work "$1"
	end=$EPOCHREALTIME
	awk -v b="$begin" -v e="$end" 'BEGIN {printf "%.4f\n", e - b}'
}

# ---- the run -------------------------------------------------------------------------------------

median() {
	sort -n "$1" | awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'
}

one_round() {
	local where what
	for where in tmpfs "${modes[@]}"; do
		enter "$where"
		for what in "${works[@]}"; do
			measure "$what" >>"$work/$where.$what"
		done
		leave "$where"
	done
}

print_table() {
	local where what base time
	printf '%-11s %8s' "$transport" tmpfs
	printf ' %15s' "${modes[@]}"
	echo
	for what in "${works[@]}"; do
		base=$(median "$work/tmpfs.$what")
		printf '%-11s %8.3f' "$what" "$base"
		for where in "${modes[@]}"; do
			time=$(median "$work/$where.$what")
			awk -v t="$time" -v b="$base" 'BEGIN {printf " %7.3f x %5.2f", t, t / b}'
		done
		echo
	done
}

start_server
dd if=/dev/urandom of="$memory/source" bs=1M count="$file_mib" status=none
git clone -q --bare "$root" "$memory/repository"
for ((i = 0; i < repetitions; i++)); do
	one_round
done
print_table
