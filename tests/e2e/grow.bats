#!/usr/bin/env bats
# grow.bats - an export is made larger under a mount.

load helpers

setup() {
	export_size=32MiB
	setup_rmem
	export_size=32MiB
}

teardown() {
	teardown_rmem
}

grow_to() {
	stop_server
	check_memory
	export_size=$1
	# What the test has open is not the server's.
	start_server 9>&-
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
	grow_to 96MiB
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
	umount_rmem
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
	umount_rmem
	for point in region.made:2 region.sized:2 region.allocated:2 store.loaded store.opened; do
		echo "killed at $point"
		stop_server
		export_size=$((${export_size%MiB} + 32))MiB
		RMEMFS_CRASH_AT=$point spawn_server
		pid=$server_pid server_pid=''
		exit_status "$pid" 30 || [ $? -eq 137 ]
		check_memory
		start_server
		size_is "${export_size%MiB}"
		mount_rmem
		cmp "$dir/old" "$mnt/old"
		umount_rmem
	done
}

refused() {
	local pid status=0
	export_size=$1
	spawn_server
	pid=$server_pid server_pid=''
	exit_status "$pid" 30 || status=$?
	[ $status -eq 1 ]
	grep -F "its size can't be changed but from whole regions" "$dir/server.log"
	: >"$dir/server.log"
}

# bats test_tags=once
@test "sizes that are no whole regions more are refused, and leave nothing" {
	start_server
	mount_rmem
	echo one >"$mnt/file"
	stop_server
	refused 16MiB
	refused 33MiB
	refused 80MiB
	check_memory
	[ "$(find "$memory/regions" -type f | wc -l)" -eq 1 ]
	export_size=32MiB
	start_server
	[ "$(cat "$mnt/file")" = one ]
}
