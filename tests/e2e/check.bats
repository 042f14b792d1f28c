#!/usr/bin/env bats
# check.bats - rmemfsctl check and rmemfs-server --check of a stopped server's memory directory.

# bats file_tags=once

load helpers

setup() {
	setup_rmem
	# shellcheck disable=SC2034 # the helpers take it
	export_size=16MiB
	start_server --export second:8MiB
	mount_rmem
	mkdir "$mnt/folder"
	echo content >"$mnt/folder/file"
	ln "$mnt/folder/file" "$mnt/link"
	ln -s there "$mnt/symlink"
	random_file "$mnt/random" 4
	rm "$mnt/random"
	random_file "$mnt/random" 4
	umount_rmem
	stop_server
}

teardown() {
	teardown_rmem
}

# says STATUS TEXT COMMAND...: the command ends with STATUS and prints TEXT, on either output.
says() {
	local expected=$1 text=$2
	shift 2
	run "$@"
	echo "$output"
	[ "$status" -eq "$expected" ]
	[[ $output == *"$text"* ]]
}

fingerprint() {
	(
		cd "$memory" || return
		find . -printf '%p %y %m %s %T@ %C@\n' | sort
		find . -type f -exec sha256sum {} + | sort
	)
}

region() {
	echo "$memory/regions/default.0000"
}

@test "a directory that is whole is clean, and nothing of it is changed" {
	fingerprint >"$dir/before"
	says 0 "$memory: clean: 2 exports, 6 inodes, 6144 pages" rmemfsctl check "$memory"
	[ "${#lines[@]}" -eq 1 ]
	says 0 "$memory: clean: " rmemfs-server --check "$memory"
	says 0 "$memory: clean: " rmemfs-server --check="$memory"
	fingerprint | diff "$dir/before" -
}

@test "a running server's directory is refused, and its process named" {
	start_server
	says 2 "$memory is in use by a server (pid $server_pid): stop it first" \
		rmemfsctl check "$memory"
	[ "$output" = "rmemfs-server: $memory is in use by a server (pid $server_pid): stop it first" ]
}

@test "no server starts on a directory that is being checked" {
	exec 9<"$memory/lock"
	flock 9
	run timeout 20 rmemfs-server -c /dev/null --memory-dir "$memory" --listen "shm:$socket" 9<&-
	exec 9<&-
	[ "$status" -eq 1 ]
	[[ $output == *"$memory is in use"* ]]
}

@test "what is no memory directory is refused" {
	says 2 "$dir is no memory directory of rmemfs-server" rmemfsctl check "$dir"
	says 2 "can't check /nowhere: No such file or directory" rmemfsctl check /nowhere
	[ -z "$(find "$dir" -name lock)" ]
}

@test "wrong usage" {
	local usage="(usage: rmemfsctl check DIR)"
	says 2 "rmemfsctl: DIR is missing $usage" rmemfsctl check
	says 2 "rmemfsctl: DIR must not be empty $usage" rmemfsctl check ""
	says 2 "rmemfsctl: 'more': one operand too many $usage" rmemfsctl check "$memory" more
	says 2 "rmemfsctl: option '--json': has no meaning for check $usage" \
		rmemfsctl check --json "$memory"
	says 2 "rmemfsctl: option '--jsno': unknown; did you mean '--json'? $usage" \
		rmemfsctl check --jsno "$memory"
	says 2 "rmemfs-server: option '--check': needs a value" rmemfs-server --check
	says 2 "rmemfs-server: option '--check': must not be empty" rmemfs-server --check ""
	says 2 "rmemfs-server: option '--check': takes no other option beside it" \
		rmemfs-server --check "$memory" --export default:16MiB
}

@test "without rmemfs-server it says so" {
	cp "$(command -v rmemfsctl)" "$dir/rmemfsctl"
	says 2 "rmemfsctl: can't run rmemfs-server: No such file or directory" \
		env PATH=/nowhere "$dir/rmemfsctl" check "$memory"
	says 0 "$memory: clean: " "$dir/rmemfsctl" check "$memory"
}

@test "a free page that is not zero is a problem" {
	printf x | dd of="$(region)" bs=1 seek=$((16 * 1024 * 1024 - 100)) conv=notrunc status=none
	says 1 "export default: 1 free pages of region 0 are not zero; the first is page 4095" \
		rmemfsctl check "$memory"
	[[ $output == *"$memory: 1 problem" ]]
}

@test "the exports that no configuration names are checked, too" {
	printf x | dd of="$memory/regions/second.0000" bs=1 seek=70000 conv=notrunc status=none
	says 1 "export second: 1 free pages of region 0 are not zero; the first is page 17" \
		rmemfsctl check "$memory"
}

@test "regions that are missing or of another size are problems" {
	truncate -s -4096 "$(region)"
	says 1 "region $(region) has 16773120 bytes, and should have 16777216" \
		rmemfsctl check "$memory"
	rm "$(region)"
	says 1 "export default: region $(region): No such file or directory" \
		rmemfsctl check "$memory"
	[ ! -e "$(region)" ]
}

@test "a store that was overwritten is a problem" {
	local store=$memory/store/store.mdb
	dd if=/dev/urandom of="$store" bs=4096 seek=2 count=30 conv=notrunc status=none
	says 1 "the store $store is damaged: page " rmemfsctl check "$memory"
	truncate -s 0 "$store"
	says 1 "the store is missing or empty, and the regions belong to one" \
		rmemfsctl check "$memory"
}

@test "another boot's directory, and another store's regions, are problems" {
	cat /proc/sys/kernel/random/uuid >"$memory/boot_id"
	says 1 "$memory/boot_id is of another boot of this machine" rmemfsctl check "$memory"
	rm "$memory/boot_id"
	says 1 "$memory/boot_id is missing or damaged" rmemfsctl check "$memory"
	cp /proc/sys/kernel/random/boot_id "$memory/boot_id"
	echo 0123 >"$memory/store_id"
	says 1 "the regions belong to store '0123'" rmemfsctl check "$memory"
}

@test "a first start that was killed has left nothing that is wrong" {
	rm -r "$memory"/store/* "$memory/store_id"
	says 0 "$memory: clean: nothing was stored yet" rmemfsctl check "$memory"
}
