#!/usr/bin/env bats
# revive.bats - the daemon of a service is killed while programs use its mount. Its successor goes on
# with it, or the mount ends.
bats_require_minimum_version 1.5.0

# shellcheck disable=SC2154 # what helpers set
load helpers
load carry
load held
load loggers
load stewarded

setup() {
	setup_rmem
	start_server
}

teardown() {
	local failed=0
	stop_service || failed=1
	teardown_rmem && [ $failed -eq 0 ]
}

@test "open files, locks, mappings, a directory in part and a working directory outlive a killed daemon" {
	start_service -n 2
	begin_carrying "$mnt/carried"
	settled
	strike
	try_carried
	settled
	strike
	try_carried
	end_carrying
	[ "$(find "$mnt/carried" -type f | wc -l)" -eq 307 ]
	[ "$(status_of '.sessions | length')" -eq 1 ]
}

# attributes: as the daemon tells them now.
attributes() {
	stat --cached=never -c '%n %F %a %u %g %s %h %x %y %z' "$mnt/d/"{file,link,fifo} "$mnt/d"
}

@test "attributes are what they were when the daemon was killed" {
	local before
	start_service -n 2
	mkdir "$mnt/d"
	echo a >"$mnt/d/file"
	ln -s file "$mnt/d/link"
	mkfifo -m 604 "$mnt/d/fifo"
	chown -h 1234:5678 "$mnt/d/link" "$mnt/d/file"
	touch -h -d '2001-02-03 04:05:06.123456789' "$mnt/d/"{file,link,fifo} "$mnt/d"
	before=$(attributes)
	strike
	[ "$(attributes)" = "$before" ] || die "$(diff <(echo "$before") <(attributes))"
	# The successor is asked to set attributes before anything else.
	strike
	chown -h 1:1 "$mnt/d/"{file,link,fifo} "$mnt/d"
	chmod 700 "$mnt/d" "$mnt/d/file"
	[ "$(stat -c %u:%g "$mnt/d/"{file,link,fifo} "$mnt/d" | sort -u)" = 1:1 ]
	[ "$(stat -c %a "$mnt/d" "$mnt/d/file" | sort -u)" = 700 ]
}

# ---- nothing is lost unseen, or done twice ----------------------------------------------------------

@test "a daemon that is killed again and again does no operation twice and loses nothing that was synced" {
	local i
	seed_loggers
	start_service -n 8
	run_loggers ACKLOG_LOSES=1
	for ((i = 0; i < 8; i++)); do
		go_on
		strike
	done
	go_on
	stop_loggers
	verify_loggers
	[ "$(status_of '.sessions | length')" -eq 1 ]
}

has_died() {
	grep -q '^ended 137$' "$dir/steward"
}

# at_point POINT: a daemon dies there while operations are under way, and its successor goes on.
at_point() {
	echo "crash point $1"
	RMEMFS_CRASH_AT=$1 start_service -n 1
	run_loggers ACKLOG_LOSES=1
	until_true 60 has_died || die "it did not die at $1"
	go_on
	stop_loggers
	verify_loggers
	rm -r "$mnt"/ack.*
	stop_service
	rm -r "$dir"/ack.* "$dir/notify"
}

# A daemon that has just begun has memory that was never used: see request_room().
@test "nor is anything between a request and its answer, wherever the daemon dies" {
	local point
	seed_loggers
	for point in rpc.sent rpc.answered open.recorded; do
		at_point "$point:$((5 + RANDOM % 60))"
	done
}

# In the second round the first name is given by another request than the one that the daemon dies at.
@test "a name that is given or taken when the daemon dies is given or taken once" {
	local point n
	for point in rpc.sent rpc.answered open.recorded; do
		for n in 1 2; do
			RMEMFS_CRASH_AT=$point:$n start_service -n 1
			(set -o noclobber && echo a >"$mnt/a" && echo b >"$mnt/b")
			mkdir "$mnt/c"
			ln "$mnt/a" "$mnt/c/a"
			mv "$mnt/b" "$mnt/c/b"
			rm "$mnt/a"
			has_died
			[ "$(cat "$mnt/c/a" "$mnt/c/b")" = "a
b" ]
			[ "$(ls "$mnt")" = c ]
			rm -r "$mnt/c"
			stop_service
			rm "$dir/notify"
		done
	done
}

# has_said FILE LINES
has_said() {
	[ "$(wc -l <"$1")" -ge "$2" ]
}

# hold_open NAME: a program that has the file open twice to write: fsop tells-each. Sets pid_of[NAME].
declare -gA pid_of to_program
hold_open() {
	mkfifo "$dir/steps.$1"
	fsop tells-each "$mnt/$1" <"$dir/steps.$1" >"$dir/said.$1" 2>&1 3>&- &
	pid_of[$1]=$!
	exec {fd}>"$dir/steps.$1"
	to_program[$1]=$fd
	until_true 10 has_said "$dir/said.$1" 1
}

# step NAME: its next step.
step() {
	echo >&"${to_program[$1]}"
}

# says NAME LINE...: it has ended, and has said this.
says() {
	local name=$1
	shift
	exit_status "${pid_of[$name]}" 10 || die "$(cat "$dir/said.$name")"
	[ "$(tail -n +2 "$dir/said.$name")" = "$(printf '%s\n' "$@")" ] || die "$(cat "$dir/said.$name")"
}

written() {
	[ "$(cat "$mnt/$1")" = written ]
}

@test "what was acknowledged and not committed is told once, to each who has the file open, and to no others" {
	# shellcheck disable=SC2034 # for the helpers
	ack_mode=local
	RMEMFS_CRASH_AT=write.acknowledged:2 start_service -n 1
	hold_open kept
	step kept
	until_true 10 written kept
	sync "$mnt/kept"
	hold_open lost
	step lost
	until_true 20 is_ready 2
	step kept
	step lost
	says kept 'reader 0' 'first 0' 'second 0' 'first 0' 'second 0' 'third 0'
	says lost 'reader 0' 'first EIO' 'second EIO' 'first 0' 'second 0' 'third 0'
	[ "$(cat "$mnt/kept")" = written ]
	[ ! -s "$mnt/lost" ]
	echo again >"$mnt/lost"
	[ "$(cat "$mnt/lost")" = again ]
	grep -q 'what was written last to 1 files is lost' "$dir/daemon.log"
}

# ---- it ends ----------------------------------------------------------------------------------------

# was_cut_off FILE: a call has ended with the connection, on its way or behind.
was_cut_off() {
	grep -qE 'Transport endpoint is not connected|Software caused connection abort' "$1" || die "$(cat "$1")"
}

# A call on a mount whose connection has ended.
is_cut_off() {
	[[ $(stat "$mnt" 2>&1 >/dev/null) == *"Transport endpoint is not connected" ]]
}

@test "a service that does not start again ends its mount at once" {
	start_service
	kill -KILL "$(pid_of_daemon)"
	exit_status "$steward" 10 || [ $? -eq 137 ]
	steward=
	until_true 5 is_cut_off
	umount "$mnt"
}

# bats test_tags=long
@test "a mount whose descriptors are kept, and that no daemon takes, ends after half a minute" {
	local began
	start_service -k
	exec {fd}<"$mnt"
	kill -KILL "$(pid_of_daemon)"
	began=$SECONDS
	timeout 40 stat "$mnt/name" 2>"$dir/said" || true
	was_cut_off "$dir/said"
	[ $((SECONDS - began)) -ge 25 ]
	exec {fd}<&-
	kill -TERM "$steward"
	exit_status "$steward" 10 || [ $? -eq 137 ]
	steward=
	umount "$mnt"
}

@test "without a server the successor ends the mount, and the next one mounts anew" {
	start_service -n 30 connect_timeout=1
	exec {fd}<"$mnt"
	kill_server
	kill -KILL "$(pid_of_daemon)"
	timeout 20 stat "$mnt/name" 2>"$dir/said" || true
	was_cut_off "$dir/said"
	exec {fd}<&-
	start_server
	until_true 30 is_ready 2
	echo a >"$mnt/a"
	[ "$(cat "$mnt/a")" = a ]
}

@test "a successor that is killed ends the mount, and the next one mounts anew" {
	local point
	for point in revive.opened revive.adopted revive.connected revive.settled revive.resent; do
		RMEMFS_CRASH_AT=$point start_service -c -n 3
		exec {fd}<"$mnt"
		kill -KILL "$(pid_of_daemon)"
		until_true 20 is_ready 2
		[[ $(stat -f "/proc/$$/fd/$fd" 2>&1) == *"not connected"* ]]
		exec {fd}<&-
		echo "$point" >"$mnt/a"
		[ "$(cat "$mnt/a")" = "$point" ]
		stop_service
		rm "$dir/notify"
	done
}

# The daemon can't end before the mount has.
@test "a killed daemon whose thread waits in the kernel ends its mount, and the next one mounts anew" {
	local maker
	start_service -n 60 io_threads=1,connect_timeout=1
	hold_directory "$(pid_of_daemon)" "$dir/said"
	kill -KILL "$(pid_of_daemon)"
	exit_status "$maker" 20 || true
	was_cut_off "$dir/said"
	start_server
	until_true 40 is_ready 2
	echo a >"$mnt/a"
	[ "$(cat "$mnt/a")" = a ]
}

@test "an orderly end leaves nothing with the service manager" {
	start_service -n 1
	grep -q '^stored rmemfs-connection ' "$dir/steward"
	umount "$mnt"
	exit_status "$steward" 10
	steward=
	grep -q '^dropped rmemfs-connection$' "$dir/steward"
	[ "$(grep -c '^run ' "$dir/steward")" -eq 1 ]
}

@test "a mount that shares, or that says nothing, gives the service manager no descriptors" {
	start_service -n 1 share
	run ! grep -q '^stored ' "$dir/steward"
	stop_service
	rm "$dir/notify"
	start_service -n 1 norevive
	run ! grep -q '^stored ' "$dir/steward"
}
