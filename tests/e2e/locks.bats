#!/usr/bin/env bats
# locks.bats - the kernel alone keeps the locks here: neither a server nor the daemon's threads take part.

load helpers

setup() {
	setup_rmem
	start_server
	mount_rmem
}

teardown() {
	teardown_rmem
}

# Holds a lock of each kind until let_go.
hold() {
	mkfifo "$dir/go"
	fsop hold-locks "$1" <"$dir/go" >"$dir/held" 3>&- &
	holder=$!
	exec 4>"$dir/go"
	until_true 10 grep -q held "$dir/held"
}

let_go() {
	exec 4>&-
	wait "$holder"
}

@test "locks hold while the server is killed and started again" {
	hold "$mnt/a"
	[ "$(fsop count-locks "$mnt/a")" -eq 3 ]
	crash_server 4>&-
	[ "$(fsop count-locks "$mnt/a")" -eq 3 ]
	echo b >"$mnt/b"
	[ "$(cat "$mnt/b")" = b ]
	let_go
	[ "$(fsop count-locks "$mnt/a")" -eq 0 ]
}

# waiting COUNT: so many callers wait for a lock that the mount answers by itself.
waiting() {
	[ "$(rmemfsctl status --json "$mnt" | jq .locks.waits)" = "$1" ]
}

@test "who waits for a lock holds up nobody else" {
	hold "$mnt/a"
	for ((i = 0; i < 100; i++)); do
		fsop wait-for-lock "$mnt/a" 4>&- 3>&- &
		waiters[i]=$!
	done
	until_true 20 waiting 100
	random_file "$dir/b" 4
	cp "$dir/b" "$mnt/b"
	mkdir "$mnt/d"
	mv "$mnt/b" "$mnt/d/"
	cmp "$dir/b" "$mnt/d/b"
	let_go
	wait "${waiters[@]}"
}

@test "who waits for a lock is ended by SIGKILL, also without a server" {
	hold "$mnt/a"
	fsop wait-for-lock "$mnt/a" 4>&- 3>&- &
	waiter=$!
	until_true 20 waiting 1
	kill_server
	kill -KILL $waiter
	status=0
	wait $waiter || status=$?
	[ $status -eq 137 ]
	start_server 4>&-
	let_go
}
