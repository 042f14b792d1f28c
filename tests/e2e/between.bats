#!/usr/bin/env bats
# between.bats - a man in the middle, between a mount and its server over tcp: what passes is protected,
# and what is changed ends the channel.
#
# bats file_tags=only:tcp

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts
load between

setup() {
	setup_rmem
	mounts=()
	setup_between
}

teardown() {
	end_mounts
}

is_done() {
	! alive "$middle_pid" || grep -q "done" "$dir/middle.log"
}

# all_end: all connections with a changed byte have ended.
all_end() {
	until_true 60 is_done || {
		end_between
		cat "$dir/middle.log"
		return 1
	}
	alive "$middle_pid" || die "$(cat "$dir/middle.log")"
}

# Mounts 1 to 4. Each of their 64 channels connects again by itself, so many bytes are tried in a
# second.
mount_many_channels() {
	local n
	by_the_middle
	between pass
	for n in 1 2 3 4; do
		mount_number $n ,share,io_threads=16
	done
	random_file "$dir/data" 1
	cp "$dir/data" "$dir/1/data"
	for n in 1 2 3 4; do
		fsop uncache "$dir/$n"
	done
	sessions=$(status_of '[.sessions[].id] | sort')
}

# No mount has lost anything, and all go on as if the server had been away.
are_whole() {
	local n
	for n in 1 2 3 4; do
		cmp "$dir/data" "$dir/$n/data"
		echo more >"$dir/$n/more"
		if grep "session lost" "$dir/mount.$n.log"; then return 1; fi
	done
	[ "$(status_of '[.sessions[].id] | sort')" = "$sessions" ]
}

# sweep HOW FROM FIRST LAST STEP: nothing gets through, and all is well afterwards.
sweep() {
	between "$@"
	cat "$dir/2/data" >"$dir/read" 3>&- &
	reader=$!
	all_end
	exit_status $reader 30
	cmp "$dir/data" "$dir/read"
	are_whole
}

# ---- what is seen --------------------------------------------------------------------------------

# seen TEXT: someone has said these bytes.
seen() {
	cat "$dir"/wire.* | grep -qaF "$1"
}

name="a name that nobody shall see"
content="bytes of a file that nobody shall see"

use_files() {
	by_the_middle
	between pass "$dir/wire"
	mount_rmem
	echo "$content" >"$mnt/$name"
	setfattr -n user.x -v "$content" "$mnt/$name"
	ln -s "$content" "$mnt/link"
	fsop uncache "$mnt"
	[ "$(cat "$mnt/$name")" = "$content" ]
	umount_rmem
	end_between
}

@test "no name and no byte of a file can be read on the way" {
	start_server
	use_files
	[ "$(cat "$dir"/wire.*.client | wc -c)" -gt 1000 ]
	[ "$(cat "$dir"/wire.*.server | wc -c)" -gt 1000 ]
	if seen "nobody shall"; then return 1; fi
	# Nor the export's and the mount's.
	if seen default; then return 1; fi
	if seen "$mnt"; then return 1; fi
	# The key's id is no secret, and the key is.
	seen "$(cut -d : -f 2 "$key_file")"
	if seen "$(cut -d : -f 3 "$key_file" | base64 -d | head -c 8)"; then return 1; fi
}

@test "without a key all of it can be read" {
	without_key
	start_server
	use_files
	seen "$name"
	seen "$content"
	seen default
	seen "$mnt"
}

# ---- what is changed -----------------------------------------------------------------------------

# At night each byte of the hello and the flights, else every third one.
every=3
[ "${RMEMFS_TEST_NIGHTLY:-0}" = 0 ] || every=1

# Then come ATTACH, REGIONS, and PINGs.
@test "bytes that the client sends are changed in turn: no channel gets ready" {
	start_server
	mount_many_channels
	sweep flip client 0 500 $every
	sweep flip client 501 900 13
}

@test "bytes that the server sends are changed in turn: no channel gets ready" {
	start_server
	mount_many_channels
	sweep flip server 0 350 $every
	sweep flip server 351 700 13
}

@test "bytes are dropped, doubled, or stop to come: no channel gets ready" {
	start_server
	mount_many_channels
	sweep mixed client 0 800 17
	sweep mixed server 0 600 17
}

# Copies a file to the mount and compares it with what the server has.
copy_and_compare() {
	cp "$dir/data" "$mnt/copy.$((ncopies++))"
	fsop uncache "$mnt"
	cmp "$dir/data" "$mnt/copy.$((ncopies - 1))"
}

# changed COUNT: the man in the middle has changed so many bytes.
changed() {
	[ "$(grep -c changed "$dir/middle.log")" -ge "$1" ]
}

@test "bytes are changed again and again under load: all files are what was written" {
	start_server
	by_the_middle
	between pass
	mount_rmem
	random_file "$dir/data" 1
	ncopies=0
	for from in client server; do
		between often $from 1300021 # a transfer of 1 MiB may pass
		# How much passes twice depends on where a connection ends.
		for i in 1 2 3 4 5 6 7 8; do
			copy_and_compare
			if changed 2; then break; fi
		done
		changed 2
		end_between
	done
	between pass
	copy_and_compare
	if grep "session lost" "$dir/daemon.log"; then return 1; fi
}

@test "without a key a changed byte is in the file: the test before can fail" {
	without_key
	start_server
	by_the_middle
	between often client 5000011
	mount_rmem
	random_file "$dir/data" 8
	cp "$dir/data" "$mnt/data"
	end_between
	between pass
	fsop uncache "$mnt"
	if cmp "$dir/data" "$mnt/data"; then return 1; fi
}

# ---- what was recorded ---------------------------------------------------------------------------

# Past the man in the middle.
mount_rmem_at_once() {
	mount_options() {
		echo "transport=tcp,port=$port,key=$key_file"
	}
	mount_rmem
}

@test "a recorded session, played to the server: no session begins, and no byte of a file comes" {
	start_server
	use_files
	for wire in "$dir"/wire.*.client; do
		seen_by_its_client=$(stat -c %s "${wire%client}server")
		answered=$(timeout 30 middle - "$port" play "$wire")
		echo "$wire: $answered bytes, and $seen_by_its_client then"
		[ "$answered" -lt 500 ]
	done
	[ "$(grep -c "session .* begins" "$dir/server.log")" -eq 1 ]
	[ "$(status_of '.sessions | length')" -eq 0 ]
	mount_rmem_at_once
	[ "$(cat "$mnt/$name")" = "$content" ]
}

@test "a recorded session, played to a mount: nothing is mounted" {
	start_server
	use_files
	for wire in "$dir"/wire.*.server; do
		stands_between middle "$proxy" - play "$wire"
		run timeout 30 rmemfs -c /dev/null -o "$(mount_options),connect_timeout=3" \
			"$(mount_source)" "$mnt" 3>&-
		echo "$output"
		[ "$status" -ne 0 ]
		[ "$status" -lt 124 ]
		if mountpoint -q "$mnt"; then return 1; fi
		[[ $output == *"127.0.0.1:$proxy does not prove that it has key $(cut -d : -f 2 "$key_file"): "* ]]
		end_between
	done
}
