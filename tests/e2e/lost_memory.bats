#!/usr/bin/env bats
# lost_memory.bats - a process that has the descriptor of a region's file cuts it: its own export loses
# these bytes, and neither the server nor a daemon ends, nor does another export notice.
#
# bats file_tags=sockets

load helpers
load mounts

declare -A mounts

# Mount 1 is of the export `default`, two regions of 32 MiB, mount 2 of `other`.
setup() {
	setup_rmem
	server_conf=$dir/server.conf
	cat >"$server_conf" <<-END
		region_size = "32MiB";
		exports = ({ name = "default"; size = "64MiB"; }, { name = "other"; size = "64MiB"; });
	END
	start_server
	share 1
	# shellcheck disable=SC2034 # mount_number reads it
	source_of[2]=$(mount_source other)
	share 2
	random_file "$dir/data" 20
	for name in a b; do
		cp "$dir/data" "$dir/1/$name"
		sync "$dir/1/$name"
	done
	echo small >"$dir/2/small"
}

teardown() {
	kill "$bad_pid" 2>/dev/null || true
	wait "$bad_pid" 2>/dev/null || true
	if [ -n "${BATS_TEST_COMPLETED:-}" ]; then
		end_mount 1
		end_mount 2
	fi
	teardown_rmem
}

# bad HOW: a peer over shm does that to the first region of `default`.
bad() {
	badpeer cut "shm:$socket" default 0 "$1" >"$dir/bad.log" 2>&1 3>&- &
	bad_pid=$!
	until_true 10 grep -q '^done$' "$dir/bad.log" || die "$(cat "$dir/bad.log")"
}

fails_with_eio() {
	run timeout 20 "$@"
	[ "$status" -ne 0 ] && [[ $output == *"Input/output error"* || $output == "fsop: EIO" ]]
}

is_lost() {
	[ "$(status_of '.exports[0].lost_regions')" -eq 1 ]
}

# other_is_whole: mount 2 works as if nothing had happened.
other_is_whole() {
	[ "$(cat "$dir/2/small")" = small ]
	cp "$dir/data" "$dir/2/copy"
	fsop uncache "$dir/2"
	cmp "$dir/data" "$dir/2/copy"
	cp --reflink=never "$dir/2/copy" "$dir/2/again"
	rm "$dir/2/copy" "$dir/2/again"
}

# lost_once: the server's log names the file once.
lost_once() {
	grep "error: export 'default': bytes of its region $memory/regions/default.0000 are lost: " "$dir/server.log"
	[ "$(grep -c 'are lost: ' "$dir/server.log")" -eq 1 ]
}

@test "a region is cut short: EIO there, the rest of the export can be read, others go on" {
	bad shorter
	# The server's own access is the first: a copy from file to file.
	fails_with_eio fsop copy-range "$dir/1/a" 0 "$dir/1/copied" 0 20971520
	until_true 10 is_lost
	fsop uncache "$dir/1"
	fails_with_eio cat "$dir/1/a"
	fails_with_eio cp "$dir/data" "$dir/1/new"
	# The second file lies in both regions: its end is still there.
	cmp <(tail -c 4M "$dir/data") <(tail -c 4M "$dir/1/b")
	ls -l "$dir/1"
	rm "$dir/1/a"
	other_is_whole
	lost_once
	grep "only 16MiB of 32MiB are left" "$dir/server.log"
	rmemfsctl status "$socket" | grep '^default has lost memory: 1 of 2 regions'
	[ "$(status_of '[.regions[] | .lost] | join(" ")')" = "true false false false" ]
	run rmemfsctl snapshot default "$dir/snapshot" "$socket"
	[ "$status" -ne 0 ]
	[[ $output == *"memory of export 'default' is lost"* ]]
}

@test "a cut file is not served as if it were whole, whatever its length" {
	bad hole
	until_true 10 is_lost
	fails_with_eio cat "$dir/1/a"
	other_is_whole
	lost_once
	kill "$bad_pid"
	wait "$bad_pid" || true
	end_mount 1
	end_mount 2
	stop_server
	run rmemfsctl check "$memory"
	[ "$status" -eq 1 ]
	[[ $output == *"region $memory/regions/default.0000 has holes"* ]]
	run rmemfs-server -c "$server_conf" --memory-dir "$memory" --listen "shm:$socket"
	[ "$status" -eq 78 ]
	[[ $output == *"export default: its region $memory/regions/default.0000 has holes"* ]]
	sed -i 's/{ name = "default"; size = "64MiB"; }, //' "$server_conf"
	start_server
	share 2
	[ "$(cat "$dir/2/small")" = small ]
	mount_number() { :; }
	end_mount() { [ "$1" -eq 1 ] || { umount "$dir/2" && exit_status "${mounts[2]}" 30; }; }
}

@test "a region is made longer: it is cut back, and nothing is lost" {
	bad longer
	until_true 10 grep 'has made it longer$' "$dir/server.log"
	[ "$(stat -c %s "$memory/regions/default.0000")" -eq $((32 << 20)) ]
	fsop uncache "$dir/1"
	cmp "$dir/data" "$dir/1/a"
	other_is_whole
	[ "$(status_of '.exports[0].lost_regions')" -eq 0 ]
}
