#!/usr/bin/env bats
# names_set.bats - with names=local a SETATTR of a folder is answered before the server knows of it. Nobody sees a
# difference, and after a crash all is there that was to be, up to some moment (names_removed.bats).
bats_require_minimum_version 1.5.0

load helpers

setup() {
	setup_rmem
	# shellcheck disable=SC2034 # the helpers take it
	names_mode=local
	start_server
}

teardown() {
	teardown_rmem
}

# make_folders: `made` is of this mount, and numbers are there for more. `old` is from before it, and was looked at.
make_folders() {
	mkdir "$mnt/old" "$mnt/old/in"
	remount "$@"
	mkdir "$mnt/made"
	: >"$mnt/made/first"
	ls -ld "$mnt/old" >/dev/null
}

# shows FOLDER...: all that a SETATTR changes, but for the access time, which reading changes.
shows() {
	stat -c '%n %a %u %g %y %z' "$@"
}

none_is_lost() {
	run ! grep -q 'did not' "$dir/daemon.log"
}

@test "a folder has another mode, owner and times at once, though the server stands still" {
	mount_rmem
	make_folders
	suspend "$server_pid"
	mkdir "$mnt/made/new"
	for folder in made made/new old; do
		chmod 2710 "$mnt/$folder"
		chown 5:6 "$mnt/$folder"
		touch -cd '2001-02-03 4:05:06.789' "$mnt/$folder"
		[ "$(stat -c '%a %u %g %y' "$mnt/$folder" | cut -c1-35)" = '2710 5 6 2001-02-03 04:05:06.789000' ]
	done
	chmod g-s "$mnt/old"
	chown 7 "$mnt/made/new"
	before=$(shows "$mnt"/made "$mnt"/made/new "$mnt"/old)
	access=$(stat -c %x "$mnt/made/new")
	kill -CONT "$server_pid"
	looks() {
		[ "$(shows "$mnt"/made "$mnt"/made/new "$mnt"/old)" = "$before" ]
	}
	# Reading changes it later.
	remount
	[ "$(stat -c %x "$mnt/made/new")" = "$access" ]
	holds_everywhere looks
	none_is_lost
}

@test "times that are now are the same at the server, and never go back" {
	mount_rmem
	make_folders
	for folder in made old; do
		suspend "$server_pid"
		touch -cd '2001-02-03' "$mnt/$folder"
		old=$(stat -c '%.9Z' "$mnt/$folder")
		touch -c "$mnt/$folder"
		before=$(shows "$mnt/$folder")
		access=$(stat -c %x "$mnt/$folder")
		[ "$(stat -c '%y' "$mnt/$folder")" = "$(stat -c '%z' "$mnt/$folder")" ]
		[ "$(printf '%s\n' "$old" "$(stat -c '%.9Z' "$mnt/$folder")" | sort -n | head -n 1)" = "$old" ]
		kill -CONT "$server_pid"
		looks() {
			[ "$(shows "$mnt/$folder")" = "$before" ]
		}
		# Reading changes it later.
		remount
		[ "$(stat -c %x "$mnt/$folder")" = "$access" ]
		holds_everywhere looks
		ls -ld "$mnt"/{old,made} >/dev/null
	done
}

@test "what comes into a folder goes by what the folder is then" {
	mount_rmem
	make_folders
	cd "$mnt/made"
	: >before
	chown 0:77 .
	: >between
	exec 7>open
	chmod 2775 .
	exec 7>&-
	: >after
	mkdir sub
	chmod g-s .
	mkdir other
	touch -cd 2001-02-03 .
	: >last
	rm last
	touch -cd 2001-02-04 .
	cd /
	looks() {
		[ "$(cd "$mnt/made" && stat -c '%n %g %a' before between open after sub other)" = "before 0 644
between 0 644
open 0 644
after 77 644
sub 77 2755
other 0 755" ] && [[ $(stat -c %y "$mnt/made") == 2001-02-04* ]]
	}
	holds_everywhere looks
	none_is_lost
}

# what_programs_see: how a folder comes out of all sorts of changes, by root and by others.
what_programs_see() {
	local as other
	mkdir "$mnt/$1"
	chmod 777 "$mnt/$1"
	cd "$mnt/$1" || return
	as=(setpriv --reuid=41001 --regid=41002 "--groups=41002,41003")
	other=(setpriv --reuid=41009 --regid=41009 --clear-groups)
	"${as[@]}" mkdir a b c d e
	"${as[@]}" chmod 2770 a
	"${as[@]}" chgrp 41003 b && "${as[@]}" chmod 2770 b
	"${as[@]}" chgrp 41003 c
	chgrp 41004 c
	# Of a group that its owner is not in.
	"${as[@]}" chmod 2770 c
	chmod 6777 d
	"${as[@]}" chown 41001:41003 d
	chown 41005 d
	setfacl -m u:41006:rwx e
	"${as[@]}" chmod 700 e
	"${as[@]}" touch -cd 2001-02-03 e
	run ! "${as[@]}" chown 41005 a
	run ! "${as[@]}" chgrp 41005 a
	run ! "${other[@]}" chmod 777 a
	run ! "${other[@]}" touch -cd 2002-02-02 e
	# Everybody that may write may set the present time.
	chmod 757 b
	"${other[@]}" touch -c b
	run ! "${other[@]}" touch -cd 2002-02-02 b
	cd /
	looks_so "$1"
}

looks_so() {
	(cd "$mnt/$1" && stat -c '%n %a %u %g %h' a b c d e && stat -c '%n %y' e && getfacl -n e 2>/dev/null)
}

@test "modes, owners and lists come out as at the server, and what is refused changes nothing" {
	chmod 755 "$dir"
	mount_rmem -o allow_other
	: >"$mnt/first"
	what_programs_see local >"$dir/local"
	remount -o allow_other
	looks_so local | diff "$dir/local" -
	names_mode=remote remount -o allow_other
	what_programs_see remote >"$dir/remote"
	diff "$dir/local" "$dir/remote"
	crash_server
	fsop uncache "$mnt"
	looks_so local | diff "$dir/local" -
}

@test "cp -a of folders keeps what they are" {
	mount_rmem
	make_folders
	mkdir -p "$dir"/tree/{a,b,c}/in
	chmod 2751 "$dir/tree/a"
	chmod 700 "$dir/tree/b/in"
	chmod 1777 "$dir/tree/c"
	setfacl -m u:41003:rwx "$dir/tree/c/in"
	chown 5:6 "$dir/tree/b" "$dir/tree/c/in"
	touch -cd 2001-02-03 "$dir"/tree/{a,b}/in "$dir/tree/a"
	every_folder() {
		(cd "$1" && find . -printf '%p %m %u %g %t\n' | sort && find . | sort | xargs getfacl -n 2>/dev/null)
	}
	every_folder "$dir/tree" >"$dir/before"
	cp -a "$dir/tree" "$mnt/made/copy"
	looks() {
		every_folder "$mnt/made/copy" | diff "$dir/before" -
	}
	holds_everywhere looks
	none_is_lost
}

# makes_durable HOW: what makes durable that was done before.
makes_durable() {
	case $1 in
	folder) sync "$mnt" ;;
	file) sync "$mnt/made/first" ;;
	close) echo new >"$mnt/made/new" ;;
	itself) sync "$mnt/old" ;;
	esac
}

@test "fsync of a folder, or of any file, and a close make its mode, owner and times durable" {
	mount_rmem
	make_folders
	exec 7<>"$mnt/made/first"
	mode=700
	for how in folder file close itself; do
		echo "$how"
		mode=$((mode + 1))
		ls -ld "$mnt"/{old,made} >/dev/null
		chmod "$mode" "$mnt/old"
		chown "$mode" "$mnt/old"
		touch -cd '2001-02-03' "$mnt/old"
		before=$(shows "$mnt/old")
		makes_durable "$how"
		kill_daemon
		mount_rmem
		[ "$(shows "$mnt/old")" = "$before" ]
		exec 7>&- || true
		rm -f "$mnt/made/new"
		exec 7<>"$mnt/made/first"
	done
	exec 7>&-
}

@test "with sync or dirsync a folder's mode is at the server when it is set" {
	for option in sync dirsync; do
		mount_rmem -o "$option"
		make_folders -o "$option"
		chmod 711 "$mnt/old"
		kill_daemon
		mount_rmem
		[ "$(stat -c %a "$mnt/old")" = 711 ]
		rm -r "$mnt"/{made,old}
		umount_rmem
	done
}

# is_set MODE: and by that also what the mount had set before.
is_set() {
	[ "$(stat -c %a "$mnt/old")" = "$1" ]
}

@test "umount, an upgrade, a snapshot and a change to read-only take attributes along" {
	mount_rmem
	make_folders
	chmod 701 "$mnt/old"
	remount
	is_set 701
	chmod 702 "$mnt/old"
	rmemfsctl upgrade "$mnt" >>"$dir/moved.log" 2>&1 3>&-
	exit_status "$daemon_pid" 10
	daemon_pid=''
	is_set 702
	chmod 703 "$mnt/old"
	rmemfsctl snapshot default "$dir/image" "$socket"
	chmod 704 "$mnt/old"
	rmemfs -c /dev/null -o remount,ro "$(mount_source)" "$mnt"
	is_set 704
	umount "$mnt"
	mount_rmem
	is_set 704
	umount_rmem
	stop_server
	rm -r "${memory:?}"/*
	start_server --restore "$dir/image"
	mount_rmem
	is_set 703
}

@test "attributes are set once, wherever the server dies meanwhile" {
	mount_rmem
	: >"$mnt/first"
	points=(commit.after:1 reply.sent:1 name.changed:9)
	[ "${RMEMFS_TEST_NIGHTLY:-0}" = 0 ] || points+=(commit.before:1 reply.none:1 name.changed:{1,20})
	for point in "${points[@]}"; do
		mkdir "$mnt/$point"
		mkdir "$mnt/$point"/{1..10}
		# The kernel looks names up, which this mount tells while it is connected.
		suspend "$server_pid"
		mkdir "$mnt/$point"/{11..20}
		for i in {1..20}; do
			chmod $((700 + i % 8)) "$mnt/$point/$i"
			chown "$i" "$mnt/$point/$i"
		done
		touch -cd 2001-02-03 "$mnt/$point"/{1..20}
		shows "$mnt/$point"/{1..20} >"$dir/$point"
		kill_server
		spawn_armed "$point"
		expect_death "$point"
		echo new >"$mnt/$point.file" &
		writer=$!
		start_server
		wait "$writer"
	done
	everything() {
		for point in "${points[@]}"; do
			shows "$mnt/$point"/{1..20} | diff "$dir/$point" - || return 1
		done
	}
	everything
	remount
	everything
	none_is_lost
}

# serve_with KEYS: a server whose export has them.
serve_with() {
	server_conf=$dir/server.conf
	echo "exports = ( { name = \"default\"; size = \"$export_size\"; $1 } );" >"$server_conf"
	start_server
}

@test "an owner whose quota is used up gets no folder, and the folder stays as it was" {
	stop_server
	serve_with 'quotas = ( { user = 41001; inodes = 2; } );'
	mount_rmem
	make_folders
	mkdir "$mnt"/{a,b,c}
	chown 41001 "$mnt"/{a,b}
	before=$(shows "$mnt/c")
	LC_ALL=C run ! chown 41001 "$mnt/c"
	[[ $output == *"Disk quota exceeded"* ]]
	looks() {
		[ "$(shows "$mnt/c")" = "$before" ] && [ "$(stat -c %u "$mnt/a")" -eq 41001 ]
	}
	holds_everywhere looks
}

@test "a quota that comes while the server is away does not take back what was answered" {
	mount_rmem
	make_folders
	suspend "$server_pid"
	mkdir "$mnt"/made/{a,b,c}
	chown 41001 "$mnt"/made/{a,b,c}
	before=$(shows "$mnt"/made/{a,b,c})
	kill_server
	serve_with 'quotas = ( { user = 41001; inodes = 2; } );'
	looks() {
		[ "$(shows "$mnt"/made/{a,b,c})" = "$before" ]
	}
	looks
	remount
	looks
	LC_ALL=C run ! chown 41001 "$mnt/old"
	[[ $output == *"Disk quota exceeded"* ]]
	none_is_lost
}
