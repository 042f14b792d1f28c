#!/bin/bash
# pairs.sh [--pairs N] [--works PATTERN] [--protect] [--beside] OLD NEW shm|tcp - is this build as fast as the one
# before?
# OLD and NEW are folders of programs. Three mounts work in turn, each at a server of its own: OLD, OLD
# once more, and NEW. Prints for each work the median of the ratios of time NEW/OLD, with its 95 %
# interval, and of OLD/OLD beside it: what the machine itself adds. Lines with "cpu" are the CPU time of
# the daemon, and with "cpu-server" of the server. Goes on until all intervals lie within 3 % of their median, or for N pairs (41). PATTERN
# is a regular expression that chooses works, such as "1048576|names". RMEMFS_BENCH_OPTIONS adds mount
# options to all mounts. With --protect NEW's mount has a key, over tcp: what does that cost? With
# --beside an idle mount of its export is beside NEW's: what does it cost to share?
# shellcheck disable=SC2154 # what bench.bash sets
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
pairs=41 pattern=. protect='' beside=''
while [ $# -gt 3 ]; do
	case $1 in
	--pairs) pairs=${2:?} ;;
	--works) pattern=${2:?} ;;
	--protect)
		protect=yes
		shift
		continue
		;;
	--beside)
		beside=yes
		shift
		continue
		;;
	*) break ;;
	esac
	shift 2
done
[ $# -eq 3 ] || {
	echo "usage: pairs.sh [--pairs N] [--works PATTERN] [--protect] [--beside] OLD NEW shm|tcp" >&2
	exit 2
}
old=$(realpath "$1") new=$(realpath "$2") transport=$3
export RMEMFS_BIN=$new
# shellcheck source=tests/bench/bench.bash
. "$here/bench.bash"

file_mib=128 files=1000
works=("read 4096 1 4000" "read 4096 16 12000" "write 4096 1 4000" "write 4096 16 12000"
	"read 1048576 1 200" "read 1048576 4 300" "write 1048576 1 200" "write 1048576 4 300" names)
readarray -t works < <(printf '%s\n' "${works[@]}" | grep -E -e "$pattern")
[ ${#works[@]} -gt 0 ] || bench_die "no work matches '$pattern'"
declare -A program server_of mount_of source_of

served() {
	grep -qs ready "$work/$1.server.log"
}

# mount_at PLACE FOLDER PROGRAMS OPTIONS: the export of the place.
mount_at() {
	mkdir -p "$work/$2"
	"$3/rmemfs" -f -c /dev/null -o "$4" "${source_of[$1]}" "$work/$2" 2>"$work/$2.log" &
	daemon[$2]=$!
	later leave "$work/$2" "${daemon[$2]}"
	until_true 30 mountpoint -q "$work/$2" || bench_die "$(cat "$work/$2.log")"
}

# begin PLACE PROGRAMS [yes [yes]]: a server and a mount. yes: all bytes are protected; another mount is beside it.
begin() {
	local place=$1 options=transport=shm
	program[$place]=$2 mount_of[$place]=$work/$place
	mkdir "$work/$place" "$memory/$place"
	local listen=(--listen "shm:$work/$place.sock")
	source_of[$place]=$work/$place.sock:/pairs
	if [ "$transport" = tcp ]; then
		local port=$((27000 + RANDOM % 4000))
		listen+=(--listen "tcp:127.0.0.1:$port")
		options=transport=tcp,port=$port
		if [ -n "${3:-}" ]; then
			"$2/rmemfsctl" keygen pairs "$work/key" 2>/dev/null
			listen+=(--key "$work/key")
			options+=,key=$work/key
		elif "$2/rmemfs-server" --help | grep -q -- --insecure; then
			listen+=(--insecure) # A build from before there were keys lets anybody in.
		fi
		source_of[$place]=127.0.0.1:/pairs
	fi
	"$2/rmemfs-server" -c /dev/null --memory-dir "$memory/$place/memory" --export pairs:512MiB "${listen[@]}" \
		2>"$work/$place.server.log" &
	server_of[$place]=$!
	later stop "${server_of[$place]}"
	until_true 20 served "$place" || bench_die "$(cat "$work/$place.server.log")"
	options+=${RMEMFS_BENCH_OPTIONS:+,$RMEMFS_BENCH_OPTIONS}
	mount_at "$place" "$place" "$2" "$options"
	[ -z "${4:-}" ] || mount_at "$place" beside "$2" "$options"
	head -c $((file_mib << 20)) /dev/urandom >"$work/$place/file"
	mkdir "$work/$place/names"
}

# Nanoseconds of all its threads, ever. (%d ends at 2^31 in some versions of awk.)
cpu_of() {
	cat /proc/"$1"/task/*/schedstat | awk '{ ns += $1 } END { printf "%.0f\n", ns }'
}

# measure PLACE WORK...: "NAME SECONDS" lines, and the CPU that daemon and server took.
measure() {
	local place=$1 name=${*:2} before before_server at
	at=${mount_of[$place]}
	before=$(cpu_of "${daemon[$place]}") before_server=$(cpu_of "${server_of[$place]}")
	name=${name% *}
	if [ "$2" = names ]; then
		"${program[$place]}/mdbench" "$at/names" "$files" 4096 | awk '{ print "names-" $1, $3 }'
	else
		echo "${name// /-} $("$new/blocks" "$at/file" "$2" "$3" "$4" "$5")"
	fi
	echo "cpu-${name// /-} $(($(cpu_of "${daemon[$place]}") - before))"
	echo "cpu-server-${name// /-} $(($(cpu_of "${server_of[$place]}") - before_server))"
}

# report: "NAME kind median low high" of each series; 1 if some interval is still wide. The interval is
# that of order statistics: no assumption about the distribution.
report() {
	sort -k1,2 -k3n "$work/ratios" | awk '
		function flush() {
			if (!n) return
			half = 0.98 * sqrt(n)
			low = int(n / 2 - half); high = int(n / 2 + 1 + half) + 1
			if (low < 1) low = 1
			if (high > n) high = n
			median = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
			if (v[high] > median * 1.03 || v[low] < median * 0.97) wide = 1
			text[name] = text[name] sprintf("   %s %.3f [%.3f %.3f]", kind, median, v[low], v[high])
			if (!(name in seen)) { seen[name] = 1; order[++names] = name }
		}
		{ if ($1 != name || $2 != kind) { flush(); n = 0; name = $1; kind = $2 } v[++n] = $3 }
		END { flush(); for (i = 1; i <= names; i++) printf "%-34s%s\n", order[i], text[order[i]]; exit wide }'
}

bench_begin "${TMPDIR:-/tmp}"
begin old "$old"
begin again "$old"
begin new "$new" "$protect" "$beside"
: >"$work/ratios"
for ((pair = 1; pair <= pairs; pair++)); do
	for one in "${works[@]}"; do
		for place in $(shuf -e old again new); do
			# shellcheck disable=SC2086 # its words
			measure "$place" $one >"$work/$place.took"
		done
		for place in old again new; do
			mv "$work/$place.took" "$work/$place.last"
		done
		join <(sort "$work/old.last") <(sort "$work/again.last") | join - <(sort "$work/new.last") |
			awk '$2 > 0 { print $1, "new/old", $4 / $2; print $1, "old/old", $3 / $2 }' >>"$work/ratios"
	done
	if [ $pair -ge 5 ] && report >/dev/null; then
		break
	fi
done
echo "$transport, $((pair > pairs ? pairs : pair)) pairs: time, and CPU of daemon and server; below 1 the new build is faster"
report || true
