#!/usr/bin/env bats
# squash_server.bats - a client whose users the server squashes: what its root makes, and what the server
# refuses it. Each error here is the server's or that of the client's daemon, whichever comes first.
# driver_squash.c and test_squash_request.c have the messages.
#
# bats file_tags=keyed

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts

setup() {
	setup_rmem
	mounts=()
}

teardown() {
	end_mounts
}

# configure SETTINGS: of the client that has the test's key.
configure() {
	server_conf=$dir/server.conf
	printf 'exports = ( { name = "default"; size = "64MiB"; clients = (\n  { name = "lab"; keys = "%s"; %s } ) } );\n' \
		"$key_file" "$1" >"$server_conf"
}

# Two mounts of one export: $plain over shm, where nobody is squashed, and $lab. The export's root is for all.
mount_both() {
	start_server
	plain=$dir/1 lab=$dir/2
	transport=shm share 1
	mount_number 2 ,share,allow_other
	chmod 1777 "$plain"
	chmod 755 "$dir"
}

owner_of() {
	stat -c %u:%g "$1"
}

# denied COMMAND...: it fails, and says that it is not permitted.
denied() {
	run "$@"
	echo "$output"
	[ "$status" -ne 0 ]
	[[ $output == *"Operation not permitted"* ]]
}

# root makes no device, no set-id program, no privileged attribute, and takes no file of root's over.
makes_nothing_of_roots() {
	denied mknod "$lab/null" c 1 3
	[ ! -e "$plain/null" ]
	cp /bin/true "$lab/program"
	for mode in 4755 2755 6755; do
		denied chmod $mode "$lab/program"
	done
	[ "$(stat -c %a "$plain/program")" = 755 ]
	denied setfattr -n trusted.x -v 1 "$lab/program"
	denied setcap cap_setuid+ep "$lab/program"
	[ -z "$(getfattr -d -m 'trusted|security' "$plain/program")" ]
	echo data >"$plain/roots"
	denied chmod 666 "$lab/roots"
	denied chown 1000:1000 "$lab/roots"
	denied setfacl -m u:1000:rw "$lab/roots"
	[ "$(stat -c '%u:%g %a' "$plain/roots")" = "0:0 644" ]
}

@test "squash = root: root's files are the anonymous user's, and root has no privileges in the export" {
	configure 'squash = "root"; anonuid = 1500; anongid = 1600;'
	mount_both
	touch "$lab/file"
	mkdir "$lab/dir"
	ln -s file "$lab/link"
	mkfifo "$lab/fifo"
	for name in file dir link fifo; do
		[ "$(owner_of "$lab/$name")" = 1500:1600 ]
		[ "$(owner_of "$plain/$name")" = 1500:1600 ]
	done
	# Other users are who they are.
	setpriv --reuid 1000 --regid 1001 --clear-groups mkdir "$lab/theirs"
	[ "$(owner_of "$plain/theirs")" = 1000:1001 ]
	makes_nothing_of_roots
	# A directory that hands its group on may be made, and does.
	mkdir "$lab/shared"
	chmod 2775 "$lab/shared"
	[ "$(stat -c %a "$plain/shared")" = 2775 ]
	# root over shm is root.
	touch "$plain/own"
	[ "$(owner_of "$lab/own")" = 0:0 ]
	grep -F " of lab (" "$dir/server.log" | grep -F ", root counts as 1500:1600"
	rmemfsctl status "shm:$socket" | grep -F " of lab: " | grep -F ", root counts as 1500:1600"
}

@test "squash = all: each user is the anonymous one, and gives nothing away" {
	configure 'squash = "all";'
	mount_both
	touch "$lab/file"
	[ "$(owner_of "$plain/file")" = 65534:65534 ]
	setpriv --reuid 1000 --regid 1001 --clear-groups mkdir "$lab/theirs"
	[ "$(owner_of "$plain/theirs")" = 65534:65534 ]
	denied chown 1000 "$lab/file"
	denied chgrp 1000 "$lab/file"
	makes_nothing_of_roots
	rmemfsctl status "shm:$socket" | grep -F " of lab: " | grep -F ", all users count as 65534:65534"
}

# makes_as USER: files that root makes are this user's.
makes_as() {
	rm -f "$plain/after"
	touch "$lab/after" && [ "$(stat -c %u "$plain/after")" = "$1" ]
}

@test "squash that is changed by a reload is told to the mount, which goes on" {
	configure ''
	mount_both
	touch "$lab/before"
	[ "$(owner_of "$plain/before")" = 0:0 ]
	configure 'squash = "root";'
	rmemfsctl reload "shm:$socket"
	grep -F "squash, anonuid or anongid of client lab has changed" "$dir/server.log"
	until_true 20 makes_as 65534
	configure ''
	rmemfsctl reload "shm:$socket"
	until_true 20 makes_as 0
}

@test "squash: --check-config shows it, and refuses ids that mean nothing" {
	configure 'squash = "root"; anonuid = 1500;'
	run rmemfs-server -c "$server_conf" --memory-dir "$memory/none" --listen "shm:$socket" --check-config
	echo "$output"
	[[ $output == *"export 'default': client 'lab' may read and write, with key "*"; root counts as 1500:65534"* ]]
	configure 'anonuid = 1500;'
	run rmemfs-server -c "$server_conf" --memory-dir "$memory/none" --listen "shm:$socket" --check-config
	echo "$output"
	[ "$status" -eq 78 ]
	[[ $output == *"$server_conf:2: clients: 'lab': anonuid has no meaning without squash = \"root\" or \"all\""* ]]
}
