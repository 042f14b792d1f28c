#!/usr/bin/env bats
# userns.bats - mounts with -o share whose daemon is in another PID namespace than the programs, as in a
# container. The daemon can't see its callers. The kernel has checked the right to change modes, owners,
# times and access control lists.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts
load steps

alice=41001 bob=41002

setup() {
	setup_rmem
	chmod 755 "$dir"
	mounts=()
	within[1]="unshare --pid --fork --kill-child"
	start_server
	mount_number 1 ,share,allow_other
	share 2
	chmod 1777 "$dir/1"
}

teardown() {
	end_mounts
}

as() {
	setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"
}

# is FILE OWNER GROUP MODE: both mounts show these.
is() {
	local n
	for n in 2 1; do
		[ "$(stat -c '%u %g %a' "$dir/$n/$1")" = "${*:2}" ] || die "$n: $(stat "$dir/$n/$1")"
	done
}

@test "root of a user namespace changes what is in its range" {
	mkdir "$dir/1/box"
	chown 100000:100000 "$dir/1/box"
	idmap run 100000 bash -ec "cd '$dir/1/box'
		umask 022
		: >file
		chown 1000:1000 file
		chmod 640 file
		chgrp 5 file
		touch -d @1000000 file
		chown 2000:2000 file
		setfacl -m u:3000:r file"
	is box/file 102000 102000 640
	[[ $(getfacl -cpn "$dir/2/box/file") == *user:103000:r--* ]]
	[ "$(stat -c %Y "$dir/2/box/file")" = 1000000 ]
	run idmap run 100000 chmod 777 "$dir/1"
	[[ $output == *"Operation not permitted"* ]]
}

@test "an archive with owners is unpacked in a user namespace" {
	mkdir -p "$dir/from/a/b" "$dir/1/to"
	echo text >"$dir/from/a/b/file"
	chown -R 100000:100000 "$dir/from" "$dir/1/to"
	chown $((100000 + alice)):100005 "$dir/from/a/b/file"
	chmod 2751 "$dir/from/a/b"
	chmod 440 "$dir/from/a/b/file"
	idmap run 100000 bash -ec "tar -C '$dir/from' -cf - a | tar -C '$dir/1/to' -xpf -"
	is to/a/b 100000 100000 2751
	is to/a/b/file $((100000 + alice)) 100005 440
}

@test "root and an owner change what is theirs" {
	as $alice touch "$dir/1/file"
	as $alice chmod 640 "$dir/1/file"
	as $alice touch -d @1000000 "$dir/1/file"
	as $alice setfacl -m u:$bob:r "$dir/1/file"
	run as $bob chmod 666 "$dir/1/file"
	[ "$status" -ne 0 ]
	chown $bob:$bob "$dir/1/file"
	as $bob chmod 600 "$dir/1/file"
	is file $bob $bob 600
}

@test "an owner that another mount has taken the file from changes nothing by what the kernel knew" {
	echo text >"$dir/1/file"
	chown $alice:$alice "$dir/1/file"
	chmod 666 "$dir/1/file"
	begin_steps "$dir/1/file"
	chown $bob "$dir/2/file"
	step user $alice = "user 0"
	step mode 0 4777 = "mode EPERM"
	step mtime 1000000 = "mtime EPERM"
	step access $alice = "access EPERM"
	# From now on the kernel may check by the old owner or by the new one.
	stat "$dir/1/file" >"$dir/out"
	step mode 0 4777 = "mode EPERM"
	end_steps
	is file $bob $alice 666
}

@test "what root had made, and another mount has given away, its new owner changes" {
	: >"$dir/1/file"
	chown $bob:$bob "$dir/2/file"
	as $bob chmod 640 "$dir/1/file"
	is file $bob $bob 640
}

@test "root is shown the names of trusted attributes" {
	: >"$dir/1/file"
	setfattr -n trusted.note -v text "$dir/1/file"
	[[ $(getfattr -d -m - "$dir/1/file" 2>/dev/null) == *'trusted.note="text"'* ]]
}

@test "a process that the daemon does not see can't remount" {
	run rmemfs -c /dev/null -o remount,rw "$(mount_source)" "$dir/1"
	[ "$status" -eq 32 ]
	[[ $output == *"only root may, in a process that the daemon sees"* ]]
	touch "$dir/1/file"
}
