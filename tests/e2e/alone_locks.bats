#!/usr/bin/env bats
# alone_locks.bats - a mount that has its export alone answers locks by itself, and the server
# learns of them before another mount is let in.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts
load lockers

test_seconds=120

setup() {
	setup_rmem
	mounts=()
	holders=()
}

teardown() {
	let_go_all
	! mountpoint -q "$dir/kernel" || umount "$dir/kernel"
	end_mounts
}

# locks_of N WHAT: `had` or `waits` of mount N itself; null: it keeps none.
locks_of() {
	rmemfsctl status --json "$dir/$1" | jq ".locks.$2"
}

# waits_are COUNT: so many callers wait in mount 1, which is alone.
waits_are() {
	[ "$(locks_of 1 waits)" = "$1" ]
}

wait_at_server() {
	[ "$(status_of '.exports[0].leases.lock_waits')" -eq "$1" ]
}

has_none_at_server() {
	[ "$(status_of '.exports[0].leases.locks')" -eq 0 ]
}

# rpcs COMMAND...: how many the server has got meanwhile.
rpcs() {
	local before
	before=$(status_of '.sessions[0].requests')
	"$@" >&2
	echo $(($(status_of '.sessions[0].requests') - before))
}

@test "a thousand locks cost no message" {
	local kind none all
	start_server
	come 1
	echo here >"$dir/1/file"
	for kind in flock process open; do
		none=$(rpcs locker spin $kind "$dir/1/file" 0)
		all=$(rpcs locker spin $kind "$dir/1/file" 1000)
		echo "$kind: $all RPCs, $none of them to open the file"
		[ "$all" -le $((none + 1)) ]
	done
	[ "$(locks_of 1 had)" = 0 ]
	has_none_at_server
}

# ---- as elsewhere --------------------------------------------------------------------------------

# bats test_tags=once
@test "locks are what they are elsewhere" {
	start_server
	come 1
	export RMEMFS_TEST_REMOTE_LOCKS=1
	syscalls flock "$dir/1"
	syscalls records "$dir/1"
	unset RMEMFS_TEST_REMOTE_LOCKS
	[ "$(locks_of 1 had)" = 0 ]
	has_none_at_server
}

# bats test_tags=once
@test "random work with locks does what it does on a tmpfs" {
	local seed=${RMEMFS_TEST_SEED:-$RANDOM}
	start_server
	come 1
	mkdir "$dir/kernel"
	mount -t tmpfs none "$dir/kernel"
	timeout -k 1 100 lock_twins "$seed" 400 "rmemfsctl status --json '$dir/1' | jq .locks.waits" \
		"$dir/kernel/twin" "$dir/1/twin" 3>&-
	[ "$(locks_of 1 had)" = 0 ]
	has_none_at_server
}

# bats test_tags=once
@test "who waits gets it when the other lets go, in the order of coming" {
	local kind n
	start_server
	come 1
	for kind in flock process open; do
		start first locker hold $kind alone "$dir/1/file" 3
		says first got
		for n in 1 2 3; do
			start "$n" locker hold $kind alone "$dir/1/file" 3
			until_true 20 waits_are "$n"
		done
		let_go first
		for n in 1 2 3; do
			says "$n" got
			waits_are $((3 - n))
			let_go "$n"
		done
		rm "$dir"/to.*
	done
}

# bats test_tags=once
@test "a signal interrupts who waits, and he does not get it later" {
	local kind
	start_server
	come 1
	for kind in flock process open; do
		start "$kind" locker hold $kind alone "$dir/1/file" 0
		says $kind got
		start "$kind.waits" locker wait $kind alone "$dir/1/file" 0
		until_true 20 waits_are 1
		kill -ALRM "$(cat "$dir/pid.$kind.waits")"
		says "$kind.waits" interrupted
		let_go "$kind.waits"
		start "$kind.killed" locker hold $kind alone "$dir/1/file" 0
		until_true 20 waits_are 1
		kill -KILL "$(cat "$dir/pid.$kind.killed")"
		! wait "$(cat "$dir/pid.$kind.killed")" || false
		until_true 20 waits_are 0
		let_go $kind
		soon_finds got 1 $kind alone 0
	done
}

# bats test_tags=once
@test "two that wait for each other are told so, also over two files" {
	start_server
	come 1
	wait_for_each_other "$dir/1/file" "$dir/1/file" "$dir/1/file" "$dir/1/file"
	let_go_all
	rm "$dir"/to.*
	wait_for_each_other "$dir/1/file" "$dir/1/other" "$dir/1/other" "$dir/1/file"
}

# bats test_tags=once
@test "many that wait hold up nobody else, and count up right" {
	local n waiters=() many=300
	! small || many=100
	start_server
	come 1
	start first locker hold process alone "$dir/1/file" 0
	says first got
	for ((n = 0; n < many; n++)); do
		locker count process "$dir/1/file" 1 3>&- &
		waiters[n]=$!
	done
	until_true 50 waits_are $many
	random_file "$dir/bytes" 4
	cp "$dir/bytes" "$dir/1/bytes"
	cmp "$dir/bytes" "$dir/1/bytes"
	let_go first
	wait "${waiters[@]}"
	[ "$(cat "$dir/1/file")" -eq $many ]
	for kind in flock process open; do
		rm "$dir/1/file"
		waiters=()
		for n in 1 2 3 4; do
			locker count $kind "$dir/1/file" 200 3>&- &
			waiters[n]=$!
		done
		wait "${waiters[@]}"
		[ "$(cat "$dir/1/file")" -eq 800 ]
	done
}

# bats test_tags=once
@test "without the server locks are had, given up, waited for and interrupted" {
	start_server
	come 1
	: >"$dir/1/file"
	start one locker hold process alone "$dir/1/file" 0
	says one got
	start two locker wait process alone "$dir/1/file" 0
	start three locker hold process alone "$dir/1/file" 0
	until_true 20 waits_are 2
	kill_server
	kill -ALRM "$(cat "$dir/pid.two")"
	says two interrupted
	tell one
	says three got
	start_server
	let_go two
	let_go three
}

# ---- another mount comes -------------------------------------------------------------------------

# Each kind of lock is had, and two callers wait for it. `split` has pieces of both types.
take_all() {
	local kind n
	for kind in flock process open; do
		start $kind locker hold $kind alone "$dir/1/$kind" 3
		says $kind got
		for n in 1 2; do
			start $kind.$n locker hold $kind alone "$dir/1/$kind" 3
		done
	done
	start shared locker hold process shared "$dir/1/shared" 3
	says shared got
	start unlinked locker hold flock alone "$dir/1/unlinked" 0
	says unlinked got
	rm "$dir/1/unlinked"
	until_true 20 waits_are 6
	[ "$(locks_of 1 had)" = 5 ]
	has_none_at_server
}

# Mount 2 is there.
all_are_respected() {
	local kind
	[ "$(locks_of 1 had)" = null ]
	[ "$(status_of '.exports[0].leases.locks')" -eq 5 ]
	until_true 20 wait_at_server 6
	for kind in flock process open; do
		[ "$(locker try $kind alone "$dir/2/$kind" 3)" = busy ]
		[ ! -s "$dir/said.$kind.1" ]
		[ ! -s "$dir/said.$kind.2" ]
	done
	[ "$(locker try process shared "$dir/2/shared" 3)" = got ]
	[ "$(locker try process alone "$dir/2/shared" 3)" = busy ]
	# The one that comes from the other mount is the last.
	start other locker hold process alone "$dir/2/process" 3
	until_true 20 wait_at_server 7
}

all_go_on() {
	local kind first second
	for kind in flock process open; do
		let_go $kind
		until_true 20 any_has $kind
		first=1 second=2
		[ -s "$dir/said.$kind.1" ] || first=2 second=1
		[ "$(locker try $kind alone "$dir/2/$kind" 3)" = busy ]
		let_go $kind.$first
		says $kind.$second got
		let_go $kind.$second
	done
	says other got
	let_go other
	let_go shared
	let_go unlinked
	until_true 20 has_none_at_server
}

any_has() {
	[ -s "$dir/said.$1.1" ] || [ -s "$dir/said.$1.2" ]
}

@test "locks that are had when another mount comes keep it out, and who waits goes on to wait" {
	start_server
	come 1
	take_all
	come 2
	all_are_respected
	all_go_on
	nobody_was_late
}

@test "a server that is killed while it learns of the locks has all of them when it is back" {
	local point
	for point in lock.stored:1 lock.stored:4; do
		start_server
		come 1
		take_all
		kill_server
		spawn_armed $point
		coming 2
		expect_death $point
		start_server
		arrived 2
		all_are_respected
		all_go_on
		end_mount 1
		end_mount 2
		stop_server
		rm -f "$dir"/to.* "$dir"/said.*
	done
}

# bats test_tags=nightly
@test "pieces of a file that many have are had when another mount comes" {
	local n
	start_server
	come 1
	start pieces locker pieces "$dir/1/file" 3000
	says pieces got
	[ "$(locks_of 1 had)" = 3000 ]
	come 2
	[ "$(status_of '.exports[0].leases.locks')" -eq 3000 ]
	for n in 0 2 2998 5998; do finds busy 2 process shared $n; done
	for n in 1 3 5997 5999; do finds got 2 process alone $n; done
	let_go pieces
	until_true 20 has_none_at_server
	nobody_was_late
}

# has_shared FILE: has it locked by a descriptor that reads.
has_shared() {
	# shellcheck disable=SC2016 # the inner shell's
	bash -c 'exec 7<"$1"; flock -s 7 && echo got; read -r' bash "$1"
}

@test "before a mount is remounted read-only the server has its locks" {
	start_server
	come 1
	: >"$dir/1/file"
	start one has_shared "$dir/1/file"
	says one got
	start two has_shared "$dir/1/file"
	says two got
	[ "$(locks_of 1 had)" = 2 ]
	rmemfs -c /dev/null -o remount,ro "$(mount_source)" "$dir/1" 3>&-
	[ "$(locks_of 1 had)" = null ]
	[ "$(status_of '.exports[0].leases.locks')" -eq 2 ]
	come 2 ,ro
	[ "$(rmemfsctl status --json "$dir/1" | jq .options.share)" = false ]
	! flock -n "$dir/2/file" true || die "both have it"
	let_go one
	let_go two
	until_true 20 flock -n "$dir/2/file" true
}

# bats test_tags=nightly
@test "it keeps locks by itself again when it is alone again" {
	use_lease 2
	start_server
	come 1
	come 2
	[ "$(locks_of 1 had)" = null ]
	start one locker hold flock alone "$dir/1/file" 0
	says one got
	end_mount 2
	let_go one
	until_true 40 is_alone_again
	start one.again locker hold flock alone "$dir/1/file" 0
	says one.again got
	has_none_at_server
	come 2
	finds busy 2 flock alone 0
	let_go one.again
	soon_finds got 2 flock alone 0
}

is_alone_again() {
	[ "$(locks_of 1 had)" = 0 ]
}

@test "locks that are had or waited for when it is alone again stay at the server" {
	needs_linux_6_9 "before, it is not alone again while a file is open"
	use_lease 1
	start_server
	come 1
	come 2
	start one locker hold process alone "$dir/1/file" 0
	says one got
	start two locker hold process alone "$dir/1/file" 0
	until_true 20 wait_at_server 1
	end_mount 2
	until_true 40 is_alone 1
	[ "$(locks_of 1 had)" = null ]
	finds busy 1 process alone 0
	start three locker hold open alone "$dir/1/file" 1
	says three got
	come 2
	finds busy 2 process alone 0
	finds busy 2 process alone 1
	let_go three
	end_mount 2
	until_true 40 is_alone 1
	let_go one
	says two got
	finds busy 1 process alone 0
	let_go two
	soon_finds got 1 process alone 0
	come 2
	finds got 2 process alone 0
}

# bats test_tags=fenced,nightly
@test "locks of a session that was ended are lost, and their file fails until it is closed" {
	use_lease 2
	start_server
	come 1
	start one locker hold flock alone "$dir/1/file" 0
	says one got
	start two locker hold flock alone "$dir/1/file" 0
	until_true 20 waits_are 1
	suspend "${mounts[1]}"
	come 2
	finds got 2 flock alone 0
	kill -CONT "${mounts[1]}"
	until_true 30 grep -q 'its locks are lost with the session' "$dir/mount.1.log"
	[ "$(locks_of 1 had)" = null ]
	let_go one
	until_true 20 test -s "$dir/said.two"
	let_go two || true
	soon_finds got 1 flock alone 0
}
