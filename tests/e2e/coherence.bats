#!/usr/bin/env bats
# coherence.bats - several mounts of one export do random writes and reads (-o share), with and
# without failures. `coherence` (see ../stress) looks for an order in which the operations can have
# happened.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts

nightly() {
	[ "${RMEMFS_TEST_NIGHTLY:-0}" = 1 ]
}

setup() {
	# A test that takes longer than this hangs.
	if nightly; then test_seconds=1500; else test_seconds=300; fi
	setup_rmem
	mounts=()
}

teardown() {
	end_mounts
}

# seconds USUAL: prints a duration: shorter on small machines, which may be emulated, and longer at
# night. Over every transport three mounts play for half a minute in all, the test that kills the
# server included.
seconds() {
	if nightly; then
		echo $((30 * $1))
	elif small; then
		echo $(($1 * 3 / 4))
	else
		echo "$1"
	fi
}

@test "coherence of three mounts" {
	begin 1 2 3
	coherence --seconds "$(seconds 20)" "$dir/1" "$dir/2" "$dir/3"
	nobody_was_late
}

# bats test_tags=nightly
@test "coherence of three mounts, two players each" {
	begin 1 2 3
	coherence --seconds "$(seconds 12)" --players 2 "$dir/1" "$dir/2" "$dir/3"
	nobody_was_late
}

@test "coherence of three mounts, while the server is killed" {
	local tester i
	begin 1 2 3
	coherence --seconds 15 "$dir/1" "$dir/2" "$dir/3" >"$dir/coherence.log" 2>&1 3>&- &
	tester=$!
	for i in 1 2 3; do
		sleep 3
		crash_server
	done
	wait $tester
}

cut_all() {
	ss -K dst 127.0.0.1 dport = ":$port" >"$dir/cut.log" 2>&1
	grep -q ESTAB "$dir/cut.log"
}

# All mounts reconnect long before the server gives up a session, so none loses anything.
# bats test_tags=only:tcp
@test "coherence of three mounts, while connections are cut" {
	local tester n i
	begin 1 2 3
	coherence --seconds 15 "$dir/1" "$dir/2" "$dir/3" >"$dir/coherence.log" 2>&1 3>&- &
	tester=$!
	for i in {1..8}; do
		sleep 1.5
		until_true 10 cut_all
	done
	wait $tester
	# A mount that is slow to reconnect may see several cuts as one.
	for n in 1 2 3; do
		[ "$(grep -c 'connection lost' "$dir/mount.$n.log")" -ge 4 ]
	done
	no_log_says 'session lost'
}

# disturb MOUNT: takes leases on the other mounts' files, and writes a file of its own.
disturb() {
	local i
	set +e # the files come and go
	for ((i = 0; ; i++)); do
		cat "$dir/$1"/coherence.*/{data,log,conf}*
		ls -lR "$dir/$1"
		printf '%s\n' "$i" >>"$dir/$1/own"
		touch -a "$dir/$1"/coherence.*/data0
	done >/dev/null 2>&1
}

# bats test_tags=nightly
@test "one of three mounts is killed, and the other two go on" {
	local tester disturber pid
	use_lease 2
	begin 1 2 3
	random_file "$dir/kept" 2
	cp "$dir/kept" "$dir/3/kept"
	coherence --seconds 15 --timeout 60 "$dir/1" "$dir/2" >"$dir/coherence.log" 2>&1 3>&- &
	tester=$!
	disturb 3 3>&- &
	disturber=$!
	sleep 5
	pid=${mounts[3]}
	unset 'mounts[3]'
	kill -KILL "$pid"
	exit_status "$pid" 20 || [ $? -eq 137 ]
	kill "$disturber"
	wait "$disturber" || true
	until_true 10 umount "$dir/3"
	wait $tester
	cmp "$dir/1/kept" "$dir/kept"
	cmp "$dir/2/kept" "$dir/kept"
	share 3
	cmp "$dir/3/kept" "$dir/kept"
	echo after >"$dir/3/own"
	[ "$(cat "$dir/1/own")" = after ]
}
