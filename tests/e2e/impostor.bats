#!/usr/bin/env bats
# impostor.bats - another user's program in the place of a server that is down: a mount with a key does not
# believe it, waits, and goes on when its server is back.
#
# bats file_tags=only:tcp

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers

setup() {
	setup_rmem
	address=tcp:127.0.0.1:$port
	impostor_pid=''
	chmod 755 "$dir"
	start_server
	mount_rmem
	echo data >"$mnt/file"
	fsop uncache "$mnt"
	session=$(status_of '.sessions[0].id')
}

teardown() {
	teardown_rmem
}

impostor_is_there() {
	! alive "$impostor_pid" || [ -n "$(ss -Hltn "sport = :$port")" ]
}

# impostor COMMAND...: user 65534 takes the place of the server, which was killed.
impostor() {
	kill_server
	"${nobody[@]}" "$@" >"$dir/impostor.log" 2>&1 3>&- &
	impostor_pid=$!
	echo $impostor_pid >"$dir/impostor.pid"
	until_true 10 impostor_is_there
	alive $impostor_pid || die "$(cat "$dir/impostor.log")"
	[ "$(awk '/^Uid:/ { print $2 }' "/proc/$impostor_pid/status")" = 65534 ]
}

# impostor_server OPTION...: a server of ours, with an export of the same name.
impostor_server() {
	mkdir "$memory.other"
	chown 65534 "$memory.other"
	impostor rmemfs-server -c /dev/null --memory-dir "$memory.other/m" --export default:64MiB \
		--listen "$address" --listen "shm:$memory.other/sock" "$@"
}

end_impostor() {
	kill "$impostor_pid"
	wait "$impostor_pid" || true
	rm -rf "$memory.other"
}

# is_not_believed TEXT: the mount says so, and waits; another one fails with it, in one line.
is_not_believed() {
	cat "$mnt/file" >"$dir/read" 3>&- &
	reader=$!
	until_true 20 grep -qF "$1" "$dir/daemon.log"
	mkdir "$dir/second"
	run timeout 30 rmemfs -c /dev/null -o "$(mount_options),connect_timeout=2" "$(mount_source)" \
		"$dir/second" 3>&-
	echo "$output"
	output=$(without_waiting <<<"$output")
	[ "$status" -ne 0 ]
	[ "$status" -lt 124 ]
	[ "$(wc -l <<<"$output")" -eq 1 ]
	[[ $output == *"$1"* ]]
	if mountpoint -q "$dir/second"; then return 1; fi
	alive $reader
	[ ! -s "$dir/read" ]
}

# The true server comes back: nothing is lost.
goes_on() {
	end_impostor
	start_server
	exit_status $reader 20
	[ "$(cat "$dir/read")" = data ]
	echo more >>"$mnt/file"
	[ "$(status_of '.sessions[0].id')" = "$session" ]
	if grep "session lost" "$dir/daemon.log"; then return 1; fi
}

@test "a server that has another key" {
	rmemfsctl keygen test "$dir/other.key" 2>/dev/null
	chown 65534 "$dir/other.key"
	impostor_server --key "$dir/other.key"
	is_not_believed " does not accept key $(cut -d : -f 2 "$key_file") (fingerprint "
	goes_on
}

@test "a server that lets in anybody" {
	impostor_server --insecure
	is_not_believed " does not accept key $(cut -d : -f 2 "$key_file") (fingerprint "
	goes_on
	grep -c session "$dir/impostor.log" || true
	if grep "session .* begins" "$dir/impostor.log"; then return 1; fi
}

@test "a server that lets in anybody: a mount without a key takes its word" {
	umount_rmem
	impostor_server --insecure
	without_key
	mount_rmem
	grep "session .* begins" "$dir/impostor.log"
	# Nothing there becomes a program of root or a device.
	[[ ,$(findmnt -n -o OPTIONS "$mnt"), == *,nosuid,* ]]
	[[ ,$(findmnt -n -o OPTIONS "$mnt"), == *,nodev,* ]]
	umount_rmem
	end_impostor
}

@test "a program that refuses each key" {
	impostor badpeer answer "$address" 13 'not accepted'
	is_not_believed " does not accept key $(cut -d : -f 2 "$key_file") (fingerprint "
	goes_on
}

@test "a program that says that the session has ended" {
	impostor badpeer answer "$address" 43 'session 1 has ended'
	is_not_believed " does not accept key $(cut -d : -f 2 "$key_file") (fingerprint "
	goes_on
}
