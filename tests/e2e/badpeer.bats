#!/usr/bin/env bats
# badpeer.bats - peers that are no rmemfs programs: they may lose their own data, and no other
# client notices.
#
# bats file_tags=sockets

load helpers

setup() {
	setup_rmem
	if [ "$transport" = tcp ]; then
		address=tcp:127.0.0.1:$port source=127.0.0.1:/default options=$(mount_options)
	else
		address=shm:$socket source=$socket:/default options=transport=shm
	fi
	version=$(sed -n 's/^enum { RMEMFS_WIRE_VERSION = \([0-9]*\) };/\1/p' \
		"$repository/common/rpc/wire_version.h")
}

teardown() {
	teardown_rmem
}

# bad ARGUMENT...: runs badpeer in the background as $bad_pid; its output is in $dir/bad.log.
bad() {
	: >"$dir/bad.log" # words of the one before are not to be taken for it
	badpeer "$@" >"$dir/bad.log" 2>&1 3>&- &
	bad_pid=$!
	echo $bad_pid >"$dir/bad.pid"
}

bad_is_ready() {
	! alive "$bad_pid" || grep -q ready "$dir/bad.log"
}

# bad_ends: badpeer must succeed within a minute.
bad_ends() {
	exit_status "$bad_pid" 60 || {
		cat "$dir/bad.log"
		return 1
	}
}

descriptors() {
	find "/proc/$server_pid/fd" -mindepth 1 | wc -l
}

descriptors_at_most() {
	[ "$(descriptors)" -le "$1" ]
}

resident_kib() {
	awk '/^VmRSS:/ { print $2 }' "/proc/$server_pid/status"
}

# told WORDS: prints how many lines with these words the server has logged or kept back.
told() {
	awk -v words="$1" '
		/ lines like the next were kept back$/ { kept = $(NF - 7); next }
		index($0, words) { n += 1 + kept }
		{ kept = 0 }
		END { print n + 0 }' "$dir/server.log"
}

# copies N: N times copies a file to the mount, drops its pages from the kernel's cache, and
# compares the copy.
copies() {
	local i
	for ((i = 0; i < $1; i++)); do
		cp "$dir/data" "$mnt/copy.$i"
		fsop uncache "$mnt"
		cmp "$dir/data" "$mnt/copy.$i"
		rm "$mnt/copy.$i"
	done
}

# refused [SECONDS]: a mount with that connect_timeout fails by itself, with one line: $output.
refused() {
	run timeout 30 rmemfs -c /dev/null -o "$options,connect_timeout=${1:-1}" "$source" "$mnt" 3>&-
	echo "$output"
	output=$(without_waiting <<<"$output")
	[ "$status" -ne 0 ]
	[ "$status" -lt 124 ]
	[ "$(wc -l <<<"$output")" -eq 1 ]
}

# ---- a crowd -------------------------------------------------------------------------------------

@test "a crowd of silent connections: clients mount and work, and all of the crowd is closed" {
	crowd=$(mib 10000 2000)
	start_server
	random_file "$dir/data" 8
	before=$(descriptors) resident=$(resident_kib)
	bad silent "$address" "$crowd"
	mount_rmem
	copies 3
	until_true 60 bad_is_ready
	remount
	copies 3
	descriptors_at_most $((before + 1024 * 2 + 100))
	# A sanitizer keeps memory that was freed.
	[ "${RMEMFS_TEST_SANITIZED:-0}" = 1 ] || [ $(($(resident_kib) - resident)) -lt 65536 ]
	bad_ends
	grep -q "^closed $crowd$" "$dir/bad.log"
	[ "$(grep -c "connection closed: " "$dir/server.log")" -lt 100 ]
	copies 1
	until_true 10 descriptors_at_most $((before + 50))
	remount
	copies 1
}

@test "a crowd while clients mount: none is turned away" {
	start_server
	for _ in 1 2 3; do
		bad silent "$address" "$(mib 4000 1000)"
		mount_rmem
		umount_rmem
		mount_rmem
		umount_rmem
		kill "$bad_pid"
		wait "$bad_pid" || true
	done
}

@test "a flood of bad connections makes few lines, which count the others" {
	start_server
	words="refused: it does not speak our protocol" sent=500
	badpeer garbage "$address" 1000 1
	all_are_counted() {
		badpeer garbage "$address" 2 1
		sent=$((sent + 1))
		[ "$(told "$words")" -eq $sent ]
	}
	until_true 10 all_are_counted
	grep "$words" "$dir/server.log"
	[ "$(wc -l <"$dir/server.log")" -lt 120 ]
	case $address in
	tcp:*) grep -q "warning: tcp 127.0.0.1:[0-9]*: $words" "$dir/server.log" ;;
	shm:*) grep -q "warning: shm pid [0-9]*: $words" "$dir/server.log" ;;
	esac
	grep -q "channel closed: a malformed message" "$dir/server.log"
	grep -q "channel closed: what it sent is not our protocol" "$dir/server.log"
}

# ---- garbage -------------------------------------------------------------------------------------

@test "garbage on new connections: another session's data is what was written" {
	start_server
	mount_rmem
	random_file "$dir/data" 16
	bad garbage "$address" "$(mib 3000 500)" 2
	while alive "$bad_pid"; do
		copies 1
	done
	bad_ends
	copies 1
	remount
	copies 1
}

@test "broken rules within a session: it is closed, and another session's data is what was written" {
	local began=$SECONDS
	start_server --export other:64MiB
	mount_rmem
	random_file "$dir/data" 16
	bad session "$address" other "$(mib 800 160)" 3
	while alive "$bad_pid"; do
		copies 1
	done
	bad_ends
	copies 1
	for reason in "a slot of another channel" "a sequence number of the past" \
		"two requests in one slot"; do
		grep "at export 'other' closed: $reason" "$dir/server.log"
	done
	# Each kind of line comes once a second at most, behind a burst. So a slow machine makes more of them.
	[ "$(wc -l <"$dir/server.log")" -lt $((380 + 6 * (SECONDS - began))) ]
	remount
	copies 1
	umount_rmem
	mount_source() { echo "${source%default}other"; }
	mount_options() { echo "$options"; }
	mount_rmem
	copies 1
}

# ---- versions ------------------------------------------------------------------------------------

@test "a client of another version is refused, and the log names both versions" {
	start_server
	run badpeer hello "$address" 99
	echo "$output"
	[ "$output" = "version $version status -71" ]
	grep "refused: it speaks version 99 of the protocol, this server $version: upgrade this server first" "$dir/server.log"
	run badpeer hello "$address" "$version"
	[ "$output" = "version $version status 0" ]
}

@test "a server of another version is refused, and the client names both versions" {
	bad serve "$address" 99
	until_true 10 bad_is_ready
	refused 3600
	[[ $output == *"${address#*:}: it speaks versions 98 and 99 of the protocol, this client $version: upgrade this client" ]]
	kill "$bad_pid"
	wait "$bad_pid" || true
}

# One thread of the server sends all such data. It sends what a socket takes, then goes on to the
# next.
# bats test_tags=only:tcp
@test "a peer that wants gigabytes at once does not hold up the others" {
	start_server
	mount_rmem -o share
	bad greedy "$address" default
	until_true 10 bad_is_ready
	random_file "$dir/data" 1
	cp "$dir/data" "$mnt/copy"
	cmp "$dir/data" "$mnt/copy"
	alive "$bad_pid"
	run cat "$dir/bad.log"
	[ "$output" = ready ]
	kill "$bad_pid"
	wait "$bad_pid" || true
}

@test "what closes every connection is not taken for a server of ours" {
	bad serve "$address" 0
	until_true 10 bad_is_ready
	refused
	[ "$output" = "rmemfs: the program at $transport ${address#*:} closes the connection: is it an rmemfs-server?" ]
	run rmemfsctl status "$address"
	[ "$status" -eq 1 ]
	[ "$output" = "rmemfsctl: $address: the program there closes the connection: is it an rmemfs-server?" ]
	kill "$bad_pid"
	wait "$bad_pid" || true
}

@test "a server that talks nonsense: the mount fails in one line" {
	bad serve "$address" "$version"
	until_true 10 bad_is_ready
	for _ in 1 2 3 4 5 6 7 8; do
		refused
		[[ $output == *"${address#*:}"* ]]
	done
	kill "$bad_pid"
	wait "$bad_pid" || true
}

# ---- texts ---------------------------------------------------------------------------------------

# Bytes that a terminal acts upon or that turn the direction of writing, and what our programs print
# instead.
nasty=$'a\nb\e[2J\e]0;t\a\xc2\x9b31m\xe2\x80\xae\xe2\x81\xa6\x7f\xe9z'
shown='a?b?[2J?]0;t??31m????z'

# is_plain FILE...: the files have no such bytes.
is_plain() {
	! LC_ALL=C grep -P '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]' "$@"
}

end_bad() {
	kill "$bad_pid"
	wait "$bad_pid" || true
}

@test "a client's name: nothing that a terminal acts upon is printed or logged of it" {
	start_server
	bad name "$address" default "host:/mnt$nasty"
	until_true 10 bad_is_ready
	rmemfsctl status "$socket" >"$dir/status"
	is_plain "$dir/status"
	grep -F ": host:/mnt$shown at export default, active" "$dir/status"
	rmemfsctl status --json "$socket" >"$dir/status.json"
	is_plain "$dir/status.json"
	[ "$(jq -r '.sessions[0].client' "$dir/status.json")" = "host:/mnt$shown" ]
	refused
	[[ $output == *"export 'default' is in use by host:/mnt$shown"* ]]
	is_plain "$dir/server.log"
	end_bad
}

@test "a file's name is what it is, and nothing that a terminal acts upon is printed of it" {
	start_server
	mount_rmem -o share
	name=$'n\nb\e[2J\xc2\x9b31m\xe2\x80\xae'
	echo data >"$mnt/$name"
	[ "$(cat "$mnt"/n*)" = data ]
	rmemfsctl who default "/$name" "$socket" >"$dir/who"
	is_plain "$dir/who"
	grep -F '/n?b?[2J?31m?: inode ' "$dir/who"
	rmemfsctl who default "/$name" "$socket" --json >"$dir/who.json"
	is_plain "$dir/who.json"
	[ "$(jq -r .path "$dir/who.json")" = "/$name" ]
	if rmemfsctl who default "/none$nasty" "$socket" 2>"$dir/who"; then return 1; fi
	[ "$(wc -l <"$dir/who")" -eq 1 ]
	is_plain "$dir/who" "$dir/server.log"
	grep -F "export 'default' has no file /none$shown (from" "$dir/who"
}

@test "a server's error text: nothing that a terminal acts upon is printed of it" {
	options=${options/,key=$key_file/} # it is about the answer to ATTACH
	bad answer "$address" 13 "$nasty"
	until_true 10 bad_is_ready
	refused
	[[ $output == *": $shown" ]]
	for command in "status $address" "leases $address" "who default / $address" "snapshot default /none $address"; do
		# shellcheck disable=SC2086 # words
		run rmemfsctl $command
		[ "$status" -eq 1 ]
		[ "$output" = "rmemfsctl: $address: $shown" ]
	done
	end_bad
}

@test "a server's status: nothing that a terminal acts upon is printed of it" {
	# The text escapes some of these bytes as JSON does, and has others as they are.
	text='x\u001b[2J\n\u009b31m\u202e'$'\xc2\x9b\xe2\x81\xa6\x7f \xc3\xbc'
	same=$'x\e[2J\n\xc2\x9b31m\xe2\x80\xae\xc2\x9b\xe2\x81\xa6\x7f \xc3\xbc'
	bad answer "$address" 0 "{\"version\":\"$text\",\"memory_dir\":\"$text\",\"listen\":[\"$text\"],\"exports\":[
		{\"name\":\"$text\",\"contested\":[{\"inode\":7,\"path\":\"$text\"}]}],\"sessions\":[
		{\"holder\":\"$text\",\"client\":\"$text\",\"shared\":true,\"channels\":[{\"peer\":\"$text\"}]}]}"
	until_true 10 bad_is_ready
	plain=$'x?[2J??31m???? \xc3\xbc'
	rmemfsctl status "$address" >"$dir/out"
	is_plain "$dir/out"
	grep -F "rmemfs-server $plain, pid 0" "$dir/out"
	grep -F "listening on $plain" "$dir/out"
	grep -F "SESSION 0 of $plain: $plain at export" "$dir/out"
	rmemfsctl leases "$address" >"$dir/out"
	is_plain "$dir/out"
	[ "$(grep -cF "$plain" "$dir/out")" -eq 2 ]
	rmemfsctl status --json "$address" >"$dir/out"
	is_plain "$dir/out"
	[ "$(jq -r .sessions[0].client "$dir/out")" = "$same" ]
	[ "$(jq -r .exports[0].name "$dir/out")" = "$same" ]
	end_bad
	rm -f "$socket"
	bad answer "$address" 0 $'{"version":"\e[2J"}'
	until_true 10 bad_is_ready
	run rmemfsctl status --json "$address"
	[ "$output" = "rmemfsctl: $address: the server's answer is malformed: install the same release on both machines" ]
	end_bad
}
