#!/usr/bin/env bats
# cost_names.bats - what single operations on small files cost, on a mount that is alone and on one that
# shares: requests of the kernel, and messages to the server. `tests/bench/run.sh --parts counts` makes a
# table of the same, with programs' work on trees.
#
# Cold: the mount was just made. Warm: the kernel or the client has the file's name, or did what is undone.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts

setup() {
	setup_rmem
	mounts=() pids=()
	files=100
	# The kernel of a mount that is alone keeps names and attributes for a quarter of this.
	use_lease 60
	start_server
}

teardown() {
	end_programs
	end_mounts
}

# requests: those of the kernel to mount 1. It waits for none of the kinds that are left out.
requests() {
	rmemfsctl status --json "$dir/1" |
		jq '[.operations | to_entries[] | select(.key | test("release|forget|interrupt") | not).value.count] | add // 0'
}

# messages: to the server, of all mounts.
messages() {
	status_of '[.sessions[].requests] | add'
}

# costs KIND REQUESTS MESSAGES [PREFIX]: each of the files takes at most so many requests, and so many messages.
# Some are for the folder, and some RETURNs are for many files.
costs() {
	local asked sent
	asked=$(requests) sent=$(messages)
	nameops "$1" "$dir/1/names" "$files" ${4:+"$4"} >/dev/null
	asked=$(($(requests) - asked)) sent=$(($(messages) - sent))
	echo "$1 of $files files: $asked requests, $sent messages"
	[ "$asked" -le $((files * $2 + 5)) ]
	[ "$sent" -ge $((files * $3)) ]
	[ "$sent" -le $((files * $3 + files / 4 + 5)) ]
}

# anew [OPTION]: mount 1 knows nothing.
anew() {
	[ -z "${mounts[1]:-}" ] || end_mount 1
	mount_number 1 "${1:-}"
}

# bats test_tags=only:tcp
@test "alone, what an operation on a small file costs" {
	anew
	mkdir "$dir/1/names"
	# The folder is new, so the client knows all of its names.
	costs create 4 1 e
	costs write 5 2
	costs stat 1 0 # the write has changed its attributes
	costs stat 0 0
	costs rename 3 1
	costs rename-back 3 2 # a name that was there before is looked up
	costs unlink 2 1
	costs mkdir 3 1
	costs rmdir 2 1
	costs write 5 3
	anew
	costs stat 1 1
	anew
	costs read 4 1
	costs read 2 0
	anew
	costs rename 4 3
	costs write 5 3
	costs mkdir 3 2
	anew
	costs unlink 3 2
	costs rmdir 3 2
	is_alone 1
}

# bats test_tags=only:tcp
@test "beside an idle mount, what an operation on a small file costs" {
	share 1 2
	mkdir "$dir/1/names"
	costs create 5 2 e
	costs write 6 3
	costs stat 2 0
	costs stat 1 0
	costs rename 4 2
	costs rename-back 4 2
	costs unlink 3 1
	costs mkdir 3 2
	costs rmdir 3 2
	costs write 6 2 # names that this mount has removed under its lease of the folder
	anew ,share
	costs stat 2 2
	anew ,share
	costs read 5 3
	costs read 5 0
	anew ,share
	costs rename 4 3
	costs write 6 3
	costs mkdir 3 2
	anew ,share
	costs unlink 3 2
	costs rmdir 3 2
	is_sharing 1
}
