#!/usr/bin/env bats
# alone_again.bats - a mount that has shared its export has it for itself again when the others have gone, with all that
# its programs have open.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts

setup() {
	setup_rmem
	use_lease 1
	mounts=() pids=()
}

teardown() {
	# Programs that read from it end, also after a failure.
	exec 5>&-
	end_programs
	end_mounts
}

# all_leases: how many files are leased, or pinned, by all mounts.
all_leases() {
	status_of '[.exports[].leases | del(.recalled, .locks) | .[]] | add'
}

# Removed files that were open do not stay.
all_have_names() {
	[ "$(find "$dir/1" | wc -l)" = "$(status_of '.exports[0].files')" ]
}

two_mounts() {
	start_server
	come 1
	come 2
	is_sharing 1
}

# other_goes: and the first one is alone.
other_goes() {
	end_mount 2
	until_true 30 is_alone 1
	[ "$(all_leases)" = 0 ]
}

needs_open_files() {
	needs_linux_6_9 "older ones keep the files that are open on a mount that is alone in their cache"
}

@test "files that others have changed while they were open here" {
	needs_open_files
	two_mounts
	for name in cut grown written gone; do head -c 8192 /dev/zero | tr '\0' "${name:0:1}" >"$dir/1/$name"; done
	exec 6<>"$dir/1/cut" 7<>"$dir/1/grown" 8<>"$dir/1/written" 9<>"$dir/1/gone"
	for fd in 6 7 8 9; do head -c 10 <&$fd >/dev/null; done
	truncate -s 100 "$dir/2/cut"
	head -c 12288 /dev/zero | tr '\0' n >>"$dir/2/grown"
	printf new | dd of="$dir/2/written" bs=1 seek=4096 conv=notrunc status=none
	rm "$dir/2/gone"
	other_goes 6>&- 7>&- 8>&- 9>&-
	# The first one sees all of that at once, and changes it further.
	[ "$(tail -c +11 <&7 | tr -d g)" = "$(head -c 12288 /dev/zero | tr '\0' n)" ]
	[ "$(stat -L -c %s /proc/self/fd/6 /proc/self/fd/7 | xargs)" = '100 20480' ]
	[ "$(tail -c +4087 <&8 | head -c 3)" = new ]
	[ "$(wc -c <&9)" = 8182 ]
	echo more >&7
	echo more >&9
	printf end | dd of=/proc/self/fd/6 bs=1 seek=200 conv=notrunc status=none
	[ "$(stat -L -c %s /proc/self/fd/6 /proc/self/fd/7 /proc/self/fd/9 | xargs)" = '203 20485 8197' ]
	exec 9>&-
	until_true 20 all_have_names
	come 2 6>&- 7>&- 8>&-
	is_sharing 1
	[ "$(tr -d '\0' <"$dir/2/cut" | tail -c 3)" = end ]
	[ "$(stat -c %s "$dir/2/cut" "$dir/2/grown" | xargs)" = '203 20485' ]
	echo last >>"$dir/2/grown"
	[ "$(tail -n 1 <&7)" = last ]
	exec 6>&- 7>&- 8>&-
	nobody_was_late
}

# bats test_tags=once
@test "what programs have read into the cache stays as it is, to the last byte" {
	local size
	needs_open_files
	start_server
	come 1
	for size in 1 5 4096 4097 8192; do
		head -c $size /dev/zero | tr '\0' x >"$dir/1/$size"
	done
	exec 6<"$dir/1/1" 7<"$dir/1/5" 8<"$dir/1/4096" 9<"$dir/1/8192"
	for fd in 6 7 8 9; do [ "$(head -c 1 <&$fd)" = x ]; done
	come 2 6>&- 7>&- 8>&- 9>&-
	other_goes 6>&- 7>&- 8>&- 9>&-
	for size in 1 5 4096 4097 8192; do
		[ "$(tr -d x <"$dir/1/$size" | wc -c)" = 0 ]
		[ "$(stat -c %s "$dir/1/$size")" = $size ]
	done
	[ "$(wc -c <&9)" = 8191 ]
	exec 6>&- 7>&- 8>&- 9>&-
}

# bats test_tags=once
# begin_to_map: a program has the file open, and maps it when a line comes by descriptor 5.
begin_to_map() {
	by_orders fsop map-later "$dir/1/file" 9000
	until_true 10 grep -q open "$dir/answers"
}

# is_mapped: to its end, and only the byte that is stored there changes.
is_mapped() {
	echo map >&5
	exec 5>&-
	wait "${pids[0]}"
	pids=()
	diff <(printf '%s\n' open b) "$dir/answers"
	[ "$(tail -c +101 "$dir/1/file" | tr -d b)" = s ]
	[ "$(stat -c %s "$dir/1/file")" = 10000 ]
}

@test "a file is mapped to the end that others have given it before" {
	needs_open_files
	two_mounts
	printf 'a%.0s' {1..100} >"$dir/1/file"
	begin_to_map
	head -c 9900 /dev/zero | tr '\0' b >>"$dir/2/file"
	other_goes 5>&-
	is_mapped
}

# read_through_cache: by descriptor 6 a program reads the beginning of a file that others make longer.
read_through_cache() {
	needs_open_files
	start_server
	come 1
	printf 'a%.0s' {1..100} >"$dir/1/file"
	exec 6<"$dir/1/file"
	head -c 10 <&6 >/dev/null
	begin_to_map
	come 2 5>&- 6>&-
	is_sharing 1
	head -c 9900 /dev/zero | tr '\0' b >>"$dir/2/file"
	head -c 10 <&6 >/dev/null
}

@test "a file is mapped to the end that others have given it before it was read through the cache" {
	read_through_cache
	exec 6>&-
	other_goes 5>&-
	is_mapped
}

@test "a file is mapped to the end that others have given it while it is open to be read through the cache" {
	read_through_cache
	other_goes 5>&- 6>&-
	is_mapped 6>&-
	exec 6>&-
}

# appends FILE: a program appends each line that comes by descriptor 5, and sets O_APPEND after its open.
appends() {
	by_orders fsop append-by-fcntl "$1"
}

append() {
	local before
	before=$(wc -l <"$dir/answers")
	echo "$1" >&5
	until_true 20 eval '[ "$(wc -l <"$dir/answers")" -gt '"$before"' ]'
}

# bats test_tags=once
@test "appends go to the end, which others have moved" {
	needs_open_files
	two_mounts
	echo first >"$dir/1/log"
	exec 6>>"$dir/1/log"
	appends "$dir/1/log"
	append second
	echo third >&6
	truncate -s 6 "$dir/2/log"
	echo fourth >>"$dir/2/log"
	other_goes 5>&- 6>&-
	append fifth
	echo sixth >&6
	echo seventh >>"$dir/1/log"
	append eighth
	exec 5>&- 6>&-
	diff <(printf '%s\n' first fourth fifth sixth seventh eighth) "$dir/1/log"
	remount_number 1
	diff <(printf '%s\n' first fourth fifth sixth seventh eighth) "$dir/1/log"
}

remount_number() {
	pids=()
	end_mount "$1"
	come "$1"
}

# bats test_tags=once
@test "what has no name stays while it is open, in use, or about to get one" {
	local n
	needs_open_files
	two_mounts
	mkdir "$dir/1/folder"
	echo kept >"$dir/1/kept"
	exec 6<>"$dir/1/kept"
	rm "$dir/1/kept"
	by_orders fsop link-later "$dir/1" "$dir/1/linked"
	(cd "$dir/1/folder" && rmdir "$dir/1/folder" && touch "$dir/in" && while [ ! -e "$dir/enough" ]; do sleep 0.1; done && [ -d . ]) \
		3>&- 5>&- 6>&- &
	pids+=($!)
	until_true 20 test -e "$dir/in"
	other_goes 5>&- 6>&-
	[ "$(status_of '.exports[0].files')" -eq 4 ]
	# The server is started again: it keeps them still.
	crash_server 5>&- 6>&-
	[ "$(cat <&6)" = kept ]
	echo link >&5
	wait "${pids[0]}"
	touch "$dir/enough"
	wait "${pids[1]}"
	pids=()
	[ "$(cat "$dir/1/linked")" = named ]
	exec 5>&- 6>&-
	until_true 20 all_have_names
}

# bats test_tags=once
@test "a file that was mapped while it was shared keeps the mount by its leases" {
	needs_open_files
	two_mounts
	printf 'a%.0s' {1..8192} >"$dir/1/mapped"
	by_orders fsop map-and-answer "$dir/1/mapped"
	echo x >&5
	until_true 20 test -s "$dir/answers"
	end_mount 2 5>&-
	# Three times the lease time, and a try.
	sleep 8
	is_sharing 1
	exec 5>&-
	wait "${pids[0]}"
	pids=()
	until_true 30 is_alone 1
	[ "$(head -c 2 "$dir/1/mapped")" = ax ]
}

# bats test_tags=nightly
@test "when the other one has gone, it is alone again, and shares again later" {
	use_lease 2
	start_server
	come 1
	come 2
	mkdir "$dir/1/folder"
	echo one >"$dir/1/folder/file"
	cat "$dir/2/folder/file"
	stat "$dir"/1/folder/* >/dev/null
	touch -a -d @1000000000 "$dir/2/folder/file"
	chown 12345 "$dir/2/folder/file"
	echo log >"$dir/1/log"
	end_mount 2
	until_true 30 is_alone 1
	[ "$(all_leases)" = 0 ]
	[ "$(stat -c %X:%u "$dir/1/folder/file")" = 1000000000:12345 ]
	[ "$(cat "$dir/1/folder/file")" = one ]
	echo two >"$dir/1/folder/file"
	echo more >>"$dir/1/log"
	[ "$(all_leases)" = 0 ]
	come 2
	is_sharing 1
	[ "$(cat "$dir/2/folder/file")" = two ]
	[ "$(cat "$dir/2/log")" = $'log\nmore' ]
	echo three >"$dir/2/folder/file"
	[ "$(cat "$dir/1/folder/file")" = three ]
	coherence --seconds 3 "$dir/1" "$dir/2"
	nobody_was_late
}

# bats test_tags=nightly
@test "programs go on while mounts come and go, each time with a conversion both ways" {
	local n
	use_lease 1
	start_server
	come 1
	mkdir "$dir/1/a"
	for n in 1 2 3; do
		come 2
		coherence --seconds 2 "$dir/1" "$dir/2"
		end_mount 2
		until_true 30 is_alone 1
		coherence --seconds 2 "$dir/1" "$dir/1/a/.."
	done
	[ "$(grep -c 'is alone, and needs no lease' "$dir/server.log")" = 3 ]
	nobody_was_late
}

# bats test_tags=nightly
@test "a server that is killed while a mount becomes alone again goes on with it" {
	use_lease 2
	start_server
	come 1
	come 2
	echo here >"$dir/1/file"
	kill_server
	RMEMFS_CRASH_AT=convert.stored spawn_server
	until_true 30 test -e "$dir/2/file"
	end_mount 2
	exit_status "$server_pid" 60 || [ $? -eq 137 ]
	server_pid=''
	start_server
	until_true 30 is_alone 1
	[ "$(cat "$dir/1/file")" = here ]
	echo more >>"$dir/1/file"
	come 2
	[ "$(cat "$dir/2/file")" = $'here\nmore' ]
	is_sharing 1
}
