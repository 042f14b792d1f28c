#!/usr/bin/env bats
# shared_pages.bats - mounts that share an export (-o share): one writes and needs pages while another one
# is stopped or gone.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts

setup() {
	setup_rmem
	mounts=()
}

teardown() {
	end_mounts
}

none_is_free() {
	[ "$(status_of .exports[0].free)" -eq 0 ]
}

waits_at_server() {
	[ "$(status_of .exports[0].leases.waiting)" -eq 1 ]
}

# The waiting CREATE would bring pages along.
@test "a file that waits for another mount to be created keeps nobody from pages" {
	local i toucher
	begin 1 2 3
	mkdir "$dir/3/folder"
	: >"$dir/3/file"
	for i in 1 2 3; do
		stat "$dir/2/folder" >/dev/null
		[ ! -e "$dir/2/folder/new" ]
	done
	suspend "${mounts[2]}"
	touch "$dir/1/folder/new" 3>&- &
	toucher=$!
	until_true 20 waits_at_server
	dd if=/dev/zero of="$dir/1/file" bs=64k count=16 conv=notrunc status=none
	kill -0 "$toucher"
	waits_at_server
	kill -CONT "${mounts[2]}"
	exit_status "$toucher" 20
	[ "$(stat -c %s "$dir/2/file")" -eq $((1 << 20)) ]
	[ -e "$dir/2/folder/new" ]
}

# Pages written in the server's earlier run are scrubbed only when no client of that run can come back.
@test "a client that is gone, and the server restarted, keeps nobody from the pages of removed files" {
	local pid most
	use_lease 2
	begin 1 2
	pid=${mounts[2]}
	unset 'mounts[2]'
	kill -KILL "$pid"
	exit_status "$pid" 20 || [ $? -eq 137 ]
	until_true 10 umount "$dir/2"
	crash_server
	most=$((${export_size%MiB} * 2 / 3))
	dd if=/dev/zero of="$dir/1/old" bs=1M count=$most status=none
	rm "$dir/1/old"
	timeout 60 fallocate -l ${most}M "$dir/1/new"
	[ "$(status_of '.sessions | length')" -eq 1 ]
}

# Over shm the mount's process may write to these pages as long as it is stopped.
@test "pages that a mount keeps which is stopped, and the server restarted, are waited for by nobody for ever" {
	local waiter most=$((${export_size%MiB} * 2 / 3))
	begin 1 2
	dd if=/dev/zero of="$dir/1/old" bs=1M count=$most status=none
	: >"$dir/1/new"
	suspend "${mounts[2]}"
	crash_server
	truncate -s 0 "$dir/1/old"
	fallocate -l ${most}M "$dir/1/new" 3>&- &
	waiter=$!
	until_true 8 none_is_free
	calling "$waiter" fallocate
	kill -KILL "$waiter"
	exit_status "$waiter" 2 || [ $? -eq 137 ]
	if [ "$transport" = shm ]; then
		run timeout 30 fallocate -l ${most}M "$dir/1/new"
		[[ $output == *"No space left on device"* ]]
		grep -q "can't be used again before its process goes on or ends" "$dir/server.log"
		kill -CONT "${mounts[2]}"
	fi
	until_true 30 fallocate -l ${most}M "$dir/1/new"
	kill -CONT "${mounts[2]}"
}

# A mount holds more such pages the more it has written, and returns them by itself only after seconds.
@test "pages that one mount has for what it writes next are there for all others" {
	local mib=${export_size%MiB} part
	begin 1 2 3
	part=$((mib / 6))
	dd if=/dev/zero of="$dir/2/a" bs=1M count=$part status=none
	dd if=/dev/zero of="$dir/3/b" bs=1M count=$part status=none
	dd if=/dev/zero of="$dir/1/c" bs=1M count=$((mib - 2 * part - 1)) status=none
}

# Each mount's request makes the server ask the others, and none has any pages.
@test "an export that several fill at once is full for all of them, and not before" {
	local n mib=${export_size%MiB} pids=()
	begin 1 2 3
	for n in 1 2 3; do
		dd if=/dev/zero of="$dir/$n/file.$n" bs=64k count=$((mib * 16)) status=none 2>"$dir/said.$n" 3>&- &
		pids+=($!)
	done
	for n in "${pids[@]}"; do
		! wait "$n" || return 1
	done
	for n in 1 2 3; do
		grep -q "No space left on device" "$dir/said.$n"
	done
	[ "$(stat -c %s "$dir"/1/file.? | awk '{ n += $1 } END { print n }')" -ge $(((mib - 2) << 20)) ]
	rm "$dir"/2/file.?
	dd if=/dev/zero of="$dir/3/again" bs=1M count=$((mib / 2)) status=none
}

# sent N FILE: mount N's kernel copies the file to its end.
sent() {
	fsop send "$dir/$1/$2" "$dir/copy"
	cmp "$dir/$((3 - $1))/$2" "$dir/copy"
}

# Programs ask sendfile(2) for more than there is, and go by what it says.
@test "a file that the kernel copies ends where it ends" {
	local size n
	begin 1 2
	for size in 10 4096 5000 131072 200000 1048577; do
		head -c $size /dev/urandom >"$dir/1/$size"
		for n in 2 1 2; do sent $n $size; done
		head -c 3000 /dev/urandom >>"$dir/2/$size"
		for n in 1 2 1; do sent $n $size; done
		truncate -s $((size / 2)) "$dir/2/$size"
		for n in 1 2; do sent $n $size; done
	done
}

@test "a file that the kernel copies ends where it ends, on a mount that was alone when it was opened" {
	start_server
	come 1
	head -c 5000 /dev/urandom >"$dir/1/file"
	exec 5<>"$dir/1/file"
	sent_alone
	come 2 5>&-
	is_sharing 1
	sent 1 file
	sent 2 file
	exec 5>&-
}

sent_alone() {
	fsop send "$dir/1/file" "$dir/copy"
	cmp "$dir/1/file" "$dir/copy"
}
