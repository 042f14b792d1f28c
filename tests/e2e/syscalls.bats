#!/usr/bin/env bats
# syscalls.bats - the errno and the effect of every system call on files, by the tables in
# syscalls_*.c, as root and as an ordinary user.

load helpers

setup() {
	setup_rmem
	chmod 755 "$dir"
	start_server
	mount_rmem -o allow_other,suid,dev
}

teardown() {
	teardown_rmem
}

area() {
	syscalls "$1" "$mnt"
	syscalls --user 65534 "$1" "$mnt"
}

@test "every call with a path, against every path that can't be walked" {
	area paths
}

@test "names, slashes and dots" {
	area names
}

@test "hard and symbolic links" {
	area links
}

@test "rename and its flags" {
	area rename
}

@test "unlink and rmdir" {
	area remove
}

@test "who may do what" {
	area permissions
}

@test "chmod and chown, set-user-id and set-group-id" {
	area owners
}

@test "open and its flags" {
	area open
}

@test "reading directories, across changes and after their end" {
	area directories
}

@test "which call changes which time" {
	area times
}

@test "devices, FIFOs and sockets" {
	area special
}

@test "truncate, and sparse files" {
	area truncate
}

@test "files without a name" {
	area unlinked
}

@test "vectors, splices, hints, ioctls and handles" {
	area io
}

@test "what the filesystem says of itself" {
	area limits
}

# These see in /proc/locks who waits: locks of a mount that never shares are the kernel's. Others:
# alone_locks.bats, shared_locks.bats.
with_kernels_locks() {
	[ -z "$share_mode" ] || skip "needs a mount that is alone: else the server keeps them"
	umount_rmem
	mount_rmem -o allow_other,suid,dev,exclusive
	area "$1"
}

@test "locks of files" {
	with_kernels_locks flock
}

@test "locks of parts of files" {
	with_kernels_locks records
}

# The tmpfs goes away with the mount namespace.
on_tmpfs() {
	unshare -m sh -euc '
		umount -a -t fuse.rmemfs # the copies of other tests
		mount -t tmpfs -o mode=755 none "$1"
		for area in $2; do
			syscalls --tmpfs "$area" "$1"
			syscalls --tmpfs --user 65534 "$area" "$1"
		done' sh "$@"
}

# bats test_tags=once
@test "the tables hold on tmpfs, too" {
	mkdir "$dir/tmpfs"
	areas=$(run syscalls && echo "$output" | sed -n 's/^areas: //p')
	[ -n "$areas" ]
	on_tmpfs "$dir/tmpfs" "$areas"
}
