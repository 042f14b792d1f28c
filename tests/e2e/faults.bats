#!/usr/bin/env bats
# faults.bats - the server dies, connections are cut, the daemon is killed: no promise is broken.

load helpers

setup() {
	setup_rmem
	start_server
	mount_rmem
}

teardown() {
	teardown_rmem
}

# written PID: prints the bytes that the process has passed to write(2).
written() {
	awk '$1 == "wchar:" { print $2 }' "/proc/$1/io"
}

has_written() {
	! alive "$1" || [ "$(written "$1")" -ge "$2" ]
}

# copy_in_background SOURCE TARGET: starts a copy as $copy, waits until half is written, and lets it go
# on.
copy_in_background() {
	local half=$(($(stat -c %s "$1") / 2))
	mkfifo "$dir/gate"
	(
		head -c $half "$1"
		read -r <"$dir/gate"
		tail -c +$((half + 1)) "$1"
	) 3>&- | dd of="$2" bs=64k iflag=fullblock conv=fsync status=none 3>&- &
	copy=$!
	until_true 60 has_written $copy $half
	alive $copy
	echo go >"$dir/gate"
}

@test "the server is killed in the middle of a copy, which goes on" {
	random_file "$dir/a" "$(mib 128 32)"
	copy_in_background "$dir/a" "$mnt/a"
	crash_server
	wait $copy
	fsop uncache "$mnt"
	cmp "$dir/a" "$mnt/a"
	remount
	cmp "$dir/a" "$mnt/a"
}

@test "the server is killed several times in the middle of copying a tree" {
	make_tree "$dir/tree"
	for n in 1 2 3; do
		cp -a "$dir/tree" "$mnt/$n" 3>&- &
		copies[n]=$!
		until_true 20 test -e "$mnt/$n/deep"
		crash_server
	done
	for n in 1 2 3; do
		wait "${copies[n]}"
		same_tree "$dir/tree" "$mnt/$n"
	done
	remount
	for n in 1 2 3; do
		same_tree "$dir/tree" "$mnt/$n"
	done
}

@test "a server that stands still for a second holds a copy up and does not harm it" {
	random_file "$dir/a" "$(mib 128 16)"
	copy_in_background "$dir/a" "$mnt/a"
	suspend "$server_pid"
	sleep 1
	kill -CONT "$server_pid"
	wait $copy
	remount
	cmp "$dir/a" "$mnt/a"
}

# read_on: reads $mnt/a past the cache, several MiB at once, compares it, and repeats this until
# $dir/enough exists. Each round adds a line to $dir/rounds.
read_on() {
	until [ -e "$dir/enough" ]; do
		dd if="$mnt/a" bs=4M iflag=direct status=none | cmp - "$dir/a" || return 1
		echo >>"$dir/rounds"
	done
}

has_read() {
	[ "$(wc -l <"$dir/rounds")" -ge "$1" ]
}

# more_rounds COUNT: waits until so many more rounds have ended.
more_rounds() {
	until_true 60 has_read $(($(wc -l <"$dir/rounds") + $1))
}

# bats test_tags=nightly:verbs
@test "the server is killed and connections are cut in the middle of reads, which go on" {
	random_file "$dir/a" "$(mib 16 8)"
	cp "$dir/a" "$mnt/a"
	: >"$dir/rounds"
	for n in 1 2 3; do
		read_on 3>&- &
		readers[n]=$!
	done
	for _ in {1..3}; do
		more_rounds 4
		crash_server
		more_rounds 4
		[ "$transport" != tcp ] || ss -K dst 127.0.0.1 dport = ":$port" >"$dir/cut.log" 2>&1
	done
	more_rounds 4
	touch "$dir/enough"
	for n in 1 2 3; do
		wait "${readers[n]}"
	done
}

# bats test_tags=only:tcp
@test "connections are cut in the middle of a copy, which goes on" {
	random_file "$dir/a" 128
	copy_in_background "$dir/a" "$mnt/a"
	ss -K dst 127.0.0.1 dport = ":$port" >"$dir/cut.log" 2>&1
	wait $copy
	grep -q ESTAB "$dir/cut.log"
	remount
	cmp "$dir/a" "$mnt/a"
}

# bats test_tags=only:tcp
@test "connections are cut while names are made, each is made once" {
	(for i in {1..2000}; do mkdir "$mnt/$i" || exit 1; done) 3>&- &
	maker=$!
	for n in 200 600 1000 1400; do
		until_true 30 test -e "$mnt/$n"
		ss -K dst 127.0.0.1 dport = ":$port" >>"$dir/cut.log" 2>&1
	done
	wait $maker
	grep -q ESTAB "$dir/cut.log"
	# shellcheck disable=SC2012 # plain names
	[ "$(ls "$mnt" | wc -l)" -eq 2000 ]
	[ "$(stat -c %h "$mnt")" -eq 2002 ]
}

@test "the daemon is killed: what was synced is there on the next mount" {
	random_file "$dir/a" "$(mib 32 8)"
	dd if="$dir/a" of="$mnt/a" bs=1M conv=fsync status=none
	cp -a "$dir/a" "$mnt/b"
	kill_daemon
	mount_rmem
	cmp "$dir/a" "$mnt/a"
	cmp "$dir/a" "$mnt/b"
}

@test "both are killed, and everything closed is there" {
	make_tree "$dir/tree"
	cp -a "$dir/tree" "$mnt/"
	kill_server
	kill_daemon
	use_lease 1 # after a restart the server can't see that the client is dead
	start_server
	mount_rmem
	same_tree "$dir/tree" "$mnt/tree"
}

@test "a process that waits for a dead server can be killed" {
	echo there >"$mnt/a"
	remount
	kill_server
	cat "$mnt/a" >"$dir/out" 2>&1 3>&- &
	reader=$!
	run timeout 2 tail --pid=$reader -s 0.02 -f /dev/null
	[ "$status" -eq 124 ]
	kill -KILL $reader
	exit_status $reader 10 || [ $? -eq 137 ]
	start_server
	[ "$(cat "$mnt/a")" = there ]
}
