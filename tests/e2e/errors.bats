#!/usr/bin/env bats
# errors.bats - each error is reported in one line that names its subject, and loses nothing.

load helpers

setup() {
	setup_rmem
}

teardown() {
	cd /
	# The test has failed between two mounts, one on the other.
	if [ -n "${stacked:-}" ] && [ -z "${BATS_TEST_COMPLETED:-}" ]; then
		umount -l "$mnt" "$mnt" || true
	fi
	teardown_rmem
}

# refused [OPTION]... SOURCE MOUNTPOINT: the mount fails by itself, with one line: $output.
refused() {
	run timeout 30 rmemfs -c /dev/null "$@" 3>&-
	echo "$output"
	output=$(without_waiting <<<"$output")
	[ "$status" -ne 0 ]
	[ "$status" -ne 124 ]
	[ "$(wc -l <<<"$output")" -eq 1 ]
	! mountpoint -q "$mnt"
}

# check_config TEXT: checks a server configuration; the result is in $output and $status.
check_config() {
	printf '%s\n' "$1" >"$dir/server.conf"
	run rmemfs-server -c "$dir/server.conf" --memory-dir "$memory/place" --listen "shm:$socket" --check-config
	echo "$output"
}

# If the server can't see the client's process, it could not see the end of a session over shm.
# bats test_tags=only:shm
@test "a server in a container refuses a mount from outside of it over shm, and tells its state" {
	RMEMFS_TEST_SERVER_UNDER="unshare --pid --fork --kill-child" start_server
	refused -o "$(mount_options)" "$(mount_source)" "$mnt"
	[[ $output == *"PID namespace"*tcp* ]]
	grep -q "PID namespace" "$dir/server.log"
	rmemfsctl status "$socket"
	# unshare(1) passes on no other signal
	pid=$server_pid server_pid=''
	kill -KILL "$pid"
	exit_status "$pid" 20 || [ $? -eq 137 ]
}

@test "unknown export" {
	start_server
	# A longer timeout would not help.
	refused -o "$(mount_options),connect_timeout=3600" "$(mount_source nosuch)" "$mnt"
	[[ $output == *nosuch* ]]
	grep -q nosuch "$dir/server.log"
	run timeout 30 rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=3600" \
		"$(mount_source nosuch)" "$mnt" 3>&-
	[ "$status" -eq 32 ]
}

@test "no server" {
	refused -o "$(mount_options),connect_timeout=2" "$(mount_source)" "$mnt"
	case $transport in
	shm) [[ $output == *"$socket"* ]] ;;
	*) [[ $output == *"$port"* ]] ;;
	esac
}

# bats test_tags=once
@test "wrong options" {
	refused -o nosuchoption "$(mount_source)" "$mnt"
	[[ $output == *nosuchoption* ]]
	refused -o transport=pigeon "$(mount_source)" "$mnt"
	[[ $output == *pigeon* ]]
	refused -o port=seven "$(mount_source)" "$mnt"
	[[ $output == *seven* ]]
	refused -o connect_timeout=soon "$(mount_source)" "$mnt"
	[[ $output == *soon* ]]
}

# bats test_tags=once
@test "wrong sources" {
	refused nothing "$mnt"
	[[ $output == *"HOST:/EXPORT"* ]]
	refused "[::1:/default" "$mnt"
	refused "127.0.0.1:/" "$mnt"
	[[ $output == *export* ]]
}

# bats test_tags=once
@test "a mount point that is missing, a file, or out of reach" {
	start_server
	refused -o "$(mount_options)" "$(mount_source)" "$dir/missing"
	[[ $output == *"mount point $dir/missing: no such directory: make it first" ]]
	touch "$dir/file"
	refused -o "$(mount_options)" "$(mount_source)" "$dir/file"
	[[ $output == *"mount point $dir/file: not a directory: name a directory" ]]
	refused -o "$(mount_options)" "$(mount_source)" "$dir/file/below"
	[[ $output == *"mount point $dir/file/below: Not a directory" ]]
	mkdir -m 0700 "$dir/closed"
	run timeout 30 setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all \
		"$(readlink -f "$(command -v rmemfs)")" -c /dev/null -o "$(mount_options)" \
		"$(mount_source)" "$dir/closed" 3>&-
	echo "$output"
	[ "$status" -ne 0 ]
	[[ $output == *"Permission denied"* ]]
}

@test "a mount point that has a mount of ours already" {
	start_server --export other:64MiB
	mount_rmem
	echo data >"$mnt/a"
	run timeout 30 rmemfs -c /dev/null -o "$(mount_options)" "$(mount_source other)" "$mnt" 3>&-
	echo "$output"
	[ "$status" -ne 0 ]
	[ "$status" -lt 124 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *"mount point $mnt: $(mount_source) is mounted there already: umount it first, or choose another directory" ]]
	[ "$(cat "$mnt/a")" = data ]
}

@test "a mount point that is not empty, in use, or another filesystem's: covered, and back after umount" {
	start_server
	stacked=yes
	mount -t tmpfs tmpfs "$mnt"
	echo below >"$mnt/below"
	cd "$mnt"
	mount_rmem
	until_true 10 grep -q "is mounted on $mnt" "$dir/daemon.log"
	[ ! -e "$mnt/below" ]
	echo data >"$mnt/a"
	[ "$(cat below)" = below ]
	umount_rmem
	[ "$(cat "$mnt/below")" = below ]
	cd /
	umount "$mnt"
}

@test "an export's name beyond the limits" {
	start_server
	refused -o "$(mount_options)" "$(mount_source "$(printf 'x%.0s' {1..300})")" "$mnt"
	[[ $output == *"an export's name has at most "*" bytes" ]]
	refused -o "$(mount_options)" "$(mount_source a/b)" "$mnt"
	[[ $output == *"an export's name has no /" ]]
}

# bats test_tags=only:tcp
@test "no RDMA device on the way" {
	start_server
	refused -o transport=verbs,port="$port" 127.0.0.1:/default "$mnt"
	[[ $output == *"no RDMA device has a route to 127.0.0.1:$port: see 'rdma link show', or mount with transport=tcp" ]]
}

@test "unreadable client configuration" {
	run rmemfs -c "$dir/missing.conf" "$(mount_source)" "$mnt"
	[ "$status" -ne 0 ]
	[[ $output == *"$dir/missing.conf: No such file or directory"* ]]
	printf 'speed = 3\n' >"$dir/client.conf"
	run rmemfs -c "$dir/client.conf" "$(mount_source)" "$mnt"
	[ "$status" -ne 0 ]
	[[ $output == *"$dir/client.conf:1: speed: unknown key"* ]]
}

# bats test_tags=once
@test "unreadable server configuration" {
	run rmemfs-server -c "$dir/missing.conf" --check-config
	[ "$status" -eq 78 ]
	[[ $output == *"$dir/missing.conf: No such file or directory"* ]]
	mkdir "$dir/folder.conf"
	run rmemfs-server -c "$dir/folder.conf"
	[ "$status" -ne 0 ]
	[[ $output == *"$dir/folder.conf: Is a directory"* ]]
}

# bats test_tags=once
@test "--check-config names file, line and key" {
	check_config 'exports = ( { name = "a"; size = "64MiB" } );'
	[ "$status" -eq 0 ]
	check_config $'\n\nspeed = 3'
	[ "$status" -eq 78 ]
	[[ $output == *"$dir/server.conf:3: speed: unknown key"* ]]
	check_config 'region_size = "many"'
	[ "$status" -eq 78 ]
	[[ $output == *"$dir/server.conf:1: region_size: "* ]]
	check_config $'exports = (\n { name = "a"; size = "none" } )'
	[ "$status" -eq 78 ]
	[[ $output == *"$dir/server.conf:2: size: "* ]]
	run rmemfs-server -c <(echo 'listen = "pigeon:here"') --check-config
	[ "$status" -eq 78 ]
	[[ $output == *pigeon* ]]
	check_config 'exports = ('
	[ "$status" -eq 78 ]
	[[ $output == *"$dir/server.conf:"* ]]
}

# bats test_tags=once
@test "the shipped examples pass --check-config" {
	run rmemfs-server -c "$repository/config/server.conf" --memory-dir "$memory/place" --export a:64MiB --check-config
	echo "$output"
	[ "$status" -eq 0 ]
}

# bats test_tags=once
@test "wrong flags of the server" {
	run rmemfs-server --nosuchflag
	[ "$status" -ne 0 ]
	run rmemfs-server -c /dev/null --export "nosize" --check-config
	[ "$status" -ne 0 ]
	[[ $output == *nosize* ]]
	run rmemfs-server -c /dev/null --listen "tcp:127.0.0.1:99999" --check-config
	[ "$status" -ne 0 ]
	[[ $output == *99999* ]]
}

# bats test_tags=once
@test "--version and --help" {
	for program in rmemfs rmemfs-server rmemfsctl; do
		run $program --version
		[ "$status" -eq 0 ]
		[[ $output == *[0-9].[0-9]* ]]
		[ "$($program -V)" = "$output" ]
		run $program --help
		[ "$status" -eq 0 ]
		[[ $output == *"$program"* ]]
		[ "$($program -h)" = "$output" ]
	done
}

# bats test_tags=once
@test "an export larger than the memory there is" {
	run timeout 30 rmemfs-server -c /dev/null --memory-dir "$memory" --export huge:1TiB \
		--listen "shm:$socket"
	echo "$output"
	[ "$status" -ne 0 ]
	[ "$status" -ne 124 ]
	[[ $output == *1TiB* ]]
	[[ $output == *free* ]]
}

# bats test_tags=once
@test "a size that differs from the existing export's" {
	start_server
	stop_server
	for size in 64MiB 640MiB; do
		run timeout 30 rmemfs-server -c /dev/null --memory-dir "$memory" \
			--export "default:$size" --listen "shm:$socket"
		echo "$output"
		[ "$status" -eq 78 ]
		[[ $output == *"'default' exists with $export_size and is configured with $size:"* ]]
	done
	start_server
}

# bats test_tags=once
@test "a second server on the same socket, and a stale socket" {
	start_server
	other=$(mktemp -d "$memory/other.XXXXXX")
	run timeout 30 rmemfs-server -c /dev/null --memory-dir "$other" --export a:64MiB \
		--listen "shm:$socket"
	echo "$output"
	[ "$status" -ne 0 ]
	[ "$status" -ne 124 ]
	[[ $output == *"$socket"* ]]
	kill_server
	[ -S "$socket" ]
	start_server
}

@test "a second mount is refused, and told who has the export" {
	start_server
	mount_rmem -o exclusive
	mkdir "$dir/second"
	run timeout 30 rmemfs -c /dev/null -o "$(mount_options),connect_timeout=3" \
		"$(mount_source)" "$dir/second" 3>&-
	echo "$output"
	[ "$status" -ne 0 ]
	[ "$status" -ne 124 ]
	[[ $output == *"$mnt"* ]]
	echo "still works" >"$mnt/a"
}

@test "a full export: ENOSPC, then deleting works and there is room again" {
	start_server
	mount_rmem
	random_file "$dir/kept" 8
	cp "$dir/kept" "$mnt/kept"
	run dd if=/dev/zero of="$mnt/big" bs=1M conv=fsync
	echo "$output"
	[ "$status" -ne 0 ]
	[[ $output == *"No space left on device"* ]]
	cmp "$dir/kept" "$mnt/kept"
	rm "$mnt/big"
	cp "$dir/kept" "$mnt/again"
	cmp "$dir/kept" "$mnt/again"
	remount
	cmp "$dir/kept" "$mnt/kept"
	cmp "$dir/kept" "$mnt/again"
	random_file "$mnt/half" $((${export_size%MiB} / 2))
}

# replace_in_store FROM TO: replaces FROM in every record by TO, of the same length.
replace_in_store() {
	local store=$memory/store/store.mdb offset
	grep -qa "$1" "$store"
	while IFS=: read -r offset _; do
		printf '%s' "$2" | dd of="$store" bs=1 seek="$offset" conv=notrunc status=none
	done < <(grep -abo "$1" "$store")
}

@test "what could not be committed is told to each who has the file open, once, and no more when it could" {
	start_server
	mount_rmem -o cache=none
	mkfifo "$dir/steps"
	fsop tells-each "$mnt/a" <"$dir/steps" >"$dir/said" 3>&- &
	local writer=$! owner=1094861377 # bytes that only the owner in this record has: ABBA
	exec 5>"$dir/steps"
	until_true 10 grep -q open "$dir/said"
	chown $owner "$mnt/a"
	sync "$mnt/a" # or the times would be committed together with the next write
	replace_in_store ABBA ABBC
	echo write >&5
	until_true 10 grep -q "the server did not take what was written: Input/output error" "$dir/daemon.log"
	replace_in_store ABBC ABBA
	echo tell >&5
	exec 5>&-
	exit_status $writer 10
	diff "$dir/said" <(printf '%s\n' open "reader 0" "first EIO" "second EIO" "first 0" "second 0" "third 0")
	remount
	[ "$(cat "$mnt/a")" = written ]
	[ "$(stat -c %u "$mnt/a")" -eq $owner ]
}

@test "what was full and deleted can all be written again" {
	export_size=64MiB
	start_server
	mount_rmem
	for _ in 1 2 3; do
		random_file "$dir/a" 48
		cp "$dir/a" "$mnt/a"
		cmp "$dir/a" "$mnt/a"
		rm "$mnt/a"
	done
}

@test "a read-only mount" {
	start_server
	mount_rmem
	echo data >"$mnt/a"
	remount -o ro
	[ "$(cat "$mnt/a")" = data ]
	run touch "$mnt/b"
	[ "$status" -ne 0 ]
	[[ $output == *"Read-only file system"* ]]
}
