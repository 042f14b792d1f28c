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

# stage WORD: who plays from the next round on: ../stress/stage.h.
stage() {
	echo "$1" >"$dir/stage"
	until_true 120 stage_is "$1"
}

stage_is() {
	[ "$(cat "$dir/stage.now")" = "$1" ] || ! alive "$tester"
}

# converted CYCLES [OPTIONS]: two players by mount 1 play while mount 2 comes, play on beside its two, and while it
# goes. They rest before mount 1 is alone again, since it is not while a file is mapped.
converted() {
	conversions "$1" "${2:-}" rest
}

# converted_under_load CYCLES [OPTIONS]: the same without mappings, and without a rest.
converted_under_load() {
	needs_linux_6_9 "before, it is not alone again while a file is open"
	conversions "$1" "${2:-}" first --unmapped
}

# conversions CYCLES OPTIONS WORD [ARGUMENT]...
conversions() {
	local tester i
	use_lease 1
	start_server
	come 1 "$2"
	mkdir "$dir/2"
	echo first >"$dir/stage"
	: >"$dir/stage.now"
	coherence --seconds 1500 --players 2 --stage "$dir/stage" "${@:4}" "$dir/1" "$dir/2" >"$dir/coherence.log" 2>&1 3>&- &
	tester=$!
	stage first
	for ((i = 0; i < $1; i++)); do
		sleep 1
		is_alone 1
		come 2 "$2"
		is_sharing 1
		stage all
		sleep 2
		stage first
		end_mount 2
		stage "$3"
		until_true 60 is_alone 1
		stage first
	done
	stage end
	wait $tester || die "$(cat "$dir/coherence.log")"
	[ "$(grep -c 'goes by leases from now on' "$dir/server.log")" -eq "$1" ]
	grep -q 'consistent' "$dir/coherence.log"
	nobody_was_late
}

@test "coherence of a mount that shares when another one comes, and is alone again" {
	converted 1 ,names=local
}

@test "coherence of a mount that shares and is alone again, under load" {
	converted_under_load 2
}

# bats test_tags=nightly
@test "coherence of a mount that shares and is alone again under load, many times" {
	converted_under_load 8
}

# bats test_tags=nightly
@test "coherence of a mount with names=local that shares and is alone again under load" {
	converted_under_load 4 ,names=local
}

# bats test_tags=nightly
@test "coherence of a mount that shares and is alone again, many times" {
	converted 8
}

# bats test_tags=nightly
@test "coherence of a mount with names=local that shares and is alone again, many times" {
	converted 8 ,names=local
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
