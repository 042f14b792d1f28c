#!/usr/bin/env bats
# basic.bats - the first use: copy files in and out, and find them again.

load helpers

setup() {
	setup_rmem
	start_server
	mount_rmem
}

teardown() {
	teardown_rmem
}

@test "dd in blocks of 1 MiB" {
	random_file "$dir/a" "$(mib 128 64)"
	dd if="$dir/a" of="$mnt/a" bs=1M status=none
	holds_everywhere cmp "$dir/a" "$mnt/a"
}

@test "dd from /dev/urandom straight onto the mount, its sum holds" {
	dd if=/dev/urandom bs=1M count="$(mib 64 16)" iflag=fullblock status=none |
		tee "$mnt/a" | sha256sum >"$dir/sum"
	check() {
		sha256sum <"$mnt/a" | diff "$dir/sum" -
	}
	holds_everywhere check
}

@test "dd in blocks of 4 KiB" {
	random_file "$dir/a" "$(mib 64 8)"
	dd if="$dir/a" of="$mnt/a" bs=4k status=none
	check() {
		dd if="$mnt/a" bs=4k status=none | cmp "$dir/a" -
	}
	holds_everywhere check
}

@test "dd in odd blocks that no page fits" {
	random_file "$dir/a" "$(mib 16 4)"
	dd if="$dir/a" of="$mnt/a" bs=12345 status=none
	check() {
		dd if="$mnt/a" bs=54321 status=none | cmp "$dir/a" -
	}
	holds_everywhere check
}

@test "dd with direct I/O both ways" {
	random_file "$dir/a" "$(mib 64 16)"
	dd if="$dir/a" of="$mnt/a" bs=1M oflag=direct status=none
	check() {
		dd if="$mnt/a" bs=1M iflag=direct status=none | cmp "$dir/a" -
	}
	holds_everywhere check
}

@test "an overwrite in the middle changes nothing else" {
	random_file "$dir/a" 8
	cp "$dir/a" "$mnt/a"
	head -c 100001 /dev/urandom >"$dir/piece"
	for file in "$dir/a" "$mnt/a"; do
		dd if="$dir/piece" of="$file" bs=1000 seek=3333 conv=notrunc status=none
	done
	holds_everywhere cmp "$dir/a" "$mnt/a"
}

@test "cp -a of a tree with dangling links" {
	make_tree "$dir/tree"
	cp -a "$dir/tree" "$mnt/"
	holds_everywhere same_tree "$dir/tree" "$mnt/tree"
}

@test "tar in, tar out" {
	make_tree "$dir/tree"
	mkdir "$mnt/tree" "$dir/out"
	tar -C "$dir/tree" --format=posix -c . | tar -C "$mnt/tree" -xp
	holds_everywhere same_tree "$dir/tree" "$mnt/tree"
	tar -C "$mnt/tree" --format=posix -c . | tar -C "$dir/out" -xp
	same_tree "$dir/tree" "$dir/out"
}

@test "git clone" {
	export HOME=$dir
	git config --global safe.directory '*'
	from=$dir/origin
	git clone -q --bare --no-local "$(source_repository)" "$from"
	git clone -q --no-local "$from" "$mnt/clone"
	mkdir "$dir/expected"
	git -C "$from" archive HEAD | tar -C "$dir/expected" -x
	check() {
		[ "$(git -C "$mnt/clone" rev-parse HEAD)" = "$(git -C "$from" rev-parse HEAD)" ]
		git -C "$mnt/clone" fsck --full
		[ -z "$(git -C "$mnt/clone" status --porcelain)" ]
		diff -r --no-dereference -x .git "$dir/expected" "$mnt/clone"
	}
	holds_everywhere check
}

@test "a program copied there runs from there" {
	cp /bin/ls "$mnt/ls"
	chmod 755 "$mnt/ls"
	remount
	[ "$("$mnt/ls" "$mnt")" = ls ]
}

@test "several files written at once" {
	for n in 1 2 3 4; do
		random_file "$dir/$n" "$(mib 24 6)"
	done
	for n in 1 2 3 4; do
		cp "$dir/$n" "$mnt/$n" 3>&- &
		copies[n]=$!
	done
	for n in 1 2 3 4; do
		wait "${copies[n]}"
	done
	check() {
		for n in 1 2 3 4; do
			cmp "$dir/$n" "$mnt/$n"
		done
	}
	holds_everywhere check
}
