#!/usr/bin/env bats
# alone_revive.bats - the daemon of a service is killed whose mount has the export alone and may share it later
# (-o revive). While it is alone its successor goes on with it, locks included.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
bats_require_minimum_version 1.5.0
load helpers
load carry
load mounts
load lockers
load stewarded

test_seconds=150

setup() {
	setup_rmem
	mounts=()
	holders=()
}

teardown() {
	local failed=0
	let_go_all
	stop_service || failed=1
	end_mounts && [ $failed -eq 0 ]
}

# locks_of WHAT: `had` or `waits` of the mount; null: it keeps none.
locks_of() {
	rmemfsctl status --json "$mnt" | jq ".locks.$1"
}

waits_are() {
	[ "$(locks_of waits)" = "$1" ]
}

# ---- alone ---------------------------------------------------------------------------------------------

@test "open files, locks, mappings, a directory in part and a working directory outlive a killed daemon" {
	start_server
	start_service -n 2
	begin_carrying "$mnt/carried"
	settled
	strike
	try_carried
	settled
	strike
	try_carried
	come 2
	is_sharing mnt
	try_carried
	end_carrying
	[ "$(find "$dir/2/carried" -type f | wc -l)" -eq 307 ]
	[ "$(find "$mnt/carried" -type f | wc -l)" -eq 307 ]
}

# Such a file is not looked up anew. Its size is asked for before it is read or written, whichever daemon is asked.
@test "what programs have open and nobody has used since is whole when the mount moves to another daemon, too" {
	local fd
	start_server
	start_service -n 1
	random_file "$dir/bytes" 1
	cp "$dir/bytes" "$mnt/read"
	printf 'a%.0s' {1..8192} >"$mnt/mapped"
	exec {fd}<"$mnt/read"
	start map fsop map-and-answer "$mnt/mapped"
	tell map
	says map a
	sync "$mnt/read" "$mnt/mapped"
	strike
	rmemfsctl upgrade "$mnt" >>"$dir/moved.log" 2>&1 3>&-
	exit_status "$steward" 15
	steward=
	[ "$(rmemfsctl status --json "$mnt" | jq .pid)" != "$(pid_of_daemon)" ]
	dd iflag=direct bs=64k count=8 status=none <&"$fd" | cmp -n 524288 - "$dir/bytes"
	echo b >&"$(cat "$dir/fd.map")"
	says map 'a a'
	kill "$(cat "$dir/pid.map")"
	until_true 10 ended "$(cat "$dir/pid.map")"
	exec {fd}<&-
	cmp "$mnt/mapped" <(printf ab && printf 'a%.0s' {3..8192})
	umount "$mnt"
}

@test "locks are had after the daemon was killed, others are refused, and who waits gets them" {
	local kind
	start_server
	start_service -n 2
	for kind in flock process open; do
		start $kind locker hold $kind alone "$mnt/$kind" 5
		says $kind got
		start $kind.1 locker hold $kind alone "$mnt/$kind" 5
	done
	start shared locker hold process shared "$mnt/shared" 5
	says shared got
	until_true 20 waits_are 3
	[ "$(locks_of had)" = 4 ]
	strike
	[ "$(locks_of had)" = 4 ]
	until_true 20 waits_are 3
	[ "$(locker get "$mnt/process" 5)" = "alone $(cat "$dir/pid.process") 5 1" ]
	for kind in flock process open; do
		[ "$(locker try $kind alone "$mnt/$kind" 5)" = busy ]
		[ ! -s "$dir/said.$kind.1" ]
	done
	[ "$(locker try process shared "$mnt/shared" 5)" = got ]
	let_go flock
	says flock.1 got
	strike
	[ "$(locks_of had)" = 4 ]
	until_true 20 waits_are 2
	come 2
	for kind in flock process open; do
		[ "$(locker try $kind alone "$dir/2/$kind" 5)" = busy ]
	done
	[ "$(locker try process alone "$dir/2/shared" 5)" = busy ]
	for kind in process open; do
		let_go $kind
		says $kind.1 got
	done
	for kind in flock process open; do
		let_go $kind.1
		until_true 20 is_free $kind
	done
	let_go shared
}

is_free() {
	[ "$(locker try "$1" alone "$dir/2/$1" 5)" = got ]
}

@test "who waits is interrupted after the daemon was killed" {
	start_server
	start_service -n 1
	start one locker hold process alone "$mnt/file" 0
	says one got
	start two locker wait process alone "$mnt/file" 0
	until_true 20 waits_are 1
	strike
	until_true 20 waits_are 1
	kill -ALRM "$(cat "$dir/pid.two")"
	says two interrupted
	let_go two
	let_go one
	[ "$(locker try process alone "$mnt/file" 0)" = got ]
}

# A daemon that dies often and does little meanwhile is given up.
do_something() {
	local n
	for n in {1..60}; do : >"$mnt/some.$n"; done
	rm "$mnt"/some.*
}

# The numbers are elsewhere, since what is written last is lost. Nothing of a lock that was given up, or whose owner has
# ended, is left.
@test "a daemon that is killed again and again loses no lock, and keeps none too long" {
	local kind n counters=() times=20000 spinner
	start_server
	start_service -n 8
	for kind in flock process open; do
		for n in 1 2; do
			locker count $kind "$mnt/$kind" $times "$dir/$kind" 3>&- &
			counters+=($!)
		done
	done
	locker spin process "$mnt/spun" 1000000 3>&- &
	spinner=$!
	for n in {1..8}; do
		do_something
		strike
	done
	kill -KILL $spinner
	wait $spinner || true
	for n in "${counters[@]}"; do
		wait "$n"
	done
	for kind in flock process open; do
		[ "$(cat "$dir/$kind")" -eq $((2 * times)) ]
	done
	[ "$(locks_of had)" = 0 ]
	waits_are 0
}

# ---- sharing -------------------------------------------------------------------------------------------

@test "while it shares it is not revived: it ends, and the next one mounts anew; alone again it is" {
	use_lease 2
	start_server
	start_service -n 4
	come 2
	is_sharing mnt
	exec {fd}<"$mnt"
	kill -KILL "$(pid_of_daemon)"
	until_true 30 is_ready 2
	[[ $(stat -f "/proc/$$/fd/$fd" 2>&1) == *"not connected"* ]]
	exec {fd}<&-
	is_sharing mnt
	echo here >"$dir/2/file"
	[ "$(cat "$mnt/file")" = here ]
	end_mount 2
	until_true 40 is_alone mnt
	exec {fd}>"$mnt/file"
	start one locker hold flock alone "$mnt/locked" 0
	says one got
	strike
	echo again >&"$fd"
	[ "$(stat -c %s "$mnt/file")" = 6 ]
	ls -l "$mnt" >/dev/null
	[ "$(stat -c %s "$mnt/file")" = 6 ]
	exec {fd}>&-
	[ "$(locks_of had)" = 1 ]
	come 2
	[ "$(locker try flock alone "$dir/2/locked" 0)" = busy ]
	[ "$(cat "$dir/2/file")" = again ]
	echo more >>"$dir/2/file"
	[ "$(cat "$mnt/file")" = $'again\nmore' ]
	chown 12345 "$dir/2/file"
	[ "$(stat -c %u "$mnt/file")" = 12345 ]
	let_go one
}

@test "what the kernel has of a file is dropped for another mount, also if another daemon has read it" {
	start_server
	start_service -n 1
	printf 'a%.0s' {1..8192} >"$mnt/mapped"
	start map fsop map-and-answer "$mnt/mapped"
	tell map
	until_true 20 test -s "$dir/said.map"
	if grep -q ENODEV "$dir/said.map"; then skip "MAP_SHARED needs Linux 6.9"; fi
	exec {fd}<"$mnt/mapped"
	head -c 4096 <&"$fd" >/dev/null
	mkdir "$mnt/folder"
	exec {folder}<"$mnt/folder"
	strike
	come 2
	printf b | dd of="$dir/2/mapped" conv=notrunc status=none
	tell map
	says map 'a b'
	[ "$(head -c 1 "/proc/self/fd/$fd")" = b ]
	chmod 640 "/proc/$$/fd/$fd"
	[ "$(stat -c %a "$dir/2/mapped")" = 640 ]
	chmod 750 "/proc/$$/fd/$folder"
	[ "$(stat -c %a "$dir/2/folder")" = 750 ]
	exec {fd}<&- {folder}<&-
	kill "$(cat "$dir/pid.map")"
}

# The daemon is killed at any moment while another mount comes: it goes on, or the next one mounts anew.
# bats test_tags=nightly
@test "killed amid a conversion it is revived only if it is alone, and the other mount gets in" {
	local delay
	use_lease 2
	start_server
	for delay in 0.02 0.1 0.2 0.3 0.5 0.8 1.2; do
		start_service -n 3
		echo "$delay" >"$mnt/file"
		sync "$mnt/file"
		start one locker hold flock alone "$mnt/locked" 0
		says one got
		mkdir -p "$dir/2"
		rmemfs -f -c /dev/null -o "$(mount_options)" "$(mount_source)" "$dir/2" \
			>>"$dir/mount.2.log" 2>&1 3>&- &
		mounts[2]=$!
		sleep $delay
		kill -KILL "$(pid_of_daemon)"
		until_true 60 is_ready 2
		until_true 60 mountpoint -q "$dir/2"
		if grep -q 'goes on after its daemon was killed' "$dir/daemon.log"; then
			echo "$delay: revived"
			[ "$(locker try flock alone "$dir/2/locked" 0)" = busy ]
		fi
		[ "$(cat "$dir/2/file")" = "$delay" ]
		echo both >"$dir/2/file"
		[ "$(cat "$mnt/file")" = both ]
		let_go_all
		until_true 20 locked_by_nobody
		end_mount 2
		stop_service
		rm -f "$dir/notify" "$dir"/to.* "$dir/daemon.log"
	done
}

locked_by_nobody() {
	[ "$(locker try flock alone "$dir/2/locked" 0)" = got ]
}
