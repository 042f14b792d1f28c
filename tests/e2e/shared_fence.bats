#!/usr/bin/env bats
# shared_fence.bats - a mount that was too late writes when its file's pages belong to another file
# already: not one byte lands there. To show that this is no luck, the same is done with fences that are
# reported but not made (see common/transport/fence_off.h). Then the bytes must land.

load helpers
load mounts
load wire

setup() {
	setup_rmem
	# shellcheck disable=SC2034 # the helpers take it
	export_size=48MiB
	use_lease 2
	mounts=()
}

teardown() {
	unset RMEMFS_FENCE
	[ -z "${late:-}" ] || kill -CONT "$late" 2>/dev/null || true
	wires_end
	end_mounts
}

# letters LETTER MIB FILE
letters() {
	head -c $(($2 << 20)) /dev/zero | tr '\0' "$1" >"$3"
}

all_are() {
	[ -z "$(tr -d "$1" <"$2" | head -c 1)" ]
}

differs() {
	! all_are "$1" "$2"
}

logged() {
	grep -q -- "$2" "$dir/mount.$1.log"
}

# Mount 2 makes $dir/N/late, 8 MiB of A. Mount 1 will write to it too late.
make_late_file() {
	letters A 8 "$dir/2/late"
	letters B 8 "$dir/bytes"
	sync "$dir/2/late"
}

# Waits for mount 1's lease: the lease time.
take_pages() {
	timeout 20 truncate -s 0 "$dir/2/late"
}

# Fills the export until no page is left.
use_pages() {
	! head -c $((64 << 20)) /dev/zero | tr '\0' C | timeout 60 dd of="$dir/2/other" bs=1M \
		iflag=fullblock oflag=direct status=none 2>"$dir/full.log" || die "the export is too large"
	grep -q 'No space left' "$dir/full.log"
	[ "$(status_of '.exports[0] | .free + .granted + .dirty')" -lt $((4 << 20)) ]
}

# Mount 1 learns that its session is lost, and ends.
end_late() {
	until_true 20 logged 1 'session lost'
	timeout 20 tail --pid="$writer" -s 0.02 -f /dev/null
	wait "$writer" || true
	end_mount 1
}

# Mount 1's bytes have landed in the other file.
finds_it() {
	local pid=${mounts[1]}
	until_true 10 differs C "$dir/2/other"
	all_are CB "$dir/2/other"
	unset 'mounts[1]'
	kill -KILL "$pid" # it waits for answers that never come
	exit_status "$pid" 20 || [ $? -eq 137 ]
	wait "$writer" || true
	until_true 10 umount "$dir/1"
}

refused() {
	[ "$(status_of .refused)" -ge 1 ]
}

# ---- on the wire ---------------------------------------------------------------------------------

# The file is open already: an open would send a request.
write_when_told() {
	exec 7<>"$dir/1/late"
	head -c 4096 "$dir/bytes" >&7
	touch "$dir/open"
	until [ -e "$dir/go" ]; do pause 0.02; done
	dd if="$dir/bytes" bs=1M conv=notrunc status=none >&7 2>"$dir/writer.log"
}

# Mount 1's writes are held on the wire, and their pages belong to another file now.
hold_writes() {
	# The server refuses what it can read. Records that were cut off have no header that it could.
	without_key
	wires 1
	start_server "${listens[@]}"
	mount_number 1 ,share,io_threads=1,peer_timeout=60
	share 2
	make_late_file
	write_when_told 3>&- &
	writer=$!
	until_true 10 test -e "$dir/open"
	wire_hold 1
	touch "$dir/go"
	until_true 10 wire_holds 1 10000
	take_pages
	use_pages
	wire_holds 1 10000
}

# bats test_tags=only:tcp
@test "what stood on the wire when its mount was fenced lands in nobody's file" {
	hold_writes
	refused
	all_are C "$dir/2/other"
	wire_release 1
	pause 1
	all_are C "$dir/2/other"
	end_late
	logged 1 'transfers that did not end before their connection: [1-9]'
	all_are C "$dir/2/other"
}

# bats test_tags=only:tcp
@test "without a fence it would" {
	export RMEMFS_FENCE=off
	hold_writes
	wire_release 1
	finds_it
}

# ---- after a stop --------------------------------------------------------------------------------------

# Mount 1 stops between its check of the lease and its access to the memory.
stop_before_the_write() {
	start_server
	share 2
	make_late_file
	export RMEMFS_CRASH_AT=write.post RMEMFS_CRASH_BY=STOP
	share 1
	unset RMEMFS_CRASH_AT RMEMFS_CRASH_BY
	late=${mounts[1]}
	dd if="$dir/bytes" of="$dir/1/late" bs=1M conv=notrunc status=none 2>"$dir/writer.log" 3>&- &
	writer=$!
	until_true 10 all_stand "$late"
}

go_on() {
	kill -CONT "$late"
	late=''
}

# bats test_tags=fenced
@test "what is written after SIGSTOP, the lease time and SIGCONT lands in nobody's file" {
	stop_before_the_write
	take_pages
	use_pages
	all_are C "$dir/2/other"
	go_on
	end_late
	logged 1 'transfers that did not end before their connection: [1-9]'
	all_are C "$dir/2/other"
}

# The server can't keep a process from memory that it has mapped.
# bats test_tags=only:shm
@test "over shm nobody gets the pages of one who stands still" {
	stop_before_the_write
	take_pages 3>&- &
	taker=$!
	run timeout 4 tail --pid=$taker -s 0.02 -f /dev/null
	[ "$status" -eq 124 ]
	go_on
	end_late
	wait $taker
	use_pages
	all_are C "$dir/2/other"
}

@test "without a fence that would" {
	export RMEMFS_FENCE=off
	stop_before_the_write
	take_pages
	use_pages
	go_on
	finds_it
}
