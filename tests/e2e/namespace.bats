#!/usr/bin/env bats
# namespace.bats - names, links, sizes and holes.

load helpers

setup() {
	setup_rmem
	start_server
	mount_rmem
	cd "$mnt"
}

teardown() {
	cd /
	teardown_rmem
}

# Remounts; the shell leaves the mount before and comes back after it.
remount_here() {
	cd /
	remount
	cd "$mnt"
}

@test "mkdir and rmdir, link counts of directories" {
	mkdir a a/b a/c
	[ "$(stat -c %h a)" -eq 4 ]
	run rmdir a
	[ "$status" -ne 0 ]
	[[ $output == *"Directory not empty"* ]]
	rmdir a/b a/c
	[ "$(stat -c %h a)" -eq 2 ]
	rmdir a
	[ ! -e a ]
}

@test "rename replaces a file" {
	echo old >a
	echo new >b
	mv b a
	[ "$(cat a)" = new ]
	[ ! -e b ]
	remount_here
	[ "$(cat a)" = new ]
	[ "$(ls)" = a ]
}

@test "rename over an empty directory, not over a full one, nor into itself" {
	mkdir -p a b full/x
	mv -T a b
	[ ! -e a ]
	run mv -T b full
	[ "$status" -ne 0 ]
	run mv full full/x/
	[ "$status" -ne 0 ]
	[ -d full/x ]
}

@test "rename moves a directory with all that is in it" {
	mkdir -p a/b/c d
	echo deep >a/b/c/file
	mv a/b d/
	[ "$(cat d/b/c/file)" = deep ]
	[ "$(stat -c %h a)" -eq 2 ]
	[ "$(stat -c %h d)" -eq 3 ]
	[ "$(stat -c %i d/b/..)" = "$(stat -c %i d)" ]
}

@test "rename with NOREPLACE" {
	echo a >a
	echo b >b
	run fsop rename-noreplace a b
	[ "$output" = "fsop: EEXIST" ]
	[ "$(cat a b)" = $'a\nb' ]
	fsop rename-noreplace a c
	[ "$(cat c)" = a ]
}

@test "rename with EXCHANGE" {
	mkdir dir
	echo inside >dir/file
	echo outside >a
	fsop rename-exchange a dir
	[ "$(cat dir)" = outside ]
	[ "$(cat a/file)" = inside ]
	run fsop rename-exchange a missing
	[ "$output" = "fsop: ENOENT" ]
}

@test "hard links share one file" {
	echo one >a
	ln a b
	[ "$(stat -c %h b)" -eq 2 ]
	echo two >>b
	[ "$(cat a)" = $'one\ntwo' ]
	rm a
	[ "$(stat -c %h b)" -eq 1 ]
	[ "$(cat b)" = $'one\ntwo' ]
	mkdir d
	run ln d e
	[ "$status" -ne 0 ]
}

@test "symbolic links, dangling and long" {
	long=$(head -c 4000 /dev/zero | tr '\0' y)
	ln -s nowhere a
	ln -s "$long" b
	[ "$(readlink a)" = nowhere ]
	[ "$(readlink b)" = "$long" ]
	run cat a
	[ "$status" -ne 0 ]
	echo here >nowhere
	[ "$(cat a)" = here ]
	remount_here
	[ "$(readlink b)" = "$long" ]
}

@test "names of 255 bytes are taken, of 256 refused" {
	name=$(head -c 255 /dev/zero | tr '\0' n)
	echo x >"$name"
	[ "$(ls)" = "$name" ]
	run touch "${name}n"
	[ "$status" -ne 0 ]
	[[ $output == *"File name too long"* ]]
	[ "$(cat "$name")" = x ]
}

@test "modes, owners and times" {
	export TZ=UTC
	touch a
	chown 12:34 a
	chmod 4751 a
	touch -d '1999-12-31 23:59:59.987654321' a
	remount_here
	[ "$(stat -c '%a %u %g' a)" = "4751 12 34" ]
	[ "$(stat -c %y a)" = "1999-12-31 23:59:59.987654321 +0000" ]
}

@test "a write moves mtime and ctime" {
	echo a >a
	touch -d '2001-01-01' a
	echo b >>a
	[ "$(stat -c %Y a)" -gt "$(date -d 2020-01-01 +%s)" ]
}

@test "sparse files take no space, their holes are zeros" {
	truncate -s 100M a
	[ "$(stat -c %b a)" -eq 0 ]
	printf x | dd of=a bs=1 seek=$((50 << 20)) conv=notrunc status=none
	[ "$(stat -c %b a)" -le 16 ]
	truncate -s 100M "$dir/a"
	printf x | dd of="$dir/a" bs=1 seek=$((50 << 20)) conv=notrunc status=none
	cmp a "$dir/a"
	remount_here
	cmp a "$dir/a"
}

@test "truncate cuts, and what comes back are zeros" {
	head -c 100000 /dev/urandom >"$dir/a"
	cp "$dir/a" a
	for size in 50001 4096 4095 300000 1 200000 0 5000; do
		truncate -s $size a
		truncate -s $size "$dir/a"
		cmp a "$dir/a"
	done
	remount_here
	cmp a "$dir/a"
}

@test "SEEK_DATA and SEEK_HOLE" {
	if [ "$cache_mode" = exclusive ]; then
		cache_mode=shared
		remount_here
	fi
	truncate -s 1M a
	printf x | dd of=a bs=1 seek=$((512 << 10)) conv=notrunc status=none
	[ "$(fsop seek-data a 0)" -eq $((512 << 10)) ]
	[ "$(fsop seek-hole a 0)" -eq 0 ]
	[ "$(fsop seek-hole a $((512 << 10)))" -eq $(((512 << 10) + 4096)) ]
	run fsop seek-data a $((600 << 10))
	[ "$output" = "fsop: ENXIO" ]
	run fsop seek-hole a $((2 << 20))
	[ "$output" = "fsop: ENXIO" ]
}

@test "offsets past 4 GiB" {
	head -c 10000 /dev/urandom >"$dir/piece"
	for offset in 4294967290 5000000000 $((1 << 42)); do
		dd if="$dir/piece" of=a bs=10000 oflag=seek_bytes seek=$offset conv=notrunc status=none
	done
	[ "$(stat -c %s a)" -eq $(((1 << 42) + 10000)) ]
	remount_here
	for offset in 4294967290 5000000000 $((1 << 42)); do
		dd if=a bs=10000 count=1 iflag=skip_bytes,fullblock skip=$offset status=none |
			cmp - "$dir/piece"
	done
	dd if=a bs=4096 count=1 iflag=skip_bytes skip=6000000000 status=none |
		cmp - <(head -c 4096 /dev/zero)
}

@test "a file without a name still takes and gives bytes" {
	fsop unlinked a
	[ -z "$(ls)" ]
}

@test "an unlinked file lives while it is open, and its space comes back after" {
	random_file "$dir/a" 8
	cp "$dir/a" a
	used=$(df --output=used -B1 . | tail -n 1)
	mkfifo "$dir/go"
	fsop hold a <"$dir/go" >"$dir/held" 3>&- &
	exec 4>"$dir/go"
	until_true 10 grep -q held "$dir/held"
	rm a
	exec 4>&-
	wait $!
	tail -c +6 "$dir/held" | cmp - "$dir/a"
	space_is_back() {
		[ "$(df --output=used -B1 . | tail -n 1)" -le $((used - (8 << 20))) ]
	}
	until_true 20 space_is_back
}

@test "a shared mapping writes to the file" {
	fsop map-shared a
	remount_here
	[ "$(tr -d m <a | wc -c)" -eq 0 ]
	[ "$(stat -c %s a)" -eq $((3 * 4096 + 17)) ]
}

@test "a big directory lists every name once" {
	count=$(if small; then echo 1000; else echo 10000; fi)
	mkdir many
	(cd many && seq -f 'a file named %06.0f' "$count" | xargs -d '\n' touch)
	listed() {
		# shellcheck disable=SC2012 # the count and the doubles of plain names
		[ "$(ls -U many | sort -u | wc -l)" -eq "$count" ]
		# shellcheck disable=SC2012
		[ "$(ls -U many | wc -l)" -eq "$count" ]
	}
	listed
	remount_here
	listed
	rm -r many
	[ ! -e many ]
}

# A 32-bit program without large-file support lists no entry with a greater offset.
@test "offsets of directory entries are below 2^31, and stay over a restart of the server" {
	cd /
	mkdir "$mnt/dir"
	(cd "$mnt/dir" && seq -f 'file.%g' 3000 | xargs touch)
	mkfifo "$dir/go"
	fsop list-slowly "$mnt/dir" <"$dir/go" >"$dir/listed" 3>&- &
	lister=$!
	exec 7>"$dir/go"
	until_true 20 grep -q begun "$dir/listed"
	crash_server
	echo >&7
	wait $lister
	exec 7>&-
	[[ $(tail -n 1 "$dir/listed") =~ ^3002\ entries,\ offsets\ to\ ([0-9]+)$ ]]
	[ "${BASH_REMATCH[1]}" -lt $((1 << 31)) ]
	[ "$(status_of .store.directory_offset_bits)" = 31 ]
	rmemfsctl status "$socket" | grep -qx 'directory offsets of 31 bits'
}

@test "a directory can be emptied while it is read" {
	mkdir many
	(cd many && seq 3000 | xargs touch)
	find many -type f -delete
	rmdir many
}

@test "df tells the export's size and what is used" {
	total=$(df --output=size -B1M . | tail -n 1)
	[ "$total" -eq $((${export_size%MiB})) ]
	before=$(df --output=used -B1M . | tail -n 1)
	random_file a 32
	sync -f a
	after=$(df --output=used -B1M . | tail -n 1)
	[ $((after - before)) -ge 32 ]
}

@test "appending from several processes at once loses nothing" {
	for n in 1 2 3 4; do
		(for i in {1..100}; do printf '%s line %04d\n' $n "$i"; done >>"$mnt/log") 3>&- &
		writers[n]=$!
	done
	for n in 1 2 3 4; do
		wait "${writers[n]}"
	done
	[ "$(sort -u log | wc -l)" -eq 400 ]
	[ "$(wc -l <log)" -eq 400 ]
}

@test "in a new folder each name is found that was made, by who asks anew" {
	mkdir "$mnt/new" "$mnt/old"
	cd "$mnt/new"
	stat missing 2>/dev/null && false
	echo file >created
	ln created linked
	ln -s created symbolic
	mkfifo fifo
	mkdir folder
	echo moved >"$mnt/old/name"
	mv "$mnt/old/name" moved
	mv created renamed
	echo created >created
	rm linked
	echo again >linked
	ln linked second
	mkdir gone
	rmdir gone
	# The kernel keeps the folder itself, since it is our current one.
	echo 2 >/proc/sys/vm/drop_caches
	[ "$(cat created second symbolic renamed moved)" = $'created\nagain\ncreated\nfile\nmoved' ]
	[ -p fifo ]
	[ -d folder ]
	for name in gone missing "$mnt/old/name"; do
		run stat "$name"
		[[ $output == *"No such file"* ]]
	done
	cd "$dir"
}

@test "file handles outlive the kernel's caches, the mount and the server" {
	cd "$dir"
	mkdir -p "$mnt/a/b"
	printf bytes >"$mnt/a/file"
	fsop handle-keep "$mnt/a/file" "$dir/file"
	fsop handle-keep "$mnt/a/b" "$dir/b"
	check() {
		# The kernel forgets all inodes that are not in use.
		echo 2 >/proc/sys/vm/drop_caches
		[ "$(fsop handle-show "$mnt" "$dir/file")" = bytes ]
		echo 2 >/proc/sys/vm/drop_caches
		[ "$(fsop handle-show "$mnt" "$dir/b")" = "$mnt/$1/b" ]
	}
	holds_everywhere check a
	mv "$mnt/a" "$mnt/c"
	mv "$mnt/c/file" "$mnt/other"
	check c
	rm "$mnt/other"
	rmdir "$mnt/c/b"
	printf new >"$mnt/c/file"
	echo 2 >/proc/sys/vm/drop_caches
	for kept in file b; do
		run fsop handle-show "$mnt" "$dir/$kept"
		[ "$output" = "fsop: ESTALE" ]
	done
}
