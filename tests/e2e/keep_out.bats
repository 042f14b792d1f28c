#!/usr/bin/env bats
# keep_out.bats - what a mount that is alone has open for writing keeps another one out, where the kernel can't share it:
# before Linux 6.9.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts

setup() {
	mounts=() pids=()
	needs_linux_before_6_9 "newer ones share what is open"
	setup_rmem
}

teardown() {
	end_programs
	end_mounts
}

@test "another mount waits until files that were open for writing are closed" {
	start_server
	mount_number 1 ''
	mkdir "$dir/2"
	exec 6>"$dir/1/file"
	echo one >&6
	rmemfs -f -c /dev/null -o "$(mount_options)" "$(mount_source)" "$dir/2" >>"$dir/mount.2.log" 2>&1 3>&- 6>&- &
	mounts[2]=$!
	until_true 20 grep -q "has files open for writing that it can't share" "$dir/mount.2.log"
	grep -q 'files that are open for writing keep it out: 1' "$dir/mount.1.log"
	[ "$(rmemfsctl status --json "$dir/1" | jq .sharing.keep_out)" = 1 ]
	rmemfsctl status "$dir/1" | grep -q 'another mount waits until files that are open for writing are closed: 1$'
	rmemfs-metrics --once --server "$socket" >"$dir/metrics"
	grep -q '^rmemfs_mount_keep_out_files{.*} 1$' "$dir/metrics"
	grep -qx 'rmemfs_export_keep_out_sessions{export="default"} 1' "$dir/metrics"
	rmemfsctl status "$socket" | grep -q 'keeps another mount out: files are open for writing$'
	echo two >&6
	cat "$dir/1/file"
	is_alone 1
	exec 6>&-
	arrived 2
	echo three >>"$dir/2/file"
	diff <(printf '%s\n' one two three) "$dir/1/file"
	diff <(printf '%s\n' one two three) "$dir/2/file"
	[ "$(rmemfsctl status --json "$dir/1" | jq -c .sharing)" = '{"begun":1,"ended":0,"under_way":false,"keep_out":0}' ]
	nobody_was_late
}

# bats test_tags=fenced
@test "one that stands still with a file open for writing has lost its session" {
	use_lease 3
	start_server
	mount_number 1 ''
	writes_to "$dir/1/open"
	echo zero >&5
	until_true 20 answered 'wrote zero'
	kill -STOP "${mounts[1]}"
	come 2 5>&-
	echo after >"$dir/2/file"
	kill -CONT "${mounts[1]}"
	until_true 30 grep -q "session lost: .*files are open for writing, which this kernel can't share" "$dir/mount.1.log"
	echo one >&5
	until_true 20 answered 'lost one'
	exec 5>&-
	wait "${pids[0]}"
	pids=()
	if stat "$dir/1/file"; then return 1; fi
	[ "$(cat "$dir/2/file")" = after ]
}
