#!/usr/bin/env bats
# shared_locks.bats - locks of files that several mounts write (-o share): a lock on one mount excludes
# those on all others.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts
load lockers

lease=2 # seconds
test_seconds=150

setup() {
	setup_rmem
	use_lease $lease
	mounts=()
	holders=()
}

teardown() {
	let_go_all
	! mountpoint -q "$dir/kernel" || umount "$dir/kernel"
	end_mounts
}

kill_mount() {
	kill -KILL "${mounts[$1]}"
	wait "${mounts[$1]}" || true
	unset "mounts[$1]"
}

# waits_are COUNT: what the helpers of lockers.bash ask.
waits_are() {
	wait_at_server "$1"
}

# wait_at_server COUNT: so many waits of all mounts are at the server.
wait_at_server() {
	[ "$(status_of '.exports[0].leases.lock_waits')" -eq "$1" ]
}

# ---- the owner -----------------------------------------------------------------------------------------

@test "who has a lock on one mount keeps those on the others out, until he lets go" {
	local kind
	begin 1 2
	for kind in flock process open; do
		start "$kind" locker hold $kind alone "$dir/1/file" 5
		says $kind got
		finds busy 2 $kind alone 5
		finds busy 2 $kind shared 5
		finds busy 1 $kind alone 5
		[ $kind = flock ] || finds got 2 $kind alone 6
		let_go $kind
		soon_finds got 2 $kind alone 5
	done
}

@test "shared locks are had by many, and keep out who wants one alone" {
	local kind n
	begin 1 2 3
	for kind in flock process open; do
		for n in 1 2; do
			start "$kind.$n" locker hold $kind shared "$dir/$n/file" 5
			says $kind.$n got
		done
		finds got 3 $kind shared 5
		finds busy 3 $kind alone 5
		let_go $kind.1
		finds busy 3 $kind alone 5
		let_go $kind.2
		soon_finds got 3 $kind alone 5
	done
}

@test "an exclusive lock of a read-only mount keeps out those that only read, and no writer" {
	start_server
	mount_number 1 ,share
	mount_number 2 ,ro,share
	mount_number 3 ,ro,share
	: >"$dir/1/file"
	start reader flock "$dir/2/file" sh -c 'echo got; read -r line'
	says reader got
	run flock -n "$dir/2/file" true
	[ "$status" -eq 1 ]
	run flock -n "$dir/3/file" true
	[ "$status" -eq 1 ]
	run flock -n -s "$dir/3/file" true
	[ "$status" -eq 1 ]
	finds got 1 flock shared 0
	finds got 1 flock alone 0
	rmemfsctl who default /file "$socket" | grep -E "^locked by .*flock exclusive lock, process [0-9]+, read-only$"
	let_go reader
	# A reader, in turn, waits for a writer.
	start writer locker hold flock alone "$dir/1/file" 0
	says writer got
	run flock -n -s "$dir/2/file" true
	[ "$status" -eq 1 ]
	start waiting flock "$dir/2/file" sh -c 'echo got; read -r line'
	until_true 20 wait_at_server 1
	let_go writer
	says waiting got
	finds got 1 flock alone 0
	let_go waiting
	# A reader that excludes only writers takes a shared lock, as on any mount.
	start shared flock -s "$dir/2/file" sh -c 'echo got; read -r line'
	says shared got
	finds busy 1 flock alone 0
	finds got 1 flock shared 0
	let_go shared
}

@test "locks of the whole file and of records are nothing to each other" {
	begin 1 2
	start one locker hold flock alone "$dir/1/file" 0
	says one got
	finds got 2 process alone 0
	finds busy 2 flock shared 0
}

@test "F_GETLK tells who has it" {
	begin 1 2
	start one locker hold process alone "$dir/1/file" 7
	says one got
	[ "$(locker get "$dir/1/file" 7)" = "alone $(cat "$dir/pid.one") 7 1" ]
	# Processes of another mount have no number here.
	[ "$(locker get "$dir/2/file" 7)" = "alone 0 7 1" ]
	[ "$(locker get "$dir/2/file" 8)" = free ]
	let_go one
	[ "$(locker get "$dir/2/file" 7)" = free ]
}

@test "a process loses its record locks with the first descriptor that it closes" {
	begin 1 2
	start one locker close "$dir/1/file"
	says one got
	finds busy 2 process alone 0
	tell one
	says one "got closed"
	finds got 2 process alone 0
}

@test "a lock on a file that is removed goes on, and ends with it" {
	local got
	begin 1 2
	start one locker hold process alone "$dir/1/file" 0
	says one got
	exec 5<>"$dir/2/file"
	rm "$dir/2/file"
	got=$(locker try process alone /dev/fd/5 0) || skip "descriptors can't be opened anew"
	[ "$got" = busy ]
	exec 5>&-
	let_go one
}

# The same cases hold as on a local filesystem, but for those that read the kernel's list of locks.
@test "on one mount locks are what they are elsewhere" {
	begin 1
	export RMEMFS_TEST_REMOTE_LOCKS=1
	syscalls flock "$dir/1"
	syscalls records "$dir/1"
	unset RMEMFS_TEST_REMOTE_LOCKS
}

# ---- waiting -------------------------------------------------------------------------------------

@test "who waits gets it when the other lets go" {
	local kind
	begin 1 2
	for kind in flock process open; do
		start "$kind.1" locker hold $kind alone "$dir/1/file" 3
		says $kind.1 got
		start "$kind.2" locker hold $kind alone "$dir/2/file" 3
		until_true 20 wait_at_server 1
		[ ! -s "$dir/said.$kind.2" ]
		let_go $kind.1
		says $kind.2 got
		let_go $kind.2
	done
}

@test "who waits is served in the order of coming" {
	local n
	begin 1 2
	start first locker hold flock alone "$dir/1/file" 0
	says first got
	for n in 1 2 3 4 5 6; do
		flock "$dir/$((n % 2 + 1))/file" -c "echo $n >>$dir/order" 3>&- &
		pids[n]=$!
		until_true 20 wait_at_server "$n"
	done
	let_go first
	wait "${pids[@]}"
	[ "$(tr -d '\n' <"$dir/order")" = 123456 ]
}

@test "a signal interrupts who waits, and he does not get it later" {
	local kind
	begin 1 2
	for kind in flock process open; do
		start "$kind" locker hold $kind alone "$dir/1/file" 0
		says $kind got
		start "$kind.waits" locker wait $kind alone "$dir/2/file" 0
		until_true 20 wait_at_server 1
		kill -ALRM "$(cat "$dir/pid.$kind.waits")"
		says "$kind.waits" interrupted
		let_go "$kind.waits"
		start "$kind.killed" locker hold $kind alone "$dir/2/file" 0
		until_true 20 wait_at_server 1
		kill -TERM "$(cat "$dir/pid.$kind.killed")"
		! wait "$(cat "$dir/pid.$kind.killed")" || false
		let_go $kind
		soon_finds got 1 $kind alone 0
		soon_finds got 2 $kind alone 0
	done
}

@test "two that wait for each other are told so" {
	begin 1 2
	wait_for_each_other "$dir/1/file" "$dir/1/file" "$dir/2/file" "$dir/2/file"
}

@test "two that wait for each other over two files are told so" {
	begin 1 2
	wait_for_each_other "$dir/1/file" "$dir/1/other" "$dir/2/other" "$dir/2/file"
}

@test "two that wait for each other over two files of one mount are told so" {
	begin 1
	wait_for_each_other "$dir/1/file" "$dir/1/other" "$dir/1/other" "$dir/1/file"
}

@test "many that wait hold up nobody else, and get it one after the other" {
	local n waiters=() many=600
	! small || many=150
	begin 1 2
	start first locker hold process alone "$dir/1/file" 0
	says first got
	for ((n = 0; n < many; n++)); do
		locker count process "$dir/2/file" 1 3>&- &
		waiters[n]=$!
	done
	until_true 50 wait_at_server $many
	random_file "$dir/bytes" 4
	cp "$dir/bytes" "$dir/2/bytes"
	cmp "$dir/bytes" "$dir/1/bytes"
	let_go first
	wait "${waiters[@]}"
	[ "$(cat "$dir/1/file")" -eq $many ]
}

# count_all KIND TIMES: counts on all mounts at once.
count_all() {
	local n pids=()
	rm -f "$dir/1/file"
	for n in "${!mounts[@]}"; do
		locker count "$1" "$dir/$n/file" "$2" 3>&- &
		pids+=($!)
		locker count "$1" "$dir/$n/file" "$2" 3>&- &
		pids+=($!)
	done
	for n in "${pids[@]}"; do
		wait "$n"
	done
	[ "$(cat "$dir/1/file")" -eq $((2 * ${#mounts[@]} * $2)) ]
}

@test "a number that all mounts count up under a lock is right" {
	local kind times=200
	! small || times=25
	begin 1 2 3 4
	for kind in flock process open; do
		count_all $kind $times
	done
}

# ---- ends ----------------------------------------------------------------------------------------

@test "locks of a mount that is killed are free after the lease time" {
	begin 1 2 3
	start one locker hold process alone "$dir/1/file" 0
	says one got
	start two locker hold process alone "$dir/2/file" 0
	until_true 20 wait_at_server 1
	kill_mount 1
	says two got
	let_go two
	umount -l "$dir/1"
	share 1
	start three locker hold flock alone "$dir/1/file" 0
	says three got
	kill_mount 1
	# A try without waiting, too, makes the server free the lock of the killed mount.
	soon_finds got 2 flock alone 0
	umount -l "$dir/1"
}

@test "locks and those that wait for them outlive the server" {
	local kind n
	begin 1 2
	for kind in flock process open; do
		start "$kind.1" locker hold $kind alone "$dir/1/$kind" 0
		says $kind.1 got
		start "$kind.2" locker hold $kind alone "$dir/2/$kind" 0
	done
	until_true 20 wait_at_server 3
	crash_server
	for kind in flock process open; do
		[ "$(locker try $kind alone "$dir/2/$kind" 0)" = busy ]
		[ ! -s "$dir/said.$kind.2" ]
		let_go $kind.1
		says $kind.2 got
		[ "$(locker try $kind alone "$dir/1/$kind" 0)" = busy ]
		let_go $kind.2
	done
}

@test "without the server who waits is interrupted at once" {
	begin 1 2
	start one locker hold process alone "$dir/1/file" 0
	says one got
	start two locker wait process alone "$dir/2/file" 0
	until_true 20 wait_at_server 1
	kill_server
	kill -ALRM "$(cat "$dir/pid.two")"
	says two interrupted
	start_server
	let_go one
	soon_finds got 2 process alone 0
}

# ---- the same as the kernel's ----------------------------------------------------------------------

# twins STEPS MOUNT...
twins() {
	local n paths=() seed=${RMEMFS_TEST_SEED:-$RANDOM}
	for n in "${@:2}"; do
		paths+=("$dir/$n/twin")
	done
	timeout -k 1 100 lock_twins "$seed" "$1" \
		"rmemfsctl status --json '$socket' | jq '.exports[0].leases.lock_waits'" \
		"$dir/kernel/twin" "${paths[@]}" 3>&-
}

@test "random work with locks does on one mount, and on two, what it does on a tmpfs" {
	begin 1 2
	mkdir "$dir/kernel"
	mount -t tmpfs none "$dir/kernel"
	twins 300 1
	twins 300 1 2
}

# ---- programs ------------------------------------------------------------------------------------

# insert MOUNT TIMES
insert() {
	local i
	for ((i = 0; i < $2; i++)); do
		sqlite3 -cmd '.timeout 60000' "$dir/$1/base" "INSERT INTO t VALUES ($1, $i)" || return 1
	done
}

@test "a database of SQLite is used from all mounts at once" {
	local n pids=() times=25
	command -v sqlite3 >/dev/null || skip "sqlite3 is not there"
	! small || times=5
	begin 1 2 3 4
	sqlite3 "$dir/1/base" 'CREATE TABLE t (mount, i)'
	for n in 1 2 3 4; do
		insert $n $times 3>&- &
		pids+=($!)
	done
	for n in "${pids[@]}"; do
		wait "$n"
	done
	for n in 1 2 3 4; do
		[ "$(sqlite3 "$dir/$n/base" 'SELECT COUNT(*) FROM t; PRAGMA integrity_check')" = "$((4 * times))
ok" ]
	done
}
