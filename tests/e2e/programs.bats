#!/usr/bin/env bats
# programs.bats - programs that people run on a filesystem. Each checks itself for damage: fsck,
# checksums, its own tests. bats -T prints how long they take; the tests do not judge it.
#
# Tests with the tag "long" run nightly (see run.sh).

load helpers

setup() {
	# shellcheck disable=SC2034 # the helpers take it
	test_seconds=900
	setup_rmem
	# shellcheck disable=SC2034
	export_size=2GiB
	start_server
	mount_rmem
}

teardown() {
	teardown_rmem
}

# ---- git -----------------------------------------------------------------------------------------

# Prints all refs and objects of a repository, and tests that it is whole.
whole_repository() {
	git -C "$1" fsck --full --strict >"$dir/fsck" 2>&1 || {
		cat "$dir/fsck"
		die "git fsck finds $1 damaged"
	}
	git -C "$1" for-each-ref | diff "$dir/refs" -
	git -C "$1" rev-list --objects --all | LC_ALL=C sort | cmp "$dir/objects" -
}

# bats test_tags=long
@test "git: clone, fsck, gc, a clone of the clone, and a working tree of it" {
	export HOME=$dir
	git config --global safe.directory '*'
	from=$(source_repository)
	git clone -q --bare --no-local "$from" "$dir/origin"
	git -C "$dir/origin" for-each-ref >"$dir/refs"
	git -C "$dir/origin" rev-list --objects --all | LC_ALL=C sort >"$dir/objects"
	git clone -q --bare --no-local "$dir/origin" "$mnt/first"
	whole_repository "$mnt/first"
	git -C "$mnt/first" gc -q --aggressive --prune=now
	git clone -q --bare "$mnt/first" "$mnt/linked"
	git clone -q --bare --no-local "$mnt/first" "$mnt/second"
	git -C "$mnt/second" repack -q -a -d -f
	mkdir "$dir/expected"
	git -C "$dir/origin" archive HEAD | tar -C "$dir/expected" -x
	git clone -q "$mnt/second" "$mnt/tree"
	check() {
		whole_repository "$mnt/first"
		whole_repository "$mnt/linked"
		whole_repository "$mnt/second"
		[ -z "$(git -C "$mnt/tree" status --porcelain)" ]
		diff -r --no-dereference -x .git "$dir/expected" "$mnt/tree"
	}
	holds_everywhere check
}

# ---- a compiler ----------------------------------------------------------------------------------

# bats test_tags=long
@test "this project is built in the mount, and its unit tests pass there" {
	mkdir "$mnt/source" "$mnt/tmp"
	(cd "$repository" && cp -a cmake common config daemon server systemd tests [A-Z]* "$mnt/source/")
	export TMPDIR=$mnt/tmp
	cmake -S "$mnt/source" --preset dev -B "$mnt/build" >"$dir/cmake.log"
	cmake --build "$mnt/build" >"$dir/build.log"
	PATH=$mnt/build/bin:$PATH ctest --test-dir "$mnt/build" --output-on-failure >"$dir/ctest.log"
	# The times of all files are right, so the second build has nothing to do.
	[[ $(cmake --build "$mnt/build") == *"no work to do"* ]]
	listing "$mnt/build" >"$dir/listing"
	remount
	listing "$mnt/build" | diff "$dir/listing" -
	[[ $(cmake --build "$mnt/build") == *"no work to do"* ]]
}

# ---- archives ------------------------------------------------------------------------------------

# Makes files that rsync and tar can carry: make_tree's, and special files, attributes, ACLs.
make_rich_tree() {
	local n
	make_tree "$1"
	mknod "$1/null" c 1 3
	mknod "$1/block" b 7 200
	perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => shift, Listen => 1) or die' "$1/sock"
	for n in {1..300}; do
		mkdir "$1/deep/$n"
		head -c $((RANDOM * 3)) /dev/urandom >"$1/deep/$n/a"
		ln "$1/deep/$n/a" "$1/empty/hard.$n"
		setfattr -n user.number -v "$n" "$1/deep/$n/a"
	done
	head -c 3000 /dev/urandom | base64 -w 0 >"$dir/value"
	setfattr -n user.long -v "0s$(cat "$dir/value")" "$1/deep/file.65536"
	setfattr -n user.empty "$1/deep/file.65536"
	setfattr -n trusted.overlay -v 'y' "$1/deep"
	setcap cap_net_raw+ep "$1/deep/file.4095"
	setfacl -m u:1234:rw,g:2345:r,m::rwx "$1/deep/file.4096"
	setfacl -m u:1234:rwx -d -m u:1234:r-x,g:2345:--- "$1/deep/er"
	truncate -s 300M "$1/sparse"
	for n in 0 1234567 67108864 300000000; do
		head -c 10000 /dev/urandom |
			dd of="$1/sparse" bs=1M oflag=seek_bytes seek=$n conv=notrunc status=none
	done
	touch -d '1999-12-31 23:59:59.000000001' "$1/empty"
}

# rich_listing FOLDER: prints all metadata of its files.
rich_listing() {
	listing "$1"
	(
		cd "$1"
		export LC_ALL=C
		find . -print0 | sort -z >"$dir/names"
		xargs -0 stat -c '%N %f %u %g %t:%T %y' <"$dir/names" # times of folders, too
		find . ! -type l -print0 | sort -z | xargs -0 getfacl -pn
		xargs -0 getfattr -hd -m - -e hex <"$dir/names"
		find . -links +1 ! -type d -printf '%i %p\n' | sort -k 2 |
			awk '{ if (!($1 in first)) first[$1] = $2; print $2, "is", first[$1] }'
	)
}

# same_rich_tree A B
same_rich_tree() {
	rich_listing "$1" >"$dir/rich.a"
	rich_listing "$2" >"$dir/rich.b"
	diff "$dir/rich.a" "$dir/rich.b" >"$dir/rich.diff" || {
		head -n 30 "$dir/rich.diff"
		die "$1 and $2 are not the same"
	}
	[ "$(grep -c . "$dir/rich.a")" -gt 5000 ]
	[ "$(stat -c %b "$2/sparse")" -le 2048 ]
	diff -r --no-dereference -x fifo -x null -x block -x sock "$1" "$2"
}

# bats test_tags=long
@test "rsync -aHAXS: there, back, and nothing to do the second time" {
	make_rich_tree "$dir/tree"
	rsync -aHAXS --modify-window=-1 --numeric-ids "$dir/tree/" "$mnt/tree/"
	holds_everywhere same_rich_tree "$dir/tree" "$mnt/tree"
	[ -z "$(rsync -aHAXSin --modify-window=-1 --checksum --numeric-ids --delete "$dir/tree/" "$mnt/tree/")" ]
	rsync -aHAXS --modify-window=-1 --numeric-ids "$mnt/tree/" "$dir/back/"
	same_rich_tree "$dir/tree" "$dir/back"
	# The next run carries only the changed and the removed files.
	echo changed >"$dir/tree/deep/1/a"
	rm -r "$dir/tree/deep/2"
	setfattr -x user.number "$dir/tree/deep/3/a"
	setfacl -b "$dir/tree/deep/er"
	rsync -aHAXS --modify-window=-1 --numeric-ids --delete --inplace "$dir/tree/" "$mnt/tree/"
	same_rich_tree "$dir/tree" "$mnt/tree"
}

# bats test_tags=long
@test "tar with ACLs, attributes, holes: in and out" {
	local how=(--format=posix --acls --xattrs "--xattrs-include=*" --numeric-owner -S)
	make_rich_tree "$dir/tree"
	rm "$dir/tree/sock" # tar carries no sockets
	mkdir "$mnt/tree" "$dir/back"
	tar -C "$dir/tree" "${how[@]}" -c . | tar -C "$mnt/tree" "${how[@]}" -xp
	holds_everywhere same_rich_tree "$dir/tree" "$mnt/tree"
	tar -C "$mnt/tree" "${how[@]}" -cf "$mnt/tree.tar" .
	tar -C "$mnt/tree" "${how[@]}" -df "$mnt/tree.tar"
	tar -C "$dir/back" "${how[@]}" -xpf "$mnt/tree.tar"
	same_rich_tree "$dir/tree" "$dir/back"
}

# ---- loads ---------------------------------------------------------------------------------------

# dbench compares no bytes that it reads. So the tests compare its clients' files afterwards, and check
# the store.
# bats test_tags=long
@test "dbench, four clients" {
	dbench -t 15 --skip-cleanup -c /usr/share/dbench/client.txt -D "$mnt" 4 >"$dir/dbench.log"
	grep '^Throughput' "$dir/dbench.log"
	# Its semaphore has one name on a machine: without it the clients begin one after the other.
	[ "$(grep -v "barrier semaphore" "$dir/dbench.log" | grep -ciE 'fail|error')" -eq 0 ]
	listing "$mnt" >"$dir/listing"
	[ "$(wc -l <"$dir/listing")" -gt 100 ]
	check() {
		listing "$mnt" | diff "$dir/listing" -
	}
	holds_everywhere check
	rm -r "${mnt:?}"/*
	umount_rmem
	stop_server
	check_memory
}

# Stressors of stress-ng's class "filesystem" that the test leaves out:
#   bind-mount, binderfs, eventfd, inotify, ioprio, procfs  have no file of the mount under them
#   fanotify, io                                            are at work on all of the machine's mounts
#   fiemap                                                  FUSE has no such request
#   verity                                                  FUSE has no such request, nor has tmpfs
#   io-uring                                                fails on tmpfs too: it asks for a name it has removed
stressors=(access chattr chdir chmod chown copy-file dentry dir dirdeep dirmany dnotify dup fallocate
	fcntl file-ioctl filename flock fpunch fsize fstat getdent handle hdd inode-flags
	iomix lease link locka lockf lockofd mknod open rename symlink sync-file touch utime xattr
	aio aiol mmap mmapaddr mmapfork mmapfixed msync readahead revio seek sendfile splice)

# bats test_tags=long
@test "stress-ng's filesystem stressors, each with --verify" {
	local stressor
	mkdir "$mnt/tmp"
	for stressor in "${stressors[@]}"; do
		stress-ng "--$stressor" 2 --timeout 3 --verify --temp-path "$mnt/tmp" \
			--log-brief >"$dir/stress.log" 2>&1 || die "stress-ng --$stressor fails"
		[[ $(<"$dir/stress.log") != *skip* ]] || die "stress-ng --$stressor did nothing"
		[ -z "$(ls -A "$mnt/tmp")" ] || die "stress-ng --$stressor left $(ls -A "$mnt/tmp")"
	done
	umount_rmem
	stop_server
	check_memory
}

# fio_engines CACHE: runs each engine, buffered and direct, with checksums in each block. Then it verifies
# all blocks again after the server was killed. mmap with O_DIRECT is left out: it would not be direct.
fio_engines() {
	local engine direct jobs=()
	for engine in mmap libaio io_uring; do
		for direct in 0 1; do
			[ $engine$direct != mmap1 ] || continue
			jobs+=("--name=$engine.$direct" "--ioengine=$engine" "--direct=$direct")
			[ $engine = mmap ] || jobs+=(--iodepth=16)
			jobs+=(--size=64M --rw=randrw --bsrange=4k-256k "--directory=$mnt"
				--verify=crc32c --verify_fatal=1 --randrepeat=1 --stonewall)
		done
	done
	remount -o "cache=$1"
	fio --aux-path="$dir" --output="$dir/fio.log" "${jobs[@]}" --do_verify=1
	[ "$(find "$mnt" -type f -size 64M | wc -l)" -eq 5 ]
	verify() {
		fio --aux-path="$dir" --output="$dir/fio.log" "${jobs[@]}" --verify_only=1
	}
	crash_server
	fsop uncache "$mnt"
	verify
	remount -o "cache=$1"
	verify
	rm "$mnt"/*
}

# bats test_tags=long
@test "fio with sums, mapped, libaio and io_uring, buffered and direct, past the cache" {
	fio_engines none
}

# bats test_tags=long
@test "fio with sums, mapped, libaio and io_uring, buffered and direct, through a shared cache" {
	fio_engines shared
}

# bats test_tags=long
@test "fio with sums, mapped, libaio and io_uring, buffered and direct, written back" {
	fio_engines exclusive
}
