#!/usr/bin/env bats
# regions.bats - the regions' memory: on huge pages, if the kernel has them.

load helpers

setup() {
	setup_rmem
	all=${export_size%MiB}
}

teardown() {
	teardown_rmem
}

# huge_mib PID: prints how much shared memory the process has mapped by huge pages.
huge_mib() {
	awk '/^ShmemPmdMapped:/ { print $2 / 1024 }' "/proc/$1/smaps_rollup"
}

@test "regions lie on huge pages for the server and the mount, after a crash, too" {
	start_server
	[ "$(huge_mib "$server_pid")" -eq "$all" ]
	mount_rmem
	random_file "$dir/file" 16
	cp "$dir/file" "$mnt/file"
	crash_server
	# With sanitizers no memory is locked, and the kernel maps unlocked memory only when it is
	# touched.
	[ "${RMEMFS_TEST_SANITIZED:-0}" = 1 ] || [ "$(huge_mib "$server_pid")" -eq "$all" ]
	cmp "$dir/file" "$mnt/file"
	remount -o cache=none
	cmp "$dir/file" "$mnt/file"
	[ "$transport" != shm ] || [ "$(huge_mib "$daemon_pid")" -ge 16 ]
}

@test "small regions move to huge pages only if that is asked for, and files stay what they are" {
	server_conf=$dir/server.conf
	config() {
		echo "exports = ( { name = \"default\"; size = \"$export_size\"; } ); huge_pages = \"$1\";" \
			>"$server_conf"
	}
	config never
	start_server
	mount_rmem
	random_file "$dir/file" 16
	cp "$dir/file" "$mnt/file"
	local huge=0
	# The kernel may use huge pages by itself, unless it is set to never.
	grep -q '\[never\]' /sys/kernel/mm/transparent_hugepage/shmem_enabled || huge=$all
	[ "$(huge_mib "$server_pid")" -le "$huge" ]
	stop_server
	config advise
	start_server
	[ "$(huge_mib "$server_pid")" -le "$huge" ]
	stop_server
	config always
	start_server
	[ "$(huge_mib "$server_pid")" -eq "$all" ]
	cmp "$dir/file" "$mnt/file"
	random_file "$dir/file" 16
	cp "$dir/file" "$mnt/file"
	remount
	cmp "$dir/file" "$mnt/file"
	umount_rmem
	stop_server
	check_memory
}
