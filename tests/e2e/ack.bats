#!/usr/bin/env bats
# ack.bats - ack=local: write(2) returns while its data is still on its way. Every process that
# reads afterwards gets the new data. The tests stop the server, and over tcp that holds the data
# back. Over shm the daemon moves it, over verbs the device does.

bats_require_minimum_version 1.5.0
load helpers
load steps

setup() {
	setup_rmem
	# shellcheck disable=SC2034 # the helpers take them
	export_size=160MiB ack_mode=local
	# The kernel's cached attributes and names stay valid for longer than a test takes.
	use_lease 600
	start_server
}

teardown() {
	# A stopped process can't be ended in order.
	[ -z "$server_pid" ] || kill -CONT "$server_pid"
	teardown_rmem
}

stop_answering() {
	suspend "$server_pid"
}

answer_again() {
	kill -CONT "$server_pid"
}

daemon_logged() {
	grep -q -- "$1" "$dir/daemon.log"
}

# The file has one page, and the daemon has granted pages for the next ones.
prepare() {
	mount_rmem "$@"
	begin_steps "$mnt/a"
	step write 0 old-old-old = "write 0"
	step fsync = "fsync 0"
}

contains() {
	echo -n "$1" | cmp - "$mnt/a"
}

# ---- visibility ----------------------------------------------------------------------------------

# bats test_tags=only:tcp
@test "ack=local: write returns while the data is on its way, and is done for all who look" {
	prepare
	stop_answering
	step write 8 new-new = "write 0"
	step size = "size 15 0"
	[ "$(stat -c %s "$mnt/a")" -eq 15 ]
	waits read 4 20
	answer_again
	ends "read old-new-new 0"
	end_steps
	holds_everywhere contains old-old-new-new
}

# bats test_tags=only:tcp
@test "ack=remote: write returns when the data is there" {
	# shellcheck disable=SC2034
	ack_mode=remote
	prepare
	stop_answering
	waits write 8 new
	answer_again
	ends "write 0"
	end_steps
	holds_everywhere contains old-old-new
}

# bats test_tags=only:tcp
@test "ack=local: fsync and close wait for what is on its way" {
	prepare
	stop_answering
	step write 4 new = "write 0"
	waits fsync
	answer_again
	ends "fsync 0"
	stop_answering
	step write 8 new = "write 0"
	waits close
	answer_again
	ends "close 0"
	end_steps
	holds_everywhere contains old-new-new
}

# writer_waits_in NAME OFLAG
writer_waits_in() {
	local writer
	stop_answering
	dd if=/dev/zero of="$mnt/b" bs=4096 count=1 conv=notrunc oflag="$2" status=none 3>&- &
	writer=$!
	until_true 10 calling $writer "$1" || die "$2: in $(cat /proc/$writer/syscall)"
	answer_again
	exit_status $writer 10
}

# bats test_tags=only:tcp
@test "ack=local: what is written in step returns when it is there" {
	mount_rmem
	head -c 8192 /dev/urandom >"$mnt/b"
	writer_waits_in close nonblock # files ignore O_NONBLOCK
	writer_waits_in write sync
	writer_waits_in write dsync
	writer_waits_in write direct
}

# bats test_tags=only:tcp
@test "ack=local: what overlaps or cuts waits for what is on its way" {
	prepare
	stop_answering
	step write 4 new = "write 0"
	waits write 5 EW
	answer_again
	ends "write 0"
	stop_answering
	step write 8 new-new = "write 0"
	waits cut 13
	answer_again
	ends "cut 0"
	end_steps
	holds_everywhere contains old-nEW-new-n
}

# bats test_tags=only:tcp
@test "ack=local: a file that is replaced or removed while data is on its way harms no other" {
	local mover
	prepare
	random_file "$dir/b" 1
	cp "$dir/b" "$mnt/b"
	stop_answering
	step write 8 new-new = "write 0"
	mv "$mnt/b" "$mnt/a" 3>&- &
	mover=$!
	answer_again
	exit_status $mover 10
	stop_answering
	step write 0 gone = "write 0"
	rm "$mnt/a" 3>&- &
	mover=$!
	answer_again
	exit_status $mover 10
	end_steps
	for n in 1 2 3 4; do
		cp "$dir/b" "$mnt/$n"
	done
	remount
	for n in 1 2 3 4; do
		cmp "$dir/b" "$mnt/$n"
	done
	umount_rmem
	kill_server # and the server's memory is whole
}

# bats test_tags=only:tcp
@test "ack=local: where half of the buffers are on their way the next write waits" {
	prepare -o io_threads=1,buffers=2
	stop_answering
	step write 0 new = "write 0"
	waits write 4096 more
	answer_again
	ends "write 0"
	step read 0 11 = "read new-old-old 0"
	step read 4096 4 = "read more 0"
	end_steps
}

# ---- crashes and losses --------------------------------------------------------------------------

# bats test_tags=only:tcp
@test "ack=local: what a killed program has written arrives, though the server was killed as well" {
	prepare
	stop_answering
	step write 4 new = "write 0"
	kill_server
	kill_stepper
	start_server
	until_true 20 daemon_logged 'connected again'
	holds_everywhere contains old-new-old
}

@test "ack=local: the server is killed in the middle of a copy, which goes on" {
	local copier n
	mount_rmem
	random_file "$dir/b" "$(mib 32 16)"
	for n in 1 2 3; do
		cp "$dir/b" "$mnt/b.$n" 3>&- &
		copier=$!
		until_true 10 test -s "$mnt/b.$n"
		stop_answering
		pause 0.1
		crash_server
		exit_status $copier 60
	done
	fsop uncache "$mnt"
	for n in 1 2 3; do
		cmp "$dir/b" "$mnt/b.$n"
	done
	remount
	for n in 1 2 3; do
		cmp "$dir/b" "$mnt/b.$n"
	done
}

@test "ack=local: umount right after close, and all is there" {
	local n
	random_file "$dir/b" 8
	for n in 1 2 3 4; do
		mount_rmem
		cp "$dir/b" "$mnt/b.$n"
		umount_rmem
	done
	mount_rmem
	for n in 1 2 3 4; do
		cmp "$dir/b" "$mnt/b.$n"
	done
}

# bats test_tags=only:tcp
@test "ack=local, soft: fsync tells what did not arrive in time, and it does later" {
	prepare -o soft,timeo=4,peer_timeout=4,connect_timeout=4
	stop_answering
	step write 4 new = "write 0"
	ask fsync
	ends "fsync EIO"
	daemon_logged 'what was written is not safe yet'
	step write 8 new = "write EIO"
	answer_again
	until_true 20 daemon_logged 'connected again'
	step fsync = "fsync 0"
	end_steps
	holds_everywhere contains old-new-old
}

# bats test_tags=only:tcp
@test "ack=local: what a lost memory has swallowed is told by fsync" {
	prepare
	stop_answering
	step write 4 new = "write 0"
	kill_server
	rm -rf "${memory:?}"/*
	start_server 8>&- # or the stepper would not see the end of its input
	ask fsync
	ends "fsync ESTALE"
	grep -E 'error: inode [0-9]+: 3 bytes at 4 could not be written' "$dir/daemon.log"
	end_steps
}
