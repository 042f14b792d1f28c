#!/usr/bin/env bats
# copy.bats - copy_file_range(2), which the server does by itself, and cp(1), which uses it.

load helpers

setup() {
	setup_rmem
	start_server
	mount_rmem
}

teardown() {
	teardown_rmem
}

# one_sided: prints the bytes read and written; the count is complete once the session has ended.
one_sided() {
	umount_rmem
	until_true 10 eval '[ "$(status_of ".sessions | length")" = 0 ]'
	status_of '.exports[0].counters | .read_bytes + .write_bytes'
}

# splice FROM OFFSET TO OFFSET LENGTH: does the same as copy-range, on files outside the mount.
splice() {
	dd if="$1" of="$3" bs=1M iflag=skip_bytes,count_bytes oflag=seek_bytes \
		skip="$2" seek="$4" count="$5" conv=notrunc status=none
}

@test "cp within the mount moves no byte through it" {
	local before
	random_file "$mnt/a" "$(mib 64 16)"
	before=$(one_sided)
	mount_rmem
	cp "$mnt/a" "$mnt/b"
	[ "$(one_sided)" -eq "$before" ]
	mount_rmem
	holds_everywhere cmp "$mnt/a" "$mnt/b"
}

@test "what was written just now is copied" {
	random_file "$dir/a" 8
	cp "$dir/a" "$mnt/a"
	fsop copy-range "$mnt/a" 0 "$mnt/b" 0 8388608
	cmp "$dir/a" "$mnt/b"
	printf new | dd of="$mnt/a" bs=1 seek=5000 conv=notrunc status=none
	printf new | dd of="$dir/a" bs=1 seek=5000 conv=notrunc status=none
	fsop copy-range "$mnt/a" 4096 "$mnt/b" 4096 4096
	holds_everywhere cmp "$dir/a" "$mnt/b"
}

@test "odd offsets, over what is there and beyond its end" {
	random_file "$dir/a" 4
	random_file "$dir/b" 1
	cp "$dir/a" "$dir/b" "$mnt"
	while read -r from to len; do
		splice "$dir/a" "$from" "$dir/b" "$to" "$len"
		[ "$(fsop copy-range "$mnt/a" "$from" "$mnt/b" "$to" "$len")" -eq "$len" ]
		cmp "$dir/b" "$mnt/b"
	done <<-END
		0 1 1
		4095 8193 2
		100 200 100000
		1234567 1000000 2000000
		7 5000001 4000000
	END
	holds_everywhere cmp "$dir/b" "$mnt/b"
}

@test "within one file, and no range over itself" {
	random_file "$dir/a" 4
	cp "$dir/a" "$mnt/a"
	cp "$dir/a" "$dir/b"
	splice "$dir/a" 1000 "$dir/b" 2000000 1500000
	[ "$(fsop copy-range "$mnt/a" 1000 "$mnt/a" 2000000 1500000)" -eq 1500000 ]
	holds_everywhere cmp "$dir/b" "$mnt/a"
	run fsop copy-range "$mnt/a" 1000 "$mnt/a" 2000 1500000
	[ "$output" = "fsop: EINVAL" ]
}

@test "it ends where the source does" {
	echo 12345 >"$mnt/a"
	[ "$(fsop copy-range "$mnt/a" 2 "$mnt/b" 0 100)" -eq 4 ]
	[ "$(fsop copy-range "$mnt/a" 6 "$mnt/b" 0 100)" -eq 0 ]
	[ "$(fsop copy-range "$mnt/a" 1000 "$mnt/b" 0 100)" -eq 0 ]
	[ "$(cat "$mnt/b")" = 345 ]
}

@test "holes stay holes, and are zeros over what was there" {
	truncate -s 10M "$mnt/a"
	echo middle | dd of="$mnt/a" bs=1M seek=5 conv=notrunc status=none
	cp "$mnt/a" "$mnt/b"
	fsop copy-range "$mnt/a" 0 "$mnt/c" 0 10485760
	cmp "$mnt/a" "$mnt/b"
	[ "$(stat -c %b "$mnt/b")" -eq 8 ]
	[ "$(stat -c %b "$mnt/c")" -eq 8 ]
	[ "$(fsop seek-data "$mnt/c" 0)" -eq 5242880 ]
	random_file "$mnt/d" 10
	fsop copy-range "$mnt/a" 0 "$mnt/d" 0 10485760
	holds_everywhere cmp "$mnt/a" "$mnt/d"
}

@test "past 4 GiB, in files that are sparse there" {
	random_file "$dir/a" 1
	truncate -s 6G "$mnt/a"
	dd if="$dir/a" of="$mnt/a" bs=1M seek=5000 conv=notrunc status=none
	[ "$(fsop copy-range "$mnt/a" 0 "$mnt/b" 3 6442450944)" -eq 6442450944 ]
	[ "$(stat -c %s "$mnt/b")" -eq 6442450947 ]
	check() {
		tail -c +5242880004 "$mnt/b" | head -c 1048576 | cmp "$dir/a" -
	}
	holds_everywhere check
}

@test "a full export: as much as there is room for, then no space" {
	local free
	random_file "$mnt/a" 64
	free=$(stat -f -c %f "$mnt")
	fallocate -l $(((free - 4096) * 4096)) "$mnt/filler"
	run cp "$mnt/a" "$mnt/b"
	[[ $status -ne 0 && $output == *"No space left"* ]]
	cmp -n "$(stat -c %s "$mnt/b")" "$mnt/a" "$mnt/b"
	[ "$(stat -c %s "$mnt/b")" -ge 15000000 ]
	rm "$mnt/filler"
	cp "$mnt/a" "$mnt/b"
	holds_everywhere cmp "$mnt/a" "$mnt/b"
}

@test "copies of both files into each other at once end" {
	random_file "$mnt/a" 4
	random_file "$mnt/b" 4
	for i in 1 2; do
		(for _ in {1..100}; do fsop copy-range "$mnt/a" 0 "$mnt/b" 2097152 2097152; done) \
			>/dev/null 3>&- &
		copiers+=($!)
		(for _ in {1..100}; do fsop copy-range "$mnt/b" 0 "$mnt/a" 2097152 2097152; done) \
			>/dev/null 3>&- &
		copiers+=($!)
	done
	for i in "${copiers[@]}"; do
		wait "$i"
	done
}

@test "a copy goes on when the server is killed" {
	local size
	size=$(mib 64 32)
	random_file "$dir/a" "$size"
	cp "$dir/a" "$mnt/a"
	(for i in 1 2 3 4 5 6; do cp "$mnt/a" "$mnt/b" && cmp "$dir/a" "$mnt/b" || exit 1; done) \
		>"$dir/copy.log" 2>&1 3>&- &
	local copying=$!
	for _ in 1 2 3; do
		sleep 0.4
		crash_server
	done
	wait $copying
	holds_everywhere cmp "$dir/a" "$mnt/b"
}

@test "a user's copy takes set-user-id away, root's does not" {
	umount_rmem
	chmod 755 "$dir"
	mount_rmem -o allow_other
	chmod 1777 "$mnt"
	echo bytes >"$mnt/a"
	chmod 644 "$mnt/a"
	setpriv --reuid=1234 --clear-groups bash -c "echo >'$mnt/b'; chmod 6755 '$mnt/b'"
	fsop copy-range "$mnt/a" 0 "$mnt/b" 0 3
	[ "$(stat -c %a "$mnt/b")" = 6755 ]
	setpriv --reuid=1234 --clear-groups "$(command -v fsop)" copy-range "$mnt/a" 0 "$mnt/b" 0 3
	[ "$(stat -c %a "$mnt/b")" = 755 ]
}
