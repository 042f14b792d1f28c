#!/usr/bin/env bats
# idmapped.bats - mounts that show other ids than the filesystem has (mount_setattr(2)), as container
# runtimes make them for user namespaces: id N is 100000 + N there. Skipped on kernels without them.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers

alice=41001 bob=41002 mapped_alice=141001 mapped_bob=141002

setup() {
	setup_rmem
	chmod 755 "$dir"
	mapped=$dir/mapped
	server_conf=$dir/server.conf
	server_conf_of ""
}

teardown() {
	umount_mapped
	teardown_rmem
}

server_conf_of() {
	echo "exports = ( { name = \"default\"; size = \"$export_size\"; $1 } )" >"$server_conf"
}

# kernel_maps_ids: the kernel has offered this to the daemon (FUSE_ALLOW_IDMAP).
kernel_maps_ids() {
	local offered
	offered=$(sed -n 's/.*fuse: kernel .* of \([0-9a-f]*\):.*/\1/p' "$dir/daemon.log" | tail -n 1)
	((0x${offered:?} >> 8 & 1))
}

# begin OPTIONS: makes a mount for all users, and a mapped mount of it.
begin() {
	start_server
	mount_rmem --log-level=debug -o "allow_other$1"
	kernel_maps_ids || skip "this kernel maps no ids of FUSE's mounts"
	chmod 1777 "$mnt"
	map
}

map() {
	mkdir -p "$mapped"
	idmap mount "$mnt" "$mapped" 100000
}

umount_mapped() {
	! mountpoint -q "${mapped:-/nowhere}" || umount "$mapped"
}

# begin_anew: mounts anew, so that all attributes come from the server.
begin_anew() {
	umount_mapped
	remount --log-level=debug -o "allow_other$1"
	map
}

# end_all: removes the files and ends all.
end_all() {
	rm -rf "${mnt:?}"/*
	umount_mapped
	umount_rmem
	stop_server
}

as() {
	setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"
}

refused() {
	run "$@"
	[ "$status" -ne 0 ] || die "$*: was allowed"
}

# is FILE OWNER GROUP MODE: the ids of the filesystem; the mapped mount shows them mapped.
is() {
	[ "$(stat -c '%u %g %a' "$mnt/$1")" = "${*:2}" ] || die "$1: $(stat "$mnt/$1")"
	[ "$(stat -c '%u %g %a' "$mapped/$1")" = "$((100000 + $2)) $((100000 + $3)) $4" ] ||
		die "mapped $1: $(stat "$mapped/$1")"
}

# bats test_tags=once
@test "what is made through a mapped mount has the owner that it maps to" {
	for options in "" ,share; do
		begin "$options"
		as $mapped_alice bash -c "umask 022; cd '$mapped'; : >file; mkdir dir; mkfifo fifo; ln -s x link; ln file second"
		as $alice bash -c "umask 022; : >'$mnt/plain'"
		begin_anew "$options"
		for name in file second plain; do
			is $name $alice $alice 644
		done
		is dir $alice $alice 755
		is fifo $alice $alice 644
		is link $alice $alice 777
		run as $alice touch "$mapped/not-mapped"
		[[ $output == *"Value too large"* ]]
		end_all
	done
}

# bats test_tags=once
@test "an owner changes what is mapped to him, and nobody else does" {
	for options in "" ,share; do
		begin "$options"
		as $mapped_alice touch "$mapped/file"
		as $mapped_alice chmod 2751 "$mapped/file"
		as $mapped_alice touch -d @1000000 "$mapped/file"
		is file $alice $alice 2751
		[ "$(stat -c %Y "$mnt/file")" = 1000000 ]
		refused as $mapped_bob chmod 777 "$mapped/file"
		refused as $alice chmod 777 "$mapped/file"
		refused as $mapped_bob touch -d @5 "$mapped/file"
		refused as $mapped_alice chown $mapped_bob "$mapped/file"
		as $alice chmod 640 "$mnt/file"
		is file $alice $alice 640
		chown $mapped_bob:$mapped_bob "$mapped/file"
		is file $bob $bob 640
		refused chown $bob "$mapped/file"
		idmap run 100000 chown $alice:$bob "$mapped/file"
		idmap run 100000 chmod 4711 "$mapped/file"
		idmap run 100000 touch -d @2000000 "$mapped/file"
		begin_anew "$options"
		is file $alice $bob 4711
		[ "$(stat -c %Y "$mnt/file")" = 2000000 ]
		end_all
	done
}

# bats test_tags=once
@test "writing and changing owners through a mapped mount take set-user-id away" {
	begin ""
	for name in written owned allocated cut; do
		as $mapped_alice touch "$mapped/$name"
		chmod 6777 "$mnt/$name"
	done
	as $mapped_bob bash -c "echo x >>'$mapped/written'; : >'$mapped/cut'"
	as $mapped_bob fallocate -l 4096 "$mapped/allocated"
	idmap run 100000 chown $bob "$mapped/owned"
	for name in written allocated cut; do
		is $name $alice $alice 777
	done
	is owned $bob $alice 777
}

# acl FILE: prints its entries in one line, numeric.
acl() {
	getfacl -cpn "$1" | grep . | tr '\n' ' '
}

# bats test_tags=once
@test "access control lists are mapped, and hold" {
	for options in "" ,share; do
		begin "$options"
		as $mapped_alice bash -c "umask 077; echo text >'$mapped/file'; mkdir -m 700 '$mapped/dir'"
		as $mapped_alice setfacl -m u:$mapped_bob:r "$mapped/file"
		as $mapped_alice setfacl -m d:u:$mapped_bob:rwx,u:$mapped_bob:rwx "$mapped/dir"
		refused as $mapped_bob setfacl -b "$mapped/file"
		begin_anew "$options"
		[ "$(acl "$mnt/file")" = "user::rw- user:$bob:r-- group::--- mask::r-- other::--- " ] ||
			die "$(acl "$mnt/file")"
		[ "$(acl "$mapped/file")" = "user::rw- user:$mapped_bob:r-- group::--- mask::r-- other::--- " ] ||
			die "$(acl "$mapped/file")"
		[ "$(as $mapped_bob cat "$mapped/file")" = text ]
		[ "$(as $bob cat "$mnt/file")" = text ]
		refused as $bob cat "$mapped/file"
		refused as 141003 cat "$mapped/file"
		as $mapped_bob touch "$mapped/dir/new"
		[[ $(acl "$mnt/dir/new") == *"user:$bob:rwx"* ]]
		is dir/new $bob $bob 660
		end_all
	done
}

# used ID: prints the used bytes of the user's quota.
used() {
	status_of ".exports[0].quotas[] | select(.user == $1 and (.everybody | not)) | .used"
}

# bats test_tags=once
@test "what is written through a mapped mount is charged to the owner that it maps to" {
	server_conf_of "quotas = ( { user = $alice; size = \"2MiB\"; } );"
	begin ""
	as $mapped_alice dd if=/dev/zero of="$mapped/file" bs=64K count=16 conv=fsync status=none
	[ "$(used $alice)" -ge 1048576 ] || die "$(status_of '.exports[0].quotas')"
	run as $mapped_alice dd if=/dev/zero of="$mapped/more" bs=64K count=32 conv=fsync status=none
	[ "$status" -ne 0 ]
	[[ $output == *"quota exceeded"* ]]
	as $mapped_bob dd if=/dev/zero of="$mapped/others" bs=64K count=48 conv=fsync status=none
	# The user whose unmapped id has that number is not charged.
	[ -z "$(used $mapped_alice)" ]
}
