#!/bin/bash
# plots.sh RESULTS - the series in RESULTS/summary.csv as SVG and PNG: one line per place, medians
# with their lowest and highest values.
set -euo pipefail

results=${1:?usage: plots.sh RESULTS}
data=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-plots.XXXXXX")
trap 'rm -rf "$data"' EXIT

# series PATTERN: files in $data, one per place: x median min max. A work matches by its whole name,
# with X, if it has one, behind an @. The pattern's only group is x. 4k and 1M are sizes.
series() {
	rm -f "$data"/*.dat
	awk -F, -v pattern="^$1\$" -v folder="$data" '
		NR > 1 {
			name = $1 ($2 == "" ? "" : "@" $2)
			if (!match(name, pattern)) next
			x = name
			sub(before(pattern), "", x)
			sub(after(pattern), "", x)
			if (x ~ /k$/) x = x * 2^10
			else if (x ~ /M$/) x = x * 2^20
			print x, $6, $7, $8 > (folder "/" $3 ".dat")
		}
		function before(p) { sub(/\(.*/, "", p); return p }
		function after(p) { sub(/.*\)/, "", p); return p }' "$results/summary.csv"
	for file in "$data"/*.dat; do
		[ ! -e "$file" ] || sort -g -o "$file" "$file"
	done
}

# plot NAME TITLE XLABEL YLABEL SCALE PATTERN: y is divided by SCALE.
plot() {
	local name=$1 title=$2 xlabel=$3 ylabel=$4 scale=$5 curves='' file place terminal
	series "$6"
	# One point is no series.
	[ "$(cat "$data"/*.dat 2>/dev/null | cut -d' ' -f1 | sort -u | wc -l)" -ge 2 ] || return 0
	for file in "$data"/*.dat; do
		place=$(basename "$file" .dat)
		curves+="${curves:+, }'$file' using 1:(\$2/$scale):(\$3/$scale):(\$4/$scale) with yerrorlines title '$place'"
	done
	for terminal in svg png; do
		gnuplot <<-END
			set terminal $terminal size 900,600
			set output '$results/$name.$terminal'
			set title '$title'
			set xlabel '$xlabel'
			set ylabel '$ylabel'
			set logscale x 2
			set yrange [0:*]
			set grid
			set key outside right
			set pointsize 0.6
			${7:-}
			plot $curves
		END
	done
}

sizes="set xtics ('4 KiB' 4096, '16 KiB' 16384, '64 KiB' 65536, '256 KiB' 262144, '1 MiB' 1048576)"
tens="set logscale x 10"
for rw in read write; do
	plot "blocksize-$rw" "$rw, depth 4, direct" "block size" "GB/s" 1e9 "$rw-([0-9]+[kM])-d4" "$sizes"
done
for p in 50 99 99.9; do
	plot "latency-p$p" "random read 4 KiB, direct: $p %" "depth" "us" 1 "randread-4k-p${p/./[.]}@([0-9]+)"
done
plot threads "random read 4 KiB, depth 1" "threads" "thousand operations a second" 1e3 \
	"threads-randread-4k@([0-9]+)"
plot files "lookup in one directory" "files" "thousand lookups a second" 1e3 "lookup@([0-9]+)" "$tens"
plot fragments "random read 4 KiB" "extents" "thousand operations a second" 1e3 \
	"fragments-randread-4k@([0-9]+)" "$tens"
plot clients "random read 4 KiB, all clients" "clients" "thousand operations a second" 1e3 \
	"clients-randread-4k@([0-9]+)"
for bs in 1M 128k; do
	plot "shared-read-$bs" "read $bs of one file, all mounts" "mounts that share" "operations a second" 1 \
		"shared-read-$bs@([0-9]+)"
done
for rw in read write; do
	plot "shared-$rw" "random $rw 4 KiB of one file, all mounts" "mounts that share" \
		"thousand operations a second" 1e3 "shared-rand$rw-4k@([0-9]+)"
done
plot shared-files "small files, all mounts, a folder each" "mounts that share" "files a second" 1 "shared-files@([0-9]+)"
plot shared-folder "small files, all mounts, one folder" "mounts that share" "files a second" 1 "shared-folder@([0-9]+)"
for rw in read write; do
	plot "merge-$rw" "$rw 1 MiB, depth 4, direct" "pages that may share a scatter/gather element" "GB/s" 1e9 \
		"merge_pages-$rw-1M-d4@([0-9]+)"
	plot "channels-$rw" "$rw 1 MiB, depth 4, direct" "I/O threads, each with a channel" "GB/s" 1e9 \
		"io_threads-$rw-1M-d4@([0-9]+)"
	plot "channels-rand$rw" "random $rw 4 KiB, depth 16, direct" "I/O threads, each with a channel" \
		"thousand operations a second" 1e3 "io_threads-rand$rw-4k-d16@([0-9]+)"
	plot "buffers-$rw" "$rw 1 MiB, depth 4, direct" "buffers of 1 MiB for each I/O thread" "GB/s" 1e9 \
		"buffers-$rw-1M-d4@([0-9]+)"
done
