#!/usr/bin/env bats
# sharing.bats - several mounts of one export at a time: any number may read.

# shellcheck disable=SC2154 # what helpers set
load helpers

setup() {
	setup_rmem
	start_server
	readers=()
}

teardown() {
	teardown_rmem
}

# reader N [OPTION]...: mounts the export read-only at $dir/reader.N.
reader() {
	local at=$dir/reader.$1 n=$1
	shift
	mkdir -p "$at"
	rmemfs -f -c /dev/null -o "$(mount_options),ro" "$@" "$(mount_source)" "$at" \
		>>"$dir/reader.$n.log" 2>&1 3>&- &
	readers[n]=$!
	until_true 30 mountpoint -q "$at" || die "reader $n: $(cat "$dir/reader.$n.log")"
}

end_reader() {
	umount "$dir/reader.$1"
	exit_status "${readers[$1]}" 30
}

# refused OPTIONS: prints the message of a mount that must be refused.
refused() {
	mkdir -p "$dir/refused"
	! rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=1,$1" "$(mount_source)" "$dir/refused" 2>&1
}

# Makes a tree of files, and a file of 8 MiB.
fill_export() {
	mount_rmem
	make_tree "$dir/tree"
	random_file "$dir/tree/large" 8
	cp -a "$dir/tree" "$mnt/tree"
	umount_rmem
}

remount_reader() {
	rmemfs -c /dev/null -o "remount,$2" "$(mount_source)" "$dir/reader.$1" 3>&-
}

nsessions() {
	[ "$(status_of '.sessions | length')" = "$1" ]
}

@test "any number of read-only mounts share an export, and see all of it at once" {
	local n pids=()
	fill_export
	for n in 1 2 3 4; do
		reader $n
	done
	for n in 1 2 3 4; do
		diff -r --no-dereference -x fifo "$dir/tree" "$dir/reader.$n/tree" &
		pids+=($!)
	done
	for n in 0 1 2 3; do
		wait "${pids[n]}"
	done
	same_tree "$dir/tree" "$dir/reader.3/tree"
	nsessions 4
	[ "$(status_of '[.sessions[].read_only] | unique | tostring')" = "[true]" ]
	run touch "$dir/reader.2/new"
	[[ $output == *"Read-only file system"* ]]
	for n in 1 2 3 4; do
		end_reader $n
	done
}

@test "who writes and who reads keep each other out if one is exclusive, and are told why" {
	local said
	mount_rmem -o exclusive
	said=$(refused ro)
	[[ $said != *"over shm pid"* ]] # "(pid N)" names it already
	[[ $said == *"is in use by "*", for itself alone (exclusive, or cache=exclusive); unmount it there"* ]]
	umount_rmem
	reader 1
	reader 2
	said=$(refused exclusive)
	[[ $said == *"is in use by "*" and 1 more"*"needs an export that no other mount uses"* ]]
	end_reader 1
	end_reader 2
	until_true 10 nsessions 0
	mount_rmem
	echo back >"$mnt/file"
}

@test "a reader becomes a writer when it is the only one, and lets readers in again" {
	fill_export
	reader 1
	reader 2
	run remount_reader 1 rw
	[ "$status" -ne 0 ]
	[[ $output == *"other mounts read the export"* ]]
	grep -q "stays read-only: export 'default' has 1 more readers" "$dir/reader.1.log"
	same_tree "$dir/tree" "$dir/reader.1/tree"
	same_tree "$dir/tree" "$dir/reader.2/tree"
	run touch "$dir/reader.1/new"
	[[ $output == *"Read-only file system"* ]]
	end_reader 2
	until_true 10 nsessions 1
	remount_reader 1 rw
	random_file "$dir/new" 3
	cp "$dir/new" "$dir/reader.1/new"
	remount_reader 1 ro
	reader 2
	cmp "$dir/new" "$dir/reader.2/new"
	cmp "$dir/new" "$dir/reader.1/new"
	end_reader 1
	end_reader 2
}

@test "the end of one reader, and of the server, is nothing to the others" {
	local n
	fill_export
	for n in 1 2 3; do
		reader $n
	done
	kill -KILL "${readers[1]}"
	wait "${readers[1]}" || true
	umount "$dir/reader.1"
	# This mount takes the place of the dead one.
	reader 1
	nsessions 3
	kill_server
	start_server
	for n in 1 2 3; do
		drop_caches
		same_tree "$dir/tree" "$dir/reader.$n/tree"
	done
	nsessions 3
	for n in 1 2 3; do
		end_reader $n
	done
	stop_server
	rmemfsctl check "$memory"
}
