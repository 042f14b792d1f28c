#!/usr/bin/env bats
# full.bats - no memory is left, for bytes or for names: the caller gets ENOSPC, and all else goes on.

load helpers

setup() {
	setup_rmem
	server_conf=$dir/server.conf
	cat >"$server_conf" <<-'END'
		metadata_reserve = "4MiB";
		exports = ( { name = "default"; size = "16MiB"; } );
	END
	start_server
	mount_rmem
	cp -r "$repository/common" "$dir/kept"
	cp -r "$dir/kept" "$mnt/kept"
}

teardown() {
	teardown_rmem
}

# The old files are unchanged, also after a restart. The check at the end of the test finds the store
# clean.
kept_is_whole() {
	diff -r "$dir/kept" "$mnt/kept"
}

all_is_well() {
	kept_is_whole
	crash_server
	fsop uncache "$mnt"
	kept_is_whole
}

fill_bytes() {
	! dd if=/dev/urandom of="$mnt/filler" bs=64k conv=fsync status=none 2>"$dir/dd.log" || return 1
	grep -q "No space left on device" "$dir/dd.log"
}

# Makes names until the store has no room for one more.
fill_names() {
	run scale names "$mnt/names"
	[ "$status" -eq 1 ]
	[[ $output == *"No space left on device" ]]
}

# server_tells WORDS
server_tells() {
	grep -q "export 'default': $1" "$dir/server.log"
}

# no_space HOW FROM TO: makes names in one way until ENOSPC. A few may succeed first, since the store gets
# pages of earlier work back a little later.
no_space() {
	local n=0
	while run fsop "$1" "$2" "$3.$1.$n" && [ "$status" -eq 0 ]; do
		n=$((n + 1))
	done
	echo "fsop $1: $output after $n"
	[ "$output" = "fsop: ENOSPC" ]
}

# no_space_to_rename FROM TO: renames there and back until ENOSPC; then the name has not moved.
no_space_to_rename() {
	local from=$1 to=$2 n=0 other
	while run fsop rename-noreplace "$from" "$to" && [ "$status" -eq 0 ]; do
		other=$from from=$to to=$other
		n=$((n + 1))
		[ $n -lt 1000 ] || die "there is always room for one more"
	done
	echo "rename: $output after $n"
	[ "$output" = "fsop: ENOSPC" ]
	[ -e "$from" ] && [ ! -e "$to" ]
}

# no_space_for_attributes VALUE: sets one attribute after the other until ENOSPC.
no_space_for_attributes() {
	local n=0
	while run metaop setxattr "user.$n" "$mnt/a" "$1" && [ "$status" -eq 0 ]; do
		n=$((n + 1))
		[ $n -lt 100 ] || die "there is always room for one more"
	done
	echo "$output after $n"
	[ "$output" = "metaop: ENOSPC" ]
}

@test "no page is left: who writes is told, at once" {
	fill_bytes
	: >"$mnt/new"
	printf x | dd of="$mnt/new" bs=1 status=none 2>"$dir/dd.log" && false
	grep -q "No space left on device" "$dir/dd.log"
	[ "$(stat -c %s "$mnt/new")" -eq 0 ]
	all_is_well
}

@test "no page is left: what needs none works" {
	fill_bytes
	mkdir "$mnt/d"
	ln "$mnt/filler" "$mnt/d/linked"
	ln -s target "$mnt/d/symbolic"
	mv "$mnt/d/symbolic" "$mnt/moved"
	truncate -s 1G "$mnt/filler"
	printf overwritten | dd of="$mnt/filler" conv=notrunc status=none
	chmod 600 "$mnt/filler"
	[ "$(head -c 11 "$mnt/filler")" = overwritten ]
	all_is_well
}

@test "no page is left: what write has accepted, fsync and close keep" {
	random_file "$dir/a" 1
	fsop fill "$dir/a" "$mnt/a" >"$dir/ends"
	[ "$(cat "$dir/ends")" = $'write ENOSPC\nfsync 0\nclose 0' ]
	size=$(stat -c %s "$mnt/a")
	[ "$size" -gt $((8 << 20)) ]
	# The copy must be the source repeated, up to its size.
	while cat "$dir/a"; do :; done 2>/dev/null | head -c "$size" | cmp - "$mnt/a"
	all_is_well
}

@test "no page is left: several writers, each knows what it has" {
	for n in 1 2 3 4; do
		random_file "$dir/$n" 1
		fsop fill "$dir/$n" "$mnt/$n" >"$dir/ends.$n" 3>&- &
		writers[n]=$!
	done
	wait "${writers[@]}"
	for n in 1 2 3 4; do
		[ "$(cat "$dir/ends.$n")" = $'write ENOSPC\nfsync 0\nclose 0' ]
		size=$(stat -c %s "$mnt/$n")
		while cat "$dir/$n"; do :; done 2>/dev/null | head -c "$size" | cmp - "$mnt/$n"
	done
	all_is_well
}

# The kernel makes EIO of a short asynchronous write, so the daemon does such a write whole or not at all.
@test "no page is left: who writes direct is told so, and of no I/O error" {
	exec 5<>"$mnt/a"
	dd if=/dev/zero of="$mnt/a" bs=1M oflag=direct status=none 2>"$dir/dd.log" 5>&- && false
	exec 5>&-
	cat "$dir/dd.log"
	grep -q "No space left on device" "$dir/dd.log"
	rm "$mnt/a"
	fio --name=b --filename="$mnt/b" --ioengine=libaio --iodepth=4 --direct=1 --rw=write --bs=1M \
		--size=32M --output="$dir/fio.log" 2>&1 && false
	grep 'err=' "$dir/fio.log"
	grep -q 'err=28' "$dir/fio.log"
	all_is_well
}

@test "no page is left: what is deleted can be written again" {
	for _ in 1 2 3; do
		fill_bytes
		size=$(stat -c %s "$mnt/filler")
		[ "$size" -gt $((8 << 20)) ]
		rm "$mnt/filler"
		head -c "$size" /dev/urandom >"$dir/a"
		cp "$dir/a" "$mnt/a"
		cmp "$dir/a" "$mnt/a"
		rm "$mnt/a"
	done
	all_is_well
}

@test "no page is left: the server's log tells, and again when it is better" {
	fill_bytes
	until_true 10 server_tells "95 % of its memory are used, "
	rm "$mnt/filler"
	until_true 10 server_tells "less than 80 % of its memory are used again, "
}

@test "no page is left: what was closed and deleted before is waited for" {
	remount -o io_threads=2
	fill_bytes
	needs_room "$mnt/filler" fallocate fallocate -l 4M "$mnt/a"
	fill_bytes
	needs_room "$mnt/filler" write dd if=/dev/zero of="$mnt/b" bs=1M count=4 status=none
	all_is_well
}

@test "no room for names: who makes one is told, in every way" {
	echo linked >"$mnt/a"
	: >"$mnt/b"
	setfattr -n user.kept -v "of before" "$mnt/a"
	head -c 300 /dev/urandom >"$dir/short"
	head -c 60000 /dev/urandom >"$dir/long"
	fill_names
	for way in make-file make-directory make-fifo make-symlink make-long-symlink make-link; do
		no_space $way "$mnt/a" "$mnt/new"
	done
	[ "$(cat "$mnt/a")" = linked ]
	no_space_to_rename "$mnt/b" "$mnt/renamed"
	no_space_for_attributes "$dir/long"
	no_space_for_attributes "$dir/short"
	[ "$(getfattr --only-values -n user.kept "$mnt/a")" = "of before" ]
	setfattr -x user.kept "$mnt/a"
	all_is_well
}

@test "no room for names: what is there is overwritten, cut and removed" {
	random_file "$mnt/a" 2
	random_file "$dir/a" 2
	fill_names
	dd if="$dir/a" of="$mnt/a" bs=64k conv=notrunc,fsync status=none
	cmp "$dir/a" "$mnt/a"
	truncate -s 1000 "$mnt/a"
	cmp -n 1000 "$dir/a" "$mnt/a"
	chmod 640 "$mnt/a"
	rm "$mnt/a"
	all_is_well
}

@test "no room for names: what is deleted can be made again" {
	fill_names
	until_true 10 server_tells "[89]. % of its memory for metadata are used, "
	rm -r "$mnt/names"
	mkdir "$mnt/names"
	fill_names
	rm -r "$mnt/names"
	[ "$(ls "$mnt")" = kept ]
	cp -r "$mnt/kept" "$mnt/again"
	diff -r "$mnt/kept" "$mnt/again"
	head -c 60000 /dev/urandom >"$dir/long"
	metaop setxattr user.long "$mnt/again" "$dir/long"
	metaop getxattr user.long "$mnt/again" | cmp - "$dir/long"
	all_is_well
}

# bats test_tags=once
@test "no room for anything: a snapshot is taken, and comes back" {
	fill_bytes
	fill_names
	(cd "$mnt" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum) >"$dir/before"
	rmemfsctl snapshot default "$dir/image" "$socket"
	all_is_well
	umount_rmem
	stop_server
	check_memory
	rm -r "${memory:?}"/*
	start_server --restore "$dir/image"
	mount_rmem
	(cd "$mnt" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum) |
		cmp - "$dir/before"
	# There is as much room as before.
	rm -r "$mnt/names" "$mnt/filler"
	cp -r "$mnt/kept" "$mnt/again"
	diff -r "$mnt/kept" "$mnt/again"
	kept_is_whole
}
