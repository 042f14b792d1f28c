#!/usr/bin/env bats
# upgrade.bats - a mount moves to another daemon, while programs use it. If that fails, the daemon that
# has it goes on.
bats_require_minimum_version 1.5.0

load helpers
load carry

setup() {
	setup_rmem
	start_server
}

# A daemon that has taken a mount over is no child of the test: its log tells how it has ended.
teardown() {
	local failed=0 pid=${moved_pid:-}
	if [ -n "$pid" ] && [ -n "${BATS_TEST_COMPLETED:-}" ]; then
		{ umount "$mnt" && until_true 10 ended "$pid" && grep -q 'is unmounted$' "$dir/moved.log"; } || failed=1
	fi
	[ -z "$pid" ] || ended "$pid" || kill -KILL "$pid"
	teardown_rmem && [ $failed -eq 0 ]
}

pid_of_mount() {
	rmemfsctl status "$mnt" --json | jq .pid
}

# old_has_ended PID: a child of the test ends with 0.
old_has_ended() {
	if [ "$1" = "$daemon_pid" ]; then
		exit_status "$1" 10 || die "the old daemon ended with status $?"
		daemon_pid=''
	else
		until_true 10 ended "$1"
	fi
}

# move: the mount is another daemon's after it.
move() {
	local old
	old=$(pid_of_mount)
	rmemfsctl upgrade "$mnt" >>"$dir/moved.log" 2>&1 3>&-
	old_has_ended "$old"
	moved_pid=$(pid_of_mount)
	echo "$moved_pid" >"$dir/moved.pid"
	[ "$moved_pid" != "$old" ]
	server_knows "$moved_pid"
}

# server_knows PID: people read on the server which process has the mount.
server_knows() {
	[[ $(status_of '.sessions[].client') == *"(pid $1)"* ]]
}

# stays COMMAND...: the upgrade fails, and the daemon that has the mount goes on with it.
stays() {
	local old status=0
	old=$(pid_of_mount)
	"$@" >>"$dir/moved.log" 2>&1 3>&- || status=$?
	[ $status -ne 0 ]
	[ "$(pid_of_mount)" = "$old" ]
}

child_stands() {
	local child
	child=$(pgrep -P "$upgrader") && all_stand "$child"
}

# stand_at POINT: a new daemon stands still at POINT.
stand_at() {
	RMEMFS_CRASH_AT=$1 RMEMFS_CRASH_BY=STOP rmemfsctl upgrade "$mnt" >>"$dir/moved.log" 2>&1 3>&- &
	upgrader=$!
	until_true 10 child_stands
}

# goes_on: that one goes on, and has the mount.
goes_on() {
	kill -CONT "$(pgrep -P "$upgrader")"
	wait "$upgrader"
	old_has_ended "$daemon_pid"
	moved_pid=$(pid_of_mount)
}

# ---- it moves -------------------------------------------------------------------------------------

@test "open files, locks, mappings, a directory in part and a working directory outlive the daemon" {
	mount_rmem
	begin_carrying "$mnt/carried"
	move
	try_carried
	move
	try_carried
	end_carrying
	[ "$(find "$mnt/carried" -type f | wc -l)" -eq 307 ]
	[ "$(status_of '.sessions | length')" -eq 1 ]
}

# bats test_tags=long
@test "what was written and not committed moves along, and the mount can be used as before" {
	mount_rmem
	random_file "$dir/data" 8
	cp "$dir/data" "$mnt/data"
	exec {fd}>>"$mnt/open"
	printf 'before ' >&"$fd"
	move
	printf after >&"$fd"
	exec {fd}>&-
	[ "$(cat "$mnt/open")" = 'before after' ]
	cmp "$dir/data" "$mnt/data"
	cp "$mnt/data" "$mnt/copy"
	mkdir "$mnt/folder"
	mv "$mnt/copy" "$mnt/folder/"
	cmp "$dir/data" "$mnt/folder/copy"
	rm -r "$mnt/folder" "$mnt/data" "$mnt/open"
	[ -z "$(ls -A "$mnt")" ]
	fallocate -l 64M "$mnt/room"
}

@test "the log of an upgrade may be a file of the mount" {
	local old
	mount_rmem
	old=$daemon_pid
	rmemfsctl upgrade "$mnt" >>"$mnt/log" 2>&1 3>&-
	old_has_ended "$old"
	old=$(pid_of_mount)
	umount "$mnt"
	until_true 10 ended "$old"
}

# Those that the daemon had when it mounted are older.
@test "the root directory has the attributes that it had before" {
	local before
	mount_rmem
	chmod 1750 "$mnt"
	chown 7:8 "$mnt"
	mkdir "$mnt/a" "$mnt/b"
	touch -d '2001-02-03 04:05:06.789' "$mnt"
	setfattr -n user.a -v b "$mnt"
	before=$(stat --cached=never -c '%a %u %g %h %s %Y.%y %Z.%z' "$mnt")
	move
	[ "$(stat --cached=never -c '%a %u %g %h %s %Y.%y %Z.%z' "$mnt")" = "$before" ]
	rmdir "$mnt/b"
	[ "$(stat --cached=never -c '%a %u %g %h' "$mnt")" = '1750 7 8 3' ]
}

# bats test_tags=once
@test "the service manager is told of the new process" {
	export NOTIFY_SOCKET=$dir/notify
	# shellcheck disable=SC2016 # perl's variables
	perl -MSocket -e '
		my ($s, $m);
		socket($s, AF_UNIX, SOCK_DGRAM, 0) && bind($s, sockaddr_un($ARGV[0])) or die $!;
		$| = 1;
		print "$m\n" while defined recv($s, $m, 4096, 0);' "$NOTIFY_SOCKET" >>"$dir/told" 3>&- &
	until_true 5 test -S "$NOTIFY_SOCKET"
	mount_rmem
	unset NOTIFY_SOCKET
	until_true 10 grep -q 'READY=1' "$dir/told"
	RMEMFS_CRASH_AT=take.ready stays rmemfsctl upgrade "$mnt"
	run ! grep MAINPID "$dir/told"
	move
	until_true 10 grep -q "^MAINPID=$moved_pid$" "$dir/told"
	[ "$(grep -c MAINPID "$dir/told")" -eq 1 ]
}

change() {
	rmemfs -c /dev/null -o "remount,$1" "$(mount_source)" "$mnt" 3>&-
}

is_read_only() {
	grep -q " $mnt fuse[^ ]* ro," /proc/self/mounts &&
		[ "$(status_of '.sessions[0].read_only')" = true ]
}

# Its message waits in the kernel, and the new daemon reads it. In an emulated guest the command takes longer than the
# mount may stand.
# bats test_tags=only:tcp
@test "a remount that comes while the mount stands is done by the new daemon" {
	local remounter
	mount_rmem
	echo data >"$mnt/a"
	stand_at take.connected
	change ro &
	remounter=$!
	goes_on
	exit_status "$remounter" 20
	is_read_only
	run ! touch "$mnt/b"
	change rw
	touch "$mnt/b"
}

@test "a remount between the offer and the pause keeps the mount where it is" {
	mount_rmem
	stand_at take.ready
	change ro
	kill -CONT "$(pgrep -P "$upgrader")"
	if wait "$upgrader"; then false; fi
	grep -q 'the mount has been remounted meanwhile' "$dir/moved.log"
	is_read_only
	move
	is_read_only
	run ! touch "$mnt/b"
	change rw
	touch "$mnt/b"
}

# bats test_tags=once
@test "a mount that is unmounted while it stands ends, whoever goes on" {
	local unmounter point
	for point in take.told take.connected; do
		echo "$point"
		mount_rmem
		echo data >"$mnt/a"
		stand_at $point
		umount "$mnt" 3>&- &
		unmounter=$!
		if [ $point = take.connected ]; then
			child=$(pgrep -P "$upgrader")
			kill -CONT "$child"
			wait "$upgrader" || true
			until_true 20 ended "$child"
		else
			if wait "$upgrader"; then false; fi
		fi
		exit_status "$unmounter" 20
		exit_status "$daemon_pid" 20
		daemon_pid=''
		until_true 10 has_no_session
	done
}

is_unmounted() {
	! mountpoint -q "$mnt"
}

has_no_session() {
	[ "$(status_of '.sessions | length')" -eq 0 ]
}

# From give.went on the signal is passed on.
@test "SIGTERM to a daemon that hands its mount over ends the mount" {
	local point old
	for point in give.standing give.told give.went give.gone; do
		RMEMFS_CRASH_AT=$point RMEMFS_CRASH_BY=TERM mount_rmem
		old=$daemon_pid
		rmemfsctl upgrade "$mnt" >>"$dir/moved.log" 2>&1 3>&- || true
		until_true 15 is_unmounted || die "$point: the mount stays"
		old_has_ended "$old"
		until_true 10 has_no_session || die "$point: the session stays"
	done
}

# bats test_tags=once,long
@test "a mount of an ordinary user moves, and that user can unmount it" {
	local user=("${nobody[@]}" env "XDG_RUNTIME_DIR=$dir/run")
	stop_server
	without_key
	start_server
	mount_rmem
	chmod 777 "$mnt"
	umount_rmem
	# As udev makes it; the tests have a mount namespace of their own.
	mknod -m 666 "$dir/fuse" c 10 229
	mount --bind "$dir/fuse" /dev/fuse
	chmod 711 "$dir"
	mkdir -m 700 "$dir/run"
	chown 65534:65534 "$dir/run" "$mnt"
	"${user[@]}" rmemfs -f -c /dev/null -o "$(mount_options)" "$(mount_source)" "$mnt" \
		>>"$dir/daemon.log" 2>&1 3>&- &
	daemon_pid=$!
	until_true 30 grep -q " $mnt fuse" /proc/self/mounts
	"${user[@]}" sh -c "echo data >'$mnt/a'"
	run rmemfsctl upgrade "$mnt"
	[ "$status" -eq 32 ]
	[[ $output == *"is of user 65534: upgrade the mount as that user" ]]
	"${user[@]}" rmemfsctl upgrade "$mnt" >>"$dir/moved.log" 2>&1 3>&-
	old_has_ended "$daemon_pid"
	moved_pid=$("${user[@]}" rmemfsctl status "$mnt" --json | jq .pid)
	[ "$("${user[@]}" cat "$mnt/a")" = data ]
	kill -TERM "$moved_pid"
	until_true 10 ended "$moved_pid"
	moved_pid=''
	umount /dev/fuse
	run ! grep " $mnt fuse" /proc/self/mounts
}

# bats test_tags=long
@test "fio finds its bytes whole, whatever it does while the mount moves again and again" {
	local modes=(
		'--ioengine=psync --direct=0'
		'--ioengine=libaio --iodepth=16 --direct=1'
		'--ioengine=mmap --bs=4k'
	) mode
	mount_rmem
	for mode in "${modes[@]}"; do
		# shellcheck disable=SC2086 # several options
		fio --name=verify --aux-path="$dir" --directory="$mnt" --numjobs=2 --size=32M --rw=randrw \
			--bsrange=4k-1M --verify=crc32c --verify_fatal=1 --time_based --runtime=20 \
			--output="$dir/fio.log" $mode 3>&- &
		fio=$!
		while alive "$fio"; do
			move
			pause 0.5
		done
		wait "$fio"
		rm "$mnt"/verify.*
	done
}

# ---- it stays -------------------------------------------------------------------------------------

# bats test_tags=once
@test "if the new daemon dies at any point, the old one goes on" {
	local point
	mount_rmem
	begin_carrying "$mnt/carried"
	for point in take.ready take.told take.adopted take.connected take.serving; do
		echo "$point"
		RMEMFS_CRASH_AT=$point stays rmemfsctl upgrade "$mnt"
		try_carried
	done
	end_carrying
}

# bats test_tags=long
@test "if the new daemon stands still, the old one ends it and goes on" {
	local point
	mount_rmem
	begin_carrying "$mnt/carried"
	for point in take.told take.connected take.serving; do
		echo "$point"
		RMEMFS_CRASH_AT=$point RMEMFS_CRASH_BY=STOP stays rmemfsctl upgrade "$mnt"
		try_carried
	done
	end_carrying
}

# bats test_tags=long
@test "if the server does not answer, the old one goes on" {
	mount_rmem
	echo data >"$mnt/a"
	suspend "$server_pid"
	stays rmemfsctl upgrade "$mnt"
	kill -CONT "$server_pid"
	[ "$(cat "$mnt/a")" = data ]
	move
	[ "$(cat "$mnt/a")" = data ]
}

# bats test_tags=long
@test "if the old daemon is killed when it lets go, the new one has the mount" {
	local point
	for point in give.went give.gone; do
		echo "$point"
		RMEMFS_CRASH_AT=$point mount_rmem
		begin_carrying "$mnt/carried"
		rmemfsctl upgrade "$mnt" >>"$dir/moved.log" 2>&1 3>&-
		exit_status "$daemon_pid" 10 || [ $? -eq 137 ]
		daemon_pid=''
		moved_pid=$(pid_of_mount)
		try_carried
		end_carrying
		rm -r "$mnt/carried"
		umount "$mnt"
		until_true 10 ended "$moved_pid"
		moved_pid=''
	done
}

# The next mount waits until the session's lease is over: the daemon had said that it would come back.
# bats test_tags=long
@test "if the old daemon is killed before, nobody waits for the mount" {
	local point
	stop_server
	use_lease 2
	start_server
	for point in give.offered give.standing give.told; do
		echo "$point"
		RMEMFS_CRASH_AT=$point mount_rmem
		run ! rmemfsctl upgrade "$mnt" 3>&-
		exit_status "$daemon_pid" 10 || [ $? -eq 137 ]
		daemon_pid=''
		run ! timeout 10 stat "$mnt"
		[[ $output == *'not connected' ]]
		umount "$mnt"
	done
}

# ---- it is refused --------------------------------------------------------------------------------

# bats test_tags=once
@test "an upgrade is refused where it can't work, with the reason" {
	mount_rmem
	run rmemfsctl upgrade "$dir" 3>&-
	[ "$status" -ne 0 ]
	echo "still here" >"$mnt/a"
}

# bats test_tags=long
@test "two upgrades at once: one of them is refused" {
	mount_rmem
	RMEMFS_CRASH_AT=take.ready RMEMFS_CRASH_BY=STOP rmemfsctl upgrade "$mnt" >>"$dir/moved.log" 2>&1 3>&- &
	first=$!
	child_stands() { child=$(pgrep -P "$first") && all_stand "$child"; }
	until_true 10 child_stands
	run rmemfsctl upgrade "$mnt" 3>&-
	[ "$status" -ne 0 ]
	[[ $output == *'another upgrade of this mount is under way'* ]]
	kill -KILL "$child"
	if wait "$first"; then false; fi
	move
}
