#!/usr/bin/env bats
# squash.bats - an export that squashes root, or all users. Mount 1 has a key that is not squashed, and makes
# files of others. Mount 2 has one that is: what its root and its users may do, as NFS's root_squash and
# all_squash have it.
#
# Over shm nobody is squashed.
# bats file_tags=keyed

# shellcheck disable=SC2016,SC2034,SC2154 # what bash -c expands, what helpers take and set
load helpers
load mounts

alice=41001 bob=41002 anonymous=65534

setup() {
	setup_rmem
	mounts=()
	a=$dir/1 b=$dir/2
	chmod 755 "$dir"
}

teardown() {
	end_mounts
}

# configure SQUASH: the server's configuration. The client "plain" is not squashed.
configure() {
	server_conf=$dir/server.conf
	cat >"$server_conf" <<-END
		exports = ( { name = "default"; size = "64MiB"; clients = (
			{ name = "plain"; keys = "$dir/plain.key"; },
			{ name = "lab"; keys = "$dir/lab.key"; $1 } ); } );
	END
}

# mount_as N CLIENT OPTIONS: mount N has the client's key.
mount_as() {
	key_file=$dir/$2.key
	mount_number "$1" ",allow_other$3"
}

# two_mounts SQUASH: of one export, which both write.
two_mounts() {
	local name
	for name in plain lab; do rmemfsctl keygen $name "$dir/$name.key" 2>/dev/null; done
	configure "$1"
	start_server
	mount_as 1 plain ,share
	mount_as 2 lab ,share
	populate "$a"
}

as() {
	setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"
}

write_to() {
	bash -c 'echo more >>"$0"' "$1"
}
export -f write_to

# populate DIR: files of alice's.
populate() {
	(
		cd "$1" || exit
		chmod 1777 .
		echo private >private
		echo public >public
		mkdir closed open sticky readable
		for d in closed open sticky readable; do echo text >$d/file; done
		chown -R $alice private public closed open sticky readable
		chmod 600 private
		chmod 644 public ./*/file
		chmod 700 closed
		chmod 755 open
		chmod 1777 sticky
		chmod 744 readable
		printf '#!/bin/sh\necho runs\n' >private.sh
		cp /bin/true executable
		chown $alice private.sh executable
		chmod 700 private.sh
		chmod 711 executable
	)
}

# denied COMMAND...: it fails with EACCES; not_permitted: with EPERM.
denied() {
	run "$@"
	[ "$status" -ne 0 ] || die "$*: was allowed"
	[[ $output == *"Permission denied"* ]] || die "$*: $output"
}

not_permitted() {
	run "$@"
	[ "$status" -ne 0 ] || die "$*: was allowed"
	[[ $output == *"Operation not permitted"* ]] || die "$*: $output"
}

owner_is() {
	[ "$(stat -c %u:%g "$1")" = "$2" ] || die "$1 belongs to $(stat -c %u:%g "$1"), wanted $2"
}

# ---- root ----------------------------------------------------------------------------------------

@test "squash = root: root has the access of the anonymous user" {
	two_mounts 'squash = "root";'
	denied cat "$b/private"
	denied write_to "$b/private"
	[ "$(cat "$b/public")" = public ]
	denied write_to "$b/public"
	denied truncate -s 0 "$b/public"
	denied ls "$b/closed"
	denied stat "$b/closed/file"
	denied cat "$b/closed/file"
	[ "$(cat "$b/open/file")" = text ]
	# Names may be listed, and no more.
	[ "$(ls "$b/readable")" = file ]
	denied stat "$b/readable/file"
	denied "$b/private.sh"
	denied cat "$b/executable"
	"$b/executable"
	[ "$(cat "$a/private" "$a/public" "$a/closed/file")" = "$(printf 'private\npublic\ntext')" ]
}

@test "squash = root: names are the owner's, and the directory's" {
	two_mounts 'squash = "root";'
	denied touch "$b/open/new"
	denied mkdir "$b/open/new"
	denied ln -s x "$b/open/new"
	denied ln "$b/public" "$b/open/new"
	denied rm -f "$b/open/file"
	denied mv "$b/open/file" "$b/open/new"
	not_permitted rm -f "$b/sticky/file"
	not_permitted mv "$b/sticky/file" "$b/sticky/new"
	not_permitted mv -f "$b/public" "$b/sticky/file"
	mkdir "$b/sticky/own"
	touch "$b/sticky/own/file"
	owner_is "$a/sticky/own" $anonymous:$anonymous
	mv "$b/sticky/own/file" "$b/sticky/moved"
	rm "$b/sticky/moved"
	rmdir "$b/sticky/own"
	# A directory that goes to another parent is written.
	chown $alice:$alice "$a" && chmod 777 "$a" "$a/open"
	not_moved=$b/open
	mkdir "$b/target"
	mv "$not_moved" "$b/target/open"
	chmod 755 "$a/target/open"
	denied mv "$b/target/open" "$b/open"
	[ -e "$a/target/open/file" ]
}

@test "squash = root: files that root makes belong to the anonymous user, and chown is refused" {
	two_mounts 'squash = "root"; anonuid = 1500; anongid = 1600;'
	echo mine >"$b/new"
	mkdir "$b/dir"
	ln -s new "$b/link"
	mkfifo "$b/fifo"
	for name in new dir link fifo; do owner_is "$a/$name" 1500:1600; done
	[ "$(cat "$b/new")" = mine ]
	not_permitted chown $alice "$b/new"
	not_permitted chgrp $alice "$b/new"
	not_permitted chown 1500 "$b/public"
	not_permitted chmod 666 "$b/public"
	not_permitted touch -c -d yesterday "$b/public"
	not_permitted mknod "$b/device" b 7 0
	chmod 600 "$b/new"
	touch -d '2001-02-03 04:05' "$b/new"
	[ "$(stat -c %a "$a/new")" = 600 ]
	[ "$(stat -c %y "$a/new" | cut -c 1-16)" = '2001-02-03 04:05' ]
	# Its own files may be given to nobody, not even to root.
	chown 0:0 "$b/new"
	owner_is "$a/new" 1500:1600
	chgrp 1600 "$b/new"
	rm "$b/new"
}

@test "squash = root: access control lists and extended attributes" {
	two_mounts 'squash = "root";'
	setfacl -m u:$anonymous:r "$a/private"
	[ "$(cat "$b/private")" = private ]
	denied write_to "$b/private"
	setfacl -m u:$anonymous:--- "$a/public"
	denied cat "$b/public"
	setfacl -m g:$anonymous:rwx "$a/closed"
	[ "$(ls "$b/closed")" = file ]
	touch "$b/closed/new"
	not_permitted setfacl -m u:$anonymous:rw "$b/private"
	denied setfattr -n user.note -v text "$b/private"
	setfattr -n user.note -v text "$a/open/file"
	setfattr -n trusted.note -v text "$a/open/file"
	[ "$(getfattr --only-values -n user.note "$b/open/file" 2>/dev/null)" = text ]
	denied setfattr -x user.note "$b/open/file"
	not_permitted setfattr -n trusted.note -v new "$b/open/file"
	run getfattr -m - "$b/open/file"
	[[ $output == *user.note* && $output != *trusted.note* ]]
	chmod 600 "$a/open/file"
	denied getfattr -n user.note "$b/open/file"
}

@test "squash = root: other users have their rights, and no more" {
	two_mounts 'squash = "root";'
	[ "$(as $alice cat "$b/private" "$b/closed/file")" = "$(printf 'private\ntext')" ]
	as $alice touch "$b/of_alice"
	owner_is "$a/of_alice" $alice:$alice
	as $alice rm "$b/sticky/file"
	as $alice chmod 640 "$b/public"
	denied as $bob cat "$b/public"
	denied as $bob cat "$b/private"
}

# ---- all -----------------------------------------------------------------------------------------

@test "squash = all: everybody's files belong to the anonymous user" {
	two_mounts "squash = \"all\"; anonuid = $bob; anongid = $bob;"
	as $alice bash -c 'write_to "$0"' "$b/of_alice"
	as $bob bash -c 'write_to "$0"' "$b/of_bob"
	write_to "$b/of_root"
	for name in of_alice of_bob of_root; do owner_is "$a/$name" $bob:$bob; done
	# The kernel knows alice, and the export knows the anonymous user alone.
	denied as $alice cat "$b/private"
	denied cat "$b/private"
	[ "$(as $alice cat "$b/public")" = public ]
	denied as $alice ls "$b/closed"
	not_permitted chown $alice "$b/of_root"
	not_permitted chown $alice "$b/public"
	as $bob bash -c 'echo bob >"$0"; chmod 600 "$0"; cat "$0"' "$b/of_alice"
	rm "$b/of_root"
}

# ---- one mount -----------------------------------------------------------------------------------

# The mount's own knowledge is newer than the server's, and the kernel tells times of its own.
own_mount() {
	local name
	for name in plain lab; do rmemfsctl keygen $name "$dir/$name.key" 2>/dev/null; done
	configure 'squash = "root";'
	start_server
	mount_as 1 plain ''
	populate "$a"
	end_mount 1
	mount_as 2 lab "$1"
}

# opened_by_alice FILE: alice changes the mode of a file that she has open, and keeps it open. The server is
# told at the close.
opened_by_alice() {
	setpriv --reuid $alice --regid $alice --clear-groups \
		bash -c 'exec 4>"$0"; echo text >&4; chmod 604 "$0"; exec sleep infinity' "$1" 3>&- &
	holder=$!
	until_true 10 eval '[ "$(stat -c %a '"$1"' 2>/dev/null)" = 604 ]'
}

@test "squash = root: a mount that does not share knows what it has changed" {
	own_mount ''
	opened_by_alice "$b/changing"
	[ "$(cat "$b/changing")" = text ]
	denied write_to "$b/changing"
	as $alice chmod 600 "$b/changing"
	denied cat "$b/changing"
	# The mode is told at once, not at the close, or nobody would hear that it is refused.
	not_permitted as $alice chmod 4755 "$b/changing"
	kill $holder
	wait $holder || true
}

@test "squash = root: names in the kernel's cache stay reachable, and their files are checked when they are opened" {
	own_mount ''
	# A list with attributes would bring the names there.
	[ "$(ls "$b/readable")" = file ]
	denied stat "$b/readable/file"
	as $alice stat "$b/closed/file"
	[ "$(cat "$b/closed/file")" = text ]
	denied write_to "$b/closed/file"
	denied ls "$b/closed"
	denied touch "$b/closed/new"
	as $alice chmod 600 "$b/closed/file"
	denied cat "$b/closed/file"
}

# On a mapped mount the kernel names no user where nothing is made.
@test "squash: mounts cannot map ids" {
	own_mount ''
	mkdir "$dir/mapped"
	run idmap mount "$b" "$dir/mapped" 100000
	[ "$status" -ne 0 ]
}

total_rpcs() {
	status_of '.exports[0].counters.rpcs'
}

@test "squash = root: a mount that does not share checks without a message" {
	own_mount ''
	end_mount 2
	before=$(total_rpcs)
	mount_as 2 lab ''
	for _ in {1..40}; do denied cat "$b/private"; done
	end_mount 2
	[ $(($(total_rpcs) - before)) -le 20 ]
}

@test "squash = root: a writeback cache keeps times and data of all users" {
	own_mount ,cache=exclusive
	as $alice dd if=/dev/zero of="$b/written" bs=64k count=8 status=none
	touch "$b/own"
	echo data >"$b/own"
	cp --preserve=mode,timestamps "$b/public" "$b/copied"
	sync -f "$b"
	denied touch -d yesterday -a "$b/private"
	umount "$b"
	exit_status "${mounts[2]}" 30
	unset 'mounts[2]'
	if grep -E 'lost|error' "$dir/mount.2.log"; then return 1; fi
	mount_as 1 plain ''
	[ "$(stat -c %s "$a/written")" -eq 524288 ]
	[ "$(cat "$a/own")" = data ]
	owner_is "$a/own" $anonymous:$anonymous
}

# ---- a change ------------------------------------------------------------------------------------

@test "a squash that begins, changes and ends counts at once, without a remount" {
	two_mounts ''
	[ "$(cat "$b/private")" = private ]
	configure 'squash = "root";'
	rmemfsctl reload "$socket"
	until_true 10 grep -q 'root of this mount counts as user 65534, group 65534' "$dir/mount.2.log"
	denied cat "$b/private"
	touch "$b/new"
	owner_is "$a/new" $anonymous:$anonymous
	[ "$(as $alice cat "$b/private")" = private ]
	configure 'squash = "root"; anonuid = 1500;'
	rmemfsctl reload "$socket"
	until_true 10 grep -q 'root of this mount counts as user 1500, group 65534' "$dir/mount.2.log"
	not_permitted chmod 600 "$b/new"
	configure ''
	rmemfsctl reload "$socket"
	until_true 10 grep -q 'users of this mount are not squashed any more' "$dir/mount.2.log"
	[ "$(cat "$b/private")" = private ]
	chown 0 "$b/new"
	owner_is "$a/new" 0:$anonymous
}
