#!/usr/bin/env bats
# watch.bats - what an admin is told of this machine's mounts: rmemfsctl mounts, status MOUNTPOINT, log.

bats_require_minimum_version 1.5.0
load helpers

setup() {
	setup_rmem
}

teardown() {
	[ -z "$server_pid" ] || kill -CONT "$server_pid"
	[ -z "$daemon_pid" ] || kill -CONT "$daemon_pid"
	teardown_rmem
}

control_socket() {
	echo "/run/rmemfs-mounts/$(mountpoint -d "$mnt" | cut -d : -f 2)"
}

# of_mount FILTER: a value of the mount's state.
of_mount() {
	rmemfsctl status "$mnt" --json | jq -re "$1"
}

state_is() {
	[ "$(of_mount .state)" = "$1" ]
}

# waits_for WHAT: a request waits for that.
waits_for() {
	of_mount ".requests | map(select(.waits_for == \"$1\")) | length > 0" >/dev/null
}

# The other mounts of this machine are not the test's.
entry() {
	rmemfsctl mounts --json | jq -re ".[] | select(.mountpoint == \"$mnt\") | $1"
}

# is_gone PID
is_gone() {
	! kill -0 "$1" 2>/dev/null
}

@test "mounts are listed, with their servers and states" {
	start_server
	mount_rmem
	run -0 rmemfsctl mounts
	[[ $output == *"mount point "*"source "*"transport "*"oldest "*"state"* ]]
	[[ $output =~ "$mnt  "+$(mount_source)" "+$transport" "+-" "+connected ]]
	[ "$(entry .answer.pid)" = "$daemon_pid" ]
	[ "$(entry '.error == null')" = true ]
}

@test "status of a mount counts what the kernel has asked, with bytes, errors and times" {
	start_server
	mount_rmem -o cache=none,ack=remote
	dd if=/dev/zero of="$mnt/a" bs=4096 count=10 oflag=direct status=none
	dd if="$mnt/a" of=/dev/null bs=4096 count=7 iflag=direct status=none
	mkdir "$mnt/d"
	run ! rmdir "$mnt" 2>/dev/null
	touch "$mnt/d/x"
	run ! rmdir "$mnt/d"
	[ "$(of_mount .operations.write.count)" -eq 10 ]
	[ "$(of_mount .operations.write.bytes)" -eq 40960 ]
	[ "$(of_mount .operations.read.bytes)" -eq 28672 ]
	[ "$(of_mount .operations.mkdir.count)" -eq 1 ]
	[ "$(of_mount .operations.rmdir.errors)" -eq 1 ]
	# Each request has one time, and the bounds grow.
	of_mount '.operations | all(.count == ([.latency_ns[][1]] | add))'
	of_mount '.operations | all([.latency_ns[][0]] | . == sort)'
	of_mount '.operations | all(.p50_ns <= .p99_ns and .total_ns > 0)'
	run -0 rmemfsctl status "$mnt"
	[[ $output == *"mount       $mnt of $(mount_source)"* ]]
	[[ $output == *"state       connected"* ]]
	[[ $output =~ "write "+10" "+0" "+40KiB ]]
}

@test "a mount is found by a link, a relative path and what is below, and servers are servers" {
	start_server
	mount_rmem
	mkdir "$mnt/sub"
	ln -s mnt "$dir/link"
	ln -s link "$dir/further"
	cd "$dir"
	for place in mnt ./mnt link further "$dir/link" "$dir/../${dir##*/}/mnt" mnt/ mnt/. mnt/sub link/sub/none; do
		[ "$(rmemfsctl status "$place" --json | jq -r .mountpoint)" = "$mnt" ] || die "$place"
	done
	cd mnt/sub
	for place in . ../sub ./none; do
		[ "$(rmemfsctl status "$place" --json | jq -r .mountpoint)" = "$mnt" ] || die "$place"
	done
	run -1 rmemfsctl status no-such-host.invalid
	[[ $output == *"no-such-host.invalid: no such host"* ]]
	cd "$dir"
	rmemfsctl status "$socket" --json | jq -e .exports
	mkdir other
	for command in "status ./other" "log other info"; do
		# shellcheck disable=SC2086 # words
		run -1 rmemfsctl $command
		[[ $output == *"no rmemfs is mounted there: see 'rmemfsctl mounts'" ]]
	done
}

# Also by a path that leads through it.
@test "nothing touches a mount whose server is silent" {
	start_server
	mount_rmem -o peer_timeout=60
	ln -s mnt/deep/er "$dir/link"
	suspend "$server_pid"
	cd "$mnt"
	for place in . sub/none "$dir/link" "$dir/link/more"; do
		[ "$(timeout 5 rmemfsctl status "$place" --json | jq -r .mountpoint)" = "$mnt" ] || die "$place"
	done
	run -1 timeout 5 rmemfsctl status no-such-host.invalid
	cd "$dir"
	kill -CONT "$server_pid"
}

# Acknowledged WRITEs come before it, more than are listed.
# Over shm the writes wait as well, by their flush, and the answer has no more than the oldest requests.
# bats test_tags=once
@test "a caller that waits is found behind writes that were acknowledged" {
	start_server
	mount_rmem -o cache=none,ack=local,buffers=64,io_threads=1,peer_timeout=60
	touch "$mnt/file"
	suspend "$server_pid"
	local callers=()
	for n in {0..49}; do
		dd if=/dev/zero of="$mnt/file" bs=4096 count=1 seek="$n" conv=notrunc oflag=direct status=none 2>/dev/null &
		callers+=($!)
	done
	mkdir "$mnt/made" &
	callers+=($!)
	until_true 20 of_mount '.waiting.server >= 1'
	until_true 20 of_mount '.requests | map(select(.operation == "lookup")) | length == 1'
	of_mount '.oldest_request_ms > 0'
	kill -CONT "$server_pid"
	wait "${callers[@]}"
	[ -d "$mnt/made" ]
}

# The kernel gives its number to the next mount at once, while this daemon is about to end.
@test "a daemon that ends does not take the next mount's socket along" {
	local first number
	start_server
	mount_rmem -o share
	random_file "$mnt/file" 4
	first=$daemon_pid number=$(control_socket)
	suspend "$server_pid"
	umount "$mnt"
	kill -CONT "$server_pid"
	mount_rmem -o share
	exit_status "$first" 20
	[ "$(control_socket)" = "$number" ] || echo "# the kernel gave another number"
	[ -S "$(control_socket)" ]
	state_is connected
}

@test "a server that is silent: the answer comes at once, and names what waits and for how long" {
	start_server
	mount_rmem -o peer_timeout=60
	touch "$mnt/file"
	suspend "$server_pid"
	mkdir "$mnt/made" & # the kernel asks first whether the name is there
	until_true 20 state_is silent
	waits_for server
	of_mount '.requests[] | select(.operation == "lookup") | .rpc == "lookup" and .age_ms > 0 and .inode == 1'
	[ "$(of_mount .oldest_request_ms)" -gt 0 ]
	run -1 rmemfsctl mounts
	[[ $output =~ $mnt" ".*" silent for " ]]
	run -0 rmemfsctl status "$mnt"
	[[ $output == *"the connection stands, but the server does not answer"* ]]
	[[ $output == *"the server's answer to lookup"* ]]
	until_true 20 grep -q "lookup of inode 1, /, asked by process $!, has not been answered for .* s: it waits for server (lookup)$" "$dir/daemon.log"
	kill -CONT "$server_pid"
	wait $!
	until_true 10 state_is connected
	grep -q "lookup of inode 1, asked by process $!, was answered after .* s$" "$dir/daemon.log"
}

@test "a server that is gone: reconnecting, and the last loss has its reason" {
	start_server
	mount_rmem
	kill_server
	until_true 20 state_is reconnecting
	[ "$(of_mount .session.losses)" -ge 1 ]
	of_mount '.session.last_loss | length > 0'
	until_true 20 of_mount '.session.last_attempt | length > 0'
	run rmemfsctl mounts
	[[ $output =~ $mnt" ".*" reconnecting for ".*": "[A-Za-z] ]]
	start_server
	until_true 20 state_is connected
	[ "$(rmemfsctl status "$mnt" --json | jq .session.last_attempt)" = null ]
}

@test "a daemon that stands still is found, and nothing waits for it" {
	start_server
	mount_rmem
	suspend "$daemon_pid"
	run -1 timeout 20 rmemfsctl mounts
	[[ $output == *"its daemon does not answer in time: it is stopped: kill -CONT $daemon_pid"* ]]
	kill -CONT "$daemon_pid"
	until_true 20 state_is connected
}

@test "a killed daemon leaves no socket, and the remedy is named" {
	start_server
	mount_rmem
	control=$(control_socket)
	# The guard knows of the socket before this is logged.
	until_true 10 grep -q ' is mounted on ' "$dir/daemon.log"
	[ -S "$control" ]
	kill -KILL "$daemon_pid"
	wait "$daemon_pid" || true
	daemon_pid=''
	until_true 10 test ! -e "$control"
	run -1 rmemfsctl mounts
	[[ $output == *"its daemon does not listen at $control. If the daemon has ended (ps -C rmemfs), umount -l $mnt."* ]]
	umount -l "$mnt"
}

@test "the socket goes with the mount, and belongs to its user" {
	start_server
	mount_rmem
	control=$(control_socket) id=$(stat -c '%i %.Z' "$control")
	[ "$(stat -c '%a %U' "$control")" = "600 root" ]
	run -1 "${nobody[@]}" "$bin/rmemfsctl" status "$mnt"
	[[ $output == *"its daemon's socket $control is for root and the group rmemfs-monitor"* ]]
	umount_rmem
	# A mount of another test may have the number by now, and its socket the inode.
	[ "$(stat -c '%i %.Z' "$control" 2>/dev/null)" != "$id" ]
}

# As tmpfiles.d makes the folder: in a mount namespace of its own.
@test "a group may look, and change nothing" {
	start_server
	unshare -m -- bash -c '
		set -e
		mount -t tmpfs tmpfs /run
		mkdir /run/rmemfs-mounts
		chgrp 65534 /run/rmemfs-mounts
		chmod 2750 /run/rmemfs-mounts
		rmemfs -f -c /dev/null -o "$1" "$2" "$3" >>"$4/daemon.log" 2>&1 &
		until mountpoint -q "$3"; do sleep 0.02; done
		control=/run/rmemfs-mounts/$(mountpoint -d "$3" | cut -d : -f 2)
		until [ -S "$control" ]; do sleep 0.02; done
		until [ "$(stat -c "%a %g" "$control")" = "660 65534" ]; do sleep 0.02; done
		monitor=(setpriv --reuid=65533 --regid=65534 --clear-groups --inh-caps=+dac_read_search --ambient-caps=-all)
		"${monitor[@]}" "$5/rmemfsctl" status "$3" --json >"$4/seen"
		! "${monitor[@]}" "$5/rmemfsctl" log "$3" debug 2>"$4/refused" || exit 1
		rmemfsctl log "$3" debug
		umount "$3"
		wait
	' bash "$(mount_options)" "$(mount_source)" "$mnt" "$dir" "$bin" 3>&-
	[ "$(jq -r .state "$dir/seen")" = connected ]
	grep 'its daemon refuses: only root and the user of the mount.s daemon may do this' "$dir/refused"
}

@test "log: the level is changed while the daemon runs, and debug has each request" {
	start_server
	mount_rmem
	rmemfsctl log "$mnt" warning
	seen=$(wc -l <"$dir/daemon.log")
	ls "$mnt"
	[ "$(wc -l <"$dir/daemon.log")" -eq "$seen" ]
	rmemfsctl log "$mnt" debug
	ls "$mnt"
	until_true 10 grep -q ' debug: .*readdir' "$dir/daemon.log"
	rmemfsctl log "$mnt" info
	seen=$(wc -l <"$dir/daemon.log")
	ls "$mnt"
	[ "$(wc -l <"$dir/daemon.log")" -eq "$seen" ]
	run -1 rmemfsctl log "$mnt" loud
	[[ $output == *"level 'loud': unknown; must be error, warning, notice, info or debug" ]]
}

# More silent peers than are served at once, and questions that are none.
@test "log: the server's level is changed while it runs, too" {
	start_server
	rmemfsctl log "$socket" warning
	mount_rmem
	run ! grep -q "at export 'default' begins" "$dir/server.log"
	rmemfsctl log "$socket" info
	umount_rmem
	grep -q "at export 'default' has ended" "$dir/server.log"
	run -1 rmemfsctl log "$socket" loud
	[[ $output == *"level 'loud': unknown; must be error, warning, notice, info or debug" ]]
	run -1 rmemfsctl log "$dir" info
	[[ $output == *"$dir: no rmemfs is mounted there: see 'rmemfsctl mounts'" ]]
}

@test "abort: a mount whose server stands still ends, and with it what waits there" {
	start_server
	mount_rmem -o peer_timeout=60
	touch "$mnt/file"
	suspend "$server_pid"
	run -1 rmemfsctl abort "$dir"
	mkdir "$mnt/made" 2>"$dir/mkdir.log" 3>&- &
	until_true 20 waits_for server
	rmemfsctl abort "$mnt"
	run ! wait $!
	grep -q "Software caused connection abort\|Transport endpoint is not connected" "$dir/mkdir.log"
	until_true 20 is_gone "$daemon_pid"
	kill -CONT "$server_pid"
}

@test "silent and wrong peers of the socket keep nobody away for long" {
	start_server
	mount_rmem
	control=$(control_socket)
	for _ in {1..8}; do
		unix_peer silent "$control" &
	done
	wrong=$(printf 'nonsense\n' | unix_peer ask "$control")
	[ "$wrong" = '{"error":"this version of rmemfs does not know the question"}' ]
	[ -z "$(head -c 1000 /dev/zero | unix_peer ask "$control")" ]
	state_is connected
}

# The request waits for the daemon alone, and is answered at once when that goes on.
@test "a daemon that was stopped says so, and does not blame the server" {
	local reader
	start_server
	mount_rmem -o cache=none
	echo one >"$mnt/file"
	suspend "$daemon_pid"
	stat "$mnt/file" >"$dir/stat" 3>&- &
	reader=$!
	sleep 1.5
	kill -CONT "$daemon_pid"
	wait "$reader"
	until_true 10 grep -q 'thread 0 did not run for [0-9.]* s' "$dir/daemon.log"
	of_mount '.cpu | .pauses >= 1 and .longest_pause_ms >= 1000'
	[[ $(rmemfsctl status "$mnt") == *"this daemon did not run 1 times (stopped, or no CPU), for "* ]]
	run ! grep 'has not been answered' "$dir/daemon.log"
}
