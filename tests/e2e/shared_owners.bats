#!/usr/bin/env bats
# shared_owners.bats - mounts with -o share: modes and owners are changed through an open file on the
# first one, whose kernel goes by the mode and the owner that it was told of last, which the second
# one has changed since.

# shellcheck disable=SC2154 # what helpers set
bats_require_minimum_version 1.5.0
load helpers
load mounts
load steps

setup() {
	setup_rmem
	mounts=()
}

teardown() {
	end_mounts
}

# opened OWNER MODE: such a file, open on the first mount.
opened() {
	begin 1 2
	echo text >"$dir/1/file"
	chown "$1" "$dir/1/file"
	chmod "$2" "$dir/1/file"
	begin_steps "$dir/1/file"
}

# becomes OWNER GROUP MODE: for both.
becomes() {
	local n
	for n in 2 1; do
		[ "$(stat -c '%u %g %a' "$dir/$n/file")" = "$*" ] || die "$n: $(stat "$dir/$n/file")"
	done
	end_steps
}

@test "a new owner gets no set-user-id that another mount has given" {
	opened 0:0 755
	chmod 6755 "$dir/2/file"
	step owner 41001 -1 = "owner 0"
	becomes 41001 0 755
}

@test "a new owner gets no rights that another mount has taken away" {
	opened 0:0 4755
	chmod 600 "$dir/2/file"
	step owner 41001 -1 = "owner 0"
	becomes 41001 0 600
}

@test "who gives his file to a group takes set-user-id away that he has set elsewhere" {
	opened 41001:41001 755
	chmod 6744 "$dir/2/file"
	step user 41001 = "user 0"
	step owner -1 41001 = "owner 0"
	becomes 41001 41001 2744
}
