#!/usr/bin/env bats
# report.bats - the benchmark's arithmetic, on invented measurements: a missed target is reported as
# missed.

setup() {
	here=$(cd "$(dirname "$BATS_TEST_FILENAME")" && pwd)
	dir=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-test.XXXXXX")
	targets=$dir/targets
	echo "fast | median | w | ours | w | theirs | least | 1.5 | 2" >"$targets"
}

teardown() {
	rm -rf "$dir"
}

# measured PLACE VALUE...: of the work w
measured() {
	local place=$1 rep=0 value
	shift
	for value in "$@"; do
		echo "w,$place,,$((++rep)),$value,op/s" >>"$dir/raw.csv"
	done
}

verdict() {
	"$here/report.sh" "$dir" "$targets" 2>/dev/null
}

@test "a ratio below the bound is not met" {
	measured ours 149 149 149
	measured theirs 100 100 100
	verdict | grep '^not met  *1.49 '
}

@test "a ratio at the bound is met, one at the aim is that" {
	measured ours 150
	measured theirs 100
	verdict | grep '^met  *1.50 '
	measured ours 400 200
	verdict | grep '^aim reached  *2.00 '
}

@test "outliers don't move a median, and numbers aren't sorted as text" {
	measured ours 9 1000 150 149 151
	measured theirs 100 99 101 8 20000
	verdict | grep '^met  *1.50 '
	measured ours 10 10 10 10 10 10
	verdict | grep '^not met  *0.10 '
}

@test "of an even number the median lies between the middle two" {
	measured ours 100 200
	measured theirs 100 100
	verdict | grep '^met  *1.50 '
	grep -x 'w,,ours,op/s,2,150,100,200,100 200' "$dir/summary.csv"
}

@test "the best of all is compared where the target says so" {
	echo "fast | best | w | ours | w | theirs | least | 1.5 | 2" >"$targets"
	measured ours 1 1 160
	measured theirs 100 100 1
	verdict | grep '^met  *1.60 '
}

@test "a cost above its bound is not met" {
	echo "cheap | median | w | ours | w | theirs | most | 1.3 | 1" >"$targets"
	measured ours 131
	measured theirs 100
	verdict | grep '^not met  *1.31 '
	: >"$dir/raw.csv"
	measured ours 130
	measured theirs 100
	verdict | grep '^met  *1.30 '
}

@test "what was not measured is not called met" {
	measured ours 1000
	verdict | grep '^not measured '
	measured theirs 0
	verdict | grep '^not measured '
}

@test "points of a series are told apart" {
	echo "grown | median | w@1000 | ours | w@10 | ours | least | 0.5 | 1" >"$targets"
	echo "w,ours,10,1,100,op/s" >"$dir/raw.csv"
	echo "w,ours,1000,1,49,op/s" >>"$dir/raw.csv"
	verdict | grep '^not met  *0.49 '
}

@test "a target that can't be read is an error" {
	measured ours 1
	echo "fast | mean | w | ours | w | theirs | least | 1.5 | 2" >"$targets"
	run verdict
	[ "$status" -ne 0 ]
	echo "fast | median | w" >"$targets"
	run verdict
	[ "$status" -ne 0 ]
}

@test "tables, JSON and plots have what was measured" {
	measured ours 2500 2600
	cat >>"$dir/raw.csv" <<-END
		threads-randread-4k,ours,2,1,1000,op/s
		threads-randread-4k,ours,4,1,1500,op/s
		read-64k-d4,ours,,1,3e9,B/s
		read-1M-d4,ours,,1,5e9,B/s
		randread-4k-p50,ours,4,1,20,us
	END
	verdict
	grep -F '| w | 2550 op/s (2500 op/s to 2600 op/s) |' "$dir/report.md"
	[ "$(jq -c '.[] | select(.work == "w") | [.n, .median, .min, .max]' "$dir/results.json")" = '[2,2550,2500,2600]' ]
	grep -q '<svg' "$dir/threads.svg"
	[ "$(head -c 4 "$dir/blocksize-read.png" | tail -c 3)" = PNG ]
	[ ! -e "$dir/latency-p50.svg" ] # one point is no series
	[ ! -e "$dir/clients.svg" ]
}
