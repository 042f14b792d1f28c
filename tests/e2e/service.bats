#!/usr/bin/env bats
# service.bats - the messages to a service manager, and the end of the programs by SIGTERM.

# shellcheck disable=SC2154 # what helpers set
load helpers

setup() {
	setup_rmem
	export NOTIFY_SOCKET=$dir/notify
	# shellcheck disable=SC2016 # perl's variables
	perl -MSocket -e '
		my ($s, $m);
		socket($s, AF_UNIX, SOCK_DGRAM, 0) && bind($s, sockaddr_un($ARGV[0])) or die $!;
		$| = 1;
		print "$m\n" while defined recv($s, $m, 4096, 0);' "$NOTIFY_SOCKET" >>"$dir/told" 3>&- &
	listener=$!
	until_true 5 test -S "$NOTIFY_SOCKET"
}

teardown() {
	kill -KILL "$listener"
	wait "$listener" 2>/dev/null || true
	teardown_rmem
}

# told TEXT...: the service manager got these messages in this order, and no others.
# shellcheck disable=SC2120 # none at all, too
told() {
	[ "$(cat "$dir/told")" = "$(printf '%s\n' "$@")" ]
}

# The disk is read-only, as it is in a unit with ProtectSystem=strict and without ReadWritePaths=.
# bats test_tags=once
@test "a snapshot to where the unit does not let the server write names the drop-in" {
	local place=$dir/disk hint
	hint="Read-only file system: if the disk is not, it is so for the server's unit, which needs ReadWritePaths=$place in a drop-in (systemctl edit rmemfs-server), and a restart"
	mkdir "$place"
	mount -t tmpfs -o mode=0700 none "$place"
	mkdir "$place/empty"
	mount -o remount,ro "$place"
	start_server
	run rmemfsctl snapshot default "$place/image" "$socket"
	[ "$output" = "rmemfsctl: snapshot of 'default' in $place/image failed: can't make $place/image: $hint" ]
	run rmemfsctl snapshot default "$place/empty" "$socket"
	[[ $output == *": can't write $place/empty/"*"ReadWritePaths=$place/empty in a drop-in"* ]]
	stop_server
	cat >"$dir/server.conf" <<-CONF
		snapshot_dir = "$place";
		snapshot_on_stop = true;
	CONF
	refused 78 30 rmemfs-server -c "$dir/server.conf" --memory-dir "$memory" --export data:64MiB \
		--listen "shm:$socket"
	[[ ${lines[-1]} == *"snapshot_dir: can't write to $place: $hint" ]]
	# Without systemd the message blames the disk alone.
	RMEMFS_TEST_SERVER_UNDER="env -u NOTIFY_SOCKET" start_server
	run rmemfsctl snapshot default "$place/image" "$socket"
	[ "$output" = "rmemfsctl: snapshot of 'default' in $place/image failed: can't make $place/image: Read-only file system" ]
}

# ends_soon: SIGTERM ends the daemon with status 0, and its mount is gone. The daemon waits for 1.5 s at
# most; a busy machine needs longer.
ends_soon() {
	local pid=$daemon_pid
	daemon_pid=
	kill -TERM "$pid"
	exit_status "$pid" 10
	run mountpoint -q "$mnt"
	[ "$status" -ne 0 ]
}

@test "the server tells when it serves and when it stops" {
	start_server
	until_true 5 told READY=1 "STATUS=serving 1 export"
	stop_server
	until_true 5 told READY=1 "STATUS=serving 1 export" STOPPING=1
}

# progress_told WHAT: systemd got the progress, and a request for more time.
progress_told() {
	grep -q "^STATUS=$1: .* of " "$dir/told" &&
		[ "$(grep -A1 "^STATUS=$1: " "$dir/told" | tail -n 1)" = EXTEND_TIMEOUT_USEC=60000000 ]
}

@test "snapshots at a stop, and a start from them, tell of themselves and ask for time" {
	mkdir -m 700 "$dir/disk"
	server_conf=$dir/server.conf
	cat >"$server_conf" <<-CONF
		exports = ( { name = "default"; size = "32MiB"; } );
		snapshot_dir = "$dir/disk";
		snapshot_on_stop = true;
		restore_on_start = true;
	CONF
	start_server
	stop_server
	until_true 5 progress_told "stopping: snapshot of export 'default'"
	rm -rf "${memory:?}"/*
	: >"$dir/told"
	start_server
	until_true 5 progress_told "checking the snapshot of export 'default'"
	until_true 5 grep -q "^STATUS=serving" "$dir/told"
	[ "$(grep '^STATUS=' "$dir/told" | tail -n 1)" = "STATUS=serving 1 export" ]
}

@test "a mount tells when it is usable and when it ends" {
	start_server
	until_true 5 told READY=1 "STATUS=serving 1 export"
	: >"$dir/told"
	rmemfs -f -c /dev/null -o "$(mount_options)" "$(mount_source)" "$mnt" >>"$dir/daemon.log" 2>&1 3>&- &
	daemon_pid=$!
	until_true 20 told READY=1
	mountpoint -q "$mnt"
	touch "$mnt/a"
	ends_soon
	until_true 5 told READY=1 STOPPING=1
}

@test "a mount that umount(8) ends tells so" {
	start_server
	mount_rmem
	until_true 5 told READY=1 "STATUS=serving 1 export" READY=1
	: >"$dir/told"
	umount_rmem
	until_true 5 told STOPPING=1
}

@test "what does not start is not ready" {
	# The unit must know that a later start may succeed: status 75.
	run rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=1" "$(mount_source)" "$mnt"
	[ "$status" -eq 75 ]
	# shellcheck disable=SC2119
	told
}

# refused STATUS ERRNO COMMAND...: the server does not start. systemd gets the reason and no readiness.
# The log's last line has the reason, too, after the level.
refused() {
	local why
	: >"$dir/told"
	run timeout 30 "${@:3}" 3>&-
	echo "$output"
	[ "$status" -eq "$1" ]
	until_true 5 grep -q "^ERRNO=$2$" "$dir/told"
	why=$(sed -nE 's/^STATUS=(refused|failed): //p' "$dir/told")
	[ -n "$why" ]
	told "STATUS=$([ "$1" -eq 78 ] && echo refused || echo failed): $why" "ERRNO=$2"
	[[ ${lines[-1]} == *": $why" ]]
}

# bats test_tags=once
@test "a start that is refused has a status of its own, and its reason where systemctl status shows it" {
	local server=(rmemfs-server -c /dev/null --memory-dir "$memory" --export data:64MiB --listen "shm:$socket")
	grep -qx RestartPreventExitStatus=78 "$repository/systemd/rmemfs-server.service.in"
	refused 78 22 rmemfs-server --nothing
	echo "speed = 3" >"$dir/server.conf"
	refused 78 22 rmemfs-server -c "$dir/server.conf"
	grep -q "STATUS=refused: $dir/server.conf:1: speed: unknown key" "$dir/told"
	refused 78 2 rmemfs-server -c "$dir/missing.conf"
	refused 78 2 rmemfs-server -c /dev/null --memory-dir "$dir/nowhere/memory" --listen "shm:$socket"
	refused 78 27 "${server[@]}" --export huge:1TiB
	grep -q "STATUS=refused: .*needed 1.0TiB, free " "$dir/told"
	# An error that may go away by itself.
	refused 1 99 "${server[@]}" --listen tcp:192.0.2.1
	grep -q "STATUS=failed: can't listen on tcp:192.0.2.1:7470: not an address" "$dir/told"
	refused 1 113 "${server[@]}" --listen tcp:no-such-host.invalid
	start_server
	refused 1 11 "${server[@]}"
}

@test "SIGTERM unmounts soon though the server is dead" {
	start_server
	mount_rmem
	random_file "$mnt/a" 4
	kill_server
	ends_soon
}

@test "SIGTERM unmounts soon though the server is stopped" {
	start_server
	mount_rmem
	random_file "$mnt/a" 4
	suspend "$server_pid"
	ends_soon
	kill -CONT "$server_pid"
}

# waits PID: the process is in a system call that only the daemon can end.
waits() {
	grep -q fuse "/proc/$1/stack"
}

@test "SIGTERM unmounts soon while a file is open and its user waits for a dead server" {
	start_server
	mount_rmem
	echo a >"$mnt/a"
	kill_server
	(exec 4>>"$mnt/a" && echo b >&4) 3>&- 2>/dev/null &
	user=$!
	until_true 5 waits $user
	ends_soon
	run exit_status $user 5
	echo "the user of the file ended with $status"
	[ "$status" -ne 124 ]
}
