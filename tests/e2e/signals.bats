#!/usr/bin/env bats
# signals.bats - programs that wait for the mount can be killed, whatever the server does; and so
# can the daemon.

bats_require_minimum_version 1.5.0
load helpers

setup() {
	setup_rmem
	start_server
}

teardown() {
	teardown_rmem
}

# state PID: prints one letter, as ps(1) does; nothing if there is no such process.
state() {
	local stat=''
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || true
	stat=${stat##*) }
	echo "${stat:0:1}"
}

# A killed child that nobody has waited for is a zombie, and has ended. But its first thread may be one while others
# run, and have files open.
ended() {
	local pid
	for pid in "$@"; do
		[[ -z $(state "$pid" | tr -d Z) ]] || return 1
	done
	have_threads 1 "$@"
}

# The processes wait in the kernel's queue or for the daemon. There a signal must be able to end them.
waiting() {
	local pid
	for pid in "$@"; do
		[[ $(state "$pid") == [SD] ]] || return 1
	done
}

@test "SIGKILL ends more waiting writers and readers than there are buffers" {
	local pids=() n
	mount_rmem -o io_threads=2,buffers=2
	random_file "$dir/a" 8
	cp "$dir/a" "$mnt/a"
	kill_server
	for n in {1..12}; do
		dd if=/dev/zero of="$mnt/b.$n" bs=1M count=1 oflag=direct status=none 3>&- 2>&- &
		pids+=($!)
		dd if=/dev/zero of="$mnt/a" bs=1M seek=8 count=1 oflag=direct conv=notrunc \
			status=none 3>&- 2>&- &
		pids+=($!)
		dd if="$mnt/a" of=/dev/null bs=1M iflag=direct status=none 3>&- 2>&- &
		pids+=($!)
	done
	until_true 10 waiting "${pids[@]}"
	kill -KILL "${pids[@]}"
	until_true 10 ended "${pids[@]}"
	start_server
	cmp -n $((8 << 20)) "$dir/a" "$mnt/a"
	remount
	cmp -n $((8 << 20)) "$dir/a" "$mnt/a"
}

# A process that ends waits for its requests, and the kernel tells of no signal.
@test "SIGKILL ends who waits for asynchronous direct I/O" {
	local pids=() kinds=(aio) kind n
	[ "$(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null)" != 0 ] || kinds+=(uring)
	mount_rmem -o io_threads=2,buffers=2
	random_file "$dir/a" 8
	cp "$dir/a" "$mnt/a"
	kill_server
	for n in {1..4}; do
		for kind in "${kinds[@]}"; do
			direct read "$kind" "$mnt/a" 0 $((4 << 20)) 3>&- >/dev/null 2>&1 &
			pids+=($!)
			direct write "$kind" "$mnt/a" $((4 << 20)) $((4 << 20)) 3>&- >/dev/null 2>&1 &
			pids+=($!)
		done
	done
	until_true 10 waiting "${pids[@]}"
	kill -KILL "${pids[@]}"
	until_true 10 ended "${pids[@]}"
	start_server
	cmp -n $((4 << 20)) "$dir/a" "$mnt/a"
}

# go_on PID...: none ends while the daemon looks for callers that end, and all of them wait. One that waits may run
# for a moment, as io_uring's threads come and go. When the server is back each ends well.
go_on() {
	local n pid
	for n in {1..20}; do
		for pid in "$@"; do
			! ended "$pid" || die "a program has ended: $(tail -n 2 "$dir"/{thread,uring}.* 2>&1)"
		done
		until_true 10 waiting "$@"
		sleep 0.1
	done
	start_server
	for pid in "$@"; do
		exit_status "$pid" 30 || die "a program ended with status $?: $(tail "$dir"/{thread,uring}.* 2>&1)"
	done
}

# kinds: of asynchronous direct I/O whose requests can outlive the thread that made them.
outliving_kinds() {
	echo thread
	[ "$(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null)" != 0 ] || echo uring
}

# begin_outliving: programs read and write through threads that end; one thread of each goes on.
begin_outliving() {
	local kind
	pids=()
	for kind in $(outliving_kinds); do
		direct read "$kind" "$mnt/a" 0 $((4 << 20)) 3>&- >"$dir/$kind.read" 2>&1 &
		pids+=($!)
		direct write "$kind" "$mnt/$kind" 0 $((4 << 20)) 3>&- >"$dir/$kind.written" 2>&1 &
		pids+=($!)
	done
	until_true 10 waiting "${pids[@]}"
	# The kernel ends all of io_uring's threads but one when they have been idle for 5 s.
	until_true 30 have_threads 2 "${pids[@]}"
}

# have_threads N PID...: each process has so many threads at most.
have_threads() {
	local limit=$1 pid tasks
	shift
	for pid in "$@"; do
		tasks=(/proc/"$pid"/task/*)
		[ "${#tasks[@]}" -le "$limit" ] || return 1
	done
}

# Nobody has killed the program, so it must not see EINTR.
@test "asynchronous direct I/O outlives the thread that began it, while the server is away" {
	local pids kind
	mount_rmem
	random_file "$dir/a" 8
	cp "$dir/a" "$mnt/a"
	for kind in $(outliving_kinds); do
		touch "$mnt/$kind"
	done
	kill_server
	begin_outliving
	go_on "${pids[@]}"
	for kind in $(outliving_kinds); do
		[ "$(cat "$dir/$kind.read")" -eq $((4 << 20)) ]
		direct written "$mnt/$kind" $((4 << 20))
	done
}

@test "SIGKILL ends who waits for asynchronous direct I/O of threads that have ended" {
	local pids
	mount_rmem
	random_file "$dir/a" 8
	cp "$dir/a" "$mnt/a"
	touch "$mnt/thread" "$mnt/uring"
	kill_server
	begin_outliving
	kill -KILL "${pids[@]}"
	until_true 10 ended "${pids[@]}"
	start_server
	cmp "$dir/a" "$mnt/a"
}

# all_submitted PID...: each has begun its requests, by a thread that has ended.
all_submitted() {
	local pid
	for pid in "$@"; do
		calling "$pid" io_getevents || return 1
	done
	have_threads 1 "$@"
}

# begin_unseen: the daemon does not run when two programs read and write, so it never sees the threads that do.
begin_unseen() {
	local pid go failed=0
	random_file "$dir/a" 8
	cp "$dir/a" "$mnt/a"
	cp "$dir/a" "$mnt/thread" # a write that makes the file grow holds up its thread
	mkfifo "$dir/go"
	exec {go}<>"$dir/go"
	direct later-read "$dir/go" thread "$mnt/a" 0 $((4 << 20)) >"$dir/thread.read" 2>&1 3>&- {go}>&- &
	pids=($!)
	direct later-write "$dir/go" thread "$mnt/thread" 0 $((4 << 20)) >"$dir/thread.written" 2>&1 3>&- {go}>&- &
	pids+=($!)
	for pid in "${pids[@]}"; do
		until_true 10 calling "$pid" read
	done
	kill_server
	suspend "$daemon_pid"
	exec {go}>&-
	until_true 10 all_submitted "${pids[@]}" || failed=1
	kill -CONT "$daemon_pid"
	[ $failed -eq 0 ] || die "the requests have not begun"
}

@test "asynchronous direct I/O outlives a thread that ended before the daemon had its requests" {
	local pids
	mount_rmem
	begin_unseen
	go_on "${pids[@]}"
	[ "$(cat "$dir/thread.read")" -eq $((4 << 20)) ]
	direct written "$mnt/thread" $((4 << 20))
}

@test "SIGKILL ends who waits for asynchronous direct I/O of threads that the daemon has never seen" {
	local pids
	mount_rmem
	begin_unseen
	kill -KILL "${pids[@]}"
	until_true 10 ended "${pids[@]}"
	start_server
	cmp "$dir/a" "$mnt/a"
}

@test "SIGKILL ends who waits for extended attributes, and the value is the old or the new one" {
	local pids=() n
	mount_rmem -o io_threads=2,buffers=4
	head -c 60000 /dev/urandom >"$dir/old"
	head -c 60000 /dev/urandom >"$dir/new"
	touch "$mnt/a"
	metaop setxattr user.a "$mnt/a" "$dir/old"
	kill_server
	for n in {1..10}; do
		metaop setxattr user.a "$mnt/a" "$dir/new" 3>&- 2>&- &
		pids+=($!)
		metaop getxattr user.a "$mnt/a" 3>&- >/dev/null 2>&1 &
		pids+=($!)
		metaop list-length "$mnt/a" 3>&- >/dev/null 2>&1 &
		pids+=($!)
		metaop tmpfile-readback "$mnt" 100000 3>&- 2>&- &
		pids+=($!)
	done
	until_true 10 waiting "${pids[@]}"
	kill -KILL "${pids[@]}"
	until_true 10 ended "${pids[@]}"
	start_server
	metaop getxattr user.a "$mnt/a" >"$dir/back"
	cmp -s "$dir/back" "$dir/old" || cmp "$dir/back" "$dir/new"
	metaop setxattr user.a "$mnt/a" "$dir/new"
	metaop getxattr user.a "$mnt/a" | cmp - "$dir/new"
	[ "$(ls -A "$mnt")" = a ]
}

# The mount knows only the first extents of the file, and asks for more.
@test "SIGKILL ends who looks for a hole in a file of which not all is known" {
	local pid last=$((2999 * 2 * 4096))
	mount_rmem -o share
	scale pieces "$mnt/a" 3000
	remount -o share
	mkfifo "$dir/orders"
	keeper "$mnt/a" <"$dir/orders" >"$dir/said" 3>&- &
	pid=$!
	exec 5>"$dir/orders"
	echo read >&5
	until_true 10 grep -q piece "$dir/said"
	kill_server
	echo "hole $last" >&5
	until_true 10 calling "$pid" lseek
	kill -KILL "$pid"
	until_true 10 ended "$pid"
	exec 5>&-
	start_server
	[ "$(fsop seek-hole "$mnt/a" $last)" -eq $((last + 4096)) ]
}

# alarmed SURVIVORS KILLED OPTIONS: starts so many programs. Each has a directory of its own: in a common
# one the others would wait for the kernel's lock of the directory, where no signal reaches them.
alarmed() {
	local survivors=$1 killed=$2 pids=() n
	mount_rmem -o "$3"
	cd "$dir"
	for ((n = 0; n < survivors + killed; n++)); do
		mkdir "$mnt/$n"
		fsop work-on-alarmed "$mnt/$n" 3>&- &
		pids+=($!)
	done
	pause 0.3
	kill_server
	pause 1 # a hundred signals each
	kill -0 "${pids[@]}"
	kill -TERM "${pids[@]:survivors}"
	until_true 20 ended "${pids[@]:survivors}"
	start_server
	pause 0.3
	touch enough
	for n in "${pids[@]:0:survivors}"; do
		exit_status "$n" 20
	done
	remount
	for ((n = 0; n < survivors; n++)); do
		rmdir "$mnt/$n"
	done
}

@test "signals that a program handles end no call, and SIGTERM after them the program" {
	alarmed 6 6 io_threads=2,buffers=2
}

# bats test_tags=long
@test "SIGTERM ends programs that handle signals, and are more than a thread has requests" {
	alarmed 300 30 io_threads=1,buffers=2
}

@test "umount -f ends a killed process whose mapping waits for the server" {
	local pid
	mount_rmem
	echo old >"$mnt/a"
	fsop map-and-store-on "$mnt/a" >"$dir/stored" 3>&- &
	pid=$!
	until_true 10 grep -q stored "$dir/stored"
	exec 9<"$mnt/." # else umount could succeed, if the process ends in time
	kill_server
	kill -KILL "$pid"
	# The kernel writes the page back before the process ends. No signal interrupts that.
	run ! until_true 1 ended "$pid"
	run ! umount -f "$mnt"
	[[ $output == *busy* ]]
	until_true 10 ended "$pid"
	exec 9<&-
	exit_status "$daemon_pid" 10
	daemon_pid=''
	umount "$mnt"
	use_lease 1 # after a restart the server can't see that the mount has ended
	start_server
	mount_rmem
	[[ $(cat "$mnt/a") == [os]ld ]]
}

@test "SIGTERM ends the daemon though a file is open" {
	mount_rmem
	random_file "$dir/a" 4
	cp "$dir/a" "$mnt/a"
	exec 9<"$mnt/a"
	kill -TERM "$daemon_pid"
	exit_status "$daemon_pid" 10
	daemon_pid=''
	run ! mountpoint -q "$mnt"
	run cat <&9
	[ "$status" -ne 0 ]
	exec 9<&-
	mount_rmem
	cmp "$dir/a" "$mnt/a"
}

@test "a mount in the background holds nothing that its caller had open" {
	local output
	# The output ends when all writers to the pipe have closed it.
	output=$(timeout 30 rmemfs -c /dev/null -o "$(mount_options)" "$(mount_source)" "$mnt" \
		2>&1 9>&1 3>&-)
	[ -z "$output" ]
	mountpoint -q "$mnt"
	umount "$mnt"
}
