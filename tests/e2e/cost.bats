#!/usr/bin/env bats
# cost.bats - what an operation costs: RPCs, one-sided works, system calls, allocations.

# Each transport sends the same number of messages, so some tests count over one transport only.

load helpers

setup() {
	options=() files=100 blocks=2000
	! small || files=20 blocks=400
	setup_rmem
	start_server
}

teardown() {
	teardown_rmem
}

# total NAME: prints a counter of the export; it is complete once the session has said BYE.
total() {
	status_of ".exports[0].counters.$1"
}

# cost COUNTER COMMAND...: prints how much the command, run in a fresh mount, adds to the counter.
cost() {
	local before
	before=$(total "$1")
	mount_rmem "${options[@]}" >&2
	"${@:2}" >&2
	umount_rmem >&2
	until_true 10 eval '[ "$(status_of ".sessions | length")" = 0 ]'
	echo $(($(total "$1") - before))
}

fill() {
	local i
	for ((i = 0; i < ${1}; i++)); do
		head -c 1000 /dev/zero >"$mnt/small.$i"
	done
}

read_all() {
	local i
	for ((i = 0; i < ${1}; i++)); do
		cat "$mnt/small.$i" >/dev/null
	done
}

@test "a small file costs a LOOKUP, a CREATE, a COMMIT and one WRITE" {
	none=$(cost rpcs true)
	rpcs=$(cost rpcs fill "$files")
	echo "RPCs: $none for nothing, $rpcs for $files files"
	[ $((rpcs - none)) -le $((3 * files + 3)) ]
	[ "$(total writes)" -eq "$files" ]
}

# in_new COMMAND...: runs the command in a folder that the mount has just made. It keeps the folder
# open and uses that path, since other tests make the kernel drop all unused inodes.
in_new() {
	local held
	mkdir "$mnt/new"
	exec {held}<"$mnt/new"
	mnt=/proc/self/fd/$held "$@"
	exec {held}<&-
}

# bats test_tags=only:tcp
@test "in a new folder a small file costs a CREATE, a COMMIT and one WRITE" {
	none=$(cost rpcs true)
	rpcs=$(cost rpcs in_new fill "$files")
	echo "RPCs: $none for nothing, $rpcs for $files files"
	# The folder costs a LOOKUP and a MKDIR.
	[ $((rpcs - none)) -le $((2 * files + 5)) ]
	[ "$(total writes)" -eq "$files" ]
}

# pack_small: $dir/$files.tar has so many files of 1,000 bytes.
pack_small() {
	mkdir "$dir/tree"
	for ((i = 0; i < files; i++)); do
		head -c 1000 /dev/zero >"$dir/tree/small.$i"
	done
	chown 41001:41002 "$dir"/tree/*
	(cd "$dir/tree" && tar -cf "$dir/$files.tar" -- *)
}

# bats test_tags=only:tcp
@test "with names=local a small file costs one RPC and one WRITE, also one that is unpacked" {
	pack_small
	options=(-o names=local)
	none=$(cost rpcs true)
	rpcs=$(cost rpcs in_new copy_all)
	[ "$(total writes)" -eq "$files" ]
	rm_folder
	unpacked=$(cost rpcs in_new unpack "$files")
	rm_folder
	kept=$(cost rpcs in_new keep_all)
	echo "RPCs: $none for nothing, $rpcs for $files files, $unpacked to unpack them, $kept for cp -a"
	# The folder costs a LOOKUP and a MKDIR, the first file a CREATE.
	[ $((rpcs - none)) -le $((files + 7)) ]
	[ $((unpacked - none)) -le $((files + 7)) ]
	[ $((kept - none)) -le $((files + 7)) ]
}

make_kept() {
	fsop make-kept "$mnt" 100
}

# bats test_tags=only:tcp
@test "with names=local a sync of a folder tells of 100 files that are open by some seven RPCs" {
	# Else a file's data may be on its way when the folder is synced, and would cost it a COMMIT at its close.
	options=(-o "names=local,ack=remote")
	none=$(cost rpcs in_new true)
	rm_folder
	rpcs=$(cost rpcs in_new make_kept)
	echo "RPCs: $none for the folder, $rpcs with 100 files"
	[ "$(total writes)" -eq 100 ]
	# Seven messages hold them. The first file costs a CREATE, and so does the one that finds no number left, and
	# the pages a GRANT. Each thread also sends once a second those that wait, which counts on a slow machine.
	[ $((rpcs - none)) -ge 7 ]
	[ $((rpcs - none)) -le 15 ]
}

# cp(1) sets an access list that says what the mode says.
keep_all() {
	cp -a "$dir/tree"/* "$mnt"
}

# bats test_tags=only:tcp
@test "copying a small file with its mode, owner and times costs a CREATE and a COMMIT" {
	pack_small
	none=$(cost rpcs true)
	rpcs=$(cost rpcs in_new keep_all)
	echo "RPCs: $none for nothing, $rpcs for $files files"
	[ $((rpcs - none)) -le $((2 * files + 5)) ]
}

# make_many N, make_and_remove N: so many files, without a process for each.
make_many() {
	local i
	for ((i = 0; i < $1; i++)); do
		echo "$i" >"$mnt/small.$i"
	done
}

make_and_remove() {
	make_many "$1"
	rm -r "$mnt"/small.*
}

# bats test_tags=only:tcp
@test "with names=local files are removed by some hundred in one RPC" {
	options=(-o names=local)
	made=$(cost rpcs in_new make_many 400)
	rm_folder
	both=$(cost rpcs in_new make_and_remove 400)
	mount_rmem
	rmdir "$mnt/new"
	umount_rmem
	echo "RPCs: $((both - made)) to remove 400 files"
	# Four messages hold them. Each thread also sends once a second those that wait, which counts on a slow machine.
	[ $((both - made)) -le 40 ]
}

make_tree() {
	mkdir "$mnt"/{1..100}
	touch "$mnt"/{1..100}/file
}

make_and_remove_tree() {
	make_tree
	rm -r "${mnt:?}"/*
}

remove_new() {
	rm -r "$mnt/new"
}

# bats test_tags=only:tcp
@test "with names=local a folder that was made here or read is removed without a message of its own" {
	options=(-o names=local)
	none=$(cost rpcs true)
	made=$(cost rpcs in_new make_tree)
	removed=$(cost rpcs remove_new)
	both=$(cost rpcs in_new make_and_remove_tree)
	echo "RPCs: $((both - made)) to remove 100 folders with a file each, $((removed - none)) to read them before"
	# rm(1) reads each folder by three. Two messages hold the names. Each thread also sends once a second those that
	# wait.
	[ $((both - made)) -le 320 ]
	[ $((removed - none)) -le 320 ]
}

# pack_tree: $dir/folders.tar has 50 folders, with a folder, a file and a symbolic link each.
pack_tree() {
	local i
	for i in {1..50}; do
		mkdir -p "$dir/tree/$i/in"
		echo "$i" >"$dir/tree/$i/in/file"
		ln -s file "$dir/tree/$i/in/link"
	done
	tar -C "$dir/tree" -cf "$dir/folders.tar" .
}

copy_tree() {
	cp -r "$dir/tree/." "$mnt"
}

keep_tree() {
	cp -a "$dir/tree/." "$mnt"
}

# As programs do that write a new file and put it in place of the old one.
replace_all() {
	local i
	for i in {1..50}; do
		cp "$dir/tree/$i/in/file" "$mnt/$i/in/file.new"
		mv "$mnt/$i/in/file.new" "$mnt/$i/in/file"
	done
}

copy_and_replace() {
	copy_tree
	replace_all
}

# bats test_tags=only:tcp
@test "with names=local new folders, and names that were changed, go along with the next file" {
	options=(-o names=local)
	pack_tree
	none=$(cost rpcs in_new true)
	rm_folder
	copied=$(cost rpcs in_new copy_tree)
	rm_folder
	unpacked=$(cost rpcs in_new unpack folders)
	rm_folder
	kept=$(cost rpcs in_new keep_tree)
	rm_folder
	replaced=$(cost rpcs in_new copy_and_replace)
	echo "RPCs: $((copied - none)) to copy 100 folders, 50 files and 50 links," \
		"$((unpacked - none)) to unpack them," \
		"$((kept - none)) for cp -a, $((replaced - copied)) to replace the files"
	# Each file costs one. The first folder and the last rename cost one, and each thread sends once a second what
	# waits. tar(1) and cp -a also set the times, the mode and the owners of each folder and link.
	[ $((copied - none)) -le 70 ]
	[ $((replaced - copied)) -le 70 ]
	[ $((unpacked - none)) -le 70 ]
	[ $((kept - none)) -le 70 ]
}

# read_first COMMAND...: after the folder was read to its end.
read_first() {
	ls -l "$mnt/" >/dev/null
	"$@"
}

# in_old COMMAND...: as in_new, in the folder that is there from before.
in_old() {
	local held
	exec {held}<"$mnt/old"
	mnt=/proc/self/fd/$held "$@"
	exec {held}<&-
}

empty_old() {
	mount_rmem
	rm -r "$mnt/old"
	mkdir "$mnt/old"
	make_old
	umount_rmem
}

make_old() {
	local i
	mkdir -p "$mnt/old"
	for i in {1..50}; do
		: >"$mnt/old/$i"
	done
}

copy_and_remove() {
	copy_all
	rm -r "$mnt"/small.*
}

# bats test_tags=only:tcp
@test "with names=local a small file in a folder from before costs a LOOKUP and a MAKE" {
	pack_small
	options=(-o names=local)
	cost rpcs make_old
	none=$(cost rpcs in_old true)
	rpcs=$(cost rpcs in_old copy_all)
	echo "RPCs: $none for nothing, $rpcs for $files files"
	# The first file costs a CREATE.
	[ $((rpcs - none)) -le $((2 * files + 5)) ]
}

# bats test_tags=only:tcp
@test "with names=local a file in a folder that was read to its end costs a MAKE, its removal next to none" {
	pack_small
	options=(-o names=local)
	cost rpcs make_old
	none=$(cost rpcs in_old read_first true)
	rpcs=$(cost rpcs in_old read_first copy_all)
	empty_old
	both=$(cost rpcs in_old read_first copy_and_remove)
	echo "RPCs: $none for nothing, $rpcs for $files files, $both with their removal"
	# The first file costs a CREATE.
	[ $((rpcs - none)) -le $((files + 5)) ]
	# Each thread sends once a second those that wait.
	[ $((both - rpcs)) -le 10 ]
}

# make_with_acl N: so many files in a folder in which the server makes them.
make_with_acl() {
	local i
	setfacl -d -m u:41003:rw "$mnt"
	for ((i = 0; i < $1; i++)); do
		: >"$mnt/$i"
	done
}

# make_both N: so many there, and some in a folder above it.
make_both() {
	in_new make_with_acl "$1"
	copy_all
}

# bats test_tags=only:tcp
@test "with names=local files that the server has to make use up nothing" {
	mkdir "$dir/tree"
	cp "$BATS_TEST_FILENAME" "$dir/tree/0"
	for ((i = 1; i < files; i++)); do
		cp "$dir/tree/0" "$dir/tree/$i"
	done
	options=(-o names=local)
	none=$(cost rpcs true)
	rpcs=$(cost rpcs in_new make_both 150)
	echo "RPCs: $none for nothing, $rpcs for 150 files in a folder with an ACL, and $files above it"
	# Each file costs one. The folders and the ACL cost some.
	[ $((rpcs - none)) -le $((150 + files + 12)) ]
}

# bats test_tags=only:tcp
@test "the pages of a mount's first small file come along with its CREATE" {
	none=$(cost rpcs true)
	rpcs=$(cost rpcs fill 1)
	echo "RPCs: $none for nothing, $rpcs for one file"
	# LOOKUP, CREATE, COMMIT; in the end a RETURN of the other pages.
	[ $((rpcs - none)) -le 4 ]
}

copy_all() {
	cp "$dir/tree"/* "$mnt"
}

rm_folder() {
	mount_rmem
	rm -r "$mnt/new"
	umount_rmem
}

# For each file tar does create, write, utimes, chown, chmod and close.
unpack() {
	tar -C "$mnt" -xf "$dir/$1.tar"
}

# bats test_tags=only:tcp
@test "unpacking a small file costs a CREATE and a COMMIT" {
	pack_small
	none=$(cost rpcs true)
	rpcs=$(cost rpcs in_new unpack "$files")
	echo "RPCs: $none for nothing, $rpcs for $files files"
	# The folder costs a LOOKUP and a MKDIR.
	[ $((rpcs - none)) -le $((2 * files + 5)) ]
}

@test "opening, reading and closing a small file costs one RPC and one READ" {
	cost rpcs fill "$files"
	none=$(cost rpcs true)
	options=(-o noatime)
	rpcs=$(cost rpcs read_all "$files")
	echo "RPCs: $none for nothing, $rpcs for $files files"
	[ $((rpcs - none)) -le $((files + 3)) ]
	[ "$(total reads)" -eq "$files" ]
}

fill_and_stat() {
	fill "$1"
	[ "$(stat -c %s "$mnt"/small.* | grep -cx 1000)" -eq "$1" ]
}

# The kernel asks the daemon for what a write has changed, and the daemon knows.
# bats test_tags=only:tcp
@test "the first stat of a file that was written and closed costs no RPC" {
	local filled both
	options=(-o noatime)
	filled=$(cost rpcs in_new fill "$files")
	rm_folder
	both=$(cost rpcs in_new fill_and_stat "$files")
	echo "RPCs: $filled to fill, $both with a stat of each"
	# Listing the folder costs some.
	[ "$both" -le $((filled + 5)) ]
}

# bats test_tags=only:tcp
@test "the access times of what was read cost one RPC a file, the first time" {
	cost rpcs fill "$files"
	none=$(cost rpcs true)
	first=$(cost rpcs read_all "$files")
	again=$(cost rpcs read_all "$files")
	echo "RPCs: $none for nothing, $first for $files files the first time, then $again"
	[ $((first - none)) -le $((2 * files + 3)) ]
	[ $((again - none)) -le $((files + 3)) ]
}

remove_all() {
	local i names=()
	for ((i = 0; i < ${1}; i++)); do
		names+=("$mnt/small.$i")
	done
	rm "${names[@]}"
}

# bats test_tags=only:tcp
@test "removing a small file costs a LOOKUP, an UNLINK, and a RETURN for many of them" {
	cost rpcs fill "$files"
	none=$(cost rpcs true)
	least=$((3 * files))
	# A RETURN leaves at each tick, whatever has gathered. So the best of three runs counts.
	for _ in 1 2 3; do
		rpcs=$(cost rpcs remove_all "$files")
		echo "RPCs: $none for nothing, $rpcs for $files files"
		[ $((rpcs - none)) -ge $least ] || least=$((rpcs - none))
		cost rpcs fill "$files"
	done
	[ $least -le $((2 * files + files / 3)) ] # a RETURN each: 3 for a file
}

overwrite() {
	dd if=/dev/zero of="$mnt/data" bs=4k count="$1" oflag=direct conv=notrunc status=none
}

read_direct() {
	dd if="$mnt/data" of=/dev/null bs=4k count="$1" iflag=direct status=none
}

@test "reading and overwriting costs one work each and no RPC" {
	mount_rmem
	dd if=/dev/zero of="$mnt/data" bs=1M count=8 status=none
	umount_rmem
	reads=$(total reads) writes=$(total writes)
	few=$(cost rpcs read_direct 1)
	many=$(cost rpcs read_direct "$blocks")
	echo "RPCs: $few for one read, $many for $blocks"
	[ $((many - few)) -le 3 ]
	[ $(($(total reads) - reads)) -eq $((blocks + 1)) ]
	few=$(cost rpcs overwrite 1)
	began=$SECONDS
	many=$(cost rpcs overwrite "$blocks")
	echo "RPCs: $few for one overwrite, $many for $blocks in $((SECONDS - began)) s"
	# The client commits the new times once a second.
	[ $((many - few)) -le $((SECONDS - began + 3)) ]
	[ $(($(total writes) - writes)) -eq $((blocks + 1)) ]
	[ "$(total rpc_data_bytes)" -eq 0 ]
}

# overwrite_synced COUNT: overwrites so many blocks, with an fdatasync(2) after each.
overwrite_synced() {
	fio --name=synced --filename="$mnt/data" --filesize=8M --number_ios="$1" --rw=write --bs=4k \
		--fdatasync=1 --output="$dir/fio.log"
}

# bats test_tags=only:tcp
@test "fdatasync(2) of what was overwritten costs no RPC" {
	mount_rmem
	dd if=/dev/zero of="$mnt/data" bs=1M count=8 status=none
	umount_rmem
	few=$(cost rpcs overwrite_synced 1)
	began=$SECONDS
	many=$(cost rpcs overwrite_synced "$blocks")
	echo "RPCs: $few for one, $many for $blocks in $((SECONDS - began)) s"
	# The client commits the new times once a second.
	[ $((many - few)) -le $((SECONDS - began + 3)) ]
}

# calls KIND: prints the daemon's read (syscr) or write (syscw) calls so far, or its bytes (rchar,
# wchar).
calls() {
	sed -n "s/^$1: //p" "/proc/$daemon_pid/io"
}

@test "a lone read over shm costs one read call and one write call" {
	# shellcheck disable=SC2034 # for the helpers
	transport=shm
	mount_rmem -o spin_us=0
	dd if=/dev/zero of="$mnt/data" bs=1M count=8 status=none
	read_direct 100
	reads=$(calls syscr) writes=$(calls syscw)
	read_direct 2000
	reads=$(($(calls syscr) - reads)) writes=$(($(calls syscw) - writes))
	echo "2000 reads: $reads read calls, $writes write calls"
	# The daemon may read without an event and find nothing: at most once a request, usually now
	# and then.
	[ $reads -ge 2000 ]
	[ $reads -le 4100 ]
	[ $writes -ge 2000 ]
	[ $writes -le 2100 ]
}

# bats test_tags=only:tcp
@test "the bytes of large reads over tcp are not copied by the daemon" {
	# Where the kernel has no TLS for sockets the daemon has to open what is protected.
	stop_server
	without_key
	start_server
	mount_rmem
	random_file "$dir/a" 16
	cp "$dir/a" "$mnt/a"
	before=$(calls wchar)
	dd if="$mnt/a" of="$dir/b" bs=1M iflag=direct status=none
	written=$(($(calls wchar) - before))
	echo "the daemon has written $written bytes"
	[ $written -lt $((1 << 20)) ]
	cmp "$dir/a" "$dir/b"
}

# sparse COUNT: prints so many pieces of odd lengths, each after a gap.
sparse() {
	local i
	for ((i = 1; i <= $1; i++)); do
		printf 'piece %s' $i | dd of="$mnt/sparse" bs=64 seek=$((i * 10007)) oflag=seek_bytes \
			conv=notrunc,fsync status=none
	done
	rm "$mnt/sparse"
}

@test "a gap that a write leaves costs no RPC" {
	few=$(cost rpcs sparse 1)
	many=$(cost rpcs sparse 41)
	echo "RPCs: $few for one piece, $many for 41"
	# Each piece costs its COMMIT.
	[ $((many - few)) -le 43 ]
}

flushes() {
	grep -c ' debug: flush ' "$dir/daemon.log"
}

@test "closing a file asks the daemon if it may have been written, and else nothing, where nobody shares" {
	mount_rmem -o debug_io,exclusive
	echo abc >"$mnt/a"
	before=$(flushes)
	[ "$before" -gt 0 ]
	[ "$(cat "$mnt/a")" = abc ]
	[ "$(dd if="$mnt/a" iflag=direct status=none)" = abc ]
	[ "$(flushes)" -eq "$before" ]
	: <>"$mnt/a"
	[ "$(flushes)" -gt "$before" ]
}

# append COUNT: as a user with a quota writes so many new pages, each by its own write.
append() {
	setpriv --reuid=41001 --regid=41001 --clear-groups \
		dd if=/dev/zero of="$mnt/appended" bs=4k count="$1" oflag=append conv=notrunc status=none
}

@test "with quotas a write costs no RPC while the allowance lasts" {
	stop_server
	server_conf=$dir/server.conf
	echo "exports = ( { name = \"default\"; size = \"$export_size\";" \
		'quotas = ( { user = 41001; size = "100MiB"; }, { group = 41001; size = "100MiB"; } ); } )' \
		>"$server_conf"
	chmod 755 "$dir"
	start_server
	mount_rmem
	chmod 1777 "$mnt"
	umount_rmem
	few=$(cost rpcs append 1)
	began=$SECONDS
	many=$(cost rpcs append 4000)
	echo "RPCs: $few for one page, $many for 4000 in $((SECONDS - began)) s"
	# Allowances and grants double each time, and there is a COMMIT a second.
	[ $((many - few)) -le $((SECONDS - began + 20)) ]
}

# mount_counting [OPTION]...: mounts a daemon of which liballocount.so counts what it names.
mount_counting() {
	truncate -s 32 "$dir/count"
	LD_PRELOAD=$bin/liballocount.so RMEMFS_ALLOCOUNT=$dir/count mount_rmem "$@"
}

# counted N: prints counter N of allocount.c.
counted() {
	od -An -t u8 -j $(($1 * 8)) -N 8 "$dir/count" | tr -d ' '
}

allocations() {
	counted 0
}

copied_mib() {
	echo $(($(counted 1) >> 20))
}

# allocating COMMAND...: prints the daemon's allocations while the command runs.
allocating() {
	local before
	before=$(allocations)
	"$@"
	echo $(($(allocations) - before))
}

# bats test_tags=unsanitized
@test "reading and overwriting allocates nothing" {
	mount_counting
	dd if=/dev/zero of="$mnt/data" bs=1M count=8 status=none
	[ "$(allocations)" -gt 0 ]
	read_direct 100
	overwrite 100
	for what in read_direct overwrite; do
		few=$(allocating $what 10)
		many=$(allocating $what 2000)
		echo "allocations of $what: $few for 10, $many for 2000"
		[ "$many" -le "$few" ]
	done
}

# read_deep COUNT: reads so many blocks, sixteen at a time.
read_deep() {
	fio --name=deep --filename="$mnt/data" --filesize=8M --number_ios="$1" --rw=randread --bs=4k \
		--direct=1 --ioengine=libaio --iodepth=16 --output="$dir/fio.log"
}

# waits COMMAND...: prints the daemon's calls of epoll_wait and of recvmsg while the command runs.
waits() {
	local waits receptions
	waits=$(counted 2) receptions=$(counted 3)
	"$@" >&2
	echo $(($(counted 2) - waits)) $(($(counted 3) - receptions))
}

# bats test_tags=unsanitized
@test "over shm requests make few waits, and a write does not ask the socket" {
	# shellcheck disable=SC2034 # for the helpers
	transport=shm
	mount_counting -o spin_us=0
	dd if=/dev/zero of="$mnt/data" bs=1M count=8 status=none
	overwrite 100
	# Where other work has the CPUs, requests come one by one. So the best of five runs counts.
	for _ in 1 2 3 4 5; do
		waits overwrite 2000 >"$dir/alone"
		waits read_deep 2000 >"$dir/deep"
		read -r alone receptions <"$dir/alone"
		read -r deep _ <"$dir/deep"
		echo "2000 writes: $alone waits, $receptions receptions; 2000 reads, 16 at a time: $deep waits"
		[ "$alone" -gt 3000 ] || [ "$deep" -gt 1500 ] || break
	done
	# One for each write, and now and then another.
	[ "$alone" -le 3000 ]
	[ "$receptions" -le 100 ]
	[ "$deep" -le 1500 ]
}

# bats test_tags=unsanitized
@test "what is read over shm is not copied by the daemon" {
	# shellcheck disable=SC2034 # for the helpers
	transport=shm
	random_file "$dir/source" 32
	mount_counting
	cp "$dir/source" "$mnt/data"
	before=$(copied_mib)
	dd if="$mnt/data" of="$dir/large" bs=1M iflag=direct status=none
	dd if="$mnt/data" of="$dir/small" bs=4k iflag=direct status=none
	copied=$(($(copied_mib) - before))
	echo "MiB copied: $copied of 64 that were read"
	cmp "$dir/source" "$dir/large"
	cmp "$dir/source" "$dir/small"
	[ "$copied" -le 1 ]
}

# large_writes [OPTION]...: copies 32 MiB to the mount; prints how many of them the daemon has
# copied.
large_writes() {
	local before
	before=$(copied_mib)
	dd if="$dir/source" of="$mnt/copy" bs=1M "$@" status=none
	cmp "$dir/source" "$mnt/copy" >&2
	echo $(($(copied_mib) - before))
}

# bats test_tags=unsanitized
@test "what makes a file grow over shm is not copied by the daemon, what overwrites it is, once" {
	# shellcheck disable=SC2034 # for the helpers
	transport=shm
	head -c 32M /dev/urandom >"$dir/source"
	mount_counting
	new=$(large_writes)
	old=$(large_writes conv=notrunc)
	again=$(large_writes oflag=direct)
	echo "MiB copied: $new of a new file, $old of an old one, $again of one that was cut to nothing"
	# The daemon copies a few MiB until each thread has learnt which writes to expect, and while
	# the server is slow to grant more pages.
	[ "$new" -le 20 ]
	[ "$old" -ge 32 ]
	[ "$old" -le 36 ]
	[ "$again" -le 20 ]
}
