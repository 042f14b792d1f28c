#!/usr/bin/env bats
# silence.bats - the peer is there but silent: which side notices it, when, and what applications see.

bats_require_minimum_version 1.5.0
load helpers

setup() {
	setup_rmem
}

asked=0

teardown() {
	# A stopped process can't be ended in order.
	[ -z "$server_pid" ] || kill -CONT "$server_pid"
	[ -z "$daemon_pid" ] || kill -CONT "$daemon_pid"
	teardown_rmem
}

stop_answering() {
	suspend "$server_pid"
}

answer_again() {
	kill -CONT "$server_pid"
}

mount_soft() {
	mount_rmem -o soft,timeo=3,peer_timeout=3,connect_timeout=3,io_threads=1 "$@"
}

daemon_logged() {
	grep -q -- "$1" "$dir/daemon.log"
}

server_said() {
	grep -q -- "$1" "$dir/server.log"
}

back() {
	[ "$(grep -c 'connected again' "$dir/daemon.log")" -ge "$1" ]
}

# fails COMMAND...: fails in time with EIO.
fails() {
	run timeout 20 "$@"
	[ "$status" -ne 0 ] && [ "$status" -ne 124 ] && [[ $output == *"Input/output error"* ]] ||
		die "status $status of $*: $output"
}

# The kernel must ask for a name that it does not know.
name_fails() {
	asked=$((asked + 1))
	[[ $(timeout 20 stat "$mnt/asked.$asked" 2>&1) == *"Input/output error"* ]]
}

# storm_is RESULT: 600 operations at once have this result.
storm_is() {
	local result
	result=$(timeout 30 fsop storm "$mnt" 600) || return
	[ "$result" = "$1" ] || die "$result"
}

# Each of 600 operations succeeds or ends with EIO.
storm_ends() {
	local well eio
	read -r well _ eio _ < <(timeout 30 fsop storm "$mnt" 600)
	[ $((well + eio)) -eq 600 ]
}

name_is_looked_up() {
	asked=$((asked + 1))
	[[ $(timeout 20 stat "$mnt/asked.$asked" 2>&1) == *"No such file"* ]]
}

@test "an idle mount notices a silent server within peer_timeout, and goes on with it" {
	start_server
	mount_rmem -o peer_timeout=1,connect_timeout=1
	echo before >"$mnt/a"
	stop_answering
	until_true 10 daemon_logged 'connection lost: no answer for 1 s; reconnecting'
	answer_again
	until_true 10 back 1
	[ "$(cat "$mnt/a")" = before ]
	echo after >"$mnt/b"
	remount
	[ "$(cat "$mnt/b")" = after ]
}

@test "a mount that does nothing is not taken for silent, nor is its server" {
	start_server
	mount_rmem -o peer_timeout=3
	echo there >"$mnt/a"
	sleep 10
	[ "$(cat "$mnt/a")" = there ]
	run ! daemon_logged 'connection lost'
	run ! server_said 'has been silent'
}

# Over shm the server sees that the process lives.
@test "a client that stands still is closed by the server but on shm, and goes on" {
	start_server
	mount_rmem
	echo before >"$mnt/a"
	session=$(status_of '.sessions[0].id')
	silent="$HOSTNAME:$mnt (pid $daemon_pid) at export 'default' has been silent for 5"
	suspend "$daemon_pid"
	if [ "$transport" = shm ]; then
		sleep 6.5
		run ! server_said 'has been silent'
	else
		until_true 8 server_said "$silent"
	fi
	kill -CONT "$daemon_pid"
	if [ "$transport" = shm ]; then
		until_true 5 daemon_logged 'thread 0 did not run for [0-9.]* s'
	else
		until_true 10 back 1
	fi
	[ "$(cat "$mnt/a")" = before ]
	echo after >"$mnt/b"
	[ "$(status_of '.sessions[0].id')" = "$session" ]
	remount
	[ "$(cat "$mnt/b")" = after ]
}

@test "hard: operations wait for a silent server, however long" {
	random_file "$dir/a" 4
	start_server
	mount_rmem -o peer_timeout=1
	cp "$dir/a" "$mnt/a"
	stop_answering
	dd if="$dir/a" of="$mnt/b" bs=1M oflag=direct conv=fsync status=none 2>"$dir/dd.err" 3>&- &
	writer=$!
	until_true 5 daemon_logged 'connection lost'
	run timeout 3 tail --pid=$writer -s 0.02 -f /dev/null
	[ "$status" -eq 124 ]
	answer_again
	wait $writer
	[ ! -s "$dir/dd.err" ]
	drop_caches
	cmp "$dir/a" "$mnt/a"
	cmp "$dir/a" "$mnt/b"
}

@test "soft: operations fail with EIO while the server is silent, and work when it is back" {
	random_file "$dir/a" 4
	random_file "$dir/b" 4
	start_server
	mount_soft
	cp "$dir/a" "$mnt/a"
	mkdir "$mnt/dir"
	exec 8>"$mnt/open"
	dd if="$dir/b" bs=1M count=2 iflag=fullblock status=none >&8
	drop_caches
	stop_answering
	fails stat "$mnt/nosuch"
	fails dd if="$mnt/a" of=/dev/null bs=1M iflag=direct
	fails dd if="$dir/b" of="$mnt/a" bs=1M oflag=direct conv=notrunc
	fails touch "$mnt/new"
	fails mkdir "$mnt/dir/new"
	fails mv "$mnt/dir" "$mnt/moved"
	fails truncate -s 100 "$mnt/a"
	fails setfattr -n user.new -v x "$mnt/a"
	daemon_logged 'operations fail with EIO (soft mount)'
	answer_again
	until_true 10 name_is_looked_up
	dd if="$dir/b" bs=1M skip=2 iflag=fullblock status=none >&8
	exec 8>&-
	[ ! -e "$mnt/moved" ]
	cp "$dir/b" "$mnt/b"
	mkdir "$mnt/dir/later"
	remount
	cmp "$dir/b" "$mnt/open"
	cmp "$dir/b" "$mnt/b"
	[ -d "$mnt/dir/later" ]
	[ "$(stat -c %s "$mnt/a")" -eq $((4 << 20)) ]
}

@test "soft: fsync and close fail, and what they were about is safe when the server is back" {
	random_file "$dir/a" 1
	start_server
	mount_soft
	fsop write-on "$dir/a" "$mnt/a" >"$dir/ended" 3>&- &
	writer=$!
	until_true 10 cmp -s "$dir/a" "$mnt/a"
	ino=$(stat -c %i "$mnt/a")
	stop_answering
	wait $writer
	[ "$(cat "$dir/ended")" = $'write EIO\nfsync EIO\nclose EIO' ]
	daemon_logged "inode $ino: what was written is not safe yet"
	answer_again
	until_true 10 name_is_looked_up
	sync "$mnt/a"
	crash_server
	remount
	cmp "$dir/a" "$mnt/a"
}

@test "soft: more operations than there are requests and buffers all fail, none hangs" {
	random_file "$dir/a" 4
	start_server
	mount_soft -o buffers=2
	cp "$dir/a" "$mnt/a"
	cp "$dir/a" "$mnt/b"
	cd "$dir"
	storm_is "600 well, 0 EIO"
	stop_answering
	# Only tcp needs the server's process to reach memory. Over the others reads succeed until the
	# client gives up the connection.
	if [ "$transport" = tcp ]; then
		storm_is "0 well, 600 EIO"
	else
		storm_ends
	fi
	storm_is "0 well, 600 EIO"
	answer_again
	until_true 20 storm_is "600 well, 0 EIO"
	drop_caches
	cmp "$dir/a" "$mnt/a"
	cmp "$dir/a" "$mnt/b"
	remount
	cmp "$dir/a" "$mnt/b"
}

@test "soft: a server that is killed is given up, and found again" {
	start_server
	mount_soft
	echo there >"$mnt/a"
	kill_server
	until_true 10 name_fails
	fails touch "$mnt/b"
	start_server
	until_true 10 name_is_looked_up
	[ "$(cat "$mnt/a")" = there ]
	[ ! -e "$mnt/b" ]
	echo new >"$mnt/b"
	remount
	[ "$(cat "$mnt/b")" = new ]
}

@test "soft: umount of a mount without its server ends" {
	use_lease 2 # the server can't see that the mount has ended
	start_server
	mount_soft
	echo there >"$mnt/a"
	stop_answering
	fails stat "$mnt/nosuch"
	umount_rmem
	answer_again
	mount_rmem
	[ "$(cat "$mnt/a")" = there ]
}

@test "soft: a server that comes back without our memory is told by ESTALE, not by EIO" {
	start_server
	mount_soft
	echo there >"$mnt/a"
	kill_server
	until_true 10 name_fails
	rm -rf "${memory:?}"/*
	start_server
	until_true 10 daemon_logged 'session lost'
	run timeout 20 stat "$mnt/nosuch"
	[[ $output == *"Stale file handle"* ]]
}

# Looks up a name in the folder that is open as 7, without a lookup of the folder itself.
name_there_says() {
	asked=$((asked + 1))
	[[ $(timeout 20 stat "/proc/self/fd/7/asked.$asked" 2>&1) == *"$1"* ]]
}

@test "soft: that a new folder lacks a name is known no longer than the lease" {
	use_lease 2
	start_server
	mount_soft
	mkdir "$mnt/new"
	exec 7<"$mnt/new"
	name_there_says 'No such file'
	stop_answering
	until_true 10 name_there_says 'Input/output error'
	answer_again
	until_true 10 name_there_says 'No such file'
	kill_server
	rm -rf "${memory:?}"/*
	start_server 7<&-
	until_true 10 daemon_logged 'session lost'
	name_there_says 'Stale file handle'
	exec 7<&-
}

@test "soft: what could not be committed before the mount ended is told" {
	use_lease 2 # the server can't see that the mount has ended
	random_file "$dir/a" 1
	start_server
	mount_soft
	fsop fill "$dir/a" "$mnt/a" >"$dir/ended" 3>&- & # there is always something to commit
	writer=$!
	until_true 10 test -s "$mnt/a"
	stop_answering
	wait $writer
	umount_rmem
	daemon_logged 'what was written last may be lost (files: 1,'
	answer_again
	mount_soft
	cp "$dir/a" "$mnt/b"
	umount_rmem
	[ "$(grep -c 'may be lost' "$dir/daemon.log")" -eq 1 ]
}

# thread_ended INDEX: this thread of the daemon has ended.
thread_ended() {
	! grep -qsx "rmemfs-io/$1" "/proc/$daemon_pid/task"/*/comm
}

# Thread 0 wrote the files and has not looked at them since they were closed. Thread 1 sends the times of
# the reads.
@test "what was closed before the server died is not said to be lost" {
	use_lease 1 # after a restart the server can't see that the mount has ended
	start_server
	mount_rmem -o io_threads=2
	hold_thread 1
	for i in {1..12}; do
		echo "data $i" >"$mnt/$i"
	done
	release_thread
	hold_thread 0
	cat "$mnt"/* >"$dir/read"
	[ "$(wc -l <"$dir/read")" -eq 12 ]
	kill_server
	kill -TERM "$daemon_pid"
	until_true 10 thread_ended 1
	release_thread
	exit_status "$daemon_pid" 20
	daemon_pid=
	run ! daemon_logged 'may be lost'
	start_server
	mount_rmem
	cat "$mnt"/* | cmp - "$dir/read"
}
