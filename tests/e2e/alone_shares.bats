#!/usr/bin/env bats
# alone_shares.bats - a mount that has its export for itself shares it from the moment on at which
# another one comes, with all that its programs are at.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts

setup() {
	setup_rmem
	mounts=() pids=()
}

teardown() {
	end_programs
	end_mounts
}

# all_leases: how many files are leased, or pinned, by all mounts.
all_leases() {
	status_of '[.exports[].leases | del(.recalled) | .[]] | add'
}

# goes_on PROGRAM...: runs it until the test says "enough"; then it must have succeeded.
goes_on() {
	"$@" >"$dir/goes_on.log" 2>&1 3>&- &
	pids+=($!)
}

ended_well() {
	touch "$dir/enough"
	exit_status "${pids[0]}" 120 || die "the program failed: $(cat "$dir/goes_on.log")"
	pids=()
}

@test "a second mount is let in, and each sees at once what the other one does" {
	start_server
	come 1
	mkdir "$dir/1/folder"
	echo one >"$dir/1/folder/file"
	cat "$dir/1/folder/file" >/dev/null
	ls -l "$dir/1/folder" "$dir/1" >/dev/null
	is_alone 1
	come 2
	is_sharing 1
	is_sharing 2
	mv "$dir/2/folder/file" "$dir/2/folder/other"
	echo two >"$dir/2/folder/file"
	[ "$(cat "$dir/1/folder/file")" = two ]
	[ "$(cat "$dir/1/folder/other")" = one ]
	rm "$dir/1/folder/other"
	[ ! -e "$dir/2/folder/other" ]
	nobody_was_late
}

# bats test_tags=once
@test "alone it has no lease, and each lookup is answered by the kernel for a while" {
	local before
	start_server
	come 1
	for n in {1..50}; do echo "$n" >"$dir/1/$n"; done
	[ "$(all_leases)" = 0 ]
	stat "$dir"/1/* >/dev/null
	before=$(status_of '.sessions[0].requests')
	stat "$dir"/1/* >/dev/null
	[ $(($(status_of '.sessions[0].requests') - before)) -lt 10 ]
}

# bytes_read: how many bytes the kernel has asked mount 1 for.
bytes_read() {
	rmemfsctl status --json "$dir/1" | jq .operations.read.bytes
}

# bats test_tags=once
@test "alone it keeps what was read in the kernel's cache, also while others write the file there" {
	local before
	start_server
	come 1
	head -c 1M /dev/urandom >"$dir/bytes"
	cp "$dir/bytes" "$dir/1/file"
	cmp "$dir/bytes" "$dir/1/file"
	before=$(bytes_read)
	for _ in {1..20}; do cmp "$dir/bytes" "$dir/1/file"; done
	# It may give pages up at any time, but not most of them.
	[ $(($(bytes_read) - before)) -lt $((5 << 20)) ]
	exec 6<"$dir/1/file"
	head -c 8 <&6 >/dev/null
	for n in {1..50}; do
		printf '%08d' "$n" | dd of="$dir/1/file" bs=8 seek=$((n * 20)) conv=notrunc status=none
		[ "$(dd if="$dir/1/file" bs=8 skip=$((n * 20)) count=1 status=none)" = "$(printf '%08d' "$n")" ]
	done
	exec 6<&-
}

# bats test_tags=once
@test "files that were open before are read as they are, whatever the other mount makes of them" {
	start_server
	come 1
	old_reader read "$dir/1/file" "$dir/2/file" 4 >"$dir/said" 2>&1 3>&- &
	pids=($!)
	until_true 20 grep -q open "$dir/said"
	come 2
	exit_status "${pids[0]}" 60 || die "$(cat "$dir/said")"
	pids=()
	read -r nreads _ <<<"$(tail -n 1 "$dir/said")"
	[ "$nreads" -gt 0 ]
	nobody_was_late
}

# works_in FOLDER: a program has it as its working directory, and reads there until the test says enough.
works_in() {
	cd "$1" || return 1
	until [ -e "$dir/enough" ]; do
		cat file >/dev/null || return 1
		sleep 0.05
	done
	[ "$(cat file)" = other ]
}

# bats test_tags=once
@test "what is open, locked, mounted below and worked in stays" {
	start_server
	come 1
	mkdir -p "$dir/1/folder/below" "$dir/1/bound" "$dir/bind"
	echo inside >"$dir/1/folder/below/file"
	goes_on works_in "$dir/1/folder/below"
	echo kept >"$dir/1/open"
	exec 6<>"$dir/1/open"
	echo gone >"$dir/1/unlinked"
	exec 7<>"$dir/1/unlinked"
	rm "$dir/1/unlinked"
	echo locked >"$dir/1/locked"
	mount --bind "$dir/1/folder" "$dir/1/bound"
	mount --bind "$dir/1/folder" "$dir/bind"
	by_orders locker hold flock alone "$dir/1/locked" 0
	until_true 10 grep -q got "$dir/answers"
	come 2 5>&- 6>&- 7>&-
	[ "$(cat "$dir/1/bound/below/file")" = inside ]
	[ "$(cat "$dir/bind/below/file")" = inside ]
	[ "$(locker try flock alone "$dir/2/locked" 0)" = busy ]
	echo >&5
	exec 5>&-
	wait "${pids[1]}"
	[ "$(locker try flock alone "$dir/2/locked" 0)" = got ]
	rm "$dir/2/open"
	[ "$(cat <&6)" = kept ]
	[ "$(cat <&7)" = gone ]
	echo more >&7
	echo other >"$dir/2/folder/below/file"
	[ "$(cat "$dir/1/bound/below/file")" = other ]
	mv "$dir/2/folder" "$dir/2/moved"
	[ "$(cat "$dir/bind/below/file")" = other ]
	ended_well
	umount "$dir/1/bound"
	umount "$dir/bind"
	exec 6>&- 7>&-
	until_true 20 all_have_names
	nobody_was_late
}

# Removed files that were open do not stay.
all_have_names() {
	[ "$(find "$dir/1" | wc -l)" = "$(status_of '.exports[0].files')" ]
}

# bats test_tags=once
@test "appends, by a handle from before, go behind what the other mount has appended" {
	start_server
	come 1
	exec 6>>"$dir/1/log"
	echo first >&6
	come 2 6>&-
	echo second >>"$dir/2/log"
	echo third >&6
	echo fourth >>"$dir/2/log"
	echo fifth >&6
	exec 6>&-
	diff <(printf '%s\n' first second third fourth fifth) "$dir/2/log"
}

# bats test_tags=nightly
@test "a mapping from before goes on, and shows what the other mount writes" {
	local map
	start_server
	come 1
	printf 'a%.0s' {1..8192} >"$dir/1/mapped"
	# It stores the letter of each line into byte 1, and answers byte 0.
	by_orders fsop map-and-answer "$dir/1/mapped"
	echo x >&5
	until_true 20 test -s "$dir/answers"
	if grep -q ENODEV "$dir/answers"; then skip "MAP_SHARED needs Linux 6.9"; fi
	answered a
	echo y >&5
	come 2 5>&-
	[ "$(head -c 2 "$dir/2/mapped")" = ay ]
	printf b | dd of="$dir/2/mapped" conv=notrunc status=none
	echo z >&5
	until_true 20 answered b
	[ "$(head -c 2 "$dir/2/mapped")" = bz ]
	exec 5>&-
	wait "${pids[0]}"
	pids=()
	nobody_was_late
}

# bats test_tags=nightly
@test "programs go on while a second mount comes" {
	start_server
	come 1
	mkdir "$dir/1/a"
	goes_on coherence --seconds 12 --players 2 "$dir/1" "$dir/1/a/.."
	sleep 3
	come 2
	ended_well
	nobody_was_late
	coherence --seconds 5 "$dir/1" "$dir/2"
	nobody_was_late
}

# bats test_tags=nightly
@test "two that come at once are let in by one conversion" {
	start_server
	come 1
	coming 2
	coming 3
	arrived 2
	arrived 3
	echo here >"$dir/3/file"
	[ "$(cat "$dir/1/file" "$dir/2/file")" = $'here\nhere' ]
	[ "$(grep -c 'goes by leases from now on' "$dir/server.log")" = 1 ]
	nobody_was_late
}

# bats test_tags=nightly
@test "mounts with share come beside it, and are beside it from the start" {
	start_server
	come 1
	share 2
	is_sharing 1
	echo one >"$dir/1/file"
	[ "$(cat "$dir/2/file")" = one ]
	end_mount 1
	come 1
	is_sharing 1
	[ "$(cat "$dir/1/file")" = one ]
}

# bats test_tags=nightly
@test "those that only read stay alone until one comes that writes" {
	start_server
	come 3
	echo old >"$dir/3/file"
	end_mount 3
	come 1 ,ro
	come 2 ,ro
	[ "$(cat "$dir/1/file" "$dir/2/file")" = $'old\nold' ]
	is_alone 1
	is_alone 2
	come 3
	is_sharing 1
	is_sharing 2
	echo new >"$dir/3/file"
	[ "$(cat "$dir/1/file" "$dir/2/file")" = $'new\nnew' ]
	nobody_was_late
}

# bats test_tags=nightly
@test "it is refused by a mount that has its export for itself, and refuses such a one" {
	local said
	start_server
	mkdir "$dir/refused"
	come 1
	for options in ,exclusive ,cache=exclusive ,ro,exclusive; do
		said=$(! rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=1$options" \
			"$(mount_source)" "$dir/refused" 2>&1)
		[[ $said == *"in use by"* ]]
	done
	is_alone 1
	end_mount 1
	mount_number 1 ,cache=exclusive
	said=$(! rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=1" \
		"$(mount_source)" "$dir/refused" 2>&1)
	[[ $said == *"for itself alone (exclusive, or cache=exclusive)"* ]]
}

# bats test_tags=nightly
@test "a mount at the place of one that was unmounted lazily, and is in use, works beside it" {
	local first
	start_server
	come 1
	exec 6>"$dir/1/open"
	echo before >&6
	first=${mounts[1]}
	umount -l "$dir/1"
	come 1 6>&-
	echo after >&6
	exec 6>&-
	exit_status "$first" 30
	diff <(printf '%s\n' before after) "$dir/1/open"
}

# ---- failures ------------------------------------------------------------------------------------------

# bats test_tags=nightly
@test "a server that is killed amid a conversion, or after it, goes on with it" {
	start_server
	come 1
	mkdir "$dir/1/a"
	goes_on coherence --seconds 20 "$dir/1" "$dir/1/a/.."
	kill_server
	RMEMFS_CRASH_AT=convert.stored spawn_server
	coming 2
	exit_status "$server_pid" 60 || [ $? -eq 137 ]
	server_pid=''
	start_server
	arrived 2
	crash_server
	ended_well
	is_sharing 1
	is_sharing 2
	coherence --seconds 3 "$dir/1" "$dir/2"
}

# bats test_tags=nightly
@test "the one that waits goes away, and the next one is let in" {
	start_server
	come 1
	mkdir "$dir/2"
	kill -STOP "${mounts[1]}"
	rmemfs -f -c /dev/null -o "$(mount_options)" "$(mount_source)" "$dir/2" \
		>"$dir/mount.gone.log" 2>&1 3>&- &
	until_true 20 grep -q 'about to share' "$dir/mount.gone.log"
	kill -KILL $!
	kill -CONT "${mounts[1]}"
	until_true 20 is_sharing 1
	come 2
	echo here >"$dir/2/file"
	[ "$(cat "$dir/1/file")" = here ]
	nobody_was_late
}

# bats test_tags=nightly
@test "the first one is killed while another waits" {
	start_server
	come 1
	echo here >"$dir/1/file"
	sync "$dir/1/file"
	kill -STOP "${mounts[1]}"
	coming 2
	until_true 20 grep -q 'about to share' "$dir/mount.2.log"
	kill -KILL "${mounts[1]}"
	unset 'mounts[1]'
	umount -l "$dir/1"
	arrived 2
	[ "$(cat "$dir/2/file")" = here ]
}

# bats test_tags=fenced,nightly
@test "one that stands still is ended after the lease time, and comes back as one of several" {
	use_lease 3
	start_server
	come 1
	writes_to "$dir/1/open"
	echo before >"$dir/1/file"
	kill -STOP "${mounts[1]}"
	come 2 5>&-
	grep -q 'nothing was heard of it\|has not ended and committed' "$dir/server.log"
	echo after >"$dir/2/file"
	kill -CONT "${mounts[1]}"
	until_true 30 is_sharing 1
	[ "$(cat "$dir/1/file")" = after ]
	echo one >&5
	until_true 20 answered 'lost one'
	echo two >&5
	until_true 20 answered 'wrote two'
	exec 5>&-
	wait "${pids[0]}"
	pids=()
	[ "$(cat "$dir/2/open")" = two ]
}

# bats test_tags=nightly
@test "programs can be killed while the mount is converted, and it can be unmounted after that" {
	start_server
	come 1
	mkdir "$dir/1/a"
	random_file "$dir/local" 64
	while [ ! -e "$dir/enough" ]; do
		timeout -s KILL 0.3 cp "$dir/local" "$dir/1/a/copy" 2>/dev/null || true
	done 3>&- &
	pids+=($!)
	come 2
	sleep 1
	touch "$dir/enough"
	wait "${pids[0]}"
	pids=()
	rm "$dir/2/a/copy"
	cp "$dir/local" "$dir/1/a/copy"
	cmp "$dir/local" "$dir/2/a/copy"
	nobody_was_late
}
