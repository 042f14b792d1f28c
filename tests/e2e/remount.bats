#!/usr/bin/env bats
# remount.bats - mount -o remount: its effect on the kernel's mount, on the session at the server, and on
# open files. mount.bats tests mount(8) itself and its helpers.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts

setup() {
	setup_rmem
	mounts=()
	start_server
}

teardown() {
	teardown_rmem
}

# change OPTIONS: calls rmemfs as mount.rmemfs is called for mount -o remount,OPTIONS.
change() {
	rmemfs -c /dev/null -o "remount,$1" "$(mount_source)" "$mnt" 3>&-
}

# change_fails TEXT OPTIONS
change_fails() {
	run change "$2"
	echo "$output"
	[ "$status" -eq 32 ]
	[[ $output == *"$1"* ]]
}

# kernel_has WORD: the mount's options have WORD; for ro and rw the filesystem's have it, too.
kernel_has() {
	[[ ,$(findmnt -n -o VFS-OPTIONS "$mnt"), == *,"$1",* ]] || die "the mount is $(findmnt -n "$mnt")"
	[[ $1 != r? || ,$(findmnt -n -o FS-OPTIONS "$mnt"), == *,"$1",* ]] ||
		die "the filesystem is $(findmnt -n "$mnt")"
}

# are MODE: the kernel and the server agree on the mode.
are() {
	kernel_has "$1"
	[ "$(status_of '.sessions[0].read_only')" = "$([ "$1" = ro ] && echo true || echo false)" ] ||
		die "the server has $(status_of '.sessions[0]')"
}

refuses_writes() {
	run touch "$1"
	[ "$status" -ne 0 ]
	[[ $output == *"Read-only file system"* ]]
}

# Changes the kernel's flag alone by mount(2), behind the daemon's back.
kernel_only() {
	mount -i -o "remount,$1" "$mnt"
}

fill() {
	local i
	random_file "$1/large" 1
	for i in {1..20}; do
		echo "file $i" >"$1/small.$i"
	done
}

compare() {
	diff -r "$dir/tree" "$mnt/tree"
}

@test "read-only and back, and what is open stays open" {
	mkdir "$dir/tree"
	fill "$dir/tree"
	mount_rmem
	cp -r "$dir/tree" "$mnt/tree"
	remount -o ro
	are ro
	session=$(status_of '.sessions[0].id')
	exec 9<"$mnt/tree/large"
	dd bs=1 count=1 status=none <&9 >/dev/null
	change rw
	are rw
	fill "$dir/tree"
	cp -r "$dir/tree/." "$mnt/tree"
	change ro
	are ro
	refuses_writes "$mnt/b"
	compare
	change ro
	are ro
	change rw
	are rw
	touch "$mnt/b"
	cmp <(tail -c +2 "$dir/tree/large") <(cat <&9)
	exec 9<&-
	[ "$(status_of '.sessions[0].id')" = "$session" ]
	[ "$(grep -c "connection lost" "$dir/daemon.log")" -eq 0 ]
}

@test "the server refuses what the kernel alone has let in" {
	mount_rmem -o ro
	kernel_only rw
	refuses_writes "$mnt/a"
	umount_rmem
	mount_rmem
	echo data >"$mnt/a"
	change ro
	kernel_only rw
	refuses_writes "$mnt/b"
	run dd if=/dev/zero of="$mnt/a" conv=notrunc bs=4096 count=1 oflag=direct
	[ "$status" -ne 0 ]
	[ "$(cat "$mnt/a")" = data ]
	change rw
	echo more >>"$mnt/a"
	[ "$(cat "$mnt/a")" = $'data\nmore' ]
	are rw
}

# Without the remount, access times would wait for seconds, and sizes and names for one second.
@test "all that was done before is told to the server first" {
	mount_rmem
	mkdir "$mnt/tree" "$dir/tree"
	echo old >"$mnt/read"
	touch -d '2001-02-03' "$mnt/read"
	remount
	fill "$dir/tree"
	cp -r "$dir/tree/." "$mnt/tree"
	cat "$mnt/read" >/dev/null
	exec 9<"$mnt/tree/small.1"
	change ro
	exec 9<&-
	compare
	crash_server
	compare
	umount_rmem
	mount_rmem -o ro
	compare
	[ "$(stat -c %X "$mnt/read")" -gt "$(date -d yesterday +%s)" ]
}

# Appends lines to $dir/2/beside and $dir/beside as long as $dir/goes exists.
write_on() {
	local n
	for ((n = 0; ; n++)); do
		echo "line $n" | tee -a "$dir/beside" >>"$dir/2/beside" || return 1
		[ -e "$dir/goes" ] || return 0
	done
}

@test "of mounts that share one is remounted while another one writes" {
	local mnt writer
	share 1 2
	mnt=$dir/1
	mkdir "$dir/tree"
	fill "$dir/tree"
	cp -r "$dir/tree" "$mnt/tree"
	exec 9<"$mnt/tree/large"
	touch "$dir/goes"
	write_on 3>&- 9>&- &
	writer=$!
	until_true 20 test -s "$mnt/beside"
	change ro
	kernel_has ro
	refuses_writes "$mnt/a"
	diff -r "$dir/tree" "$dir/2/tree"
	echo changed >"$dir/2/tree/small.1"
	echo changed >"$dir/tree/small.1"
	compare
	change rw
	kernel_has rw
	echo again >"$mnt/tree/small.2"
	echo again >"$dir/tree/small.2"
	diff -r "$dir/tree" "$dir/2/tree"
	rm "$dir/goes"
	wait $writer
	cmp "$dir/beside" "$mnt/beside"
	cmp "$dir/tree/large" <(cat <&9)
	exec 9<&-
	compare
	[ "$(status_of '[.sessions[] | select(.read_only)] | length')" = 0 ]
	end_mount 1
	end_mount 2
}

# bats test_tags=once
@test "with files open for writing nothing is changed" {
	mount_rmem
	exec 9>"$mnt/a"
	change_fails "files are open for writing" ro
	are rw
	echo data >&9
	rm "$mnt/a"
	exec 9>&-
	exec 9<"$mnt/."
	# The kernel sends the RELEASE later, and the remount is refused until then.
	until_true 10 change ro
	are ro
	exec 9<&-
}

# bats test_tags=once
@test "when reading changes access times is remounted, too" {
	mount_rmem -o strictatime,nodiratime
	echo data >"$mnt/file"
	change nosuid,ro
	are ro
	change nosuid,rw
	first=$(stat -c %x "$mnt/file")
	fsop uncache "$mnt"
	cat "$mnt/file"
	[[ $(stat -c %x "$mnt/file") > $first ]]
	change noatime
	kernel_has noatime
	touch -d '2001-02-03' "$mnt/file"
	fsop uncache "$mnt"
	cat "$mnt/file"
	[ "$(stat -c %X "$mnt/file")" -eq "$(date -d 2001-02-03 +%s)" ]
	change relatime
	fsop uncache "$mnt"
	cat "$mnt/file"
	[ "$(stat -c %X "$mnt/file")" -gt "$(date -d yesterday +%s)" ]
}

# gives_up CONDITION... -- OPTIONS: when the condition holds the remount still waits, and can be killed.
gives_up() {
	local condition=()
	while [ "$1" != -- ]; do
		condition+=("$1")
		shift
	done
	rmemfs -c /dev/null -o "remount,$2" "$(mount_source)" "$mnt" 3>&- &
	until_true 20 "${condition[@]}"
	alive $!
	kill -KILL $!
	exit_status $! 5 || [ $? -eq 137 ]
}

@test "without the server it waits and can be killed, and is done when the server is back" {
	mount_rmem
	echo data >"$mnt/a"
	remount -o ro
	kill_server
	gives_up grep -qF "is to write from now on" "$dir/daemon.log" -- rw
	kernel_has ro
	start_server
	change rw
	are rw
	echo more >>"$mnt/a"
	kill_server
	gives_up kernel_has ro -- ro
	start_server
	change ro
	are ro
	[ "$(cat "$mnt/a")" = $'data\nmore' ]
}

# bats test_tags=once
@test "on a soft mount it fails when the server does not answer" {
	mount_rmem -o ro,soft,timeo=1
	kill_server
	change_fails "cannot remount $mnt: the server does not answer" rw
	kernel_has ro
	start_server
	until_true 20 change rw
	are rw
	touch "$mnt/b"
	kill_server
	change_fails "it is read-only here, but not for the server: the server does not answer" ro
	kernel_has ro
	start_server
	until_true 20 change ro
	are ro
	[ -e "$mnt/b" ]
}

# bats test_tags=once
@test "only root may, and no container's" {
	mount_rmem
	run setpriv --reuid 65534 --regid 65534 --clear-groups \
		rmemfs -c /dev/null -o remount,ro "$(mount_source)" "$mnt"
	echo "$output"
	[ "$status" -eq 32 ]
	are rw
	umount_rmem
	mount_rmem -o ro
	run setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin \
		rmemfs -c /dev/null -o remount,rw "$(mount_source)" "$mnt"
	echo "$output"
	[ "$status" -eq 32 ]
	are ro
}

@test "a lock of a file that the mount has just made by itself is waited for, where the server has the locks" {
	local i kind
	mount_rmem -o ro,names=local
	change rw
	mkdir "$mnt/folder"
	for kind in flock process open; do
		for i in {1..10}; do
			[ "$(locker hold $kind alone "$mnt/folder/$kind.$i" 0 </dev/null)" = got ]
		done
	done
}
