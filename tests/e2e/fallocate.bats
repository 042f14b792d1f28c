#!/usr/bin/env bats
# fallocate.bats - allocate, punch and zero ranges: the bytes, sizes and blocks afterwards.

load helpers

setup() {
	setup_rmem
	start_server
	mount_rmem
}

teardown() {
	teardown_rmem
}

# blocks FILE: prints the size of its blocks in pages.
blocks() {
	echo $(($(stat -c %b "$1") / 8))
}

free_pages() {
	stat -f -c %f "$mnt"
}

# twins MIB: makes the same file on the mount and outside it; `both` changes the two alike.
twins() {
	random_file "$dir/a" "$1"
	cp "$dir/a" "$mnt/a"
}

# both ARGUMENT...: runs fallocate(1) on both twins.
both() {
	fallocate "$@" "$dir/a"
	fallocate "$@" "$mnt/a"
}

# zero_both OFFSET LENGTH [-n]: like both -z. The twin is on a tmpfs, which can't do it in all kernels.
zero_both() {
	local offset=$1 length=$2 size
	shift 2
	fallocate -z "$@" -o "$offset" -l "$length" "$mnt/a"
	size=$(stat -c %s "$dir/a")
	head -c "$length" /dev/zero |
		dd of="$dir/a" bs=64k conv=notrunc oflag=seek_bytes seek="$offset" iflag=fullblock status=none
	[ "${1:-}" != -n ] || truncate -s "$size" "$dir/a"
}

@test "allocated pages are zeros, counted, and the file has the size" {
	fallocate -l 10000000 "$mnt/a"
	[ "$(stat -c %s "$mnt/a")" -eq 10000000 ]
	[ "$(blocks "$mnt/a")" -eq 2442 ]
	head -c 10000000 /dev/zero >"$dir/a"
	holds_everywhere cmp "$dir/a" "$mnt/a"
	[ "$(blocks "$mnt/a")" -eq 2442 ]
}

@test "what is allocated beyond the end is counted, and written to later" {
	echo begin >"$mnt/a"
	fallocate -n -l 8M "$mnt/a"
	[ "$(stat -c %s "$mnt/a")" -eq 6 ]
	[ "$(blocks "$mnt/a")" -eq 2048 ]
	remount
	[ "$(blocks "$mnt/a")" -eq 2048 ]
	{ echo begin && head -c 4000000 /dev/urandom; } >"$dir/a"
	tail -c +7 "$dir/a" >>"$mnt/a"
	[ "$(blocks "$mnt/a")" -eq 2048 ]
	holds_everywhere cmp "$dir/a" "$mnt/a"
}

@test "a truncation drops what lies beyond, to the same size too" {
	touch "$mnt/a"
	fallocate -n -l 8M "$mnt/a"
	truncate -s 0 "$mnt/a"
	[ "$(blocks "$mnt/a")" -eq 0 ]
	fallocate -n -l 8M "$mnt/a"
	truncate -s 4M "$mnt/a"
	[ "$(blocks "$mnt/a")" -eq 2048 ]
	truncate -s 1M "$mnt/a"
	[ "$(blocks "$mnt/a")" -eq 256 ]
}

# leave_behind: a client dies after it has written 3 MiB beyond the end of $mnt/a, where 8 MiB are
# allocated. $size: the file's size after the crash.
leave_behind() {
	local writer
	echo begin >"$mnt/a"
	fallocate -n -l 8M "$mnt/a"
	mkfifo "$dir/pipe"
	dd if="$dir/pipe" of="$mnt/a" bs=1M seek=6 oflag=seek_bytes conv=notrunc status=none &
	writer=$!
	exec 9>"$dir/pipe"
	head -c 3M /dev/urandom >&9
	until_true 10 eval '[ "$(stat -c %s "$mnt/a")" -gt 2000000 ]'
	kill_daemon
	exec 9>&-
	wait "$writer" || true
	mount_rmem
	size=$(stat -c %s "$mnt/a")
}

# zeros END: the file reads as zeros from $size to END.
zeros() {
	tail -c +$((size + 1)) "$mnt/a" | head -c $(($1 - size)) |
		cmp - <(head -c $(($1 - size)) /dev/zero)
}

@test "what a client that died had written beyond the end does not come to light" {
	leave_behind
	truncate -s 8M "$mnt/a"
	[ "$(blocks "$mnt/a")" -eq 2048 ]
	holds_everywhere zeros 8388608
}

@test "nor does it in the gap that a write leaves" {
	leave_behind
	printf one | dd of="$mnt/a" bs=1 seek=3200000 conv=notrunc status=none
	[ "$(stat -c %s "$mnt/a")" -eq 3200003 ]
	zeros 3200000
	# The bytes behind the first write must read as zeros, too.
	printf two | dd of="$mnt/a" bs=1 seek=7000000 conv=notrunc status=none
	one_and_two() {
		zeros 3200000
		[ "$(tail -c +3200001 "$mnt/a" | head -c 3)" = one ]
		tail -c +3200004 "$mnt/a" | head -c 3799997 | cmp - <(head -c 3799997 /dev/zero)
		[ "$(tail -c +7000001 "$mnt/a")" = two ]
	}
	[ "$(blocks "$mnt/a")" -eq 2048 ]
	holds_everywhere one_and_two
}

@test "nor does it before what is allocated behind the end" {
	leave_behind
	fallocate -o 9000000 -l 1000000 "$mnt/a"
	[ "$(stat -c %s "$mnt/a")" -eq 10000000 ]
	holds_everywhere zeros 10000000
}

@test "allocation leaves what is there as it is" {
	twins 4
	both -p -o 1000000 -l 1000000
	both -o 500000 -l 9000000
	[ "$(blocks "$mnt/a")" -eq 2320 ]
	holds_everywhere cmp "$dir/a" "$mnt/a"
}

@test "holes, at pages' edges and across them" {
	twins 4
	both -p -o 0 -l 4096
	both -p -o 8191 -l 4098
	both -p -o 100000 -l 100
	both -p -o 1048576 -l 1048576
	both -p -o 4000000 -l 9000000
	cmp "$dir/a" "$mnt/a"
	[ "$(blocks "$mnt/a")" -eq $((1024 - 1 - 1 - 256 - 47)) ]
	[ "$(fsop seek-hole "$mnt/a" 20000)" -eq 1048576 ]
	[ "$(fsop seek-data "$mnt/a" 1048576)" -eq 2097152 ]
	[ "$(stat -c %s "$mnt/a")" -eq 4194304 ]
	holds_everywhere cmp "$dir/a" "$mnt/a"
}

@test "holes are filled again" {
	twins 2
	for i in 7 3 11 100 3 7; do
		both -p -o $((i * 4096)) -l 10000
		random_file "$dir/piece" 1
		dd if="$dir/piece" of="$dir/a" bs=5000 count=2 seek=$i conv=notrunc status=none
		dd if="$dir/piece" of="$mnt/a" bs=5000 count=2 seek=$i conv=notrunc status=none
	done
	holds_everywhere cmp "$dir/a" "$mnt/a"
}

@test "zeros, within the file and growing it" {
	twins 4
	zero_both 12345 2000000
	cmp "$dir/a" "$mnt/a"
	[ "$(blocks "$mnt/a")" -eq 1024 ]
	zero_both 4000000 1000000
	[ "$(stat -c %s "$mnt/a")" -eq 5000000 ]
	zero_both 4500000 9000000 -n
	[ "$(stat -c %s "$mnt/a")" -eq 5000000 ]
	holds_everywhere cmp "$dir/a" "$mnt/a"
}

@test "what is mapped, dirty or cached shows the hole" {
	twins 2
	fsop map-punch "$mnt/a" 8192 65536
}

@test "freed pages come back" {
	local before
	before=$(free_pages)
	fallocate -l 64M "$mnt/a"
	fallocate -p -o 0 -l 64M "$mnt/a"
	[ "$(blocks "$mnt/a")" -eq 0 ]
	[ "$(stat -c %s "$mnt/a")" -eq 67108864 ]
	is_free() { [ "$(free_pages)" -ge "$before" ]; }
	until_true 10 is_free
}

@test "all that is free can be allocated, what was lent to this mount too, and no more" {
	local free
	free=$(free_pages)
	random_file "$mnt/b" 4
	rm "$mnt/b"
	is_free() { [ "$(free_pages)" -ge "$free" ]; }
	until_true 10 is_free
	fallocate -l $((free * 4096)) "$mnt/a"
	[ "$(blocks "$mnt/a")" -eq "$free" ]
	run fallocate -l 4096 "$mnt/b"
	[[ $status -ne 0 && $output == *"No space left"* ]]
	# The file can use all its allocated pages.
	dd if=/dev/zero of="$mnt/a" bs=1M conv=notrunc count="$((free / 256))" status=none
	rm "$mnt/a"
	fallocate -l 1M "$mnt/b"
}

@test "more than can be had is refused, and nothing is taken" {
	local before
	# With more threads, pages just granted to one count only when that thread handles the reply.
	remount -o io_threads=1
	before=$(free_pages)
	run fallocate -l 1T "$mnt/a"
	[[ $status -ne 0 && $output == *"No space left"* ]]
	[ "$(free_pages)" -eq "$before" ]
	random_file "$mnt/b" 1
	before=$(free_pages)
	run fallocate -l $(((before + 1) * 4096)) "$mnt/a"
	[[ $status -ne 0 && $output == *"No space left"* ]]
	[ "$(blocks "$mnt/a")" -eq 0 ]
	[ "$(free_pages)" -eq "$before" ]
	run fallocate -o 9223372036854775807 -l 1 "$mnt/a"
	[[ $status -ne 0 && $output == *"File too large"* ]]
}

@test "other modes are not supported" {
	echo >"$mnt/a"
	run fallocate -c -o 0 -l 4096 "$mnt/a"
	[[ $status -ne 0 && $output == *"not supported"* ]]
	run fallocate -i -o 0 -l 4096 "$mnt/a"
	[[ $status -ne 0 && $output == *"not supported"* ]]
}

@test "a user's allocation takes set-user-id away, root's does not" {
	umount_rmem
	chmod 755 "$dir"
	mount_rmem -o allow_other
	chmod 1777 "$mnt"
	setpriv --reuid=1234 --clear-groups bash -c "echo >'$mnt/a'; chmod 6755 '$mnt/a'"
	fallocate -l 8192 "$mnt/a"
	[ "$(stat -c %a "$mnt/a")" = 6755 ]
	setpriv --reuid=1234 --clear-groups fallocate -p -o 0 -l 4096 "$mnt/a"
	[ "$(stat -c %a "$mnt/a")" = 755 ]
}

@test "set-group-id without execution goes with set-user-id, unless the caller is in the group" {
	umount_rmem
	chmod 755 "$dir"
	mount_rmem -o allow_other
	# Columns: the user's supplementary groups, and the mode that is left of 6666.
	while read -r groups left; do
		for change in "fallocate -l 8192" "truncate -s 5000" "tee -a" "cp /etc/passwd"; do
			for case in 6666:$left 2666:2666; do
				rm -f "$mnt/a"
				echo >"$mnt/a"
				chmod "${case%:*}" "$mnt/a"
				# shellcheck disable=SC2086 # a command and its arguments
				setpriv --reuid=1234 --regid=1234 $groups $change "$mnt/a" <<<"more" >/dev/null
				[ "$(stat -c %a "$mnt/a")" = "${case#*:}" ]
			done
		done
	done <<-END
		--clear-groups 666
		--groups=5,0,7 2666
	END
}

@test "the times change" {
	touch -d 2001-02-03 "$mnt/a"
	fallocate -n -l 4096 "$mnt/a"
	[ "$(stat -c %Y "$mnt/a")" -gt 1700000000 ]
}

@test "steps that a killed server has not answered are done once" {
	fallocate -l 64M "$mnt/a"
	for i in {0..3000..2}; do
		echo "-p -o $((i * 4096)) -l 4096"
	done >"$dir/holes"
	while read -r -a hole; do
		fallocate "${hole[@]}" "$mnt/a" || echo failed >"$dir/failed"
	done <"$dir/holes" 3>&- &
	local punching=$!
	for _ in 1 2 3; do
		sleep 0.5
		crash_server
	done
	wait $punching
	[ ! -e "$dir/failed" ]
	[ "$(blocks "$mnt/a")" -eq $((16384 - 1501)) ]
	[ "$(fsop seek-data "$mnt/a" 0)" -eq 4096 ]
}
