#!/usr/bin/env bats
# resize.bats - exports grow and shrink, under a mount and without one.

load helpers

setup() {
	setup_rmem
	server_conf=$dir/server.conf
	set_size 32
}

# set_size MIB [SETTING]: configures the size for the next start.
set_size() {
	size=$1
	cat >"$server_conf" <<-EOF
		exports = ( { name = "default"; size = "${size}MiB"; } );
		lease_time = 1;
		${2:-}
	EOF
}

teardown() {
	teardown_rmem
}

resize_to() {
	stop_server
	check_memory
	set_size "$1"
	# The server does not inherit a file that the test has open.
	start_server 9>&-
}

nobody_attached() {
	[ "$(status_of '.sessions | length')" -eq 0 ]
}

leave() {
	umount_rmem
	until_true 20 nobody_attached
}

regions_are() {
	[ "$(find "$memory/regions" -type f | wc -l)" -eq "$1" ]
}

size_is() {
	[ "$(status_of '.exports[0].bytes')" -eq $(($1 << 20)) ]
}

@test "a mount goes on with the room that a larger export has" {
	start_server
	mount_rmem
	random_file "$dir/old" 20
	cp "$dir/old" "$mnt/old"
	exec 9>>"$mnt/open"
	echo before >&9
	resize_to 96
	size_is 96
	echo after >&9
	exec 9>&-
	random_file "$dir/new" 60
	cp "$dir/new" "$mnt/new"
	sync -f "$mnt/new"
	cmp "$dir/old" "$mnt/old"
	cmp "$dir/new" "$mnt/new"
	printf 'before\nafter\n' | cmp - "$mnt/open"
	remount
	cmp "$dir/new" "$mnt/new"
	crash_server
	cmp "$dir/new" "$mnt/new"
	rm "$mnt/new"
	leave
	stop_server
	check_memory
}

# bats test_tags=once
@test "a start that is killed while an export grows has changed nothing, or all" {
	local point
	start_server
	mount_rmem
	random_file "$dir/old" 8
	cp "$dir/old" "$mnt/old"
	leave
	for point in region.made:2 region.sized:2 region.allocated:2 store.loaded store.opened; do
		echo "killed at $point"
		stop_server
		set_size $((size + 32))
		start_killed "$point"
		start_server
		size_is "$size"
		mount_rmem
		cmp "$dir/old" "$mnt/old"
		leave
	done
}

# start_killed POINT: starts a server that dies at POINT.
start_killed() {
	local pid status=0
	RMEMFS_CRASH_AT=$1 spawn_server
	pid=$server_pid server_pid=''
	exit_status "$pid" 30 || status=$?
	[ $status -eq 137 ] || die "the server ended with status $status, not at $1"
	check_memory
}

# bats test_tags=once
@test "what a killed start has left of a growth goes when the size is set back" {
	start_server
	stop_server
	set_size 96
	start_killed region.allocated:3
	regions_are 3
	set_size 32
	start_server
	size_is 32
	regions_are 1
}

@test "a mount goes on with an export that has shrunk by what nobody used" {
	start_server
	resize_to 96
	mount_rmem
	random_file "$dir/old" 20
	cp "$dir/old" "$mnt/old"
	exec 9>>"$mnt/open"
	echo before >&9
	resize_to 64
	size_is 64
	regions_are 2
	echo after >&9
	exec 9>&-
	printf 'before\nafter\n' | cmp - "$mnt/open"
	cmp "$dir/old" "$mnt/old"
	random_file "$dir/new" 35
	cp "$dir/new" "$mnt/new"
	[ "$(df --output=size -B1M "$mnt" | tail -1)" -eq 64 ]
	remount
	cmp "$dir/old" "$mnt/old"
	cmp "$dir/new" "$mnt/new"
	leave
	stop_server
	check_memory
}

nothing_dirty() {
	[ "$(status_of '.exports[0].dirty')" -eq 0 ]
}

# place_behind: puts $dir/data, 12 MiB, into a file in the second region, while the first has room.
place_behind() {
	until_true 20 nothing_dirty
	mount_rmem
	head -c 24M /dev/zero >"$mnt/filler"
	cp "$dir/data" "$mnt/data.new"
	mv "$mnt/data.new" "$mnt/data"
	rm "$mnt/filler"
	mtime=$(stat -c %Y "$mnt/data")
	leave
}

data_is_whole() {
	mount_rmem
	cmp "$dir/data" "$mnt/data"
	[ "$(stat -c %Y "$mnt/data")" = "$mtime" ]
	leave
}

@test "what lies in the regions that go is moved" {
	start_server
	resize_to 64
	random_file "$dir/data" 12
	place_behind
	until_true 20 nothing_dirty
	mkdir "$dir/files"
	head -c 12M /dev/urandom | split -a 3 -b 43K - "$dir/files/"
	mount_rmem
	head -c 16M /dev/zero >"$mnt/filler"
	cp -r "$dir/files" "$mnt/files"
	rm "$mnt/filler" "$mnt"/files/*b "$dir"/files/*b
	leave
	resize_to 32
	grep -E "export 'default' has shrunk to 32MiB; [1-9][0-9.]*MiB were moved" "$dir/server.log"
	regions_are 1
	data_is_whole
	mount_rmem
	diff -r "$dir/files" "$mnt/files"
	until_true 20 nothing_dirty
	head -c 4M "$dir/data" >"$mnt/more"
	remount
	diff -r "$dir/files" "$mnt/files"
	cmp -n $((4 << 20)) "$dir/data" "$mnt/more"
	leave
	stop_server
	check_memory
}

points=(shrink.claimed shrink.copied shrink.moved shrink.dropped region.removed)

# killed_at POINT: kills a server while the export shrinks, then starts it with the old size and with the
# new.
killed_at() {
	echo "killed at $1"
	resize_to 64
	place_behind
	stop_server
	set_size 32
	start_killed "$1"
	set_size 64
	start_server
	size_is 64
	data_is_whole
	stop_server
	set_size 32
	start_killed shrink.dropped
	start_server
	size_is 32
	regions_are 1
	data_is_whole
}

# bats test_tags=once
@test "a start that is killed while an export shrinks goes on with either size" {
	start_server
	random_file "$dir/data" 12
	killed_at shrink.copied
}

# bats test_tags=once,long
@test "a start that is killed anywhere while an export shrinks goes on with either size" {
	local point
	start_server
	random_file "$dir/data" 12
	for point in "${points[@]}"; do
		killed_at "$point"
	done
}

# refused MIB TEXT [SETTING]: a start, and --check-config before it, fail with TEXT.
refused() {
	local pid status=0
	set_size "$1" "${3:-}"
	: >"$dir/server.log"
	spawn_server --check-config
	pid=$server_pid server_pid=''
	exit_status "$pid" 30 || status=$?
	[ $status -eq 78 ]
	grep -F "$2" "$dir/server.log"
	: >"$dir/server.log"
	status=0
	spawn_server
	pid=$server_pid server_pid=''
	exit_status "$pid" 30 || status=$?
	[ $status -eq 78 ]
	grep -F "$2" "$dir/server.log"
}

# bats test_tags=once
@test "sizes that can't be are refused, and leave nothing" {
	start_server
	mount_rmem
	echo one >"$mnt/file"
	stop_server
	refused 16 "it can't have less than 32MiB, one region"
	refused 33 "it can have 32MiB or 64MiB, by whole regions of 32MiB"
	refused 80 "it can have 64MiB or 96MiB, by whole regions of 32MiB"
	refused $((33 << 10)) "has regions of 32MiB: clients reach 1024 of them, so it can have 32GiB"
	check_memory
	regions_are 1
	set_size 32
	start_server
	[ "$(cat "$mnt/file")" = one ]
}

# bats test_tags=once
@test "an export does not shrink below what is used, nor under a client that would lose it" {
	start_server
	resize_to 64
	mount_rmem
	random_file "$dir/data" 40
	cp "$dir/data" "$mnt/data"
	sync -f "$mnt/data"
	stop_server
	refused 32 "are in use; the smallest size is 64MiB"
	check_memory
	set_size 64
	start_server
	random_file "$dir/more" 16
	cp "$dir/more" "$mnt/more"
	rm "$mnt/data"
	remount
	stop_server
	refused 32 "start with 64MiB, unmount it there"
	grep -E "$mnt \(pid [0-9]+\) has it mounted" "$dir/server.log"
	check_memory
	regions_are 2
	set_size 64
	start_server
	cmp "$dir/more" "$mnt/more"
	leave
	resize_to 32
	mount_rmem
	cmp "$dir/more" "$mnt/more"
}

# bats test_tags=once
@test "a client that is gone for good holds up no shrinking, once somebody else has been there" {
	local killed
	start_server
	resize_to 64
	random_file "$dir/data" 12
	place_behind
	mount_rmem
	killed=$daemon_pid
	daemon_pid=''
	kill -KILL "$killed"
	wait "$killed" || true
	umount "$mnt"
	stop_server
	refused 32 "(where that is gone for good, mount and unmount it anywhere else)"
	set_size 64
	start_server
	mnt=$dir/elsewhere
	mkdir "$mnt"
	mount_rmem
	leave
	resize_to 32
	regions_are 1
	data_is_whole
}

# bats test_tags=once
@test "more regions than clients reach are refused" {
	refused $((3 << 10)) "clients reach 1024 of them, so make region_size 4MiB or larger" \
		'region_size = "2MiB";'
}
