#!/bin/bash
# cache.sh - measures each cache mode: copies, dd, random I/O through the page cache, git and a C
# build. They run on a mount in every mode and on a tmpfs, interleaved, so that the machine's other
# load falls on all alike. Prints medians in seconds, and their ratios to the tmpfs.
#
# usage: cache.sh [REPETITIONS]
#   RMEMFS_BIN: where the programs are; RMEMFS_TEST_TRANSPORT: shm or tcp
#   RMEMFS_BENCH_MODES, RMEMFS_BENCH_WORKS: some of them only; RMEMFS_BENCH_MIB: the files' size
# shellcheck disable=SC2034,SC2154 # what bench.bash shares
set -euo pipefail

# shellcheck source=tests/bench/bench.bash
. "$(dirname "${BASH_SOURCE[0]}")/bench.bash"

repetitions=${1:-5}
transport=${RMEMFS_TEST_TRANSPORT:-shm}
read -r -a modes <<<"${RMEMFS_BENCH_MODES:-none shared exclusive}"
all="cp-in cp-out dd-4k-in dd-4k-out dd-1M-in dd-1M-out randread randwrite git-clone git-status build"
read -r -a works <<<"${RMEMFS_BENCH_WORKS:-$all}"
file_mib=${RMEMFS_BENCH_MIB:-256}
rdma_device=''

# ---- works: what is to be ready before one, and the work itself ------------------------------------

# So that files are read from the place itself.
drop_cached() {
	[ "$1" = tmpfs ] || "$bin/fsop" uncache "$at"
}

prepare() {
	case $2 in
	cp-out | dd-4k-out | dd-1M-out)
		cp "$memory/source" "$at/a"
		drop_cached "$1"
		;;
	randread | randwrite)
		[ -e "$at/r" ] || head -c 64M "$memory/source" >"$at/r"
		drop_cached "$1"
		;;
	git-status) [ -d "$at/clone" ] || git clone -q "$memory/repository" "$at/clone" ;;
	git-clone) rm -rf "$at/clone" ;;
	build)
		rm -rf "$at/build"
		mkdir "$at/build"
		cp -r "$bench_root/common" "$at/build/"
		;;
	*) rm -f "$at/a" ;;
	esac
}

random_io() {
	fio --name=a --filename="$at/r" --size=64M --rw="$1" --bs=4k --ioengine=psync --io_size=64M \
		--end_fsync=1 --randseed=1 --output=/dev/null
}

build_here() (
	cd "$at/build" || exit
	for source in common/[a-l]*.c; do
		cc -O2 -g -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DRMEMFS_VERSION='"0"' \
			-DRMEMFS_SYSCONFDIR='"/etc"' -I. -c "$source" -o "${source%.c}.o" || exit
	done
	ar rcs libcommon.a common/*.o
)

run_work() {
	case $1 in
	cp-in) cp "$memory/source" "$at/a" ;;
	cp-out) cp "$at/a" "$memory/sink" ;;
	dd-4k-in) dd if="$memory/source" of="$at/a" bs=4k status=none ;;
	dd-4k-out) dd if="$at/a" of=/dev/null bs=4k status=none ;;
	dd-1M-in) dd if="$memory/source" of="$at/a" bs=1M status=none ;;
	dd-1M-out) dd if="$at/a" of=/dev/null bs=1M status=none ;;
	randread | randwrite) random_io "$1" ;;
	git-clone) git clone -q "$memory/repository" "$at/clone" ;;
	git-status) git -C "$at/clone" status --short >/dev/null ;;
	build) build_here ;;
	esac
}

# ---- the run -------------------------------------------------------------------------------------

one_round() {
	local where what
	for where in tmpfs "${modes[@]}"; do
		[ "$where" = tmpfs ] || rmem_mount "$where" "$transport" "$where" "cache=$where"
		at=${folder[$where]}
		for what in "${works[@]}"; do
			prepare "$where" "$what"
			timed run_work "$what"
			record "$what" "$where" "$seconds" s
		done
		rm -rf "${at:?}"/*
		[ "$where" = tmpfs ] || rmem_umount "$where"
	done
}

print_table() {
	awk -F, -v transport="$transport" -v modes="${modes[*]}" -v works="${works[*]}" '
		{ median[$1, $3] = $6 }
		END {
			nm = split(modes, mode, " ")
			nw = split(works, work, " ")
			printf "%-11s %8s", transport, "tmpfs"
			for (m = 1; m <= nm; m++) printf " %15s", mode[m]
			print ""
			for (w = 1; w <= nw; w++) {
				base = median[work[w], "tmpfs"]
				printf "%-11s %8.3f", work[w], base
				for (m = 1; m <= nm; m++)
					printf " %7.3f x %5.2f", median[work[w], mode[m]], median[work[w], mode[m]] / base
				print ""
			}
		}' "$results/summary.csv"
}

exports=()
for mode in "${modes[@]}"; do
	exports+=("$mode:$((file_mib * 2 + 256))MiB")
done
mkdir -p "$bench_root/build/bench-cache"
rm -f "$bench_root/build/bench-cache/raw.csv"
bench_begin "$bench_root/build/bench-cache"
server_start 127.0.0.1 "${exports[@]}"
tmpfs_place $((file_mib * 2 + 256))m
dd if=/dev/urandom of="$memory/source" bs=1M count="$file_mib" status=none
git clone -q --bare "$bench_root" "$memory/repository"
for ((rep = 1; rep <= repetitions; rep++)); do
	one_round
done
"$bench_here/summary.sh" "$results" >"$results/summary.csv"
print_table
