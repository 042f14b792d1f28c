#!/usr/bin/env bats
# sandbox.bats - the programs give up what they need no more. All other tests run under these limits, too.

# A sanitizer's process has none of them.
# bats file_tags=unsanitized

# shellcheck disable=SC2154 # what helpers set
load helpers

setup() {
	setup_rmem
}

teardown() {
	teardown_rmem
}

# every_thread PID NAME VALUE
every_thread() {
	local found
	found=$(awk -v name="$2:" '$1 == name { print $2 }' /proc/"$1"/task/*/status | sort -u)
	echo "$2 of $1: $found"
	[ "$found" = "$3" ]
}

@test "every thread of both programs is limited, and work goes on" {
	start_server
	mount_rmem
	for pid in "$server_pid" "$daemon_pid"; do
		every_thread "$pid" Seccomp 2
		every_thread "$pid" NoNewPrivs 1
	done
	# At most sys_resource, sys_admin, sys_ptrace, ipc_lock, net_admin, dac_read_search and dac_override.
	awk '/^Cap(Prm|Eff|Bnd):/ { print $2 }' "/proc/$daemon_pid/task/"*/status >"$dir/capabilities"
	while read -r capabilities; do
		[ $((0x$capabilities & ~0x1285006)) -eq 0 ]
	done <"$dir/capabilities"
	[ -s "$dir/capabilities" ]
	random_file "$dir/a" 8
	cp "$dir/a" "$mnt/a"
	crash_server
	cmp "$dir/a" "$mnt/a"
	remount
	cmp "$dir/a" "$mnt/a"
}

@test "RMEMFS_SANDBOX=off leaves the limits out" {
	export RMEMFS_SANDBOX=off
	start_server
	mount_rmem
	for pid in "$server_pid" "$daemon_pid"; do
		every_thread "$pid" Seccomp 0
		every_thread "$pid" NoNewPrivs 0
	done
	touch "$mnt/a"
}
