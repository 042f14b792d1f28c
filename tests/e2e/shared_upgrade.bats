#!/usr/bin/env bats
# shared_upgrade.bats - a mount that shares its export (-o share) moves to another daemon, while programs use it
# and another mount. If that fails, the daemon that has it goes on.
bats_require_minimum_version 1.5.0

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts
load carry

setup() {
	setup_rmem
	mounts=()
	moved=()
}

# A daemon that has taken a mount over is no child of the test: its log tells how it has ended.
teardown() {
	local failed=0 n
	for n in "${!moved[@]}"; do
		[ -z "${BATS_TEST_COMPLETED:-}" ] || end_moved "$n" || failed=1
		ended "${moved[n]}" || kill -KILL "${moved[n]}"
	done
	end_mounts && [ $failed -eq 0 ]
}

end_moved() {
	umount "$dir/$1" && until_true 10 ended "${moved[$1]}" && grep -q 'is unmounted$' "$dir/mount.$1.log"
}

pid_of() {
	rmemfsctl status "$dir/$1" --json | jq .pid
}

# taken N OLD: mount N was taken over from process OLD, which ends.
taken() {
	local n=$1
	if [ "$2" = "${mounts[n]:-}" ]; then
		exit_status "$2" 10 || die "the old daemon ended with status $?"
		unset "mounts[$n]"
	else
		until_true 10 ended "$2"
	fi
	moved[n]=$(pid_of "$n")
	echo "${moved[n]}" >"$dir/mount.$n.pid"
	[ "${moved[n]}" != "$2" ]
}

upgrade() {
	rmemfsctl upgrade "$dir/$1" >>"$dir/mount.$1.log" 2>&1 3>&-
}

# move N: mount N is another daemon's after it.
move() {
	local old
	old=$(pid_of "$1")
	upgrade "$1"
	taken "$1" "$old"
}

# may_move N: the same, unless operations take too long, as on a slow machine. Then the mount stays. The daemon
# may write into the log, too, behind what the upgrade has said.
may_move() {
	local old nlines
	old=$(pid_of "$1")
	nlines=$(wc -l <"$dir/mount.$1.log")
	if upgrade "$1"; then
		taken "$1" "$old"
		nmoves=$((nmoves + 1))
	else
		tail -n +$((nlines + 1)) "$dir/mount.$1.log" | grep -q '^rmemfs: .* have not ended within'
		[ "$(pid_of "$1")" = "$old" ]
	fi
}

# stays N COMMAND...: the upgrade fails, and the daemon that has the mount goes on with it.
stays() {
	local n=$1 old status=0
	old=$(pid_of "$n")
	"${@:2}" >>"$dir/mount.$n.log" 2>&1 3>&- || status=$?
	[ $status -ne 0 ]
	[ "$(pid_of "$n")" = "$old" ]
}

# start NAME COMMAND...: a program whose output `said` shows, and which goes on when `tell NAME` says so.
start() {
	local name=$1 fd
	mkfifo "$dir/to.$name"
	"${@:2}" <"$dir/to.$name" >"$dir/said.$name" 2>&1 3>&- &
	echo $! >"$dir/pid.$name"
	exec {fd}>"$dir/to.$name"
	echo "$fd" >"$dir/fd.$name"
}

said() {
	[ "$(tr '\n' ' ' <"$dir/said.$1")" = "$2 " ]
}

says() {
	until_true 20 said "$1" "$2" || die "$1 said: $(cat "$dir/said.$1")"
}

tell() {
	echo >&"$(cat "$dir/fd.$1")"
}

# keep NAME FILE [COMMAND...]: a program that has the file open, and writes a line whenever it is told to; first
# COMMAND is run with the file as descriptor 7. The test's own shell has no file of a mount that stands: each of
# its processes would wait to flush it.
keep() {
	# shellcheck disable=SC2016 # the inner shell's
	start "$1" bash -c 'exec 7<>"$1"; shift; "${@:-true}"; echo before >&7 && echo wrote
		while read -r line && [ -z "$line" ]; do echo after >&7 2>/dev/null && echo wrote || echo failed; done' bash "$2" "${@:3}"
}

# let_go NAME: the program goes on to its end.
let_go() {
	local fd pid
	fd=$(cat "$dir/fd.$1") pid=$(cat "$dir/pid.$1")
	echo end >&"$fd"
	exec {fd}>&-
	exit_status "$pid" 20 || die "$1 ended with status $?"
}

wait_at_server() {
	[ "$(status_of '.exports[0].leases.lock_waits')" -eq "$1" ]
}

# ---- it moves -------------------------------------------------------------------------------------

@test "open files, locks, mappings and a directory in part outlive the daemon, and the other mount sees all of it" {
	begin 1 2
	begin_carrying "$dir/1/carried"
	move 1
	try_carried
	[ "$(stat -c %s "$dir/2/carried/appended")" -eq 2 ]
	move 1
	try_carried
	move 2
	cmp "$dir/1/carried/kept" "$dir/2/carried/kept"
	try_carried
	end_carrying
	[ "$(find "$dir/2/carried" -type f | wc -l)" -eq 307 ]
	[ "$(status_of '.sessions | length')" -eq 2 ]
	nobody_was_late
}

# locks_of N WHAT: `had` or `waits` of mount N itself, while it is alone.
locks_of() {
	rmemfsctl status --json "$dir/$1" | jq ".locks.$2"
}

wait_here() {
	[ "$(locks_of 1 waits)" -eq "$1" ]
}

# bats test_tags=once
@test "a mount moves while it is alone, and shares with another one after that" {
	local kind waits had
	start_server
	come 1
	begin_carrying "$dir/1/carried"
	waits=$(locks_of 1 waits)
	printf 'a%.0s' {1..8192} >"$dir/1/mapped"
	start map fsop map-and-answer "$dir/1/mapped"
	tell map
	until_true 20 test -s "$dir/said.map"
	if grep -q ENODEV "$dir/said.map"; then skip "MAP_SHARED needs Linux 6.9"; fi
	for kind in flock process open; do
		start $kind locker hold $kind alone "$dir/1/$kind" 5
		says $kind got
		start $kind.1 locker hold $kind alone "$dir/1/$kind" 5
	done
	until_true 20 wait_here $((waits + 3))
	had=$(locks_of 1 had)
	[ "$(status_of '.exports[0].leases.locks')" = 0 ]
	start old old_reader read "$dir/1/old" "$dir/2/old" 5
	until_true 20 grep -q open "$dir/said.old"
	move 1
	try_carried
	is_alone 1
	wait_here $((waits + 3))
	[ "$(locks_of 1 had)" = "$had" ]
	for kind in flock process open; do
		[ "$(locker try $kind alone "$dir/1/$kind" 5)" = busy ]
	done
	come 2
	is_sharing 1
	[ "$(stat -c %s "$dir/2/carried/appended")" -eq 2 ]
	for kind in flock process open; do
		[ "$(locker try $kind alone "$dir/2/$kind" 5)" = busy ]
		let_go $kind
		says $kind.1 got
		let_go $kind.1
		[ "$(locker try $kind alone "$dir/2/$kind" 5)" = got ]
	done
	move 1
	try_carried
	is_sharing 1
	cmp "$dir/1/carried/kept" "$dir/2/carried/kept"
	printf b | dd of="$dir/2/mapped" conv=notrunc status=none
	tell map
	says map 'a b'
	wait "$(cat "$dir/pid.old")" || die "$(cat "$dir/said.old")"
	# Other programs have inherited the pipe, so it has no end.
	kill "$(cat "$dir/pid.map")"
	end_carrying
	nobody_was_late
}

# bats test_tags=nightly
@test "a mount does not move while it begins to share" {
	local old
	start_server
	come 1
	old=$(pid_of 1)
	mkdir "$dir/2"
	rmemfs -f -c /dev/null -o "$(mount_options)" "$(mount_source)" "$dir/2" \
		>>"$dir/mount.2.log" 2>&1 3>&- &
	mounts[2]=$!
	until_true 20 is_sharing 1
	if ! mountpoint -q "$dir/2"; then
		! upgrade 1 || return 1
		grep -q 'begins to share its export' "$dir/mount.1.log"
		[ "$(pid_of 1)" = "$old" ]
	fi
	until_true 60 mountpoint -q "$dir/2"
	move 1
	echo here >"$dir/2/file"
	[ "$(cat "$dir/1/file")" = here ]
	nobody_was_late
}

# Each has one kind of lock in 1, and one who waits for it in each mount. Both mounts move, in turn.
@test "locks and waits for them move with their owners, on both sides" {
	local kind n
	begin 1 2
	for kind in flock process open; do
		start $kind locker hold $kind alone "$dir/1/$kind" 5
		says $kind got
		start $kind.1 locker hold $kind alone "$dir/1/$kind" 5
		until_true 20 wait_at_server 1
		start $kind.2 locker hold $kind alone "$dir/2/$kind" 5
		until_true 20 wait_at_server 2
		move 1
		move 2
		wait_at_server 2
		for n in 1 2; do
			[ "$(locker try $kind alone "$dir/$n/$kind" 5)" = busy ]
			[ ! -s "$dir/said.$kind.$n" ]
		done
		let_go $kind
		says $kind.1 got
		[ ! -s "$dir/said.$kind.2" ]
		let_go $kind.1
		says $kind.2 got
		move 2
		[ "$(locker try $kind alone "$dir/1/$kind" 5)" = busy ]
		let_go $kind.2
		[ "$(locker try $kind alone "$dir/1/$kind" 5)" = got ]
	done
	[ "$(status_of '.exports[0].leases.locks')" -eq 0 ]
	nobody_was_late
}

@test "a caller that waits for a lock is interrupted by a signal after the move" {
	begin 1 2
	start holder locker hold process alone "$dir/2/file" 5
	says holder got
	start waiter locker wait process alone "$dir/1/file" 5
	until_true 20 wait_at_server 1
	move 1
	kill -ALRM "$(cat "$dir/pid.waiter")"
	says waiter interrupted
	until_true 20 wait_at_server 0
	let_go waiter
	let_go holder
}

@test "what is removed while it is open lives on, whoever removes it and whichever mount moves" {
	local n
	begin 1 2
	for n in 1 2; do
		echo "of $n" >"$dir/$n/file.$n"
	done
	exec 7<>"$dir/1/file.1" 8<>"$dir/1/file.2"
	rm "$dir/1/file.1" "$dir/2/file.2"
	move 1
	[ "$(cat <&7)" = 'of 1' ]
	[ "$(cat <&8)" = 'of 2' ]
	echo more >&8
	move 1
	move 2
	[ "$(stat -L -c %h:%s /proc/self/fd/8)" = 0:10 ]
	exec 7>&- 8>&-
	[ -z "$(ls -A "$dir/2")" ]
	nobody_was_late
}

@test "what one has written and not committed, and what it has mapped, the other reads after the move" {
	begin 1 2
	random_file "$dir/data" 2
	exec 7<>"$dir/1/file"
	cat "$dir/data" >&7
	move 1
	cmp "$dir/data" "$dir/2/file"
	echo more >&7
	exec 7>&-
	move 2
	[ "$(tail -c 5 "$dir/2/file")" = more ]
	nobody_was_late
}

@test "both append to one file while the mounts move" {
	local n i pids=()
	begin 1 2
	: >"$dir/1/log"
	for n in 1 2; do
		while [ ! -e "$dir/enough" ]; do
			echo "line of $n" >>"$dir/$n/log"
			echo >>"$dir/written.$n"
		done 3>&- &
		pids+=($!)
	done
	for i in 1 2 3; do
		move 1
		move 2
	done
	: >"$dir/enough"
	for i in "${pids[@]}"; do wait "$i"; done
	for n in 1 2; do
		[ "$(grep -c "^line of $n$" "$dir/1/log")" -eq "$(wc -l <"$dir/written.$n")" ]
	done
	[ "$(grep -c -v '^line of [12]$' "$dir/2/log")" -eq 0 ]
	cmp "$dir/1/log" "$dir/2/log"
	nobody_was_late
}

@test "coherence of two mounts that move" {
	local player n=1
	begin 1 2
	coherence --seconds 12 "$dir/1" "$dir/2" >"$dir/coherence.log" 2>&1 3>&- &
	player=$! nmoves=0
	while alive "$player"; do
		may_move $n
		n=$((3 - n))
		pause 0.5
	done
	[ $nmoves -gt 0 ]
	wait "$player" || die "$(tail -n 50 "$dir/coherence.log")"
	no_log_says 'session lost'
}

# Before a lease goes the kernel drops mapped pages, writes them back, and waits for READs: the mount that is about
# to stand answers them.
@test "mappings that both store into go back and forth while the mounts move" {
	local check player n=1
	begin 1 2
	if ! timeout 60 twin_maps stored-is-read "$dir/1/probe" "$dir/2/probe" 2>"$dir/probe.log"; then
		grep -q ENODEV "$dir/probe.log" || die "$(cat "$dir/probe.log")"
		skip "MAP_SHARED needs Linux 6.9"
	fi
	for check in count-by-atomics crossed-faults append-to-mapped; do
		echo "$check"
		timeout 60 twin_maps $check "$dir/1/$check" "$dir/2/$check" 5 3>&- &
		player=$! nmoves=0
		while alive "$player"; do
			may_move $n
			n=$((3 - n))
			pause 0.3
		done
		wait "$player"
		echo "$nmoves moves"
		[ $nmoves -gt 0 ]
	done
	no_log_says 'session lost'
}

# ---- others want what it has meanwhile ------------------------------------------------------------

child_stands() {
	local child
	child=$(pgrep -P "$upgrader") && all_stand "$child"
}

# stand_at POINT N: a new daemon of mount N stands still at POINT, as does the mount. The old one will end it.
stand_at() {
	RMEMFS_CRASH_AT=$1 RMEMFS_CRASH_BY=STOP rmemfsctl upgrade "$dir/$2" >>"$dir/mount.$2.log" 2>&1 3>&- &
	upgrader=$!
	until_true 10 child_stands
}

somebody_waits() {
	[ "$(status_of '.exports[0].leases.waiting')" -gt 0 ]
}

went_wrong() {
	if wait "$upgrader"; then false; fi
}

# goes_on N: the new daemon that stands goes on, and has the mount.
goes_on() {
	kill -CONT "$(pgrep -P "$upgrader")"
	wait "$upgrader"
	exit_status "${mounts[$1]}" 10
	unset "mounts[$1]"
	moved[$1]=$(pid_of "$1")
}

# wait_for_what_stands FILE: a reader of mount 2 waits for what mount 1 has written, which stands.
wait_for_what_stands() {
	cat "$dir/2/$1" >"$dir/read" 3>&- &
	reader=$!
	until_true 10 somebody_waits
}

# has_read FILE: the reader goes on, and sees what is written after that, too.
has_read() {
	exit_status "$reader" 10 || die "the reader waits"
	[ "$(wc -l <"$dir/read")" -eq 2 ]
	tell "$1"
	says "$1" 'wrote wrote wrote'
	[ "$(wc -l <"$dir/2/$1")" -eq 3 ]
	let_go "$1"
}

# The lease of a file that is written a second time stays, as that is no close.
@test "a recall that comes while the mount stands is served by whoever goes on" {
	local point
	begin 1 2
	for point in take.told take.connected last; do
		echo "$point"
		keep $point "$dir/1/$point"
		says $point wrote
		tell $point
		says $point 'wrote wrote'
		if [ $point = last ]; then
			stand_at take.connected 1
			wait_for_what_stands $point
			goes_on 1
		else
			stand_at $point 1
			wait_for_what_stands $point
			went_wrong
		fi
		has_read $point
	done
	no_log_says 'session lost'
}

@test "a lock that becomes free while the mount stands is had by who waits in it" {
	local point
	begin 1 2
	for point in take.told take.connected; do
		start holder locker hold process alone "$dir/2/$point" 5
		says holder got
		start waiter locker hold process alone "$dir/1/$point" 5
		until_true 20 wait_at_server 1
		stand_at $point 1
		let_go holder
		[ ! -s "$dir/said.waiter" ]
		went_wrong
		says waiter got
		[ "$(locker try process alone "$dir/2/$point" 5)" = busy ]
		let_go waiter
		rm "$dir"/to.* "$dir"/said.*
	done
}

# ---- it stays -------------------------------------------------------------------------------------

# bats test_tags=once
@test "if the new daemon dies at any point, the old one goes on" {
	local point
	begin 1 2
	begin_carrying "$dir/1/carried"
	start holder locker hold process alone "$dir/2/file" 5
	says holder got
	start waiter locker hold process alone "$dir/1/file" 5
	for point in take.ready take.told take.adopted take.connected take.serving; do
		echo "$point"
		RMEMFS_CRASH_AT=$point stays 1 rmemfsctl upgrade "$dir/1"
		try_carried
		[ ! -s "$dir/said.waiter" ]
	done
	let_go holder
	says waiter got
	let_go waiter
	end_carrying
	nobody_was_late
}

# bats test_tags=long
@test "if the old daemon is killed when it lets go, the new one has the mount" {
	local point
	begin 2
	for point in give.went give.gone; do
		echo "$point"
		RMEMFS_CRASH_AT=$point share 1
		begin_carrying "$dir/1/carried"
		start holder locker hold process alone "$dir/2/file" 5
		says holder got
		start waiter locker hold process alone "$dir/1/file" 5
		until_true 20 wait_at_server 2
		rmemfsctl upgrade "$dir/1" >>"$dir/mount.1.log" 2>&1 3>&-
		exit_status "${mounts[1]}" 10 || [ $? -eq 137 ]
		unset 'mounts[1]'
		moved[1]=$(pid_of 1)
		try_carried
		let_go holder
		says waiter got
		let_go waiter
		end_carrying
		rm -r "$dir/2/carried" "$dir"/to.* "$dir"/said.*
		end_moved 1
		unset 'moved[1]'
	done
}

# bats test_tags=long
@test "if the old daemon is killed before, others get what it had after the lease time" {
	local point
	use_lease 2
	begin 2
	for point in give.offered give.standing give.told; do
		echo "$point"
		RMEMFS_CRASH_AT=$point share 1
		echo data >"$dir/1/file"
		start holder locker hold process alone "$dir/1/file" 5
		says holder got
		run ! rmemfsctl upgrade "$dir/1" 3>&-
		exit_status "${mounts[1]}" 10 || [ $? -eq 137 ]
		unset 'mounts[1]'
		run ! timeout 10 stat "$dir/1"
		[[ $output == *'not connected' ]]
		timeout 20 flock "$dir/2/file" cat "$dir/2/file"
		timeout 20 locker hold process alone "$dir/2/file" 5 </dev/null
		kill -KILL "$(cat "$dir/pid.holder")"
		umount "$dir/1"
		rm "$dir"/to.* "$dir"/said.*
	done
}

# ---- the server -----------------------------------------------------------------------------------

# A server that is started again knows of no waits. carry has one, too. An emulated guest starts none while the new
# daemon is waited for.
# bats test_tags=sockets
@test "if the server is killed while the mount stands, whoever goes on has its locks and waits" {
	begin 1 2
	begin_carrying "$dir/1/carried"
	start holder locker hold process alone "$dir/2/file" 5
	says holder got
	start waiter locker hold process alone "$dir/1/file" 5
	until_true 20 wait_at_server 2
	stand_at take.adopted 1
	crash_server
	went_wrong
	try_carried
	until_true 20 wait_at_server 2
	stand_at take.connected 1
	crash_server
	goes_on 1
	try_carried
	until_true 20 wait_at_server 2
	let_go holder
	says waiter got
	let_go waiter
	end_carrying
}

# The lease time is shorter than the time for which the mount stands.
# bats test_tags=fenced
@test "if the server ends the session meanwhile, whoever goes on begins another one" {
	local point n
	use_lease 2
	begin 1 2
	for point in take.told take.connected; do
		echo "$point"
		keep $point "$dir/1/$point"
		keep $point.locked "$dir/1/locked" flock 7
		says $point wrote
		says $point.locked wrote
		stand_at $point 1
		timeout 20 sh -c "echo other >'$dir/2/$point'"
		[ "$(cat "$dir/2/$point")" = other ]
		went_wrong
		# Open files fail once, locked ones until they are closed.
		for n in 1 2; do
			tell $point
			tell $point.locked
		done
		says $point 'wrote failed wrote'
		says $point.locked 'wrote failed failed'
		[ "$(head -n 1 "$dir/1/$point")" = other ]
		let_go $point
		let_go $point.locked
	done
}

@test "files of a session that was lost fail once, also after the move" {
	local n
	use_lease 2
	begin 1 2
	keep file "$dir/1/file"
	keep locked "$dir/1/locked" flock 7
	says file wrote
	says locked wrote
	rmemfsctl evict "$(status_of '.sessions[] | select(.client | contains("/1 ")) | .id')" "$socket"
	until_true 20 grep -q 'its locks are lost' "$dir/mount.1.log"
	until_true 20 stat "$dir/1/file"
	move 1
	for n in 1 2; do
		tell file
		tell locked
	done
	says file 'wrote failed wrote'
	says locked 'wrote failed failed'
	let_go file
	let_go locked
}
