#!/usr/bin/env bats
# attributes.bats - mode, owners and times that are set while a file is open for writing. The daemon
# sends them to the server with the data. All see them at once, and they survive whenever the data
# does.

load helpers

setup() {
	setup_rmem
	start_server
	mount_rmem
	old='2001-02-03 04:05:06.123456789'
}

teardown() {
	[ -z "${fd:-}" ] || exec {fd}>&-
	teardown_rmem
}

# set_all FILE: sets mode, owners and times. With -c touch does not open the file, and so not close
# it.
set_all() {
	chown 41001:41002 "$1"
	chmod 2750 "$1"
	TZ=UTC touch -c -d "$old" "$1"
}

is_set() {
	local file
	for file in "$@"; do
		[ "$(TZ=UTC stat -L -c '%a %u %g %x %y' "$file")" = "2750 41001 41002 $old +0000 $old +0000" ] ||
			die "$file: $(stat -L "$file")"
	done
}

@test "what is set of an open file is seen by every name, and stays when it is closed" {
	exec {fd}>"$mnt/file"
	ln "$mnt/file" "$mnt/second"
	head -c 10000 /dev/urandom | tee "$dir/want" >&$fd
	set_all /proc/self/fd/$fd
	is_set /proc/self/fd/$fd "$mnt/file" "$mnt/second"
	exec {fd}>&-
	is_set "$mnt/file"
	holds_everywhere is_set "$mnt/file" "$mnt/second"
	cmp "$mnt/file" "$dir/want"
}

@test "the server knows it when the file is closed, or synced" {
	exec {fd}>"$mnt/synced" {other}>"$mnt/closed"
	echo data | tee /proc/self/fd/$fd >&$other
	set_all /proc/self/fd/$fd
	set_all /proc/self/fd/$other
	exec {other}>&-
	sync "$mnt/synced"
	kill_daemon
	exec {fd}>&-
	mount_rmem
	is_set "$mnt/synced" "$mnt/closed"
	[ "$(cat "$mnt/synced" "$mnt/closed")" = $'data\ndata' ]
}

@test "unpacking leaves the archive's modes, owners and times" {
	make_tree "$dir/tree"
	find "$dir/tree" -type f -exec chown 41001:41002 {} + -exec chmod 4751 {} +
	tar -C "$dir/tree" --format=posix -cf "$dir/tree.tar" .
	mkdir "$mnt/tree"
	tar -C "$mnt/tree" --same-owner -xpf "$dir/tree.tar"
	same_tree "$dir/tree" "$mnt/tree"
	kill_daemon
	use_lease 1 # after a restart the server can't see that the daemon is dead
	crash_server
	mount_rmem
	same_tree "$dir/tree" "$mnt/tree"
}

@test "an mtime that was set stays until the next write" {
	for cache in shared none exclusive; do
		remount -o cache=$cache
		exec {fd}>"$mnt/file.$cache"
		echo first >&$fd
		TZ=UTC touch -c -d "$old" /proc/self/fd/$fd
		sync "$mnt/file.$cache"
		[ "$(TZ=UTC stat -c %y "$mnt/file.$cache")" = "$old +0000" ]
		echo second >&$fd
		[ "$(stat -c %Y "$mnt/file.$cache")" -gt 1700000000 ]
		TZ=UTC touch -c -d "$old" "$mnt/file.$cache"
		exec {fd}>&-
		[ "$(TZ=UTC stat -c '%s %y' "$mnt/file.$cache")" = "13 $old +0000" ]
		remount
		[ "$(TZ=UTC stat -c '%s %y' "$mnt/file.$cache")" = "13 $old +0000" ]
	done
}

# acl FILE: prints the entries of the list that the mode does not hold.
acl() {
	getfacl --no-effective --omit-header --absolute-names --numeric "$1" | grep -E '^(user:.+:|mask)' | tr '\n' ' '
}

mode_and_acl() {
	echo "$(stat -L -c %a "$1") $(acl "$1")"
}

@test "modes and access control lists of an open file agree" {
	exec {fd}>"$mnt/file"
	echo data >&$fd
	chmod 640 /proc/self/fd/$fd
	setfacl -m u:41001:rwx,m::r-x "$mnt/file"
	[ "$(mode_and_acl "$mnt/file")" = "650 user:41001:rwx mask::r-x " ]
	chmod 620 /proc/self/fd/$fd
	[ "$(mode_and_acl "$mnt/file")" = "620 user:41001:rwx mask::-w- " ]
	setfacl -b "$mnt/file"
	chmod 666 "$mnt/file"
	exec {fd}>&-
	[ "$(mode_and_acl "$mnt/file")" = "666 " ]
	remount
	[ "$(mode_and_acl "$mnt/file")" = "666 " ]
}

@test "a write takes away the set-user-id that an open file was given" {
	chmod 755 "$dir"
	chmod 1777 "$mnt"
	exec {fd}>"$mnt/file"
	chmod 6777 /proc/self/fd/$fd
	[ "$(stat -c %a "$mnt/file")" = 6777 ]
	setpriv --reuid=41001 --regid=41001 --clear-groups sh -c "echo data >>'$mnt/file'"
	[ "$(stat -c %a "$mnt/file")" = 777 ]
	exec {fd}>&-
	remount
	[ "$(stat -c %a "$mnt/file")" = 777 ]
}

@test "an open file's new owner is refused what his quota has no room for" {
	umount_rmem
	stop_server
	server_conf=$dir/server.conf
	echo "exports = ( { name = \"default\"; size = \"$export_size\";" \
		'quotas = ( { user = 41001; size = "64KiB"; } ); } )' >"$server_conf"
	start_server
	mount_rmem
	exec {fd}>"$mnt/file"
	head -c 100000 /dev/zero >&$fd
	run chown 41001 /proc/self/fd/$fd
	[ "$status" -ne 0 ]
	[[ $output == *"quota exceeded"* ]]
	exec {fd}>&-
	[ "$(stat -c %u "$mnt/file")" = 0 ]
}

@test "what was set while the server is away is there when it is back" {
	# The kernel's cached attributes must stay valid while the server is away.
	umount_rmem
	stop_server
	use_lease 600
	start_server
	mount_rmem
	mkfifo "$dir/go"
	{
		echo data
		read -r _ <"$dir/go"
	} >"$mnt/file" 3>&- &
	writer=$!
	until_true 10 test -s "$mnt/file"
	kill_server
	set_all "$mnt/file"
	is_set "$mnt/file"
	# The writer's close waits for the server.
	echo >"$dir/go"
	start_server
	wait $writer
	holds_everywhere is_set "$mnt/file"
}

# as UID:GID COMMAND...
as() {
	setpriv --reuid="${1%:*}" --regid="${1#*:}" --clear-groups \
		--inh-caps=+dac_read_search --ambient-caps=+dac_read_search "${@:2}"
}

# outcome FILE MODE USER HOW: prints what USER is told, and what became of a file of 41001.
outcome() {
	rm -f "$1"
	: >"$1"
	chown 41001:41001 "$1"
	chmod "$2" "$1"
	as "$3" fsop "$4" "$1" 2>&1 || true
	stat -c '%a %u %g' "$1"
}

# The kernel does not check the owner here, and may send the same request before a write. So another
# user's call may succeed, but it must change nothing.
@test "chown of neither user nor group takes set-user-id away, as tmpfs does" {
	local mode user how here there modes
	mkdir -m 755 "$memory/plain"
	for modes in cache=exclusive cache=none share; do
		remount -o "allow_other,$modes"
		for mode in 755 4755 2755 6711 6644; do
			for user in 0:0 41001:41001 41001:41002 41002:41001; do
				for how in chown-nothing fchown-nothing; do
					here=$(outcome "$mnt/file" $mode $user $how)
					there=$(outcome "$memory/plain/file" $mode $user $how)
					[ "${here#fsop: EPERM$'\n'}" = "${there#fsop: EPERM$'\n'}" ] ||
						die "$modes: $mode, $how by $user: $here, not $there"
				done
			done
		done
	done
	rm -r "$memory/plain"
}
