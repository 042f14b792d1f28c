#!/usr/bin/env bats
# shared_owners.bats - mounts with -o share: modes, owners and access control lists are changed through an
# open file on mount 1. Its kernel checks by the mode and owner that it has cached; mount 2 has changed
# them since.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
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

# opened OWNER MODE: makes such a file, open on mount 1.
opened() {
	begin 1 2
	echo text >"$dir/1/file"
	chown "$1" "$dir/1/file"
	chmod "$2" "$dir/1/file"
	begin_steps "$dir/1/file"
}

# becomes OWNER GROUP MODE: both mounts show these.
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

@test "who was the owner of a file may not change what is another one's by now" {
	opened 41001:41001 666
	chown 41002 "$dir/2/file"
	step user 41001 = "user 0"
	step mode 0 4777 = "mode EPERM"
	step owner -1 41001 = "owner EPERM"
	step owner 41001 -1 = "owner EPERM"
	step mtime 1000000 = "mtime EPERM"
	step now = "now 0"
	step user 41002 = "user 0"
	step mode 0 604 = "mode 0"
	step user 0 = "user 0"
	step mtime 1000000 = "mtime 0"
	becomes 41002 41001 604
	[ "$(stat -c %Y "$dir/2/file")" = 1000000 ]
}

@test "an owner sets no set-group-id for a group that another mount has given his file" {
	opened 41001:41001 644
	chown :41003 "$dir/2/file"
	step user 41001 = "user 0"
	step mode 0 6755 = "mode 0"
	becomes 41001 41003 4755
}

@test "an owner changes what is his" {
	opened 41001:41001 644
	step user 41001 = "user 0"
	step mode 0 6755 = "mode 0"
	step mtime 1000000 = "mtime 0"
	becomes 41001 41001 6755
	[ "$(stat -c %Y "$dir/2/file")" = 1000000 ]
}

# has_list NUMBER LIST: that mount has these entries of getfacl, in one line.
has_list() {
	local have
	have=$(getfacl -cpn "$dir/$1/file" | grep . | tr '\n' ' ')
	[ "$have" = "$2 " ] || die "$1: $have"
}

plain="user::rw- group::r-- other::---"
named="user::rw- user:41001:rwx group::--- mask::rwx other::---"

@test "who was the owner of a file sets no access control list of what is another one's by now" {
	opened 41001:41001 640
	chown 41002 "$dir/2/file"
	step user 41001 = "user 0"
	step access 41001 = "access EPERM"
	has_list 2 "$plain"
	setfacl --set "${named// /,}" "$dir/2/file"
	step access -1 = "access EPERM"
	has_list 2 "$named"
	step user 41002 = "user 0"
	# This makes the kernel ask for the present owner.
	has_list 1 "$named"
	step access -1 = "access 0"
	becomes 41002 41001 670
}

@test "who was the owner of a directory sets no default list that its new files would have" {
	begin 1 2
	mkdir "$dir/1/file"
	chown 41001:41001 "$dir/1/file"
	begin_steps "$dir/1/file"
	chown 41002 "$dir/2/file"
	step user 41001 = "user 0"
	step default 41001 = "default EPERM"
	[ -z "$(getfacl -cpnd "$dir/2/file")" ]
	setfacl -d --set "${named// /,}" "$dir/2/file"
	step default -1 = "default EPERM"
	[ -n "$(getfacl -cpnd "$dir/2/file")" ]
	end_steps
}

@test "an owner's access control list leaves no set-group-id of a group that another mount has given" {
	opened 41001:41001 644
	chown :41003 "$dir/2/file"
	chmod 2755 "$dir/2/file"
	step user 41001 = "user 0"
	step access 41001 = "access 0"
	becomes 41001 41003 670
}

@test "an owner sets the access control lists of what is his, and root of all" {
	opened 41001:41001 2640
	step user 41001 = "user 0"
	step access 41001 = "access 0"
	has_list 2 "$named"
	[ "$(stat -c %a "$dir/2/file")" = 2670 ]
	step access -1 = "access 0"
	step user 0 = "user 0"
	step access 41001 = "access 0"
	chown 41002 "$dir/2/file"
	step access -1 = "access 0"
	becomes 41002 41001 670
}
