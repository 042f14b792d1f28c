#!/bin/bash
# wire.sh - how much of the wire a file gets: 1 MiB direct I/O at depth 4 on a mount over verbs, against
# ib_read_bw and ib_write_bw on the same device, in interleaved pairs. Runs where an RDMA device is
# (in the guest: tests/vm/run.sh -- tests/bench/wire.sh). Prints every raw figure, medians and ratios.
#
# usage: wire.sh [PAIRS]     RMEMFS_BIN: where the programs are; RMEMFS_TEST_ADDRESS: the device's address
set -euo pipefail

pairs=${1:-5}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bin=${RMEMFS_BIN:-$root/build/release/bin}
address=${RMEMFS_TEST_ADDRESS:-10.9.0.1}
device=${RMEMFS_TEST_DEVICE:-rxe0}
file_mib=64
work=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-wire.XXXXXX")
memory=$(mktemp -d /dev/shm/rmemfs-wire.XXXXXX)
server_pid='' peer_pid=''

cleanup() {
	mountpoint -q "$work/mnt" && fusermount3 -u "$work/mnt"
	for pid in $peer_pid $server_pid; do
		if kill "$pid" 2> /dev/null; then wait "$pid" || :; fi
	done
	rm -rf "$work" "$memory"
}
trap cleanup EXIT

start() {
	mkdir "$work/mnt"
	mkfifo "$work/log"
	exec 9<> "$work/log"
	"$bin/rmemfs-server" -c /dev/null --memory-dir "$memory/store" --export "default:256MiB" \
		--listen "verbs:$address" 2>&9 9>&- &
	server_pid=$!
	until read -t 20 -r line <&9 && [[ $line == *ready* ]]; do
		echo "$line" >&2
		kill -0 "$server_pid" || return 1
	done
	"$bin/rmemfs" -o "transport=verbs" "$address:/default" "$work/mnt"
	dd if=/dev/zero of="$work/mnt/data" bs=1M count=$file_mib conv=fsync status=none
}

# wire read|write: MB/s (10^6) of perftest. Its server is ready when it listens on its TCP port.
wire() {
	local port=18515 tool="ib_${1}_bw" out
	"$tool" -d "$device" -s 1048576 -n 200 -p $port > /dev/null 2>&1 &
	peer_pid=$!
	until ss -Hltn "sport = :$port" | grep -q .; do
		kill -0 "$peer_pid" || { echo "wire.sh: $tool did not start" >&2; return 1; }
	done
	out=$("$tool" -d "$device" -s 1048576 -n 200 -p $port "$address")
	wait "$peer_pid"
	peer_pid=''
	# The table's fourth column is the average in MiB/s.
	awk '$1 == 1048576 {printf "%.1f\n", $4 * 1.048576}' <<< "$out"
}

# file read|write: MB/s (10^6) of fio on the mount.
file() {
	fio --name=wire --filename="$work/mnt/data" --size=${file_mib}M --rw="$1" --bs=1M --direct=1 \
		--ioengine=libaio --iodepth=4 --loops=3 --overwrite=1 --output-format=json \
		| jq ".jobs[0].$1.bw_bytes / 1e6 * 10 | round / 10"
}

median() {
	sort -n | awk '{v[NR] = $1} END {print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'
}

start
for dir in read write; do
	: > "$work/wire.$dir"
	: > "$work/file.$dir"
	for ((i = 0; i < pairs; i++)); do
		wire $dir >> "$work/wire.$dir"
		file $dir >> "$work/file.$dir"
	done
	w=$(median < "$work/wire.$dir")
	f=$(median < "$work/file.$dir")
	echo "$dir 1 MiB depth 4: wire MB/s: $(paste -sd' ' "$work/wire.$dir"); file MB/s: $(paste -sd' ' "$work/file.$dir")"
	awk -v d=$dir -v w="$w" -v f="$f" 'BEGIN {printf "%s: medians wire %.1f file %.1f MB/s, ratio %.2f\n", d, w, f, f / w}'
done
