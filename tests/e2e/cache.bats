#!/usr/bin/env bats
# cache.bats - the modes of -o cache=: which mounts the server admits, and what holds while the
# kernel writes back later.

bats_require_minimum_version 1.5.0
load helpers

setup() {
	setup_rmem
	start_server
}

teardown() {
	[ -z "$server_pid" ] || kill -CONT "$server_pid"
	teardown_rmem
}

exclusive() {
	cache_mode=exclusive
	mount_rmem
}

# ---- admission -----------------------------------------------------------------------------------

# second_mount: prints the message of a second mount, which the server must refuse.
second_mount() {
	mkdir -p "$dir/second"
	! rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=3" "$(mount_source)" "$dir/second" 2>&1
}

@test "an exclusive mount is alone, and both sides say so" {
	local said
	exclusive
	cache_mode=shared
	said=$(second_mount)
	[[ $said == *"export 'default' is in use by "*"for itself alone (exclusive, or cache=exclusive)"* ]]
	grep -q 'for itself alone (exclusive, or cache=exclusive)' "$dir/server.log"
	[ "$(status_of '.sessions[0].exclusive')" = true ]
	[[ $(rmemfsctl status "$socket") == *", exclusive"* ]]
}

# bats test_tags=once
@test "a mount with exclusive keeps others out, also those that read, and caches as usual" {
	local said
	mount_rmem -o exclusive
	for options in '' ,ro ,share; do
		mkdir -p "$dir/second"
		said=$(! rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=1$options" \
			"$(mount_source)" "$dir/second" 2>&1)
		[[ $said == *"for itself alone (exclusive, or cache=exclusive)"* ]]
	done
	[ "$(status_of '.sessions[0].exclusive')" = true ]
	[ "$(rmemfsctl status --json "$mnt" | jq -r .options.cache)" = shared ]
}

@test "an exclusive mount is refused while another has the export" {
	local said
	cache_mode=shared
	mount_rmem
	cache_mode=exclusive
	said=$(second_mount)
	[[ $said == *"exclusive, or cache=exclusive, needs an export that no other mount uses"* ]]
	[ "$(status_of '.sessions[0].exclusive')" = false ]
}

@test "an exclusive session is still so after kill -9 of the server" {
	exclusive
	crash_server
	[ "$(status_of '.sessions | length')" = 1 ]
	[ "$(status_of '.sessions[0].exclusive')" = true ]
}

# ---- sizes and bytes -----------------------------------------------------------------------------

@test "exclusive: closed files are whole after kill -9 of the server and the daemon" {
	exclusive
	random_file "$dir/a" 8
	cp "$dir/a" "$mnt/a"
	for i in {1..50}; do
		echo "small $i" >"$mnt/small.$i"
	done
	kill_server
	kill_daemon
	use_lease 1 # after a restart the server can't see that the client is dead
	start_server
	exclusive
	cmp "$dir/a" "$mnt/a"
	for i in {1..50}; do
		[ "$(cat "$mnt/small.$i")" = "small $i" ]
	done
}

@test "exclusive: pages that are written in part keep the rest of their bytes" {
	exclusive
	random_file "$dir/a" 2
	cp "$dir/a" "$mnt/a"
	fsop uncache "$mnt"
	for at in 100 5000 70001 1048575 2000000; do
		for file in "$dir/a" "$mnt/a"; do
			printf 'over' | dd of="$file" bs=1 seek=$at conv=notrunc status=none
		done
	done
	holds_everywhere cmp "$dir/a" "$mnt/a"
}

@test "exclusive: what many append, one after the other, is all there" {
	exclusive
	for i in {1..500}; do
		echo "line $i" >>"$mnt/a"
	done
	for i in {501..1000}; do
		echo "line $i"
	done >>"$mnt/a"
	check() {
		for i in {1..1000}; do echo "line $i"; done | cmp - "$mnt/a"
	}
	holds_everywhere check
}

@test "exclusive: two processes append to one file, no line is lost or torn" {
	exclusive
	append() {
		for i in {1..2000}; do echo "$1 $i"; done >>"$mnt/a"
	}
	append one 3>&- &
	append two
	wait $!
	check() {
		[ "$(sort -u "$mnt/a" | grep -cE '^(one|two) [0-9]+$')" -eq 4000 ]
	}
	holds_everywhere check
}

@test "exclusive: truncation of a file that is not written back yet" {
	exclusive
	head -c 100000 /dev/urandom >"$dir/a"
	exec 5<>"$mnt/a"
	cat "$dir/a" >&5
	truncate -s 50001 "$dir/a" "$mnt/a"
	cmp "$dir/a" "$mnt/a"
	truncate -s 200000 "$dir/a" "$mnt/a"
	cmp "$dir/a" "$mnt/a"
	exec 5>&-
	holds_everywhere cmp "$dir/a" "$mnt/a"
}

@test "exclusive: what is not written back yet is no hole" {
	exclusive
	exec 5>"$mnt/a"
	echo some >&5
	[ "$(fsop seek-data "$mnt/a" 0)" = 0 ]
	[ "$(fsop seek-hole "$mnt/a" 0)" = 5 ]
	cp "$mnt/a" "$dir/a"
	exec 5>&-
	[ "$(cat "$dir/a")" = some ]
}

@test "exclusive: a write-only handle writes into pages that have to be read first" {
	exclusive
	random_file "$dir/a" 1
	cp "$dir/a" "$mnt/a"
	fsop uncache "$mnt"
	exec 5>>"$mnt/a"
	printf 'tail' >&5
	printf 'tail' >>"$dir/a"
	exec 5>&-
	holds_everywhere cmp "$dir/a" "$mnt/a"
}

# ---- times ---------------------------------------------------------------------------------------

times_of() {
	stat -c '%n %.9Y %.9Z %s' "$mnt"/*
}

@test "exclusive: times are the same on every later mount" {
	exclusive
	echo written >"$mnt/written"
	cp "$mnt/written" "$mnt/copied"
	echo more >>"$mnt/copied"
	fsop map-shared "$mnt/mapped"
	touch -d '2001-02-03 04:05:06.123456789' "$mnt/written"
	cp -p "$mnt/written" "$mnt/kept"
	truncate -s 3 "$mnt/copied"
	chmod 600 "$mnt/mapped"
	[[ $(stat -c %y "$mnt/kept") == '2001-02-03 04:05:06.123456789'* ]]
	times_of >"$dir/times"
	check() {
		times_of | diff "$dir/times" -
	}
	holds_everywhere check
}

@test "exclusive: writing makes a file newer, whatever its time was set to" {
	exclusive
	echo a >"$mnt/a"
	touch -d 2001-01-01 "$mnt/a"
	echo b >>"$mnt/a"
	check() {
		[ "$(stat -c %Y "$mnt/a")" -gt "$(date -d 2020-01-01 +%s)" ]
	}
	holds_everywhere check
}

# ---- errors --------------------------------------------------------------------------------------

@test "exclusive: fsync and close tell of full memory, and what fits is whole" {
	exclusive
	random_file "$dir/a" 4
	cp "$dir/a" "$mnt/a"
	run dd if=/dev/zero of="$mnt/full" bs=1M count=600 conv=fsync status=none
	[ "$status" -ne 0 ]
	[[ $output == *"No space left on device"* ]]
	run cp "$dir/a" "$mnt/b"
	[ "$status" -ne 0 ]
	[[ $output == *"No space left on device"* ]]
	rm "$mnt/full" "$mnt/b"
	cp "$dir/a" "$mnt/b"
	check() {
		cmp "$dir/a" "$mnt/a" && cmp "$dir/a" "$mnt/b"
	}
	holds_everywhere check
}

@test "exclusive: on a soft mount close tells that the server is away" {
	cache_mode=exclusive
	mount_rmem -o soft,timeo=4,peer_timeout=4,connect_timeout=4
	exec 5>"$mnt/a"
	suspend "$server_pid"
	run timeout 30 dd if=/dev/zero of=/dev/fd/5 bs=64k count=4 conv=fsync,notrunc status=none
	[ "$status" -ne 0 ]
	[ "$status" -ne 124 ]
	[[ $output == *"Input/output error"* ]]
	exec 5>&-
	kill -CONT "$server_pid"
	is_written() { echo after >"$mnt/b"; } # the I/O threads connect again one by one
	until_true 20 is_written
	remount -o soft,timeo=10
	[ "$(cat "$mnt/b")" = after ]
}

# ---- rights --------------------------------------------------------------------------------------

@test "an ordinary user's write takes set-user-id away, in every mode" {
	for cache_mode in none shared exclusive; do
		mount_rmem -o allow_other
		echo a >"$mnt/$cache_mode"
		chmod 6777 "$mnt/$cache_mode"
		chmod 755 "$dir"
		setpriv --reuid=65534 --regid=65534 --clear-groups sh -c "echo b >>'$mnt/$cache_mode'"
		[ "$(stat -c %a "$mnt/$cache_mode")" = 777 ]
		umount_rmem
	done
}

@test "exclusive: capabilities stay that were given before the file's pages were written back" {
	exclusive
	metaop write-caps "$mnt/prog"
	check() {
		[[ $(getcap "$mnt/prog") == *cap_net_raw=ep* ]]
	}
	holds_everywhere check
}

@test "exclusive: a write takes capabilities away" {
	exclusive
	cp "$bin/fsop" "$mnt/prog"
	setcap cap_net_raw+ep "$mnt/prog"
	echo more >>"$mnt/prog"
	check() {
		[ -z "$(getcap "$mnt/prog")" ]
	}
	check
	holds_everywhere check
}

# ---- interrupted writes --------------------------------------------------------------------------

# Is the data in the server's socket that it has not read?
bytes_queued() {
	ss -Htn "sport = :$port" | awk '{ n += $2 } END { exit !(n > 100000) }'
}

# bats test_tags=only:tcp
@test "what an interrupted direct write changes later is not hidden by the cache" {
	local writer reader
	cache_mode=shared
	# The kernel's cached names must stay valid while the server is away.
	stop_server
	server_conf=$dir/server.conf
	cat >"$server_conf" <<-END
		lease_time = 600;
		exports = ({ name = "default"; size = "$export_size"; });
	END
	start_server
	# With one I/O thread the daemon sees the close before the next open.
	mount_rmem -o io_threads=1
	random_file "$dir/old" 1
	random_file "$dir/new" 1
	cp "$dir/old" "$mnt/a"
	cmp "$dir/old" "$mnt/a"
	suspend "$server_pid"
	dd if="$dir/new" of="$mnt/a" bs=1M conv=notrunc status=none 3>&- 2>&- &
	writer=$!
	until_true 20 bytes_queued
	kill_server
	kill -KILL "$writer"
	exit_status "$writer" 10 || [ $? -eq 137 ]
	fsop sees "$mnt/a" "$dir/new" >"$dir/sees" 3>&- &
	reader=$!
	until_true 10 grep -q open "$dir/sees"
	start_server
	exit_status "$reader" 20
	cmp "$dir/new" "$mnt/a"
}

# ---- reading ahead -------------------------------------------------------------------------------

read_ahead_kb() {
	cat "/sys/class/bdi/$(mountpoint -d "$mnt")/read_ahead_kb"
}

# The longest READ that the daemon has logged.
longest_read() {
	sed -n 's/.* debug: read inode .* length \([0-9]*\):.*/\1/p' "$dir/daemon.log" | sort -n | tail -n 1
}

@test "readahead says how much the kernel reads ahead" {
	mount_rmem
	dd if=/dev/urandom of="$dir/data" bs=1M count=4 status=none
	cp "$dir/data" "$mnt/data"
	[ "$(read_ahead_kb)" -eq 1024 ]
	umount_rmem
	mount_rmem -o readahead=256KiB,debug_io
	[ "$(read_ahead_kb)" -eq 256 ]
	dd if="$mnt/data" bs=4k status=none | cmp - "$dir/data"
	[ "$(longest_read)" -eq $((256 << 10)) ]
}
