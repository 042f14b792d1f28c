#!/usr/bin/env bats
# unseen.bats - daemons in PID namespaces of their own, as in containers. They can't see whether a signal
# kills the program that has sent a request.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts

setup() {
	setup_rmem
	mounts=()
	within=([1]="unshare --pid --fork --kill-child" [2]="unshare --pid --fork --kill-child")
	start_server
	cd "$dir" || return
}

teardown() {
	end_mounts
}

# work_alarmed FOLDER...: runs a program in each, which handles a signal all the time, until enough.
work_alarmed() {
	local at
	workers=()
	for at in "$@"; do
		fsop work-on-alarmed "$at" 3>&- &
		workers+=($!)
	done
}

enough() {
	local pid
	touch "$dir/enough"
	for pid in "${workers[@]}"; do
		exit_status "$pid" 20
	done
}

# is_killed PID: kills it; it must end in time.
is_killed() {
	kill -KILL "$1"
	exit_status "$1" 10 || [ $? -eq 137 ] || die "process $1 does not end"
}

@test "signals that programs handle end no call that waits for another mount" {
	share 1 2
	mkdir "$dir/1/d"
	work_alarmed "$dir/1/d" "$dir/2/d" "$dir/1/d" "$dir/2/d"
	pause 3
	enough
}

@test "signals that programs handle end no call while the server is started again" {
	mount_number 1
	mkdir "$dir/1"/{a,b,c,d}
	work_alarmed "$dir/1"/{a,b,c,d}
	pause 0.3
	kill_server
	pause 1
	kill -0 "${workers[@]}"
	start_server
	pause 0.3
	enough
}

@test "SIGKILL ends who waits for the server after interrupt_wait" {
	local pid
	mount_number 1 ,interrupt_wait=2
	echo old >"$dir/1/a"
	kill_server
	mkdir "$dir/1/d" 3>&- &
	pid=$!
	until_true 10 calling $pid mkdir
	is_killed $pid
	(echo new >"$dir/1/a") 3>&- &
	pid=$!
	until_true 10 calling $pid create
	is_killed $pid
	start_server
	rm "$dir/1/a"
}

@test "a signal that a program handles ends its wait for a lock at once" {
	local holder
	mount_number 1 ,share
	mount_number 2 ,share,interrupt_wait=600
	mkfifo "$dir/go"
	fsop hold-locks "$dir/1/a" <"$dir/go" >"$dir/held" 3>&- &
	holder=$!
	exec 4>"$dir/go"
	until_true 10 grep -q held "$dir/held"
	run timeout 20 fsop wait-for-lock-alarmed "$dir/2/a" 3>&- 4>&-
	[ "$status" -eq 1 ]
	[[ $output == *EINTR* || $output == *Interrupted* ]]
	exec 4>&-
	exit_status $holder 10
}
