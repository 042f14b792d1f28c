#!/usr/bin/env bats
# twins.bats - mounts at the same place of the same machine. The server tells live ones apart, even in two
# containers that are otherwise equal. A dead one makes room for the next at once.

# shellcheck disable=SC2154,SC2030,SC2031 # what helpers set, in tests that are subshells
load helpers

setup() {
	setup_rmem
	twins=()
	# This is longer than a test, so that no test waits for its end.
	use_lease 600
	start_server
}

teardown() {
	local pid failed=0
	if [ -n "${BATS_TEST_COMPLETED:-}" ]; then
		for pid in "${twins[@]}"; do
			nsenter -t "$pid" -m umount "$mnt" || failed=1
			exit_status "$pid" 10 || failed=1
		done
	else
		kill -KILL "${twins[@]}" 2>/dev/null || true
	fi
	teardown_rmem
	return $failed
}

# twin_mounts PID: it has mounted, or has ended.
twin_mounts() {
	! alive "$1" || nsenter -t "$1" -m mountpoint -q "$mnt"
}

# twin N [OPTION]: mounts the export at $mnt in a mount namespace of its own, like a container with the
# host's network.
twin() {
	unshare -m --propagation private rmemfs -f -c /dev/null -o "$(mount_options)${2:+,$2}" \
		"$(mount_source)" "$mnt" >>"$dir/twin.$1.log" 2>&1 3>&- &
	twins[$1]=$!
	echo $! >"$dir/twin.$1.pid"
	until_true 30 twin_mounts "${twins[$1]}"
	alive "${twins[$1]}" || die "twin $1: $(cat "$dir/twin.$1.log")"
}

# in_twin N COMMAND...
in_twin() {
	nsenter -t "${twins[$1]}" -m "${@:2}"
}

kill_twin() {
	kill -KILL "${twins[$1]}"
	exit_status "${twins[$1]}" 10 || [ $? -eq 137 ]
	unset "twins[$1]"
}

# refused: prints the message of a mount at the same place that must be refused. In an emulated guest the
# server may need more than a second to answer.
refused() {
	local seconds=1
	! small || seconds=8
	! timeout 20 rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=$seconds" "$(mount_source)" "$mnt" 2>&1 3>&-
}

nsessions() {
	[ "$(status_of '.sessions | length')" = "$1" ]
}

nobody_lost_anything() {
	! grep -E 'session lost|mounted again at the same place' "$dir"/*.log
}

@test "a mount that writes is not ended by one at the same place of another mount namespace" {
	local said
	twin 1 exclusive
	in_twin 1 sh -c "echo before >'$mnt/file'"
	said=$(refused)
	echo "$said"
	[[ $said == *"is in use by"*"waiting for that, for "[1-8]" s at most"* ]]
	[[ $said == *"lives on in the mount namespace of process ${twins[1]} (rmemfs)"* ]] ||
		! grep -qs fuse_connection /proc/"${twins[1]}"/fdinfo/*
	in_twin 1 sh -c "echo after >>'$mnt/file' && sync '$mnt/file'"
	[ "$(in_twin 1 cat "$mnt/file")" = $'before\nafter' ]
	nobody_lost_anything
}

nobody_waited() {
	! grep 'waiting for that' "$dir"/*.log
}

# both_live OPTION
both_live() {
	mount_rmem
	echo here >"$mnt/file"
	umount_rmem
	twin 1 "$1"
	twin 2 "$1"
	nsessions 2
	[ "$(in_twin 1 cat "$mnt/file")" = here ]
	[ "$(in_twin 2 cat "$mnt/file")" = here ]
	nobody_lost_anything
	# Each killed mount makes room for its own successor only.
	kill_twin 1
	twin 1 "$1"
	until_true 10 nsessions 2
	kill_twin 2
	twin 2 "$1"
	until_true 10 nsessions 2
	[ "$(in_twin 1 cat "$mnt/file")" = here ]
	[ "$(in_twin 2 cat "$mnt/file")" = here ]
	! grep 'session lost' "$dir"/*.log
}

@test "mounts at the same place of two mount namespaces read side by side" {
	both_live ro
}

@test "mounts at the same place of two mount namespaces write, and each has its locks" {
	stop_server
	use_lease 4
	start_server
	both_live ''
	nsenter -t "${twins[1]}" -m sh -c "exec 9<'$mnt/file'; flock 9; echo; exec sleep 1000" \
		>"$dir/locked" 3>&- &
	locker=$!
	until_true 10 test -s "$dir/locked"
	run in_twin 2 flock -n "$mnt/file" true
	kill $locker
	wait $locker || true
	[ "$status" -eq 1 ]
}

@test "a mount that lives on after umount -l goes on, and the next is told what keeps it" {
	local said
	mount_rmem -o exclusive
	exec {fd}>"$mnt/file"
	echo before >&$fd
	umount -l "$mnt"
	said=$(refused)
	echo "$said"
	[[ $said == *"is in use by $(hostname):$mnt (pid $daemon_pid)"* ]]
	if grep -qs fuse_connection /proc/"$daemon_pid"/fdinfo/*; then
		[[ $said == *"was unmounted, but lives on: process "*" has a file or directory of it open: end that process"* ]]
	fi
	echo after >&$fd
	exec {fd}>&-
	exit_status "$daemon_pid" 10
	daemon_pid=''
	mount_rmem
	[ "$(cat "$mnt/file")" = $'before\nafter' ]
	nobody_lost_anything
}

# bats test_tags=once
@test "a mount that lives on in a copy of the mount namespace is named, and how to end it" {
	local said copy
	mount_rmem -o exclusive
	unshare -m --propagation private sleep 1000 3>&- &
	copy=$!
	until_true 10 grep -qs sleep /proc/$copy/comm
	umount "$mnt"
	said=$(refused)
	echo "$said"
	[[ $said == *"is in use by $(hostname):$mnt (pid $daemon_pid)"* ]]
	if grep -qs fuse_connection /proc/"$daemon_pid"/fdinfo/*; then
		[[ $said == *"lives on in the mount namespace of process $copy (sleep): end that process, or run 'nsenter -t $copy -m -r umount $mnt'"* ]]
	fi
	nsenter -t $copy -m umount "$mnt"
	exit_status "$daemon_pid" 10
	daemon_pid=''
	kill $copy
	wait $copy || true
	mount_rmem
}

@test "where a daemon was killed the next mount gets in at once" {
	local n
	for n in 1 2; do
		mount_rmem
		echo $n >"$mnt/file"
		sync "$mnt/file"
		kill -KILL "$daemon_pid"
		umount -l "$mnt"
	done
	exit_status "$daemon_pid" 10 || [ $? -eq 137 ]
	daemon_pid=''
	mount_rmem
	[ "$(cat "$mnt/file")" = 2 ]
	grep -q 'has ended: it was mounted again at the same place' "$dir/server.log"
}

# The mount before may not have ended yet. It must own the place all the same, or a kill is not noticed.
@test "umount and mount at once, and a kill after that, make nobody wait" {
	local n daemons=()
	for n in 1 2 3 4 5; do
		mount_rmem
		daemons+=("$daemon_pid")
		echo $n >"$mnt/file"
		umount "$mnt"
	done
	for n in 0 1 2 3 4; do
		exit_status "${daemons[n]}" 10
	done
	mount_rmem
	kill_daemon
	mount_rmem
	[ "$(cat "$mnt/file")" = 5 ]
	nobody_waited
}

@test "a mount that waits for another says so, and gets in when that one is unmounted" {
	twin 1 exclusive
	rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=60" "$(mount_source)" "$mnt" \
		>>"$dir/daemon.log" 2>&1 3>&- &
	daemon_pid=$!
	until_true 10 grep -q 'is in use by .*; waiting for that, for [1-6][0-9] s at most' "$dir/daemon.log"
	in_twin 1 umount "$mnt"
	exit_status "${twins[1]}" 10
	unset "twins[1]"
	until_true 10 mountpoint -q "$mnt"
	[ "$(grep -c 'waiting for that' "$dir/daemon.log")" = 1 ]
	echo in >"$mnt/file"
}

# It takes over the mount that it waits for, as the next mount would.
@test "a mount that waits for another gets in when that one is killed" {
	twin 1 exclusive
	rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=60" "$(mount_source)" "$mnt" \
		>>"$dir/daemon.log" 2>&1 3>&- &
	daemon_pid=$!
	until_true 10 grep -q 'waiting for that' "$dir/daemon.log"
	kill_twin 1
	until_true 10 mountpoint -q "$mnt"
	echo in >"$mnt/file"
}
