#!/usr/bin/env bats
# badserver.bats - the server in a bad environment: one line says what is wrong, why, and how to
# mend it. Files that were there before do not change.

bats_require_minimum_version 1.5.0

load helpers

setup() {
	setup_rmem
	place=$memory/place
	passing=0
	is_foreseen=1
	below=''
}

teardown() {
	[ -z "$below" ] || umount "$below"
	teardown_rmem
}

no_figures() {
	sed 's/, free [^ ]* in/, free SIZE in/'
}

# start_fails COMMAND...: the server ends by itself, with one error line: $output. Other lines may
# report progress, or memory that the machine's limit keeps the server from locking. Then the last
# line repeats the error. With $passing the cause may go away by itself. --check-config must report
# the same and change nothing.
start_fails() {
	local checked check_status=0 reason last
	if [ "$is_foreseen" -eq 1 ]; then
		find "$memory" -printf '%p %i %s %T@\n' >"$dir/before"
		checked=$(timeout 30 "$@" --check-config 2>&1 3>&-) || check_status=$?
		echo "$checked"
		find "$memory" -printf '%p %i %s %T@\n' | diff "$dir/before" -
	fi
	run timeout 30 "$@" 3>&-
	echo "$output"
	[ "$status" -eq $((passing ? 1 : 78)) ]
	[ "$(grep -v " error: not started: " <<<"$output" | grep -vc " \(warning\|info\): ")" -eq 1 ]
	if [ "$is_foreseen" -eq 1 ]; then
		[ "$check_status" -eq "$status" ]
		reason=$(grep -v " \(warning\|info\): " <<<"$output" | head -n 1 | sed 's/.* error: //')
		# The lock file takes a page, so the free size differs.
		grep -qxF -- "$(no_figures <<<"${reason/rmemfs-server: /}")" < <(no_figures <<<"${checked//rmemfs-server: /}")
	fi
	last=${output##*$'\n'}
	[[ ! ${last/* error: not started: / error: } =~ \ (warning|info):\  ]]
}

# refuses DIRECTORY [COMMAND...]: a server does not start with that memory directory.
refuses() {
	start_fails "${@:2}" rmemfs-server -c /dev/null --memory-dir "$1" --export a:64MiB \
		--listen "shm:$socket"
}

# fails_at ADDRESS [COMMAND...]: a server does not start to listen at that address.
fails_at() {
	start_fails "${@:2}" rmemfs-server -c /dev/null --memory-dir "$place" --export a:64MiB \
		--listen "$1"
}

# refuses_address ADDRESS [COMMAND...]: the same; $output is the reason.
refuses_address() {
	fails_at "$@"
	output=$(grep -v -e ' info: the memory that was made stays ' -e ' error: not started: ' <<<"$output")
}

# small_tmpfs SIZE: mounts a tmpfs at $place.
small_tmpfs() {
	mkdir "$place"
	mount -t tmpfs -o "size=$1,mode=0700" tmpfs "$place"
	below=$place
}

# ---- the memory directory ------------------------------------------------------------------------

# bats test_tags=once
@test "a memory directory on a disk is refused" {
	disk=$(mktemp -d /var/tmp/rmemfs-test.XXXXXX)
	refuses "$disk" || failed=1
	[ -z "$(ls -A "$disk")" ] || failed=1
	rmdir "$disk"
	[ -z "${failed:-}" ]
	[[ $output == *"memory directory: $disk is on "*"; it must be on tmpfs, such as below /dev/shm" ]]
}

# bats test_tags=once
@test "a memory directory that is a file is refused" {
	echo data >"$place"
	refuses "$place"
	[[ $output == *"memory directory: $place is not a directory: remove it, or name another one (memory_dir)" ]]
	[ "$(cat "$place")" = data ]
}

# bats test_tags=once
@test "a memory directory below one that does not exist is refused" {
	refuses "$memory/no/such"
	[[ $output == *"can't make $memory/no/such: No such file or directory: make the directory above it first" ]]
}

# bats test_tags=once
@test "a memory directory with a relative or too long path is refused" {
	cd "$memory"
	refuses relative
	[[ $output == *"'relative' depends on where the server is started: name it from / on (memory_dir)" ]]
	[ ! -e relative ]
	refuses "$memory/$(printf 'x%.0s' {1..300})"
	[[ $output == *"File name too long" ]]
	refuses "$memory/$(printf 'x/%.0s' {1..600})"
	[[ $output == *"must be 1 to 1024 bytes long" ]]
}

# bats test_tags=once
@test "a memory directory of another user is refused" {
	mkdir "$place"
	chown 65533 "$place"
	chmod 0777 "$memory"
	refuses "$place" "${nobody[@]}"
	[[ $output == *"$place belongs to user 65533, and the server runs as nobody (65534): run it as that user, or name another directory (memory_dir); if what is in it is this server's, give it back: chown -R 65534 $place; if it is nobody's, remove it: rm -r $place" ]]
	[ -z "$(ls -A "$place")" ]
}

# bats test_tags=once
@test "a memory directory without the right to write there is refused" {
	mkdir -m 0755 "$place"
	chmod 0755 "$memory"
	refuses "$place" "${nobody[@]}"
	[[ $output == *"can't open $place/lock: Permission denied: run as a user who may, or name another directory (memory_dir)" ]]
	refuses "$memory/other" "${nobody[@]}"
	[[ $output == *"can't make $memory/other: Permission denied: run as a user who may"* ]]
}

# bats test_tags=once
@test "a memory directory that everybody can write to is refused" {
	mkdir "$place"
	chmod 0777 "$place"
	refuses "$place"
	[[ $output == *"everybody can write to $place: chmod o-w it, or name another directory (memory_dir)" ]]
	[ -z "$(ls -A "$place")" ]
}

# bats test_tags=once
@test "a memory directory behind a link: our own is followed, another user's is refused" {
	mkdir "$memory/real"
	ln -s real "$place"
	chown -h 65533 "$place"
	chown 65534 "$memory/real"
	chmod 0755 "$memory"
	refuses "$place" "${nobody[@]}"
	[[ $output == *"$place belongs to user 65533, and the server runs as nobody (65534)"* ]]
	[ -z "$(ls -A "$memory/real")" ]
	chown -h 0 "$place"
	chown 0 "$memory/real"
	memory=$place start_server
	[ -d "$memory/real/store" ]
	stop_server
}

# bats test_tags=once
@test "a tmpfs too small for the regions is named with needed and free, and stays empty" {
	small_tmpfs 48M
	refuses "$place"
	[[ $output == *"the memory of 1 export (and 64MiB for metadata, 128MiB in all): needed 64MiB, free "*" in $place/regions; make the exports smaller or the memory larger" ]]
	[ -z "$(find "$place/regions" "$place/store" -type f)" ]
}

# bats test_tags=once
@test "a tmpfs too small for the store is named with needed and free, and stays empty" {
	small_tmpfs 100M
	refuses "$place"
	[[ $output == *"$place/store"*"needed 64MiB, free "*"memory larger"* ]]
	[ -z "$(find "$place/regions" "$place/store" -type f)" ]
}

# bats test_tags=once
@test "regions on a tmpfs of their own need no room beside the store" {
	small_tmpfs 100M
	mkdir -m 700 "$place/regions"
	mount -t tmpfs -o size=70M,mode=0700 tmpfs "$place/regions"
	below=$place/regions
	# shellcheck disable=SC2034 # start_server reads it
	export_size=64MiB
	memory=$place start_server
	stop_server
	umount "$below"
	below=$place
}

# bats test_tags=once
@test "a tmpfs too small for one more export leaves the others' files as they are" {
	# shellcheck disable=SC2034 # start_server reads it
	export_size=64MiB
	small_tmpfs 220M
	memory=$place start_server
	mount_rmem
	random_file "$dir/kept" 16
	cp "$dir/kept" "$mnt/kept"
	umount_rmem
	stop_server
	start_fails rmemfs-server -c /dev/null --memory-dir "$place" --export default:64MiB \
		--export more:128MiB --listen "shm:$socket"
	[[ $output == *"needed 128MiB, free "* ]]
	[ "$(ls "$place/regions")" = default.0000 ]
	memory=$place start_server
	mount_rmem
	cmp "$dir/kept" "$mnt/kept"
	umount_rmem
	stop_server
}

# bats test_tags=once
@test "a memory directory in use is refused and its server named" {
	passing=1
	is_foreseen=0 # --check-config says what a restart would do
	start_server
	mount_rmem
	echo data >"$mnt/a"
	refuses "$memory"
	[[ $output == *"$memory is in use by another server (pid $server_pid): stop it, or name another directory (memory_dir)" ]]
	remount
	[ "$(cat "$mnt/a")" = data ]
}

# bats test_tags=once
@test "a memory directory of another boot: the server starts empty and says so" {
	start_server
	mount_rmem
	echo data >"$mnt/a"
	umount_rmem
	stop_server
	echo 01234567-89ab-cdef-0123-456789abcdef >"$memory/boot_id"
	start_server
	grep -q "notice: $memory is of an earlier boot of this machine: starting empty" "$dir/server.log"
	cmp "$memory/boot_id" /proc/sys/kernel/random/boot_id
	mount_rmem
	[ -z "$(ls -A "$mnt")" ]
}

# serves_as USER DIRECTORY: a server starts and ends as that user.
serves_as() {
	mkdir "$2"
	chown "$1" "$2" "$dir"
	chmod 0755 "$memory"
	: >"$dir/server.log"
	RMEMFS_TEST_SERVER_UNDER="setpriv --reuid=$1 --regid=$1 --clear-groups --inh-caps=+dac_read_search
		--ambient-caps=+dac_read_search" transport=shm memory=$2 start_server
	stop_server
	rm -r "${2:?}"
}

# bats test_tags=once
@test "a server of a login user warns that logind removes its files" {
	serves_as 54321 "$place"
	grep " warning: memory directory: $place is lost when user 54321 logs out: .*(RemoveIPC)\. Run the server as a system user, .* or set RemoveIPC=no in logind.conf" "$dir/server.log"
	serves_as 998 "$place"
	run ! grep RemoveIPC "$dir/server.log"
	below=$dir/elsewhere
	mkdir "$below"
	mount -t tmpfs -o mode=0755 none "$below"
	serves_as 54321 "$below/place"
	run ! grep RemoveIPC "$dir/server.log"
}

# ---- locked memory -------------------------------------------------------------------------------

# A sanitizer's mlock(2) does nothing.
# bats test_tags=once,unsanitized
@test "RLIMIT_MEMLOCK too low: without RDMA the server serves, and says what may be swapped out" {
	transport=shm
	mkdir "$place"
	chown 65534 "$place" "$dir"
	chmod 0755 "$memory"
	RMEMFS_TEST_SERVER_UNDER="${nobody[*]} prlimit --memlock=65536" memory=$place start_server
	grep -q "warning: the regions are not locked in memory and may be swapped out: RLIMIT_MEMLOCK is 64KiB; set LimitMEMLOCK=infinity or ulimit -l unlimited; if the unit has that already, its service manager may not grant it" "$dir/server.log"
	mount_rmem
	random_file "$dir/a" 8
	cp "$dir/a" "$mnt/a"
	cmp "$dir/a" "$mnt/a"
}

# Root may lock any memory, or raise the limit, unless it can't get these capabilities.
few_locked=(setpriv "--bounding-set=-ipc_lock,-sys_resource" prlimit --memlock=1048576)

# bats test_tags=only:verbs
@test "RLIMIT_MEMLOCK too low: over RDMA the server names region, size, limit and remedy" {
	is_foreseen=0 # --check-config uses other words
	start_fails "${few_locked[@]}" rmemfs-server -c /dev/null --memory-dir "$place" \
		--export a:64MiB --listen "$(listen_address)"
	[[ $output == *"can't register $place/regions/a.0000 (64MiB) with rxe0: Cannot allocate memory; RLIMIT_MEMLOCK is 1MiB: set LimitMEMLOCK=infinity or ulimit -l unlimited"* ]]
}

# bats test_tags=only:verbs
@test "RLIMIT_MEMLOCK too low: over RDMA the client names size, limit and remedy" {
	start_server
	run timeout 30 "${few_locked[@]}" rmemfs -c /dev/null -o "$(mount_options)" \
		"$(mount_source)" "$mnt" 3>&-
	echo "$output"
	[ "$status" -ne 0 ]
	[[ $output == *"I/O buffers: Cannot allocate memory; RLIMIT_MEMLOCK is 1MiB: set LimitMEMLOCK=infinity or ulimit -l unlimited"* ]]
	mount_rmem
}

# ---- addresses -----------------------------------------------------------------------------------

@test "an address in use is refused, with what to do" {
	passing=1
	start_server
	[ "$transport" = shm ] || taken=$(listen_address)
	refuses_address "${taken:-shm:$socket}"
	[[ $output == *"can't listen on ${taken:-shm:$socket}: another process listens there: stop it, or choose another address" ]]
	mount_rmem
}

# bats test_tags=once
@test "a file in the socket's place is refused and kept" {
	echo data >"$dir/file"
	refuses_address "shm:$dir/file"
	[[ $output == *"can't listen on shm:$dir/file: a file that is no socket is there: remove it, or choose another path" ]]
	[ "$(cat "$dir/file")" = data ]
}

# bats test_tags=once
@test "a socket in a folder that can't be made, or without the right to it, is refused" {
	refuses_address "shm:$dir/no/such/socket"
	[[ $output == *"can't listen on shm:$dir/no/such/socket: no such directory: make it first" ]]
	rm -r "$place"
	mkdir "$place"
	chown 65534 "$place"
	chmod 0755 "$memory" "$dir"
	refuses_address "shm:$dir/socket" "${nobody[@]}"
	[[ $output == *"can't listen on shm:$dir/socket: no right to make a socket there: run as a user who may, or choose another path" ]]
}

@test "an address that is not ours is refused" {
	passing=1
	refuses_address tcp:192.0.2.1:7470
	[[ $output == *"can't listen on tcp:192.0.2.1:7470: not an address of this machine: see 'ip address'" ]]
}

@test "a start that fails when the memory is made says where it stays, and the next one has it" {
	passing=1
	fails_at tcp:192.0.2.1:7470
	[[ $output == *" info: the memory that was made stays in $place for the next start: rm -r $place gives it back"* ]]
	[[ ${lines[-1]} == *" error: not started: can't listen on tcp:192.0.2.1:7470: "* ]]
	[ "$(stat -c %b "$place/regions/a.0000")" -eq $((64 * 2048)) ]
	made=$(stat -c %i "$place/regions/a.0000")
	fails_at tcp:192.0.2.1:7470
	[ "$(grep -c "for the next start" <<<"$output")" -eq 0 ]
	[ "$(stat -c %i "$place/regions/a.0000")" = "$made" ]
}

@test "a port below 1024 without the right to it is refused" {
	mkdir "$place"
	chown 65534 "$place"
	chmod 0755 "$memory"
	[ "$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start)" -gt 80 ]
	refuses_address tcp:127.0.0.1:80 "${nobody[@]}"
	[[ $output == *"can't listen on tcp:127.0.0.1:80: no right to this port: choose one from 1024 on, or give the server CAP_NET_BIND_SERVICE" ]]
}

# bats test_tags=once
@test "a name that does not resolve, and an IPv6 address without brackets, are refused" {
	passing=1
	refuses_address tcp:no-such-host.invalid:7470
	[[ $output == *"no-such-host.invalid"* ]]
	passing=0
	refuses_address tcp:::1:7470
	[[ $output == *"an IPv6 address stands in brackets, as in [::1]" ]]
	[ ! -e "$place" ]
}

@test "an address without an RDMA device is refused" {
	passing=1
	refuses_address verbs:127.0.0.1:7470
	[[ $output == *"can't open verbs:127.0.0.1:7470: no RDMA device has this address: see 'rdma link show', or listen on tcp" ]]
}

# bats test_tags=only:tcp
@test "IPv6: a server and a mount" {
	listen_address() { echo "tcp:[::1]:$port"; }
	mount_source() { echo "[::1]:/default"; }
	start_server
	mount_rmem
	grep -q "over tcp \[::1\]:" "$dir/server.log"
	random_file "$dir/a" 8
	cp "$dir/a" "$mnt/a"
	remount
	cmp "$dir/a" "$mnt/a"
}
