#!/usr/bin/env bats
# lifecycle.bats - starts, stops, and the programs' reports about themselves.

load helpers

setup() {
	setup_rmem
	start_server
}

teardown() {
	teardown_rmem
}

# daemon_of_mount: prints the process that serves $mnt, by its command line.
daemon_of_mount() {
	local process
	for process in /proc/[0-9]*; do
		[ ! "$process/exe" -ef "$bin/rmemfs" ] || grep -qsx "(rmemfs-guard)" "$process/comm" ||
			! grep -qszxF "$mnt" "$process/cmdline" || echo "${process#/proc/}"
	done
}

background_mount() {
	rmemfs -c /dev/null -o "$(mount_options)" "$(mount_source)" "$mnt" </dev/null \
		>"$dir/daemon.log" 2>&1 3>&-
}

@test "a mount in the background returns when it is usable" {
	background_mount
	echo at once >"$mnt/a"
	[ "$(cat "$mnt/a")" = "at once" ]
	pid=$(daemon_of_mount)
	[ -n "$pid" ]
	umount "$mnt"
	timeout 10 tail --pid="$pid" -s 0.02 -f /dev/null
	run grep -E "warning|error" "$dir/daemon.log"
	[ "$status" -eq 1 ]
}

@test "the daemon ends by itself after umount" {
	mount_rmem
	random_file "$mnt/a" 16
	pid=$daemon_pid
	daemon_pid=
	umount "$mnt"
	exit_status "$pid" 10
}

@test "the daemon ends by itself after umount without a server, too" {
	mount_rmem
	random_file "$mnt/a" 16
	sync -f "$mnt/a"
	kill_server
	pid=$daemon_pid
	daemon_pid=
	umount "$mnt"
	exit_status "$pid" 10
}

@test "fusermount3 -u ends it as well, and all that was written is there" {
	random_file "$dir/a" 16
	mount_rmem
	cp "$dir/a" "$mnt/a"
	pid=$daemon_pid
	daemon_pid=
	fusermount3 -u "$mnt"
	exit_status "$pid" 10
	mount_rmem
	cmp "$dir/a" "$mnt/a"
}

@test "SIGTERM unmounts and ends the daemon" {
	mount_rmem
	echo a >"$mnt/a"
	pid=$daemon_pid
	daemon_pid=
	kill -TERM "$pid"
	exit_status "$pid" 10
	run mountpoint -q "$mnt"
	[ "$status" -ne 0 ]
}

@test "SIGTERM ends the server in order, with and without a mount" {
	stop_server
	start_server
	mount_rmem
	echo a >"$mnt/a"
	stop_server
	start_server
	[ "$(cat "$mnt/a")" = a ]
}

@test "SIGHUP reloads, and the server and its mounts go on" {
	mount_rmem
	echo a >"$mnt/a"
	kill -HUP "$server_pid"
	until_true 10 grep -q "reloaded the clients of the exports, .*; 0 channels closed" "$dir/server.log"
	echo b >>"$mnt/a"
	[ "$(cat "$mnt/a")" = $'a\nb' ]
	rmemfsctl reload "$socket"
	[ "$(grep -c "reloaded the clients" "$dir/server.log")" -eq 2 ]
}

@test "SIGHUP to a daemon does nothing, whether it connects or is mounted" {
	local pid
	stop_server
	mkdir -p "$mnt"
	rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=60" "$(mount_source)" "$mnt" \
		>"$dir/daemon.log" 2>&1 3>&- &
	daemon_pid=$!
	until_true 10 grep -q '; trying for 60 s$' "$dir/daemon.log"
	kill -HUP "$daemon_pid"
	start_server
	until_true 20 mounted_or_dead
	echo a >"$mnt/a"
	# The kernel hands over a lower signal first.
	suspend "$daemon_pid"
	kill -HUP "$daemon_pid"
	kill -TERM "$daemon_pid"
	kill -CONT "$daemon_pid"
	pid=$daemon_pid
	daemon_pid=
	exit_status "$pid" 10
	[ "$(grep -o 'signal [0-9]*: unmounting' "$dir/daemon.log")" = "signal 15: unmounting" ]
}

@test "mounting right after umount does not wait" {
	for _ in 1 2 3 4 5; do
		mount_rmem
		umount_rmem
	done
}

@test "a mount waits for the former one's end" {
	mount_rmem
	mkdir "$dir/second"
	rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=20" "$(mount_source)" \
		"$dir/second" >"$dir/second.log" 2>&1 3>&- &
	second=$!
	umount_rmem
	until_true 20 mountpoint -q "$dir/second"
	umount "$dir/second"
	exit_status $second 10
}

@test "a mount waits for a server that is not there yet, says so once, and then by what it is reached" {
	local address=$socket
	[ "$transport" = shm ] || address=$(listen_address) address=${address#*:}
	stop_server
	rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=600" "$(mount_source)" "$mnt" \
		>"$dir/daemon.log" 2>&1 3>&- &
	daemon_pid=$!
	echo $daemon_pid >"$dir/daemon.pid"
	until_true 20 grep -q "no server at $transport $address: .*; trying for 600 s$" "$dir/daemon.log"
	start_server
	until_true 60 mounted_or_dead
	until_true 10 grep -qF "$(mount_source) is mounted on $mnt over $transport $address" "$dir/daemon.log"
	[ "$(grep -c "trying for" "$dir/daemon.log")" -eq 1 ]
	umount_rmem
}

@test "a mount in the background logs the server, the transport and the address" {
	local address=$socket
	[ "$transport" = shm ] || address=$(listen_address) address=${address#*:}
	background_mount
	grep -qF "info: $(mount_source) is mounted on $mnt over $transport $address" "$dir/daemon.log"
	umount "$mnt"
	daemon_ended() {
		[ -z "$(daemon_of_mount)" ]
	}
	until_true 20 daemon_ended
}

@test "status tells regions, exports, sessions and counters" {
	mount_rmem
	random_file "$mnt/a" 8
	sync -f "$mnt/a"
	rmemfsctl status --json "$socket" | tee "$dir/status.json" | jq .
	# It is a string, since not every JSON reader keeps such a number exactly.
	grep -qE '"incarnation": ?"[0-9]{19}"' "$dir/status.json"
	[[ $(rmemfsctl status "$socket") == *", incarnation $(jq -r .incarnation "$dir/status.json")"* ]]
	jq -e '.incarnation and (.regions | length > 0)' "$dir/status.json"
	jq -e '.exports[] | select(.name == "default") | .used >= 8388608 and .free > 0 and .files >= 1' \
		"$dir/status.json"
	jq -e --arg t "$transport" '.sessions | length == 1 and (.[0] | tostring | contains($t))' \
		"$dir/status.json"
	run rmemfsctl status 127.0.0.1:9
	[[ $output == *": no server listens there (127.0.0.1:9): start rmemfs-server, or check the address and port of HOST, and its firewall" ]]
	run rmemfsctl status /nowhere/socket
	[[ $output == *": no server listens there: No such file or directory: start rmemfs-server, or name its socket as HOST" ]]
	if [ ! -e /run/rmemfs/server.sock ]; then
		run rmemfsctl status
		[[ $output == *" or name its socket as HOST; for a mount: rmemfsctl mounts, or rmemfsctl status MOUNTPOINT" ]]
	fi
	chmod 600 "$socket"
	run "${nobody[@]}" rmemfsctl status "$socket"
	[ "$output" = "rmemfsctl: $socket: Permission denied: the socket is for root and the server's user: ask as one of these" ]
	run "${nobody[@]}" rmemfsctl who default / "$socket"
	[ "$output" = "rmemfsctl: $socket: Permission denied: the socket is for root and the server's user: ask as one of these" ]
	run rmemfsctl status "$socket"
	[ "$status" -eq 0 ]
	[[ $output == *default* ]]
	rmemfsctl quota --json "$socket" | jq -e '.exports[0].quotas == []'
	[ "$(rmemfsctl leases "$socket")" = "no mount shares an export" ]
	[ "$(rmemfsctl quota "$socket")" = "no export limits anybody" ]
	[[ $(rmemfsctl who default /a "$socket") == *$'\nexport default is not shared: its mounts take no leases' ]]
}

# Everybody who reaches an address may ask there, and may mount.
@test "by an address the server tells its versions, and where it tells the rest" {
	[ "$transport" != shm ] || return 0
	mount_rmem
	local at command
	at=$(listen_address)
	[ "$(rmemfsctl status --json "$at" | jq -r 'keys | join(" ")')" = "version wire_version" ]
	rmemfsctl status "$at" >"$dir/out"
	cat "$dir/out"
	grep -qE "^rmemfs-server [0-9.]+, wire version [0-9]+, round trip [0-9]+\.[0-9]+ ms$" "$dir/out"
	grep -qF "all else it tells by its socket, or to a key: run 'rmemfsctl status' on its machine, or with --key FILE" "$dir/out"
	[ "$(wc -l <"$dir/out")" -eq 2 ]
	for command in leases quota "leases --json"; do
		# shellcheck disable=SC2086 # words
		run rmemfsctl $command "$at"
		[ "$status" -eq 1 ]
		[ "$output" = "rmemfsctl: $at: strangers are not told this: run 'rmemfsctl ${command% *}' on the server's machine, or with --key FILE of a client whose access is \"status\"" ]
	done
	umount_rmem
	run rmemfs -c /dev/null -o "$(mount_options)" "$(mount_source nosuch)" "$mnt" 3>&-
	[ "$status" -ne 0 ]
	[[ $output == *": key test-"*" has no export 'nosuch' here" ]]
}

@test "file bytes go one-sided, none in RPCs" {
	mount_rmem
	random_file "$dir/a" "$(mib 64 16)"
	cp "$dir/a" "$mnt/a"
	remount
	cmp "$dir/a" "$mnt/a"
	until_true 20 counted "$(stat -c %s "$dir/a")"
	[ "$(status_of '[.. | .rpc_data_bytes? // empty] | add')" -eq 0 ]
}

# counted BYTES: the status shows so many read bytes; counters come with the heartbeat.
counted() {
	[ "$(status_of '[.. | .read_bytes? // empty] | add // 0')" -ge "$1" ]
}

hw_counter() {
	cat /sys/class/infiniband/*/ports/1/hw_counters/"$1"
}

# bats test_tags=only:verbs
@test "the device saw the bytes as one-sided packets, and few messages" {
	mount_rmem
	random_file "$dir/a" 16
	packets=$(hw_counter sent_pkts)
	messages=$(($(hw_counter rdma_sends) + $(hw_counter rdma_recvs)))
	cp "$dir/a" "$mnt/a"
	remount
	cmp "$dir/a" "$mnt/a"
	packets=$(($(hw_counter sent_pkts) - packets))
	messages=$(($(hw_counter rdma_sends) + $(hw_counter rdma_recvs) - messages))
	echo "$packets packets, $messages messages"
	# 32 MiB in packets of at most 4 KiB.
	[ "$packets" -ge 8192 ]
	[ "$messages" -lt 1000 ]
}

@test "nothing is left in the folders of a server that ended" {
	mount_rmem
	echo a >"$mnt/a"
	umount_rmem
	stop_server
	[ ! -e "$socket" ]
}
