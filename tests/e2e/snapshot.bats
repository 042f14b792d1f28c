#!/usr/bin/env bats
# snapshot.bats - the server writes an export to a disk while it is in use, and restores it from there.

load helpers

setup() {
	setup_rmem
	declare -gA exports=()
}

# Some tests write a snapshot to a mount of the same server. That mount would hold up the server's end.
teardown() {
	local pid
	for pid in "${exports[@]}"; do
		kill -KILL "$pid" || true
	done
	teardown_rmem
}

snapshot() {
	rmemfsctl snapshot default "${1:-$dir/image}" "$socket"
}

# Does what a power cut does: all memory is lost.
lose_memory() {
	[ -z "$daemon_pid" ] || umount_rmem
	stop_server
	rm -rf "${memory:?}"/*
}

restore() {
	lose_memory
	start_server --restore "$dir/image"
	mount_rmem
}

state_is() {
	[ "$(status_of '.exports[0].snapshot.state // "none"')" = "$1" ]
}

@test "all that is there comes back: names, attributes, bytes" {
	start_server
	mount_rmem
	make_tree "$dir/tree"
	cp -a "$dir/tree" "$mnt/tree"
	setfattr -n user.note -v "of some length" "$mnt/tree/deep/file.4096" 2>/dev/null || true
	snapshot | tee "$dir/out"
	grep -E 'pause [0-9.]+ ms' "$dir/out"
	restore
	same_tree "$dir/tree" "$mnt/tree"
	umount_rmem
	stop_server
	rmemfsctl check "$memory"
}

# ended_badly PID: the child has ended with status 1.
ended_badly() {
	local status=0
	wait "$1" || status=$?
	[ $status -eq 1 ]
}

# Counts in A first, then in B, and syncs each before the next: at every moment B <= A <= B + 1.
count_in_two() {
	local n
	for ((n = 1; ; n++)); do
		[ ! -e "$dir/enough" ] || return 0
		printf '%08d' $n | dd of="$mnt/A" conv=notrunc,fsync status=none
		printf '%08d' $n | dd of="$mnt/B" conv=notrunc,fsync status=none
	done
}

counted_to() {
	[ "$((10#$(cat "$mnt/B")))" -ge "$1" ]
}

@test "a snapshot during writes is one moment of them" {
	local a b
	start_server
	mount_rmem
	random_file "$mnt/idle" "$(mib 64 16)"
	sha256sum <"$mnt/idle" >"$dir/idle.sum"
	printf '%08d' 0 | tee "$mnt/A" >"$mnt/B"
	count_in_two 3>&- &
	writer=$!
	until_true 20 counted_to 20
	snapshot
	until_true 20 counted_to $((10#$(cat "$mnt/B") + 20))
	touch "$dir/enough"
	wait $writer
	restore
	a=$((10#$(cat "$mnt/A"))) b=$((10#$(cat "$mnt/B")))
	echo "A $a, B $b"
	[ "$b" -ge 20 ]
	[ "$b" -le "$a" ]
	[ "$a" -le $((b + 1)) ]
	sha256sum <"$mnt/idle" | cmp - "$dir/idle.sum"
}

@test "what is written meanwhile is in the file, and not in the snapshot" {
	start_server
	mount_rmem
	random_file "$dir/old" "$(mib 128 32)"
	random_file "$dir/new" "$(mib 128 32)"
	cp "$dir/old" "$mnt/a"
	sync -f "$mnt/a"
	rmemfsctl snapshot default "$dir/image" "$socket" >"$dir/out" 3>&- &
	taking=$!
	until_true 20 state_past_freeze
	dd if="$dir/new" of="$mnt/a" bs=256K conv=notrunc,fsync status=none
	wait $taking
	cmp "$dir/new" "$mnt/a"
	remount
	cmp "$dir/new" "$mnt/a"
	restore
	cmp "$dir/old" "$mnt/a"
}

state_past_freeze() {
	state_is copying || state_is "done"
}

@test "files that are removed and cut meanwhile are in the snapshot" {
	start_server
	mount_rmem
	random_file "$dir/old" "$(mib 64 16)"
	cp "$dir/old" "$mnt/gone"
	cp "$dir/old" "$mnt/cut"
	sync -f "$mnt/cut"
	rmemfsctl snapshot default "$dir/image" "$socket" >"$dir/out" 3>&- &
	taking=$!
	until_true 20 state_past_freeze
	rm "$mnt/gone"
	truncate -s 4097 "$mnt/cut"
	dd if=/dev/urandom of="$mnt/other" bs=1M count="$(mib 64 16)" status=none
	wait $taking
	restore
	cmp "$dir/old" "$mnt/gone"
	cmp "$dir/old" "$mnt/cut"
	[ ! -e "$mnt/other" ]
}

@test "fio verifies what it writes during snapshots" {
	start_server
	mount_rmem
	fio --name=v --directory="$mnt" --size="$(mib 64 16)"M --rw=randwrite --bs=4k-64k --iodepth=8 \
		--ioengine=libaio --direct=1 --verify=crc32c --do_verify=1 --verify_state_save=0 \
		--loops=3 --output="$dir/fio.log" 3>&- &
	fio=$!
	for n in 1 2 3; do
		snapshot "$dir/image.$n"
	done
	wait $fio
}

@test "a client that was killed, and one that is gone, hold up no snapshot for ever" {
	start_server --log-level debug
	mount_rmem
	echo a >"$mnt/a"
	sync -f "$mnt/a"
	suspend "$daemon_pid"
	run snapshot
	kill -CONT "$daemon_pid"
	[ "$status" -eq 1 ]
	[[ $output == *"$mnt"* ]]
	[ ! -e "$dir/image" ]
	echo b >"$mnt/b"
	snapshot
}

# Over shm the server sees that the client's process has ended; else the client may be about to come back.
@test "a client that is killed while it is waited for is not waited for to the end" {
	local killed
	start_server
	mount_rmem
	echo a >"$mnt/a"
	sync -f "$mnt/a"
	suspend "$daemon_pid"
	rmemfsctl snapshot default "$dir/image" "$socket" >"$dir/out" 2>&1 3>&- &
	taking=$!
	until_true 4 test -e "$dir/image/records"
	killed=$daemon_pid
	daemon_pid=''
	kill -KILL "$killed"
	wait "$killed" || true
	if [ "$transport" = shm ]; then
		wait $taking
		[ "$(sed -n 's/.*pause \([0-9]*\)\..*/\1/p' "$dir/out")" -lt 5000 ]
	else
		ended_badly $taking
		grep "has no connection" "$dir/out"
	fi
	umount "$mnt"
}

lease_is_over() {
	[ "$(status_of .uptime_ms)" -gt 1000 ]
}

# Prints a line to a file, and another one later; the first is not committed while the file is open.
write_before_and_after() {
	echo before
	read -r _ <"$dir/fifo"
	echo after
}

# Over shm a session lasts as long as its process.
# bats test_tags=only:tcp
@test "a snapshot ends no client that is about to come back to a restarted server" {
	local session writer
	server_conf=$dir/server.conf
	cat >"$server_conf" <<-'END'
		lease_time = 1;
		exports = ({ name = "default"; size = "64MiB"; });
	END
	start_server
	mount_rmem
	mkfifo "$dir/fifo"
	write_before_and_after >"$mnt/a" 3>&- &
	writer=$!
	until_true 10 test -s "$mnt/a"
	session=$(status_of '.sessions[0].id')
	suspend "$daemon_pid"
	kill_server
	start_server
	until_true 10 lease_is_over
	run snapshot
	kill -CONT "$daemon_pid"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"$mnt"*"has no connection"* ]]
	until_true 20 session_is active
	[ "$(status_of '.sessions[0].id')" -eq "$session" ]
	echo >"$dir/fifo"
	wait $writer
	[ "$(cat "$mnt/a")" = $'before\nafter' ]
	snapshot
}

session_is() {
	[ "$(status_of '.sessions[0].state')" = "$1" ]
}

# Over shm a process has its mapping until it ends.
# bats test_tags=once
@test "no snapshot is taken while a client that is being ended can still write" {
	local stopped writing transport=shm other=$mnt
	use_lease 1
	start_server
	mount_rmem -o share
	echo there >"$mnt/a"
	stopped=$daemon_pid
	suspend "$stopped"
	mnt=$dir/waits
	mkdir "$mnt"
	rmemfs -f -c /dev/null -o "$(mount_options),share" "$(mount_source)" "$mnt" \
		>>"$dir/daemon.log" 2>&1 3>&- &
	daemon_pid=$!
	until_true 10 grep -qF " $mnt fuse" /proc/self/mounts
	cp "$dir/daemon.log" "$mnt/a" 3>&- &
	writing=$!
	until_true 20 session_is ending
	run snapshot
	kill -KILL "$stopped"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"$other"* ]]
	wait $writing
	umount -l "$other"
	snapshot
}

@test "an interrupt cancels it, and leaves nothing" {
	start_server
	mount_rmem
	random_file "$mnt/a" "$(mib 160 64)"
	suspend "$daemon_pid"
	rmemfsctl snapshot default "$dir/image" "$socket" 3>&- &
	taking=$!
	until_true 20 state_is freezing
	kill -INT $taking
	ended_badly $taking
	kill -CONT "$daemon_pid"
	until_true 10 state_is failed
	until_true 10 test ! -e "$dir/image"
	echo a >"$mnt/b"
}

# bats test_tags=once
@test "a full disk ends it, and nothing else" {
	start_server
	mount_rmem
	mkdir "$dir/disk"
	mount -t tmpfs -o size=8M none "$dir/disk"
	random_file "$mnt/a" 32
	run snapshot "$dir/disk/image"
	umount "$dir/disk"
	[ "$status" -eq 1 ]
	[[ $output == *"No space left"* ]]
	echo b >"$mnt/b"
	snapshot
}

# mount_export NAME: mounts it at $dir/NAME by the daemon ${exports[NAME]}.
mount_export() {
	mkdir "$dir/$1"
	rmemfs -f -c /dev/null -o "$(mount_options)" "$(mount_source "$1")" "$dir/$1" \
		>>"$dir/daemon.log" 2>&1 3>&- &
	exports[$1]=$!
	until_true 30 mountpoint -q "$dir/$1"
}

umount_export() {
	local pid=${exports[$1]}
	umount "$dir/$1"
	unset "exports[$1]"
	exit_status "$pid" 10
}

nothing_is_dirty() {
	[ "$(status_of '.exports[0].dirty')" -eq 0 ]
}

# Begins a snapshot ($taking) of 96 MiB in $mnt/a to the mount at $dir/disk. Its daemon is stopped when
# only the snapshot's first file has been begun.
begin_on_disk_that_stands() {
	random_file "$dir/a" 96
	cp "$dir/a" "$mnt/a"
	sync -f "$mnt/a"
	suspend "$daemon_pid"
	rmemfsctl snapshot default "$dir/disk/image" "$socket" >"$dir/out" 2>&1 3>&- &
	taking=$!
	until_true 4 test -e "$dir/disk/image/pages"
	suspend "${exports[disk]}"
	kill -CONT "$daemon_pid"
	until_true 10 state_is copying
}

# bats test_tags=once
@test "a disk that stands still holds up no other export's pages" {
	local n
	start_server --export disk:256MiB --export other:64MiB
	mount_rmem
	mount_export disk
	mount_export other
	begin_on_disk_that_stands
	# This is more than the server puts aside.
	rm "$mnt/a"
	for n in 1 2; do
		timeout 20 dd if="$dir/a" of="$dir/other/b" bs=1M count=48 conv=fsync status=none
		timeout 20 cmp -n $((48 << 20)) "$dir/a" "$dir/other/b"
		rm "$dir/other/b"
	done
	state_is copying
	[ "$(status_of '.exports[0].dirty')" -gt 0 ]
	kill -CONT "${exports[disk]}"
	wait $taking
	until_true 20 nothing_is_dirty
	umount_export other
	mkdir "$dir/image"
	cp "$dir"/disk/image/* "$dir/image"
	umount_export disk
	restore
	cmp "$dir/a" "$mnt/a"
}

# bats test_tags=once
@test "a disk that stands still ends it, not who writes" {
	start_server --export disk:256MiB
	mount_rmem
	mount_export disk
	begin_on_disk_that_stands
	# This is more than the server puts aside.
	truncate -s 96M "$dir/b"
	timeout -s KILL 30 dd if="$dir/b" of="$mnt/a" bs=1M conv=notrunc,fsync status=none
	# The server reports the failure after it has removed the unfinished snapshot.
	kill -CONT "${exports[disk]}"
	ended_badly $taking
	cat "$dir/out"
	grep "the disk is too slow: .*$mnt.* has waited 5 s" "$dir/out"
	[ ! -e "$dir/disk/image" ]
	cmp "$dir/b" "$mnt/a"
	umount_export disk
	snapshot
}

@test "a server that is killed leaves an incomplete snapshot, which is refused" {
	start_server
	mount_rmem
	random_file "$mnt/a" 16
	sync -f "$mnt/a"
	suspend "$daemon_pid"
	rmemfsctl snapshot default "$dir/image" "$socket" 3>&- &
	taking=$!
	until_true 20 state_is freezing
	until_true 20 test -d "$dir/image"
	kill_server
	kill -CONT "$daemon_pid"
	ended_badly $taking
	start_server
	echo b >"$mnt/b"
	umount_rmem
	stop_server
	rm -rf "${memory:?}"/*
	run rmemfs-server -c /dev/null --memory-dir "$memory" --export "default:$export_size" \
		--listen "shm:$socket" --restore "$dir/image"
	echo "$output"
	[ "$status" -eq 78 ]
	[[ $output == *"no complete snapshot"* ]]
}

# bats test_tags=once
@test "a snapshot is restored only into a directory without files" {
	start_server
	mount_rmem
	echo a >"$mnt/a"
	snapshot
	umount_rmem
	stop_server
	for checked in --check-config ""; do
		run rmemfs-server -c /dev/null --memory-dir "$memory" --export "default:$export_size" \
			--listen "shm:$socket" --restore "$dir/image" $checked
		[ "$status" -eq 78 ]
		[[ $output == *"has files"*"start without --restore"* ]]
	done
	# They may be those of an export that is not served any more.
	run rmemfs-server -c /dev/null --memory-dir "$memory" --export new:64MiB \
		--listen "shm:$socket" --restore "$dir/image" --check-config
	[ "$status" -eq 78 ]
	[[ $output == *"has files"* ]]
	start_server
	mount_rmem
	[ "$(cat "$mnt/a")" = a ]
}

# bats test_tags=once
@test "a snapshot is not restored beside another export's files" {
	start_server --export other:64MiB
	mount_rmem
	echo a >"$mnt/a"
	snapshot
	rm "$mnt/a"
	umount_rmem
	rmemfs -f -c /dev/null -o "$(mount_options)" "$(mount_source other)" "$mnt" \
		>>"$dir/daemon.log" 2>&1 3>&- &
	daemon_pid=$!
	until_true 30 mounted_or_dead
	echo b >"$mnt/b"
	umount_rmem
	stop_server
	run timeout 20 rmemfs-server -c /dev/null --memory-dir "$memory" \
		--export "default:$export_size" --export other:64MiB --listen "shm:$socket" \
		--restore "$dir/image"
	echo "$output"
	[ "$status" -eq 78 ]
	[[ $output == *"has files"* ]]
	[ ! -e "$memory/restoring" ]
}

@test "a second snapshot that is refused leaves nothing of the first" {
	start_server
	mount_rmem
	echo a >"$mnt/a"
	snapshot
	snapshot "$dir/second"
	lose_memory
	printf x | dd of="$dir/second/manifest" conv=notrunc status=none
	run timeout 20 rmemfs-server -c /dev/null --memory-dir "$memory" \
		--export "default:$export_size" --listen "shm:$socket" \
		--restore "$dir/image" --restore "$dir/second"
	echo "$output"
	[ "$status" -eq 78 ]
	[[ $output == *"$dir/second/manifest is damaged"* ]]
	start_server --restore "$dir/image"
}

# bats test_tags=once
@test "snapshots are refused over the network, and wrong arguments by name" {
	start_server
	run rmemfsctl snapshot default "$dir/image" "127.0.0.1:$port"
	[ "$status" -eq 1 ]
	[[ $output == *"root and the server's user"* ]]
	run rmemfsctl snapshot other "$dir/image" "$socket"
	[ "$status" -eq 1 ]
	[[ $output == *"no export 'other'"* ]]
	mkdir "$dir/used"
	touch "$dir/used/file"
	run snapshot "$dir/used"
	[ "$status" -eq 1 ]
	[[ $output == *"not empty"* ]]
	run rmemfsctl snapshot default
	[ "$status" -eq 1 ]
	[[ $output == *"EXPORT DIR"* ]]
}

# bats test_tags=once
@test "old mounts see no other file's bytes after a restoration" {
	start_server
	mount_rmem
	echo a >"$mnt/a"
	snapshot
	kill_server
	rm -rf "${memory:?}"/*
	start_server --restore "$dir/image"
	run cat "$mnt/a"
	[ "$status" -ne 0 ]
	umount_rmem
	mount_rmem
	[ "$(cat "$mnt/a")" = a ]
}
