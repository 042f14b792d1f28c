#!/usr/bin/env bats
# tmpfile.bats - files made without a name (O_TMPFILE); some get a name later.

load helpers

setup() {
	setup_rmem
	start_server
	mount_rmem
}

teardown() {
	teardown_rmem
}

inodes() {
	status_of '.exports[0].files'
}

@test "what is written to a nameless file can be read back, and no directory shows it" {
	metaop tmpfile-readback "$mnt" 3000000
	[ -z "$(ls -A "$mnt")" ]
}

@test "a nameless file has no links, the mode asked for, and its maker's umask" {
	run bash -c "umask 027; metaop tmpfile-stat '$mnt' 666"
	[ "$output" = "links 0 mode 640" ]
}

@test "it is gone when it is closed" {
	before=$(inodes)
	metaop tmpfile-readback "$mnt" 1000000
	until_true 10 eval '[ "$(inodes)" = "$before" ]'
}

named_data() {
	[ "$(stat -c '%h %s' "$mnt/named")" = "1 3000000" ]
	cmp "$mnt/named" "$dir/data"
}

@test "linkat gives it a name that stays" {
	random_file "$dir/data" 3
	truncate -s 3000000 "$dir/data"
	metaop tmpfile-link "$dir/data" "$mnt" "$mnt/named" </dev/null
	holds_everywhere named_data
}

@test "what got a name goes on being written, and goes with its name" {
	before=$(inodes)
	metaop tmpfile-link-write "$mnt" "$mnt/named"
	[ "$(cat "$mnt/named")" = "before and after" ]
	remount
	[ "$(cat "$mnt/named")" = "before and after" ]
	rm "$mnt/named"
	until_true 10 eval '[ "$(inodes)" = "$before" ]'
}

@test "one opened with O_EXCL, or unlinked, gets no name" {
	run metaop tmpfile-exclusive-link "$mnt" "$mnt/named"
	[ "$output" = "metaop: ENOENT" ]
	run metaop unlinked-link "$mnt/file" "$mnt/named"
	[ "$output" = "metaop: ENOENT" ]
	[ -z "$(ls -A "$mnt")" ]
}

@test "a name that is taken is not replaced" {
	echo old >"$mnt/named"
	echo new >"$dir/data"
	run metaop tmpfile-link "$dir/data" "$mnt" "$mnt/named" </dev/null
	[ "$output" = $'written\nmetaop: EEXIST' ]
	[ "$(cat "$mnt/named")" = old ]
}

@test "an ordinary user makes one where he may write, and nowhere else" {
	chmod 755 "$dir"
	mkdir "$mnt/his" "$mnt/roots"
	chown 1234:5678 "$mnt/his"
	umount_rmem
	mount_rmem -o allow_other
	setpriv --reuid 1234 --regid 5678 --clear-groups "$bin/metaop" tmpfile-readback "$mnt/his" 5000
	run setpriv --reuid 1234 --regid 5678 --clear-groups "$bin/metaop" tmpfile-readback "$mnt/roots" 5000
	[ "$output" = "metaop: EACCES" ]
}

@test "an open one outlives a crash of the server, and gets its name after it" {
	random_file "$dir/data" 2
	mkfifo "$dir/go" "$dir/made"
	metaop tmpfile-link "$dir/data" "$mnt" "$mnt/named" <"$dir/go" >"$dir/made" &
	linker=$!
	exec 7>"$dir/go"
	read -r line <"$dir/made"
	[ "$line" = written ]
	crash_server 7>&-
	exec 7>&-
	wait "$linker"
	cmp "$mnt/named" "$dir/data"
	remount
	cmp "$mnt/named" "$dir/data"
}

@test "what a killed client had open is gone after its next mount" {
	before=$(inodes)
	mkfifo "$dir/go" "$dir/made"
	random_file "$dir/data" 2
	metaop tmpfile-link "$dir/data" "$mnt" "$mnt/named" <"$dir/go" >"$dir/made" 2>/dev/null &
	linker=$!
	exec 7>"$dir/go"
	read -r line <"$dir/made"
	[ "$line" = written ]
	[ "$(inodes)" -eq $((before + 1)) ]
	kill -KILL "$daemon_pid"
	exit_status "$daemon_pid" 20 || true
	daemon_pid=''
	exec 7>&-
	wait "$linker" || true
	umount -l "$mnt"
	mount_rmem
	[ -z "$(ls -A "$mnt")" ]
	until_true 20 eval '[ "$(inodes)" = "$before" ]'
}
