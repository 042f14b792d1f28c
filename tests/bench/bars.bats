#!/usr/bin/env bats
# bars.bats - the plots of ratios: they are made from sample measurements, and kept plots show the
# data beside them.

setup() {
	here=$(cd "$(dirname "$BATS_TEST_FILENAME")" && pwd)
	dir=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-test.XXXXXX")
	mkdir "$dir/results"
	echo "A machine, 2026-01-02." >"$dir/results/caption.txt"
}

teardown() {
	rm -rf "$dir"
}

# measured WORK PLACE VALUE...
measured() {
	local work=$1 place=$2 rep=0 value
	shift 2
	for value in "$@"; do
		echo "$work,$place,,$((++rep)),$value,op/s" >>"$dir/results/raw.csv"
	done
}

make_plots() {
	"$here/summary.sh" "$dir/results" >"$dir/results/summary.csv"
	"$here/bars.sh" data "$dir/results" "$dir/plots"
	"$here/bars.sh" draw "$dir/plots"
}

# shows SVG TEXT
shows() {
	grep -qF ">$2<" <(sed -E 's/<tspan[^>]*>|<\/tspan>//g; s/\xc2\xa0/ /g; s/> */>/g; s/ *</</g' "$1") || {
		echo "${1##*/} does not show '$2'"
		return 1
	}
}

@test "ratios are medians over the yardstick's median, with the lowest and the highest" {
	measured unlink tmpfs 100 90 110
	measured unlink shm 150 120 200
	make_plots
	grep -x 'unlink,1.5 1.2 2,-,-' "$dir/plots/native-names.csv"
	[ ! -e "$dir/plots/native-blocks.csv" ]
	shows "$dir/plots/native-names.svg" 1.5
}

@test "a work is left out where the yardstick was not measured" {
	measured unlink tmpfs 100
	measured unlink shm 150
	measured stat-warm shm 150
	make_plots
	[ "$(grep -c stat "$dir/plots/native-names.csv")" -eq 0 ]
}

@test "places, works, machine and day are named" {
	measured randread-4k-d1 nfs-rdma 100
	measured randread-4k-d1 verbs 250
	measured randread-4k-d16 nfs-rdma 100
	measured randread-4k-d16 tcp 20
	make_plots
	for text in "rmemfs over verbs" "rmemfs over tcp" "read 4 KiB" "depth 16" 2.5 0.2 "A machine, 2026-01-02."; do
		shows "$dir/plots/guest-blocks.svg" "$text"
	done
	run shows "$dir/plots/guest-blocks.svg" "NFS over TCP"
	[ "$status" -ne 0 ]
}

@test "data that can't be read is an error" {
	mkdir "$dir/plots"
	printf '%s\n' work,a,b one,1.5,2 two,1 >"$dir/plots/bad.csv"
	run "$here/bars.sh" draw "$dir/plots"
	[ "$status" -ne 0 ]
	printf '%s\n' work,a one,fast >"$dir/plots/bad.csv"
	run "$here/bars.sh" draw "$dir/plots"
	[ "$status" -ne 0 ]
	printf '%s\n' work,a one,- >"$dir/plots/bad.csv"
	run "$here/bars.sh" draw "$dir/plots"
	[ "$status" -ne 0 ]
}

@test "the plots that are kept show the data beside them" {
	local data line value drawn=0
	for data in "$here"/plots/*.csv; do
		while IFS= read -r line; do
			shows "${data%.csv}.svg" "$line"
		done < <(sed -nE 's/^# (title|caption|ylabel): //p' "$data")
		while read -r value; do
			shows "${data%.csv}.svg" "$value"
			drawn=$((drawn + 1))
		done < <(grep -v '^#' "$data" | sed 1d | cut -d, -f2- | tr , '\n' | sed 's/ .*//' | grep -v '^-$')
	done
	[ $drawn -ge 20 ]
}
