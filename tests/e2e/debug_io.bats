#!/usr/bin/env bats
# debug_io.bats - the switch that logs each request.

bats_require_minimum_version 1.5.0
load helpers

setup() {
	setup_rmem
	start_server
}

teardown() {
	teardown_rmem
}

daemon_logged() {
	grep -q -- "$1" "$dir/daemon.log"
}

# Does a write, a read of the same bytes, and a lookup of a name that does not exist.
some_requests() {
	dd if=/dev/zero of="$mnt/a" bs=8k count=1 seek=3 oflag=direct status=none
	dd if="$mnt/a" of=/dev/null bs=8k count=1 skip=3 iflag=direct status=none
	[ ! -e "$mnt/nosuch" ]
}

@test "debug_io logs operation, inode, offset, length, result and time of each request" {
	mount_rmem -o debug_io
	some_requests
	ino=$(stat -c %i "$mnt/a")
	umount_rmem
	daemon_logged " debug: write inode $ino offset 24576 length 8192: [0-9]* bytes answered in [0-9]* us"
	daemon_logged " debug: read inode $ino offset 24576 length 8192: 8192 bytes answered in [0-9]* us"
	daemon_logged " debug: create inode 1 offset 0 length 0: [0-9]* bytes answered in [0-9]* us"
	daemon_logged " debug: release inode $ino "
	ended=$(grep -c ' us$' "$dir/daemon.log")
	[ "$ended" -ge 8 ]
}

@test "without debug_io no request is logged, at whatever level" {
	mount_rmem -o log_level=debug
	some_requests
	umount_rmem
	run ! daemon_logged ' us$'
}
