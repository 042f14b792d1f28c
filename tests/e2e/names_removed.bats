#!/usr/bin/env bats
# names_removed.bats - with names=local a file's UNLINK is answered before the server knows of it. Nobody sees a
# difference, and after a crash all is there that was to be, up to some moment.
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

# make_files N [FOLDER]: so many files of this mount.
make_files() {
	local i
	for ((i = 1; i <= $1; i++)); do
		echo "$i" >"$mnt/${2:-folder}/$i"
	done
}

make_folder() {
	mkdir "$mnt/folder"
	make_files "$1"
}

entries() {
	find "$1" -mindepth 1 -maxdepth 1 | wc -l
}

# server_lacks PATH: it is not there for a mount that begins when this one was killed.
server_lacks() {
	kill_daemon
	mount_rmem
	[ ! -e "$mnt/$1" ]
}

@test "a file is gone at once, though the server stands still, and for all programs" {
	mount_rmem
	make_folder 20
	suspend "$server_pid"
	rm "$mnt/folder/3" "$mnt/folder/4"
	[ ! -e "$mnt/folder/3" ]
	run ! cat "$mnt/folder/3"
	run ! rm "$mnt/folder/4"
	# shellcheck disable=SC2012
	ls "$mnt/folder" >"$dir/list" 3>&- &
	lister=$!
	until_true 10 calling "$lister" getdents || ! alive "$lister"
	kill -CONT "$server_pid"
	exit_status "$lister" 20
	[ "$(sort -n "$dir/list")" = "$(printf '%s\n' 1 2 {5..20})" ]
}

@test "the server learns of it within about a second" {
	mount_rmem
	make_folder 5
	rm "$mnt/folder/2"
	lacks_it() {
		! rmemfsctl who default /folder/2 "$socket" >"$dir/who" 2>&1
	}
	until_true 10 lacks_it
}

@test "a name that was removed can be anything else at once" {
	mount_rmem
	make_folder 12
	cd "$mnt/folder"
	before=$(stat -c %i 1)
	rm 1 2 3 4 5 6 7
	echo new >./1
	mkdir 2
	ln -s target 3
	ln 8 4
	mv 9 5
	mkfifo 6
	mv 1 7
	rm 7
	mv 10 7
	echo again >./1
	rm 1
	echo last >./1
	[ "$(stat -c %i 1)" -ne "$before" ]
	rm 11
	mkdir sub
	mv sub 11
	cd /
	looks() {
		cd "$mnt/folder"
		[ "$(cat 1)" = last ] && [ -d 2 ] && [ "$(readlink 3)" = target ] && [ "$(stat -c %h 4)" -eq 2 ] &&
			[ "$(cat 5)" = 9 ] && [ -p 6 ] && [ "$(cat 7)" = 10 ] && [ -d 11 ] && [ "$(cat 12)" = 12 ] &&
			[ "$(entries .)" -eq 10 ] || return 1
		cd /
	}
	holds_everywhere looks
}

@test "a folder can go as soon as its files have, and only then" {
	mount_rmem
	make_folder 300
	rm "$mnt"/folder/{2..300}
	run ! rmdir "$mnt/folder"
	rm "$mnt/folder/1"
	rmdir "$mnt/folder"
	mkdir "$mnt/folder"
	make_files 3
	rm "$mnt/folder/2"
	mkdir "$mnt/empty"
	run ! mv -T "$mnt/empty" "$mnt/folder"
	rm "$mnt/folder/1" "$mnt/folder/3"
	mv -T "$mnt/empty" "$mnt/folder"
	gone() {
		[ "$(entries "$mnt/folder")" -eq 0 ] && [ "$(entries "$mnt")" -eq 1 ]
	}
	holds_everywhere gone
}

# make_tree NAME: folders in folders, with files, links and a pipe.
make_tree() {
	local i
	for i in {1..12}; do
		mkdir -p "$mnt/$1/$i/deep/deeper"
		echo "$i" >"$mnt/$1/$i/file"
		echo "$i" >"$mnt/$1/$i/deep/file"
		ln -s file "$mnt/$1/$i/link"
	done
	mkfifo "$mnt/$1/pipe"
}

@test "a tree is gone at once, though the server stands still" {
	mount_rmem
	make_tree tree
	mkdir "$mnt/full"
	touch "$mnt/full/file"
	links=$(stat -c %h "$mnt")
	# The mount learns what it has not made itself.
	fsop uncache "$mnt"
	find "$mnt" -ls >/dev/null
	cd "$mnt/tree/1/deep"
	suspend "$server_pid"
	rm "$mnt"/tree/{1..12}/{link,file,deep/file} "$mnt/tree/pipe"
	for i in {12..1}; do
		rmdir "$mnt/tree/$i/deep/deeper" "$mnt/tree/$i/deep" "$mnt/tree/$i"
	done
	[ "$(stat -c %h "$mnt/tree")" -eq 2 ]
	rmdir "$mnt/tree"
	[ ! -e "$mnt/tree" ]
	[ "$(stat -c %h "$mnt")" -eq $((links - 1)) ]
	[ "$(stat -c %h .)" -eq 0 ]
	run ! touch new
	kill -CONT "$server_pid"
	run ! rmdir "$mnt/full"
	run ! ls new
	cd /
	gone() {
		[ "$(ls "$mnt")" = full ] && [ "$(stat -c %h "$mnt")" -eq $((links - 1)) ]
	}
	holds_everywhere gone
	is_free() {
		[ "$(status_of '.exports[0].files')" -eq 3 ]
	}
	until_true 20 is_free
	run ! grep -q 'did not take\|did not make\|did not remove' "$dir/daemon.log"
}

@test "a file that is open goes on without its name, and its memory comes back afterwards" {
	mount_rmem
	make_folder 3
	free=$(stat -f -c %f "$mnt")
	random_file "$dir/data" 3
	cp "$dir/data" "$mnt/folder/big"
	exec 7<>"$mnt/folder/big"
	rm "$mnt/folder/big"
	[ "$(stat -L -c %h /proc/self/fd/7)" -eq 0 ]
	cmp "$dir/data" /proc/self/fd/7
	sync "$mnt/folder"
	printf changed >&7
	printf changed | dd of="$dir/data" conv=notrunc status=none
	cmp "$dir/data" /proc/self/fd/7
	fsop uncache "$mnt"
	cmp "$dir/data" /proc/self/fd/7
	crash_server 7>&-
	cmp "$dir/data" /proc/self/fd/7
	exec 7>&-
	is_free() {
		[ "$(stat -f -c %f "$mnt")" -ge "$free" ]
	}
	until_true 20 is_free
}

@test "of a file with two names the other one stays" {
	mount_rmem
	make_folder 3
	ln "$mnt/folder/1" "$mnt/folder/other"
	rm "$mnt/folder/1"
	[ "$(stat -c %h "$mnt/folder/other")" -eq 1 ]
	rm "$mnt/folder/other"
	echo new >"$mnt/folder/1"
	looks() {
		[ "$(cat "$mnt/folder/1")" = new ] && [ "$(entries "$mnt/folder")" -eq 3 ]
	}
	holds_everywhere looks
}

@test "times of a folder are those of the removal, before and after the server knows it" {
	mount_rmem
	make_folder 3
	touch -d '2001-02-03' "$mnt/folder"
	rm "$mnt/folder/2"
	before=$(stat -c '%y %z' "$mnt/folder")
	[[ $before != 2001* ]]
	looks() {
		[ "$(stat -c '%y %z' "$mnt/folder")" = "$before" ]
	}
	holds_everywhere looks
}

@test "a file has its new name at once, though the server stands still, and for all programs" {
	mount_rmem
	make_folder 9
	mkdir "$mnt/other"
	echo old >"$mnt/other/old"
	ln "$mnt/folder/9" "$mnt/folder/9b"
	exec 7<"$mnt/other/old"
	sync "$mnt"
	suspend "$server_pid"
	mv "$mnt/folder/1" "$mnt/folder/a"
	mv "$mnt/folder/2" "$mnt/other/b"
	mv "$mnt/folder/3" "$mnt/other/old"
	mv "$mnt/folder/4" "$mnt/folder/5"
	mv "$mnt/folder/9b" "$mnt/other/c"
	[ ! -e "$mnt/folder/1" ]
	[ -e "$mnt/folder/a" ]
	[ "$(stat -c %h "$mnt/other/c")" -eq 2 ]
	[ "$(stat -L -c %h /proc/self/fd/7)" -eq 0 ]
	times=$(stat -c '%y %z' "$mnt/folder" "$mnt/other" "$mnt/other/b")
	kill -CONT "$server_pid"
	[ "$(cat <&7)" = old ]
	exec 7<&-
	looks() {
		[ "$(cd "$mnt" && echo folder/* other/*)" = \
			'folder/5 folder/6 folder/7 folder/8 folder/9 folder/a other/b other/c other/old' ] &&
			[ "$(cat "$mnt"/folder/{a,5} "$mnt"/other/{b,old,c})" = "$(printf '%s\n' 1 4 2 3 9)" ] &&
			[ "$(stat -c '%y %z' "$mnt/folder" "$mnt/other" "$mnt/other/b")" = "$times" ]
	}
	holds_everywhere looks
	# One of them has two names.
	all_are_named() {
		[ "$(status_of '.exports[0].files')" -eq $(($(find "$mnt" | wc -l) - 1)) ]
	}
	until_true 20 all_are_named
	run ! grep -q 'did not' "$dir/daemon.log"
}

@test "a folder has its new name at once, though the server stands still, with all that is in it" {
	mount_rmem
	make_folder 2
	mkdir "$mnt/folder/old" "$mnt/folder/other"
	make_files 3 folder/old
	sync "$mnt"
	exec 7<"$mnt/folder/old"
	suspend "$server_pid"
	mv "$mnt/folder/old" "$mnt/folder/new"
	[ ! -e "$mnt/folder/old" ]
	mkdir "$mnt/folder/old" /proc/self/fd/7/in
	[ "$(stat -c %h "$mnt/folder" "$mnt/folder/new")" = $'5\n3' ]
	times=$(stat -c '%y %z' "$mnt/folder" "$mnt/folder/new")
	kill -CONT "$server_pid"
	exec 7<&-
	looks() {
		[ "$(cd "$mnt/folder" && echo * new/*)" = '1 2 new old other new/1 new/2 new/3 new/in' ] &&
			[ "$(cat "$mnt"/folder/new/{1,2,3})" = $'1\n2\n3' ] &&
			[ "$(stat -c '%y %z' "$mnt/folder" "$mnt/folder/new")" = "$times" ] &&
			[ "$(stat -c %h "$mnt/folder" "$mnt/folder/new")" = $'5\n3' ]
	}
	holds_everywhere looks
	# Below another one, or in place of one, it comes by the server.
	mv "$mnt/folder/new" "$mnt/folder/other"
	mv -T "$mnt/folder/old" "$mnt/folder/other/new/in"
	run ! mv "$mnt/folder/other" "$mnt/folder/other/new"
	moved() {
		[ "$(cd "$mnt/folder" && find . -type d | sort | xargs)" = '. ./other ./other/new ./other/new/in' ] &&
			[ "$(stat -c %h "$mnt/folder" "$mnt/folder/other/new")" = $'3\n3' ]
	}
	holds_everywhere moved
	run ! grep -q 'did not' "$dir/daemon.log"
}

@test "a file that was renamed can be anything else at once" {
	mount_rmem
	make_folder 9
	cd "$mnt/folder"
	mv 1 a
	mv a 2
	mv 2 b
	rm b
	mv 3 c
	echo more >>c
	chmod 600 c
	mv 4 d
	ln d e
	mv 5 f
	echo new >./5
	mv 6 5
	exec 7>n
	echo text >&7
	mv n 7
	exec 7>&-
	mv 8 g
	mkdir 8
	mv g 8
	run ! mv -T 9 8
	cd /
	looks() {
		cd "$mnt/folder"
		[ "$(echo * 8/*)" = '5 7 8 9 c d e f 8/g' ] && [ "$(cat c)" = $'3\nmore' ] && [ "$(stat -c %a c)" = 600 ] &&
			[ "$(stat -c %h d)" -eq 2 ] && [ "$(cat f 5 7 8/g 9)" = $'5\n6\ntext\n8\n9' ] || return 1
		cd /
	}
	holds_everywhere looks
}

@test "fsync of a folder, or of any file, and a close make renames durable" {
	mount_rmem
	make_folder 9
	for how in folder file close clean; do
		echo "$how"
		mv "$mnt/folder/1" "$mnt/folder/a"
		case $how in
		folder) sync "$mnt" ;;
		file) sync "$mnt/folder/9" ;;
		close) echo new >"$mnt/new" ;;
		clean) : <>"$mnt/folder/9" ;;
		esac
		server_lacks folder/1
		[ "$(cat "$mnt/folder/a")" = 1 ]
		# The new mount looks up what it has not made.
		mv "$mnt/folder/a" "$mnt/folder/1"
		cat "$mnt/folder/1" "$mnt/folder/9" >/dev/null
		[ ! -e "$mnt/folder/a" ]
	done
}

@test "with sync or dirsync a file has its new name at the server when it is renamed" {
	for option in sync dirsync; do
		mount_rmem -o "$option"
		make_folder 2
		mv "$mnt/folder/1" "$mnt/folder/a"
		server_lacks folder/1
		rm -r "$mnt/folder"
		umount_rmem
	done
}

@test "files and folders are renamed, and links are made, once, wherever the server dies meanwhile" {
	mount_rmem
	points=(commit.after:1 reply.sent:1 name.changed:9)
	[ "${RMEMFS_TEST_NIGHTLY:-0}" = 0 ] || points+=(commit.before:1 reply.none:1 name.changed:{1,20})
	for point in "${points[@]}"; do
		mkdir "$mnt/$point"
		make_files 40 "$point"
		mkdir "$mnt/$point"/folder{1..5}
		sync "$mnt"
		# The kernel looks up each new name, which this mount tells while it is connected. Ten are replaced.
		suspend "$server_pid"
		for i in {1..10}; do
			mv "$mnt/$point/$i" "$mnt/$point/$((i + 10))"
			mv "$mnt/$point/$((i + 20))" "$mnt/$point/m$((i - 1))"
		done
		for i in {1..5}; do
			ln -s "to.$i" "$mnt/$point/link.$i"
			mv -T "$mnt/$point/folder$i" "$mnt/$point/f$i"
			ln "$mnt/$point/3$((i + 2))" "$mnt/$point/also.$i"
		done
		kill_server
		spawn_armed "$point"
		expect_death "$point"
		echo new >"$mnt/$point/5" &
		writer=$!
		start_server
		wait "$writer"
	done
	everything() {
		for point in "${points[@]}"; do
			[ "$(cat "$mnt/$point"/{11..20})" = "$(printf '%s\n' {1..10})" ] &&
				[ "$(cat "$mnt/$point"/m{0..9})" = "$(printf '%s\n' {21..30})" ] &&
				[ "$(cat "$mnt/$point/5")" = new ] && [ "$(entries "$mnt/$point")" -eq 46 ] &&
				[ "$(cat "$mnt/$point"/also.{1..5})" = "$(printf '%s\n' {33..37})" ] &&
				[ "$(readlink "$mnt/$point"/link.{1..5})" = "$(printf 'to.%s\n' {1..5})" ] &&
				[ "$(find "$mnt/$point" -mindepth 1 -type d -name 'f?' | wc -l)" -eq 5 ] || return 1
		done
	}
	everything
	remount
	everything
	run ! grep -q 'did not' "$dir/daemon.log"
}

@test "fsync of a folder, or of any file, and a close make removals durable" {
	mount_rmem
	make_folder 9
	exec 7<>"$mnt/folder/9"
	for how in folder file close clean; do
		echo "$how"
		rm "$mnt/folder/1"
		case $how in
		folder) sync "$mnt" ;;
		file) sync "$mnt/folder/9" ;;
		close) echo new >"$mnt/new" ;;
		clean) : <>"$mnt/folder/9" ;;
		esac
		server_lacks folder/1
		exec 7>&- || true
		echo 1 >"$mnt/folder/1"
		rm -f "$mnt/new"
		exec 7<>"$mnt/folder/9"
	done
	exec 7>&-
}

@test "a write over existing bytes that waits for its storage makes changes of names durable" {
	mount_rmem
	make_folder 9
	for how in dsync sync once; do
		echo "$how"
		mv "$mnt/folder/1" "$mnt/folder/a"
		rm "$mnt/folder/2"
		mkdir "$mnt/folder/sub"
		fsop overwrite-and-kill "$mnt/folder/9" "$how" "$daemon_pid"
		server_lacks folder/1
		[ "$(cat "$mnt/folder/a")" = 1 ]
		[ ! -e "$mnt/folder/2" ]
		[ -d "$mnt/folder/sub" ]
		[ "$(cat "$mnt/folder/9")" = x ]
		mv "$mnt/folder/a" "$mnt/folder/1"
		rmdir "$mnt/folder/sub"
		echo 2 >"$mnt/folder/2"
		ls "$mnt/folder" >/dev/null
	done
}

@test "with sync or dirsync a name is gone at the server when it is removed" {
	for option in sync dirsync; do
		mount_rmem -o "$option"
		make_folder 2
		rm "$mnt/folder/1"
		server_lacks folder/1
		rm -r "$mnt/folder"
		umount_rmem
	done
}

@test "umount, an upgrade, a snapshot and a change to read-only take removals along" {
	mount_rmem
	make_folder 9
	rm "$mnt/folder/1"
	remount
	[ ! -e "$mnt/folder/1" ]
	# The new mount knows names that it has looked up.
	cat "$mnt"/folder/{2..9} >/dev/null
	rm "$mnt/folder/2"
	rmemfsctl upgrade "$mnt" >>"$dir/moved.log" 2>&1 3>&-
	exit_status "$daemon_pid" 10
	daemon_pid=''
	[ ! -e "$mnt/folder/2" ]
	cat "$mnt"/folder/{3..9} >/dev/null
	rm "$mnt/folder/3"
	rmemfsctl snapshot default "$dir/image" "$socket"
	rm "$mnt/folder/4"
	rmemfs -c /dev/null -o remount,ro "$(mount_source)" "$mnt"
	[ "$(entries "$mnt/folder")" -eq 5 ]
	umount "$mnt"
	stop_server
	rm -r "${memory:?}"/*
	start_server --restore "$dir/image"
	mount_rmem
	[ "$(entries "$mnt/folder")" -eq 6 ]
	[ ! -e "$mnt/folder/3" ]
}

# fill NAME: a file that takes all that is left.
fill() {
	! dd if=/dev/zero of="$mnt/$1" bs=1M status=none 2>"$dir/full" || return 1
	grep -q 'No space left' "$dir/full"
}

@test "memory and inodes of removed files can be used at once" {
	stop_server
	rm -r "${memory:?}"/*
	server_conf=$dir/server.conf
	echo 'exports = ( { name = "default"; size = "32MiB"; inodes = 300; } );' >"$server_conf"
	start_server
	mount_rmem
	mkdir "$mnt/folder"
	fill big
	rm "$mnt/big"
	random_file "$dir/data" 24
	cp "$dir/data" "$mnt/data"
	cmp "$dir/data" "$mnt/data"
	rm "$mnt/data"
	for i in 1 2; do
		make_files 280
		rm "$mnt"/folder/*
	done
	[ "$(entries "$mnt/folder")" -eq 0 ]
}

@test "names are removed once, wherever the server dies meanwhile" {
	mount_rmem
	points=(commit.after:1 reply.sent:1 name.changed:9)
	[ "${RMEMFS_TEST_NIGHTLY:-0}" = 0 ] || points+=(commit.before:1 reply.none:1 name.changed:{1,20})
	for point in "${points[@]}"; do
		mkdir "$mnt/$point"
		make_files 40 "$point"
		kill_server
		rm "$mnt/$point"/{1..20}
		spawn_armed "$point"
		expect_death "$point"
		echo new >"$mnt/$point/5" &
		writer=$!
		start_server
		wait "$writer"
		[ "$(entries "$mnt/$point")" -eq 21 ]
	done
	everything() {
		for point in "${points[@]}"; do
			[ "$(cat "$mnt/$point/5")" = new ] &&
				[ "$(cat "$mnt/$point"/{21..40})" = "$(printf '%s\n' {21..40})" ] &&
				[ "$(entries "$mnt/$point")" -eq 21 ] || return 1
		done
	}
	everything
	remount
	everything
	run ! grep -q 'did not take\|did not make\|did not remove' "$dir/daemon.log"
}

# dies SEED POINT: two programs make and remove files, and the daemon dies there, or, if that is a number, so
# many milliseconds after the begin. The folders of one are there from before.
dies() {
	local runners=() which
	mount_rmem
	mkdir -p "$mnt/$1.a" "$mnt/$1.b"/{0..2}
	umount_rmem
	if [[ $2 == *.* ]]; then
		RMEMFS_CRASH_AT=$2 mount_rmem
	else
		mount_rmem
	fi
	for which in a b; do
		ordered run "$mnt/$1.$which" "$dir/progress.$which" "$1$((1 + ${#runners[@]}))" 100000 \
			2>>"$dir/ordered.log" 3>&- &
		runners+=($!)
	done
	if [[ $2 != *.* ]]; then
		sleep "$(printf '0.%03d' "$2")"
		kill -KILL "$daemon_pid"
	fi
	exit_status "$daemon_pid" 60 || [ $? -eq 137 ]
	daemon_pid=''
	exit_status "${runners[0]}" 20 || [ $? -eq 1 ]
	exit_status "${runners[1]}" 20 || [ $? -eq 1 ]
	umount -l "$mnt"
}

@test "a daemon that is killed leaves a beginning of all that was to be, with all that was closed" {
	local seed=0 points=(names.before:30 names.answered:2 200)
	[ "${RMEMFS_TEST_NIGHTLY:-0}" = 0 ] || points+=(names.{before,answered}:{1..60..4} {100..900..50})
	for point in "${points[@]}"; do
		seed=$((seed + 1))
		echo "$point"
		dies "$seed" "$point"
		mount_rmem
		ordered check "$mnt/$seed.a" "$dir/progress.a" "${seed}1"
		ordered check "$mnt/$seed.b" "$dir/progress.b" "${seed}2"
		umount_rmem
	done
}
