#!/usr/bin/env bats
# transport.bats - mounts that change between tcp and verbs while they run, under a writer. The tests take the
# guest's Soft-RoCE device away, and make it again.

load helpers

setup() {
	setup_rmem
	device=$(rdma link show | sed -n 's/^link \([^/]*\)\/.* netdev \(.*[^ ]\) *$/\1/p')
	netdev=$(rdma link show | sed -n 's/^link \([^/]*\)\/.* netdev \(.*[^ ]\) *$/\2/p')
	random_file "$dir/bytes" 1
}

teardown() {
	teardown_rmem
	# The device has gone for good when the last process that had it has.
	[ -z "${deleter:-}" ] || exit_status "$deleter" 60
	[ -z "${netdev:-}" ] || rdma link show "$device/1" >/dev/null 2>&1 || make_device
}

make_device() {
	rdma link add "$device" type rxe netdev "$netdev"
}

# Servers listen on tcp, and on what their options name.
listen_address() {
	echo "tcp:$verbs_address:$port"
}

mount_options() {
	echo "port=$port,key=$key_file"
}

both=()
with_verbs() {
	both=(--listen "verbs:$verbs_address:$port")
}

mount_says() {
	rmemfsctl status --json "$mnt" | jq -r "$1"
}

is_on() {
	[ "$(mount_says .transport)" = "$1" ] && [ "$(mount_says .state)" = connected ]
}

changes() {
	grep -c "the mount changes to" "$dir/daemon.log" || true
}

# ---- a writer ------------------------------------------------------------------------------------

begin_writing() {
	(
		for ((n = 0; n < 20000; n++)); do
			[ ! -e "$dir/stop" ] || break
			dd if="$dir/bytes" of="$mnt/file.$((n % 8))" bs=64k conv=fsync status=none || exit 1
			cmp "$dir/bytes" "$mnt/file.$((n % 8))" || exit 1
			echo "$n" >"$dir/written"
		done
	) 3>&- &
	writer=$!
	until_true 30 has_written 0
}

has_written() {
	[ "$(cat "$dir/written" 2>/dev/null || echo -1)" -gt "$1" ] || ! alive "$writer"
}

# The writer goes on after all that was before.
writes_on() {
	until_true 60 has_written "$(($(cat "$dir/written") + 1))"
	alive "$writer" || die "the writer has ended"
}

end_writing() {
	touch "$dir/stop"
	exit_status "$writer" 60
	check_files
	remount
	check_files
}

check_files() {
	local i
	for i in {0..7}; do
		[ ! -e "$mnt/file.$i" ] || cmp "$dir/bytes" "$mnt/file.$i"
	done
	[ -e "$mnt/file.0" ]
}

# ---- the tests -----------------------------------------------------------------------------------

# bats test_tags=only:verbs
@test "a mount from before the RDMA device comes to verbs, under a writer" {
	rdma link delete "$device"
	start_server
	mount_rmem
	is_on tcp
	[[ $(mount_says .no_verbs) == "no RDMA device has a route to $verbs_address:$port: see 'rdma link show'" ]]
	rmemfsctl status "$mnt" | grep "not over verbs: no RDMA device has a route"
	begin_writing
	make_device
	with_verbs
	crash_server "${both[@]}"
	until_true 60 is_on verbs
	writes_on
	grep "notice: server tcp $verbs_address:$port: the mount changes to verbs, by device $device" "$dir/daemon.log"
	[ "$(changes)" -eq 1 ]
	[ "$(mount_says .no_verbs)" = "" ]
	end_writing
}

# bats test_tags=only:verbs
@test "a mount on verbs goes on over tcp when the server has no verbs any more, and comes back" {
	with_verbs
	start_server "${both[@]}"
	mount_rmem
	is_on verbs
	begin_writing
	crash_server
	until_true 60 is_on tcp
	writes_on
	[[ $(mount_says .no_verbs) == "the server does not listen on verbs: see 'listen' in its server.conf" ]]
	grep "warning: server verbs $verbs_address:$port: the mount changes to tcp: the server does not listen" "$dir/daemon.log"
	crash_server "${both[@]}"
	until_true 60 is_on verbs
	writes_on
	[ "$(changes)" -eq 2 ]
	end_writing
}

# bats test_tags=only:verbs
@test "a mount whose RDMA device goes away goes on over tcp" {
	with_verbs
	start_server "${both[@]}"
	mount_rmem
	is_on verbs
	begin_writing
	# It returns when no process has the device.
	rdma link delete "$device" 3>&- &
	deleter=$!
	until_true 60 is_on tcp
	writes_on
	[ "$(changes)" -eq 1 ]
	touch "$dir/stop"
	exit_status "$writer" 60
	check_files
}
