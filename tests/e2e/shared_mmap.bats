#!/usr/bin/env bats
# shared_mmap.bats - mapped files of an export that several mounts write (-o share): bytes that one mount
# stores, writes or cuts off are in the others' mappings at once.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts

setup() {
	setup_rmem
	mounts=()
}

teardown() {
	end_mounts
}

# Sets maps_shared: can the kernel map shared what bypasses its cache? Any failure but ENODEV fails the
# test. (Not for `if`: there the shell would go on.)
probe_maps() {
	maps_shared=yes
	timeout 60 twin_maps stored-is-read "$dir/1/probe" "$dir/2/probe" 2>"$dir/probe.log" ||
		maps_shared=no
	[ $maps_shared = yes ] || grep -q ENODEV "$dir/probe.log" || die "$(cat "$dir/probe.log")"
}

need_maps() {
	probe_maps
	[ $maps_shared = yes ] || skip "MAP_SHARED needs Linux 6.9"
}

# twins CHECK [SECONDS]: runs the check on two mounts.
twins() {
	local check=$1
	shift
	begin 1 2
	need_maps
	timeout 120 twin_maps "$check" "$dir/1/file" "$dir/2/file" "$@"
}

@test "what one stores, the other reads at once, and the file is newer" {
	twins stored-is-read
}

@test "two mappings of two mounts, stored into in turn" {
	twins in-turn
}

@test "who reads by a shared mapping sees what was written elsewhere before" {
	twins shared-beside-a-writer "$(mib 10 3)"
}

@test "who reads by a shared mapping sees what was stored elsewhere before" {
	twins shared-beside-stores "$(mib 10 3)"
}

@test "who reads by a private mapping sees what was written elsewhere before" {
	begin 1 2
	timeout 120 twin_maps private-beside-a-writer "$dir/1/file" "$dir/2/file" "$(mib 10 3)"
}

@test "mappings of two mounts count together, under a lock" {
	twins count-by-locks "$(mib 5 2)"
}

@test "mappings of two mounts count together, by atomic instructions alone" {
	twins count-by-atomics "$(mib 5 2)"
}

@test "many who wait for what the other uses don't keep from it what it waits for" {
	start_server
	mount_number 1 ,share,io_threads=1,buffers=2
	mount_number 2 ,share,io_threads=1,buffers=2
	need_maps
	timeout 120 twin_maps crossed "$dir/1/file" "$dir/2/file" "$(mib 6 3)"
	run grep "session lost" "$dir"/mount.?.log
	[ "$status" -eq 1 ]
}

@test "many who fault on what the other stores don't keep from it what it waits for" {
	start_server
	mount_number 1 ,share,io_threads=1,buffers=2
	mount_number 2 ,share,io_threads=1,buffers=2
	need_maps
	timeout 120 twin_maps crossed-faults "$dir/1/file" "$dir/2/file" "$(mib 5 2)"
	run grep "session lost" "$dir"/mount.?.log
	[ "$status" -eq 1 ]
}

# moves_ends CHECK [SECONDS]: the end moves, by both mounts, while the first one stores into its page.
moves_ends() {
	begin 1 2
	need_maps
	timeout 120 ends "$1" "$dir/1/file" "$dir/2/file" "${2:-$(mib 5 3)}"
}

@test "what is stored where the file ends, and what makes it longer or shorter, undo nothing" {
	moves_ends beside-none
}

@test "the same while a handle that appends is open" {
	moves_ends beside-a-handle-that-appends
}

@test "the same while another program stores into all pages all the time" {
	moves_ends beside-one-that-stores
}

@test "who appends to what is mapped here is where it ends, whatever the other appends" {
	begin 1 2
	timeout 120 twin_maps append-to-mapped "$dir/1/file" "$dir/2/file" "$(mib 6 3)"
}

@test "one cuts what the other has mapped, and lets it grow" {
	twins cut-by-the-other
}

@test "what is mapped, and the other has written, is as long as it is made" {
	twins grown-far
}

# inserts N: prints 100 transactions with this mount's rows; the file is mapped.
inserts() {
	local i
	for ((i = 1; i <= 100; i++)); do
		echo "INSERT INTO t VALUES ($1, $i);"
	done | sqlite3 -cmd '.timeout 60000' -cmd 'PRAGMA mmap_size=10000000;' "$dir/$1/db" >/dev/null
}

# Both mounts are on one machine: SQLite promises nothing for WAL on several machines.
@test "SQLite, mapped, two mounts, and its log ahead where the kernel maps what it shares" {
	local n other
	begin 1 2
	probe_maps
	if [ $maps_shared = yes ]; then
		[ "$(sqlite3 "$dir/1/db" 'PRAGMA journal_mode=WAL;')" = wal ]
	fi
	sqlite3 "$dir/1/db" 'CREATE TABLE t(who, n);'
	inserts 1 3>&- &
	other=$!
	inserts 2
	wait $other
	for n in 1 2; do
		[ "$(sqlite3 "$dir/$n/db" 'PRAGMA integrity_check;')" = ok ]
		[ "$(sqlite3 "$dir/$n/db" 'SELECT count(*), count(DISTINCT who || n) FROM t;')" = '200|200' ]
	done
}

@test "a program runs as what the other mount has made of it last" {
	local n what
	begin 1 2
	for what in true false true false; do
		n=$([ $what = true ] && echo 1 || echo 2)
		cat "/bin/$what" >"$dir/$n/program"
		chmod +x "$dir/$n/program"
		for n in 1 2; do
			[ "$("$dir/$n/program" && echo true || echo false)" = $what ]
		done
	done
}

# The kernel makes it empty by itself, whatever it was told before.
@test "a file that was made empty here is mapped to the end that others have given it" {
	local program
	begin 1 2
	need_maps
	head -c 20000 /dev/zero >"$dir/1/cut"
	mkfifo "$dir/go"
	fsop map-cut "$dir/1/cut" 9000 <"$dir/go" >"$dir/answers" 2>&1 3>&- &
	program=$!
	exec 5>"$dir/go"
	until_true 10 grep -q cut "$dir/answers"
	head -c 12000 /dev/zero | tr '\0' b >>"$dir/2/cut"
	echo map >&5
	exec 5>&-
	exit_status "$program" 20
	diff <(printf '%s\n' cut cb) "$dir/answers"
}
