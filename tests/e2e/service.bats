#!/usr/bin/env bats
# service.bats - the messages to a service manager, and the end of the programs by SIGTERM.

# shellcheck disable=SC2154 # what helpers set
load helpers
bats_require_minimum_version 1.5.0

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

# server_name: as the client's log and status name it.
server_name() {
	case $transport in
	shm) echo "shm $socket" ;;
	tcp) echo "tcp 127.0.0.1:$port" ;;
	verbs) echo "verbs $verbs_address:$port" ;;
	esac
}

# told TEXT...: the service manager got these messages in this order, and no others but the progress of a start that
# takes longer than a second.
told() {
	[ "$(sed '/^STATUS=starting: /,/^EXTEND_TIMEOUT_USEC=/d' "$dir/told")" = "$(printf '%s\n' "$@")" ]
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

serving=(READY=1 "STATUS=serving 1 export, 0 sessions")

@test "the server tells when it serves and when it stops" {
	start_server
	until_true 5 told "${serving[@]}"
	stop_server
	until_true 5 told "${serving[@]}" STOPPING=1 STATUS=stopping
}

# full: the service manager's queue takes no message any more.
# shellcheck disable=SC2016 # perl's variables
full() {
	perl -MSocket -MFcntl -e '
		my $s;
		socket($s, AF_UNIX, SOCK_DGRAM, 0) && fcntl($s, F_SETFL, O_NONBLOCK) or die $!;
		1 while send($s, "x", 0, sockaddr_un($ARGV[0]));' "$NOTIFY_SOCKET"
}

# bats test_tags=once
@test "a service manager that does not read holds up neither the server nor a mount" {
	start_server
	mount_rmem
	until_true 5 grep -q '^STATUS=serving 1 export, 1 session$' "$dir/told"
	suspend "$listener"
	full
	timeout 10 rmemfsctl reload "$socket"
	echo a >"$mnt/a"
	fsop uncache "$mnt"
	[ "$(cat "$mnt/a")" = a ]
	: >"$dir/told"
	umount_rmem
	rmemfsctl status "$socket" >/dev/null
	# The manager gets the present state when there is room.
	kill -CONT "$listener"
	until_true 5 grep -qx 'STATUS=serving 1 export, 0 sessions' "$dir/told"
	grep -qx READY=1 "$dir/told"
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
	[ "$(grep '^STATUS=' "$dir/told" | tail -n 1)" = "STATUS=serving 1 export, 0 sessions" ]
}

@test "a mount tells when it is usable and when it ends" {
	start_server
	until_true 5 told "${serving[@]}"
	: >"$dir/told"
	rmemfs -f -c /dev/null -o "$(mount_options)" "$(mount_source)" "$mnt" >>"$dir/daemon.log" 2>&1 3>&- &
	daemon_pid=$!
	until_true 20 grep -qx "STATUS=mounted on $mnt over $(server_name)" "$dir/told"
	grep -qx "STATUS=connecting to server $(server_name)" "$dir/told"
	grep -qx READY=1 "$dir/told"
	mountpoint -q "$mnt"
	touch "$mnt/a"
	ends_soon
	until_true 5 grep -qx "STATUS=unmounting $mnt" "$dir/told"
	grep -qx STOPPING=1 "$dir/told"
}

@test "a mount tells since when its server is away, and that it is back" {
	start_server
	mount_rmem
	kill_server
	until_true 10 grep -qE "^STATUS=no connection to server $(server_name) since [-0-9]+ [:0-9]+ [-+0-9]+: operations wait\$" \
		"$dir/told"
	: >"$dir/told"
	start_server
	until_true 10 grep -qx "STATUS=mounted on $mnt over $(server_name)" "$dir/told"
}

signs_come() {
	[ "$(grep -cx WATCHDOG=1 "$dir/told")" -ge 2 ]
}

# bats test_tags=once
@test "server and mount give signs of life, the mount also while its server is away" {
	local WATCHDOG_USEC=2000000
	export WATCHDOG_USEC
	start_server
	: >"$dir/told"
	until_true 10 signs_come
	unset WATCHDOG_USEC
	stop_server
	start_server
	WATCHDOG_USEC=2000000 mount_rmem
	kill_server
	until_true 10 grep -q '^STATUS=no connection' "$dir/told"
	: >"$dir/told"
	until_true 10 signs_come
	start_server
}

# NOTIFY_SOCKET is that of the service which called mount(8).
# bats test_tags=once
@test "a mount in the background tells its caller's service manager nothing" {
	start_server
	until_true 5 told "${serving[@]}"
	: >"$dir/told"
	NOTIFY_SOCKET=$dir/notify rmemfs -c /dev/null -o "$(mount_options)" "$(mount_source)" "$mnt"
	mountpoint -q "$mnt"
	until_true 5 grep -q '1 session$' "$dir/told"
	umount "$mnt"
	until_true 5 grep -q '0 sessions$' "$dir/told"
	run ! grep -vx 'STATUS=serving 1 export, [01] sessions*' "$dir/told"
}

@test "a mount that umount(8) ends tells so" {
	start_server
	mount_rmem
	until_true 5 grep -qx "STATUS=mounted on $mnt over $(server_name)" "$dir/told"
	: >"$dir/told"
	umount_rmem
	until_true 5 grep -qx STOPPING=1 "$dir/told"
}

@test "what does not start is not ready" {
	# The unit must know that a later start may succeed: status 75.
	run rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=1" "$(mount_source)" "$mnt"
	[ "$status" -eq 75 ]
	until_true 5 grep -q '^ERRNO=' "$dir/told"
	grep -q "^STATUS=.*$(server_name)" "$dir/told"
	run ! grep READY=1 "$dir/told"
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

is_mounted_anew() {
	[ "$(grep -c ' is mounted on ' "$dir/daemon.log")" -eq 2 ]
}

@test "exit_when_lost: a mount whose server has lost its memory ends with 75, and says why once" {
	local pid status=0
	start_server
	mount_rmem -o exit_when_lost
	echo a >"$mnt/a"
	exec 5<"$mnt/a"
	kill_server 5<&-
	rm -rf "${memory:?}"/*
	start_server 5<&-
	pid=$daemon_pid
	daemon_pid=
	exit_status "$pid" 20 5<&- || status=$?
	[ $status -eq 75 ]
	# The mount keeps programs out of the directory below, until the next one takes its place.
	run touch "$mnt/leaked"
	[[ $output == *"Transport endpoint is not connected" ]]
	[ "$(grep -c ' session lost: .*; the mount ends, as exit_when_lost says$' "$dir/daemon.log")" -eq 1 ]
	run ! grep ' error: ' <(grep -v ' session lost: ' "$dir/daemon.log")
	run cat <&5
	[[ $output == *"Transport endpoint is not connected" ]]
	exec 5<&-
	mount_rmem
	until_true 20 is_mounted_anew
	[ -z "$(ls "$mnt")" ]
	umount_rmem
	[ -z "$(ls "$mnt")" ]
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
