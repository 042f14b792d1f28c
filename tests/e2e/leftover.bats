#!/usr/bin/env bats
# leftover.bats - requests that were sent to a server which is away, and whose callers have their answer
# already. The daemon completes them when the server is back, before anything else begins, and then all
# see the result.

bats_require_minimum_version 1.5.0
load helpers
load held

setup() {
	setup_rmem
	# shellcheck disable=SC2034 # the helpers take it
	export_size=160MiB # each start reads all of it
	# The kernel's cached attributes and names stay valid for longer than a test takes.
	use_lease 600
}

teardown() {
	# A stopped process can't be ended in order.
	[ -z "$server_pid" ] || kill -CONT "$server_pid"
	teardown_rmem
}

# done_later OPERATION...: each was done after its caller had an answer. Needs a mount with debug_io.
done_later() {
	local name
	for name in "$@"; do
		grep -q " $name .* answered, given up before" "$dir/daemon.log" || return 1
	done
}

# all_connected N: each of the daemon's N threads has its channel. A mount is there as soon as the first one has.
all_connected() {
	[ "$(status_of '[.sessions[].channels[] | select(.state == "open")] | length')" -eq "$1" ]
}

@test "what a killed program has left on its way is over before anything that begins later" {
	local remover writer
	start_server
	mount_rmem -o io_threads=2,debug_io,log_level=debug
	# Either may send what the stopped server is to get.
	until_true 10 all_connected 2
	mkdir "$mnt/dir"
	echo old >"$mnt/dir/a"
	# One thread sends a request to a server that does not read it, ...
	suspend "$server_pid"
	hold_thread 0
	rm -f "$mnt/dir/a" 3>&- &
	remover=$!
	until_true 10 calling "$remover" unlink
	sync "$mnt"
	kill_server
	killed "$remover"
	release_thread
	# ... and does not see yet that the server is back when the other thread does.
	hold_thread 1
	start_server
	(echo new >"$mnt/dir/a") 3>&- &
	writer=$!
	if exit_status "$writer" 1; then
		release_thread
		die "it did not wait"
	fi
	release_thread
	exit_status "$writer" 10
	done_later unlink
	remount
	echo new | cmp - "$mnt/dir/a"
}

# ---- the kernel's cache --------------------------------------------------------------------------------

changes=()

# Makes names and attributes known to the kernel that $changes are going to change.
prepare_changes() {
	mkdir "$mnt"/{create,unlink,rmdir} "$mnt/rmdir/gone"
	touch "$mnt/unlink/gone" "$mnt/chmod"
	ln "$mnt/unlink/gone" "$mnt/other"
	[ ! -e "$mnt/create/made" ]
	before=$(stat -c '%h %a %.Z' "$mnt"/{other,chmod,create,unlink,rmdir})
}

# change NAME COMMAND...: the command makes the system call NAME; $changes has its process.
change() {
	"${@:2}" 2>"$dir/$1.fail" 3>&- &
	changes[$!]=$1
}

# Each change is sent to a server that does not read it.
send_changes() {
	local pid
	suspend "$server_pid"
	change create touch "$mnt/create/made"
	change unlink rm -f "$mnt/unlink/gone"
	change rmdir rmdir "$mnt/rmdir/gone"
	change chmod chmod 604 "$mnt/chmod"
	for pid in "${!changes[@]}"; do
		until_true 10 calling "$pid" "${changes[pid]}"
	done
}

changes_are_there() {
	[ -e "$mnt/create/made" ] && [ ! -e "$mnt/unlink/gone" ] && [ ! -e "$mnt/rmdir/gone" ] &&
		[ "$(stat -c %h "$mnt/other" "$mnt/rmdir" | xargs)" = '1 2' ] &&
		[ "$(stat -c %a "$mnt/chmod")" -eq 604 ] || return 1
	diff <(echo "$before") <(stat -c '%h %a %.Z' "$mnt"/{other,chmod,create,unlink,rmdir}) \
		>"$dir/changed.log" || true
	[ "$(grep -c '^>' "$dir/changed.log")" -eq 5 ]
}

# The daemon notifies the kernel of one change after the other.
changes_are_seen() {
	until_true 20 done_later create unlink rmdir setattr
	until_true 10 changes_are_there || {
		cat "$dir/changed.log"
		false
	}
}

@test "what a killed program has left on its way is seen as soon as it was done" {
	start_server
	mount_rmem -o io_threads=1,debug_io,log_level=debug
	prepare_changes
	send_changes
	sync "$mnt" # returns after they were sent
	kill_server
	killed "${!changes[@]}"
	start_server
	changes_are_seen
}

@test "soft: what failed and was done after all is seen as soon as it was" {
	local pid
	start_server
	mount_rmem -o soft,timeo=5,peer_timeout=5,connect_timeout=5,io_threads=1,debug_io,log_level=debug
	prepare_changes
	send_changes
	for pid in "${!changes[@]}"; do
		exit_status "$pid" 20 || [ $? -eq 1 ]
	done
	[ "$(grep -l 'Input/output error' "$dir"/*.fail | wc -l)" -eq 4 ]
	kill -CONT "$server_pid"
	changes_are_seen
}

# dies_with COMMAND...: the server dies in the middle of the command.
dies_with() {
	local changer
	"$@" 3>&- &
	changer=$!
	expect_death name.changed
	killed $changer
}

# bats test_tags=long
@test "each operation on names that a killed program has left is seen as soon as it was done" {
	local name
	start_server
	mount_rmem -o io_threads=1,debug_io,log_level=debug
	mkdir "$mnt"/{mkdir,mknod,symlink,link,rename}
	touch "$mnt/file" "$mnt/rename/old"
	for name in mkdir mknod symlink link rename; do
		[ ! -e "$mnt/$name/made" ]
	done
	kill_server
	# Each server completes the request that the one before has left, then dies at a new one.
	spawn_armed name.changed
	dies_with mkdir "$mnt/mkdir/made"
	spawn_armed name.changed:2
	dies_with mkfifo "$mnt/mknod/made"
	spawn_armed name.changed:2
	dies_with ln -s target "$mnt/symlink/made"
	spawn_armed name.changed:2
	dies_with ln "$mnt/file" "$mnt/link/made"
	spawn_armed name.changed:2
	dies_with mv "$mnt/rename/old" "$mnt/rename/made"
	start_server
	until_true 20 done_later mkdir mknod symlink link rename
	for name in mkdir mknod symlink link rename; do
		until_true 5 test -e "$mnt/$name/made" -o -L "$mnt/$name/made"
	done
	until_true 5 test ! -e "$mnt/rename/old"
	until_true 5 eval '[ "$(stat -c %h "$mnt/file" "$mnt/mkdir" | xargs)" = "2 3" ]'
}

# ---- the end -------------------------------------------------------------------------------------

@test "SIGTERM ends the daemon while it tells of a directory whose lock waits for an answer" {
	local remover maker
	start_server
	mount_rmem -o io_threads=1,peer_timeout=5,debug_io,log_level=debug
	mkdir "$mnt/dir"
	touch "$mnt/dir/gone"
	mkfifo "$dir/go"
	(cd "$mnt/dir" && read -r <"$dir/go" && : >made) 3>&- 2>"$dir/maker.fail" &
	maker=$!
	suspend "$server_pid"
	rm -f "$mnt/dir/gone" 3>&- &
	remover=$!
	until_true 10 calling "$remover" unlink
	killed "$remover"
	# The held thread stops reading requests before it could see the create below, ...
	hold_thread 0
	kill -TERM "$daemon_pid"
	until_true 5 grep -q 'signal 15: unmounting' "$dir/daemon.log"
	echo >"$dir/go"
	until_true 5 calling "$maker" create
	pause 0.3
	# ... and the request on its way is completed after that.
	kill -CONT "$server_pid"
	release_thread
	if ! exit_status "$daemon_pid" 10; then
		kill -KILL "$maker" # or no signal ends the daemon
		die "the daemon waits for the directory"
	fi
	daemon_pid=''
	done_later unlink
	run ! exit_status "$maker" 5
}

@test "SIGKILL ends the daemon while it tells of a directory whose lock waits for an answer" {
	local maker
	start_server
	mount_rmem -o io_threads=1,debug_io,log_level=debug
	hold_directory "$daemon_pid" "$dir/maker.fail"
	killed "$daemon_pid" || {
		umount -f "$mnt"
		die "the daemon waits for the directory"
	}
	daemon_pid=''
	run ! exit_status "$maker" 5
}
