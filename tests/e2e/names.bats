#!/usr/bin/env bats
# names.bats - with names=local the server learns of a new file by its close. Files that were closed or synced
# are as safe as ever, and nobody sees that the server does not know a file yet.
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

entries() {
	find "$1" -mindepth 1 -maxdepth 1 | wc -l
}

# The client knows a folder whole that it has made. The first file there brings the numbers for others.
make_folder() {
	mkdir "$mnt/folder"
	: >"$mnt/folder/first"
}

# open_as N PATH: a new file, which the server does not know, as descriptor N. The shell opens a file as the lowest
# one that is free. If it has to move that to N it closes it, and a close tells the server.
open_as() {
	local below
	for ((below = 3; below < $1; below++)); do
		[ -e "/proc/self/fd/$below" ] || eval "exec $below</dev/null"
	done
	eval "exec $1>\"\$2\""
}

# open_new NAME: the same in the folder; its descriptor is $fd.
open_new() {
	fd=7
	open_as $fd "$mnt/folder/$1"
}

close_it() {
	exec {fd}>&-
}

# server_knows NAME: whether it is there for a mount that begins when this one was killed.
server_knows() {
	kill_daemon
	mount_rmem
	[ -e "$mnt/folder/$1" ]
}

@test "a daemon that is killed leaves what was closed, and numbers that are nobody's" {
	mount_rmem
	make_folder
	open_new open
	echo text >"$mnt/folder/closed"
	kill_daemon
	close_it || true
	mount_rmem
	[ "$(cat "$mnt/folder/closed")" = text ]
	rm -r "$mnt/folder"
	make_folder
	for i in {1..200}; do
		echo "$i" >"$mnt/folder/$i"
	done
	[ "$(cat "$mnt"/folder/{1..200})" = "$(printf '%s\n' {1..200})" ]
	crash_server
	[ "$(entries "$mnt/folder")" -eq 201 ]
}

@test "what was closed is there, whenever the daemon is killed after it" {
	mount_rmem
	make_folder
	for i in {1..150}; do
		head -c $((i * 300)) /dev/urandom >"$dir/$i"
		cp "$dir/$i" "$mnt/folder/$i"
	done
	kill_daemon
	mount_rmem
	for i in {1..150}; do
		cmp "$dir/$i" "$mnt/folder/$i"
	done
}

@test "fsync of an open file or of its folder makes its name durable" {
	mount_rmem
	make_folder
	open_new synced
	echo text >&"$fd"
	sync "$mnt/folder/synced"
	server_knows synced
	close_it || true
	[ "$(cat "$mnt/folder/synced")" = text ]
	rm -r "$mnt/folder"
	make_folder
	open_new named
	sync "$mnt/folder"
	server_knows named
	close_it || true
}

@test "with sync or dirsync a file is at the server when it is made" {
	for option in sync dirsync; do
		mount_rmem -o "$option"
		make_folder
		open_new empty
		server_knows empty
		close_it || true
		rm -r "$mnt/folder"
		umount_rmem
	done
}

@test "the server learns of an open file within about a second" {
	mount_rmem
	make_folder
	open_new late
	has_it() {
		rmemfsctl who default /folder/late "$socket" >"$dir/who" 2>&1
	}
	until_true 10 has_it
	close_it
}

@test "nobody sees that the server does not know an open file" {
	mount_rmem
	make_folder
	open_new a
	[ "$(ls "$mnt/folder")" = $'a\nfirst' ]
	close_it
	open_new b
	echo text >&"$fd"
	[ "$(stat -c '%s %h' "$mnt/folder/b")" = '5 1' ]
	[ "$(cat "$mnt/folder/b")" = text ]
	mv "$mnt/folder/b" "$mnt/folder/moved"
	echo more >&"$fd"
	[ "$(cat "$mnt/folder/moved")" = $'text\nmore' ]
	close_it
	open_new c
	ln "$mnt/folder/c" "$mnt/linked"
	[ "$(stat -c %h "$mnt/linked")" -eq 2 ]
	close_it
	open_new d
	rm "$mnt/folder/d"
	echo text >&"$fd"
	[ "$(stat -L -c '%s %h' "/proc/self/fd/$fd")" = '5 0' ]
	close_it
	open_new e
	run ! rmdir "$mnt/folder"
	setfattr -n user.a -v b "$mnt/folder/e"
	[ "$(getfattr --only-values -n user.a "$mnt/folder/e" 2>/dev/null)" = b ]
	close_it
	open_new f
	mkdir "$mnt/other"
	run ! mv -T "$mnt/other" "$mnt/folder"
	mv "$mnt/folder" "$mnt/renamed"
	echo text >&"$fd"
	close_it
	[ "$(cat "$mnt/renamed/f")" = text ]
	open_as $fd "$mnt/renamed/g"
	truncate -s 10000 "$mnt/renamed/g"
	fallocate -l 20000 "$mnt/renamed/g"
	chmod 640 "$mnt/renamed/g"
	chown 5:6 "$mnt/renamed/g"
	close_it
	looks() {
		[ "$(stat -c '%s %a %u %g' "$mnt/renamed/g")" = '20000 640 5 6' ]
		[ "$(ls "$mnt/renamed")" = $'a\nc\ne\nf\nfirst\ng\nmoved' ]
	}
	holds_everywhere looks
}

# attributes FOLDER: what new files and folders get there.
attributes() {
	(umask 027 && : >"$1/a" && mkdir "$1/c" "$1/c/in")
	setpriv --reuid=41001 --regid=41002 --clear-groups sh -c ": >'$1/b' && mkdir -m 2770 '$1/d' && mkdir '$1/d/in'"
	(cd "$1" && stat -c '%n %a %u %g %s %h' a b c d c/in d/in && getfacl -n a b c d 2>/dev/null)
}

@test "a file or folder gets the same attributes as from the server" {
	chmod 755 "$dir"
	mount_rmem
	for mode in 777 1777 2777 acl; do
		for how in local remote old; do
			mkdir "$mnt/$mode.$how"
			chown 0:77 "$mnt/$mode.$how"
			if [ "$mode" = acl ]; then
				chmod 777 "$mnt/$mode.$how"
				setfacl -d -m u:41003:rw,g::r,m::rw "$mnt/$mode.$how"
			else
				chmod "$mode" "$mnt/$mode.$how"
			fi
		done
		: >"$mnt/$mode.local/first"
		attributes "$mnt/$mode.local" >"$dir/local"
		names_mode=remote remount
		attributes "$mnt/$mode.remote" >"$dir/remote"
		diff "$dir/local" "$dir/remote"
		names_mode=local remount
		# The first file there brings numbers.
		: >"$mnt/first"
		attributes "$mnt/$mode.old" >"$dir/old"
		diff "$dir/old" "$dir/remote"
	done
}

# open_old NAME: as open_new, in a folder from before the mount. The first file brings the numbers.
open_old() {
	mkdir "$mnt/folder"
	: >"$mnt/folder/there"
	remount
	: >"$mnt/folder/first"
	open_new "$1"
}

@test "a file is made here in a folder from before, too, if its name was looked up" {
	mount_rmem
	open_old a
	echo text >&"$fd"
	[ "$(stat -c '%s %h' "$mnt/folder/a")" = '5 1' ]
	[ "$(ls "$mnt/folder")" = $'a\nfirst\nthere' ]
	close_it
	mkdir "$mnt/folder/b"
	run ! sh -c ": >'$mnt/folder/b'"
	looks() {
		[ "$(cat "$mnt/folder/a")" = text ]
		[ "$(ls "$mnt/folder")" = $'a\nb\nfirst\nthere' ]
	}
	holds_everywhere looks
}

@test "a folder that was read to its end needs no server for new names" {
	mount_rmem
	open_old a
	close_it
	ls "$mnt/folder" >/dev/null
	suspend "$server_pid"
	[ ! -e "$mnt/folder/b" ]
	open_new b
	kill -CONT "$server_pid"
	close_it
	[ "$(ls "$mnt/folder")" = $'a\nb\nfirst\nthere' ]
}

# lists: reads the folder again and again, by two programs.
lists() {
	while [ ! -e "$dir/enough" ]; do
		# It may find names that are gone when it asks for them.
		ls -l "$mnt/folder" >/dev/null 2>&1 || true
		ls "$mnt/folder" >/dev/null
	done
}

@test "a folder is known as it is, also if names come and go while it is read" {
	mount_rmem
	mkdir "$mnt/folder"
	for i in {1..200}; do
		: >"$mnt/folder/$i"
	done
	remount
	lists 3>&- &
	listers=$!
	lists 3>&- &
	listers+=" $!"
	for i in {1..100}; do
		echo "$i" >"$mnt/folder/new.$i"
		rm "$mnt/folder/$i"
		mv "$mnt/folder/$((i + 100))" "$mnt/folder/moved.$i"
	done
	touch "$dir/enough"
	# shellcheck disable=SC2086
	wait $listers
	knows() {
		fsop uncache "$mnt"
		for i in {1..100}; do
			[ "$(cat "$mnt/folder/new.$i")" = "$i" ] && [ -e "$mnt/folder/moved.$i" ] &&
				[ ! -e "$mnt/folder/$i" ] && [ ! -e "$mnt/folder/$((i + 100))" ] || return 1
		done
	}
	knows
	ls "$mnt/folder" >/dev/null
	knows
	# Nothing that is there is taken for missing.
	for name in {1..100}; do
		run ! mkdir "$mnt/folder/new.$name"
		echo more >>"$mnt/folder/moved.$name"
		: >"$mnt/folder/$name"
	done
	[ "$(entries "$mnt/folder")" -eq 300 ]
	remount
	[ "$(entries "$mnt/folder")" -eq 300 ]
	run ! grep -q 'did not take\|did not make\|did not remove' "$dir/daemon.log"
}

@test "times of a folder are those of its newest file, before and after the server knows it" {
	mount_rmem
	make_folder
	touch -d '2001-02-03' "$mnt/folder"
	open_new a
	before=$(stat -c '%y %z' "$mnt/folder")
	file=$(stat -c '%x %y %z' "$mnt/folder/a")
	[ "$(stat -c %y "$mnt/folder")" = "$(stat -c %z "$mnt/folder/a")" ]
	close_it
	looks() {
		[ "$(stat -c '%y %z' "$mnt/folder")" = "$before" ]
		[ "$(stat -c '%x %y %z' "$mnt/folder/a")" = "$file" ]
	}
	holds_everywhere looks
}

# close_and_go_on FOLDER: closes the new file there, and makes some more.
close_and_go_on() {
	exec 7>&-
	for i in {1..20}; do
		echo "$i" >"$1/$i" || return 1
	done
}

@test "a folder is made at once, though the server stands still, and files in it are behind it" {
	mount_rmem
	make_folder
	suspend "$server_pid"
	mkdir -p "$mnt/folder/a/b/c" "$mnt/folder/d"
	[ "$(stat -c '%h %a' "$mnt/folder/a/b")" = '3 755' ]
	[ "$(stat -c %h "$mnt/folder")" -eq 4 ]
	[ ! -e "$mnt/folder/a/b/none" ]
	run ! mkdir "$mnt/folder/a/b"
	open_as 7 "$mnt/folder/a/b/file"
	times=$(stat -c '%w %y %z' "$mnt/folder/a/b/c" "$mnt/folder/d")
	kill -CONT "$server_pid"
	echo text >&7
	exec 7>&-
	looks() {
		[ "$(cat "$mnt/folder/a/b/file")" = text ] && [ "$(stat -c %h "$mnt/folder")" -eq 4 ] &&
			[ "$(ls "$mnt/folder")" = $'a\nd\nfirst' ] &&
			[ "$(stat -c '%w %y %z' "$mnt/folder/a/b/c" "$mnt/folder/d")" = "$times" ]
	}
	holds_everywhere looks
	kill_daemon
	mount_rmem
	[ "$(cat "$mnt/folder/a/b/file")" = text ]
}

@test "a symbolic link is made at once, though the server stands still, with its owner and times" {
	mount_rmem
	make_folder
	mkdir "$mnt/folder/sgid"
	chgrp 7 "$mnt/folder/sgid"
	chmod g+s "$mnt/folder/sgid"
	shows() {
		stat -c '%n %F %a %u %g %h %s %w %y %z' "$mnt/folder/here" "$mnt/folder/in/back" \
			"$mnt/folder/sgid/link"
	}
	suspend "$server_pid"
	mkdir "$mnt/folder/in"
	ln -s first "$mnt/folder/here"
	ln -s ../first "$mnt/folder/in/back"
	ln -s none "$mnt/folder/sgid/link"
	run ! ln -sT other "$mnt/folder/here"
	chown -h 5:6 "$mnt/folder/here"
	touch -h -d '2001-02-03 4:05:06.789' "$mnt/folder/here"
	[ "$(stat -c '%F %a %u %g %s %y' "$mnt/folder/here" | cut -c1-50)" = \
		'symbolic link 777 5 6 5 2001-02-03 04:05:06.789000' ]
	[ "$(stat -c %g "$mnt/folder/sgid/link")" -eq 7 ]
	before=$(shows)
	kill -CONT "$server_pid"
	echo text >>"$mnt/folder/in/back"
	looks() {
		[ "$(shows)" = "$before" ] && [ "$(cat "$mnt/folder/here")" = text ] &&
			[ "$(readlink "$mnt/folder/here" "$mnt/folder/in/back")" = $'first\n../first' ]
	}
	holds_everywhere looks
	run ! grep -q 'did not' "$dir/daemon.log"
}

@test "a file has another name at once, though the server stands still, and for all programs" {
	mount_rmem
	make_folder
	mkdir "$mnt/folder/in"
	echo text >"$mnt/folder/file"
	ln -s file "$mnt/folder/points"
	sync "$mnt"
	suspend "$server_pid"
	ln "$mnt/folder/file" "$mnt/folder/in/again"
	ln -P "$mnt/folder/points" "$mnt/folder/in/points"
	run ! ln "$mnt/folder/file" "$mnt/folder/first"
	shows() {
		stat -c '%n %h %i %y %z' "$mnt"/folder "$mnt"/folder/in "$mnt"/folder/{file,points,in/again,in/points}
	}
	[ "$(stat -c %h "$mnt"/folder/{file,points} "$mnt"/folder/in/{again,points})" = $'2\n2\n2\n2' ]
	[ "$(stat -c %i "$mnt/folder/file")" = "$(stat -c %i "$mnt/folder/in/again")" ]
	before=$(shows)
	kill -CONT "$server_pid"
	looks() {
		[ "$(shows)" = "$before" ] && [ "$(cat "$mnt"/folder/{file,in/again})" = $'text\ntext' ] &&
			[ "$(readlink "$mnt/folder/in/points")" = file ]
	}
	holds_everywhere looks
	rm "$mnt/folder/file" "$mnt/folder/points"
	others_stay() {
		[ "$(stat -c %h "$mnt"/folder/in/{again,points})" = $'1\n1' ] && [ "$(cat "$mnt/folder/in/again")" = text ]
	}
	holds_everywhere others_stay
	run ! grep -q 'did not' "$dir/daemon.log"
}

@test "a symbolic link to a long target is made by the server, and is anything else at once" {
	mount_rmem
	make_folder
	target=$(printf '%02000d' 0)
	ln -s "$target" "$mnt/folder/long"
	[ "$(readlink "$mnt/folder/long")" = "$target" ]
	cd "$mnt/folder"
	ln -s first a
	mv a b
	ln -s first c
	rm c
	ln -s first d
	echo new >e
	mv -T d e
	ln -s first f
	ln f g
	setfattr -h -n trusted.a -v b f
	cd /
	looks() {
		cd "$mnt/folder"
		[ "$(echo *)" = 'b e f first g long' ] && [ "$(readlink b e f g)" = $'first\nfirst\nfirst\nfirst' ] &&
			[ "$(stat -c %h f)" -eq 2 ] && getfattr -h -n trusted.a g 2>/dev/null | grep -q '"b"' || return 1
		cd /
	}
	holds_everywhere looks
}

@test "a folder is anything else at once, and whatever is done to it comes behind it" {
	mount_rmem
	make_folder
	cd "$mnt/folder"
	mkdir a b c d e f g h
	rmdir a
	mv b b2
	mv c d
	mv first e
	chmod 700 f
	chown 5:6 f
	setfattr -n user.a -v b g
	setfacl -d -m u:41003:rwx g
	mkdir g/in
	ln -s target h/link
	touch -d 2001-02-03 h
	ls h >"$dir/list"
	cd /
	[ "$(cat "$dir/list")" = link ]
	looks() {
		cd "$mnt/folder"
		[ "$(echo * d/* e/* g/* h/*)" = 'b2 d e f g h d/c e/first g/in h/link' ] &&
			[ "$(stat -c '%a %u %g' f)" = '700 5 6' ] && getfacl -n g/in 2>/dev/null | grep -q 41003 &&
			[ "$(stat -c %y h | cut -c1-10)" = 2001-02-03 ] && [ "$(stat -c %h .)" -eq 8 ] || return 1
		cd /
	}
	holds_everywhere looks
}

# makes_durable HOW: what makes the folders from before durable.
makes_durable() {
	case $1 in
	folder) sync "$mnt" ;;
	file) sync "$mnt/folder/first" ;;
	close) echo new >"$mnt/folder/d/new" ;;
	clean) : <>"$mnt/folder/first" ;;
	itself) sync "$mnt/folder/d" ;;
	esac
}

@test "fsync of a folder, or of any file, and a close make folders durable" {
	mount_rmem
	make_folder
	exec 7<>"$mnt/folder/first"
	for how in folder file close clean itself; do
		echo "$how"
		mkdir -p "$mnt/folder/d/in/it"
		makes_durable "$how"
		server_knows d/in/it
		exec 7>&- || true
		rm -r "$mnt/folder/d"
		# The new mount learns names, and gets numbers.
		ls "$mnt/folder" >/dev/null
		echo new >"$mnt/folder/numbers"
		rm "$mnt/folder/numbers"
		exec 7<>"$mnt/folder/first"
	done
	exec 7>&-
}

@test "with sync or dirsync a folder is at the server when it is made" {
	for option in sync dirsync; do
		mount_rmem -o "$option"
		make_folder
		mkdir "$mnt/folder/in"
		server_knows in
		rm -r "$mnt/folder"
		umount_rmem
	done
}

@test "folders are made once, wherever the server dies meanwhile" {
	mount_rmem
	points=(commit.after:1 reply.sent:1 name.changed:9)
	[ "${RMEMFS_TEST_NIGHTLY:-0}" = 0 ] || points+=(commit.before:1 reply.none:1 name.changed:{1,20})
	for point in "${points[@]}"; do
		mkdir "$mnt/$point"
		mkdir "$mnt/$point"/{1..10}
		echo first >"$mnt/$point/first"
		kill_server
		rmdir "$mnt/$point"/{1..5}
		mkdir "$mnt/$point"/{11..20} "$mnt/$point"/{6..15}/in
		spawn_armed "$point"
		expect_death "$point"
		echo new >"$mnt/$point/15/in/file" &
		writer=$!
		start_server
		wait "$writer"
	done
	everything() {
		for point in "${points[@]}"; do
			[ "$(entries "$mnt/$point")" -eq 16 ] && [ "$(stat -c %h "$mnt/$point")" -eq 17 ] &&
				[ "$(find "$mnt/$point" -name in | wc -l)" -eq 10 ] &&
				[ "$(cat "$mnt/$point/15/in/file")" = new ] || return 1
		done
	}
	everything
	remount
	everything
	run ! grep -q 'did not take\|did not make\|did not remove' "$dir/daemon.log"
}

@test "a file is made once, wherever the server dies while it is closed" {
	mount_rmem
	points=(commit.{before,after}:1 reply.{none,sent}:2 name.changed:1)
	[ "${RMEMFS_TEST_NIGHTLY:-0}" = 0 ] || points+=(commit.{before,after}:{2,4} reply.{none,sent}:{1,4} name.changed:2)
	for point in "${points[@]}"; do
		mkdir "$mnt/$point"
		: >"$mnt/$point/first"
		open_as 7 "$mnt/$point/file"
		echo "$point" >&7
		kill_server
		spawn_armed "$point" 7>&-
		close_and_go_on "$mnt/$point" &
		closer=$!
		expect_death "$point"
		start_server 7>&-
		wait "$closer"
		exec 7>&-
	done
	everything() {
		for point in "${points[@]}"; do
			[ "$(cat "$mnt/$point/file")" = "$point" ]
			[ "$(cat "$mnt/$point"/{1..20})" = "$(printf '%s\n' {1..20})" ]
			[ "$(entries "$mnt/$point")" -eq 22 ]
		done
	}
	everything
	remount
	everything
	run ! grep -q 'did not take' "$dir/daemon.log"
}

@test "an upgrade of the daemon takes an open file along" {
	mount_rmem
	make_folder
	open_new open
	printf 'before ' >&"$fd"
	rmemfsctl upgrade "$mnt" >>"$dir/moved.log" 2>&1 3>&-
	exit_status "$daemon_pid" 10
	daemon_pid=''
	printf after >&"$fd"
	close_it
	[ "$(cat "$mnt/folder/open")" = 'before after' ]
	# The new daemon gets numbers of its own.
	rm -r "$mnt/folder"
	make_folder
	for i in {1..200}; do
		echo "$i" >"$mnt/folder/$i"
	done
	[ "$(entries "$mnt/folder")" -eq 201 ]
	umount "$mnt"
}

# serve_with KEYS: a server whose export has them.
serve_with() {
	server_conf=$dir/server.conf
	echo "exports = ( { name = \"default\"; size = \"$export_size\"; $1 } );" >"$server_conf"
	start_server
}

@test "at an export that is full of names a new file is refused at once, and closes do not fail" {
	local n=0
	stop_server
	serve_with 'inodes = 700;'
	mount_rmem
	make_folder
	free=$(stat -f -c %d "$mnt")
	open_new counted
	[ "$(stat -f -c %d "$mnt")" -eq $((free - 1)) ]
	close_it
	mkdir "$mnt/folder/counts"
	[ "$(stat -f -c %d "$mnt")" -eq $((free - 2)) ]
	ln -s counted "$mnt/folder/points"
	ln "$mnt/folder/first" "$mnt/folder/again"
	[ "$(stat -f -c %d "$mnt")" -eq $((free - 3)) ]
	rm -r "$mnt"/folder/{counted,counts,points,again}
	while true >"$mnt/folder/$n"; do
		n=$((n + 1))
	done 2>"$dir/refused"
	grep -q 'No space left' "$dir/refused"
	[ "$n" -ge 500 ]
	[ "$(entries "$mnt/folder")" -eq $((n + 1)) ]
	rm "$mnt"/folder/{0..99}
	n=0
	while mkdir "$mnt/folder/$n.folder"; do
		n=$((n + 1))
	done 2>"$dir/refused"
	grep -q 'No space left' "$dir/refused"
	[ "$n" -ge 50 ]
	remount
	[ "$(find "$mnt/folder" -mindepth 1 -type d | wc -l)" -eq "$n" ]
	run ! grep -q 'did not take\|did not make' "$dir/daemon.log"
}

@test "a quota counts from the server's next start on, also for a mount that has inode numbers" {
	chmod 755 "$dir"
	mount_rmem -o allow_other
	make_folder
	chmod 777 "$mnt/folder"
	stop_server
	serve_with 'quotas = ( { user = 41001; inodes = 5; } );'
	touch "$mnt/folder/roots"
	run setpriv --reuid=41001 --regid=41001 --clear-groups env LC_ALL=C touch "$mnt"/folder/{1..9}
	[[ $output == *"Disk quota exceeded"* ]]
	[ "$(entries "$mnt/folder")" -eq 7 ]
}

# The server dies while it makes files, up to sixteen by one message.
dies_making() {
	local maker
	make_folder
	kill_server
	spawn_armed "$1"
	fsop make-kept "$mnt/folder" 100 3>&- &
	maker=$!
	expect_death "$1"
	start_server
	wait "$maker"
	kill_daemon
	mount_rmem
	[ "$(entries "$mnt/folder")" -eq 101 ]
	[ "$(cat "$mnt"/folder/kept.* | tr -d '\n')" = "$(printf 'x%.0s' {1..100})" ]
	rm -r "$mnt/folder"
}

@test "files that are made by one message are all there, once, wherever the server dies" {
	local point
	mount_rmem
	for point in name.changed:40 commit.before:4 commit.after:4 reply.none:4; do
		echo "$point"
		dies_making "$point"
	done
}
