#!/usr/bin/env bats
# versions.bats - programs of several releases, by the version of the wire protocol that they speak
# (common/rpc/wire_version.h): servers are upgraded first, under live mounts, and all else is refused.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts
load between

setup() {
	setup_rmem
	mounts=()
	setup_between
	now=$(sed -n 's/^enum { RMEMFS_WIRE_VERSION = \([0-9]*\) };/\1/p' "$repository/common/rpc/wire_version.h")
	before=$((now - 1)) next=$((now + 1)) later=$((now + 2))
}

teardown() {
	end_mounts
}

# at VERSION COMMAND...: what it starts is of the release with that version.
at() {
	local -x RMEMFS_WIRE=$1
	"${@:2}"
}

# versions: prints the server's version, and those of its sessions in the order of the mounts.
versions() {
	status_of '[.wire_version, (.sessions | sort_by(.client) | .[].wire_version)] | join(" ")'
}

# where: prints the server's address as a mount's messages have it.
where() {
	case $transport in
	shm) echo "shm $socket" ;;
	tcp) echo "tcp 127.0.0.1:$port" ;;
	verbs) echo "verbs $verbs_address:$port" ;;
	esac
}

# refused VERSION WORDS: a mount of this version ends at once, with one line that says what the server speaks.
refused() {
	mkdir -p "$mnt"
	run at "$1" timeout 30 rmemfs -c /dev/null -o "$(mount_options),connect_timeout=3600" "$(mount_source)" \
		"$mnt" 3>&-
	echo "$output"
	[ "$status" -ne 0 ]
	[ "$status" -lt 124 ]
	[ "$output" = "rmemfs: $(where): it speaks $2" ]
}

logged() {
	grep -qF "$1" "$dir/server.log"
}

# Files change, are removed and come, until $dir/enough is there, and each is compared.
load_files() {
	local n
	for ((n = 0; ; n++)); do
		cp "$dir/data" "$1/new" || exit 1
		mv "$1/new" "$1/moved.$((n % 5))" || exit 1
		fsop uncache "$1" || exit 1
		cmp "$dir/data" "$1/moved.$((n % 5))" || exit 1
		echo $n >"$dir/loads"
		[ ! -e "$dir/enough" ] || return 0
	done
}

# Also while the file is not there yet.
loads_at_least() {
	[ "$(cat "$dir/loads" 2>/dev/null || echo 0)" -ge "$1" ]
}

goes_on() {
	until_true 30 loads_at_least $(($(cat "$dir/loads") + 2))
}

# ---- what is spoken ------------------------------------------------------------------------------

# bats test_tags=nightly:verbs
@test "a server is upgraded under live mounts, and they go on in their version; then mounts are" {
	start_server
	share 1 2
	random_file "$dir/data" 1
	load_files "$dir/1" >"$dir/load.log" 2>&1 3>&- &
	load_pid=$!
	until_true 10 loads_at_least 1
	# A lock and an open file without a name outlive the upgrade.
	exec 5>"$dir/2/lock" 6>"$dir/2/unnamed"
	flock -x 5
	rm "$dir/2/unnamed"
	sessions=$(status_of '[.sessions[].id] | sort')
	[ "$(versions)" = "$now $now $now" ]
	stop_server
	at "$next" start_server 5>&- 6>&-
	goes_on
	[ "$(status_of '[.sessions[].id] | sort')" = "$sessions" ]
	[ "$(versions)" = "$next $now $now" ]
	rmemfsctl status "$socket" | grep -q "^SESSION .*, share, wire protocol $now$"
	rmemfsctl status "$dir/1" | grep -q ", wire protocol $now$"
	echo kept >&6
	[ "$(stat -Lc %s /proc/self/fd/6)" -eq 5 ]
	if flock -n "$dir/1/lock" true; then return 1; fi
	at "$next" mount_number 3 ,share 5>&- 6>&-
	[ "$(versions)" = "$next $now $now $next" ]
	if flock -n "$dir/3/lock" true; then return 1; fi
	exec 5>&- 6>&-
	flock -x "$dir/3/lock" true
	cp "$dir/data" "$dir/3/data"
	cmp "$dir/data" "$dir/2/data"
	# The server crashes; a mount is made anew, by the next release.
	kill_server
	at "$next" start_server
	goes_on
	end_mount 2
	at "$next" mount_number 2 ,share
	cmp "$dir/data" "$dir/2/data"
	[ "$(versions)" = "$next $now $next $next" ]
	touch "$dir/enough"
	exit_status $load_pid 60 || die "$(cat "$dir/load.log")"
	no_log_says 'session lost'
}

# bats test_tags=once
@test "a mount waits for a server that does not speak its version, and says what to upgrade" {
	at "$next" start_server
	at "$next" mount_rmem
	random_file "$dir/data" 1
	cp "$dir/data" "$mnt/data"
	fsop uncache "$mnt"
	stop_server
	# Its release is taken back. Clients that were upgraded first meet this, too.
	start_server
	cat "$mnt/data" >"$dir/read" 3>&- &
	reader=$!
	until_true 20 grep -qF \
		"it speaks version $now of the protocol, this client $next: upgrade the server first" "$dir/daemon.log"
	until_true 20 logged \
		"it speaks version $next of the protocol, this server $now: upgrade this server first"
	alive $reader
	stop_server
	at "$later" start_server
	exit_status $reader 30
	cmp "$dir/data" "$dir/read"
	if grep "session lost" "$dir/daemon.log"; then return 1; fi
	umount_rmem
	stop_server
}

# fio writes blocks and reads them with their sums, until $dir/enough is there.
load_fio() {
	local n
	for ((n = 0; ; n++)); do
		fio --name=load --verify_state_save=0 --filename="$1/fio" --size=4M --rw=randwrite --bs=4k \
			--fallocate=none --verify=crc32c --do_verify=1 --verify_fatal=1 --fsync=64 --randseed=$n \
			--output="$dir/fio.log" || exit 1
		rm "$1/fio" || exit 1
		echo $n >"$dir/loads"
		[ ! -e "$dir/enough" ] || return 0
	done
}

# bats test_tags=long
@test "a server is upgraded and taken back under load, by stops and by crashes" {
	start_server
	mount_number 1 ''
	load_fio "$dir/1" >"$dir/load.log" 2>&1 3>&- &
	load_pid=$!
	until_true 30 loads_at_least 1
	for how in stop_server kill_server stop_server kill_server; do
		$how
		at "$next" start_server
		goes_on
		$how
		start_server
		goes_on
		[ "$(versions)" = "$now $now" ]
	done
	touch "$dir/enough"
	exit_status $load_pid 60 || die "$(cat "$dir/load.log" "$dir/fio.log")"
	no_log_says 'session lost'
}

# ---- what is refused -----------------------------------------------------------------------------

# bats test_tags=once
@test "versions that do not fit are refused at once, on both sides, with the one to upgrade" {
	start_server
	refused "$next" "version $now of the protocol, this client $next: upgrade the server first"
	logged "refused: it speaks version $next of the protocol, this server $now: upgrade this server first"
	refused "$later" "version $now of the protocol, this client $later: upgrade the server first"
	refused "$before" "version $now of the protocol, this client $before: upgrade this client"
	logged "refused: it speaks version $before of the protocol, this server $now: upgrade that client"
	stop_server
	at "$later" start_server
	refused "$now" "versions $next and $later of the protocol, this client $now: upgrade this client"
	logged "refused: it speaks version $now of the protocol, this server $next and $later: upgrade that client"
	stop_server
	at "$next" start_server
	refused "$before" "versions $now and $next of the protocol, this client $before: upgrade this client"
}

# bats test_tags=once
@test "rmemfsctl asks a server that is still to be upgraded by its socket, and no other one" {
	start_server
	[ "$(at "$next" status_of .wire_version)" = "$now" ]
	run at "$later" rmemfsctl status "$socket"
	[ "$status" -eq 1 ]
	[ "$output" = "rmemfsctl: $socket: it speaks version $now of the protocol, this client $later: upgrade the server first" ]
	[ "$transport" != shm ] || return 0
	run at "$next" rmemfsctl status "$(listen_address)"
	[ "$status" -eq 1 ]
	[ "$output" = "rmemfsctl: $(listen_address): it speaks version $now of the protocol, this client $next: upgrade the server first" ]
}

# Both sides are told the version that they want of the other.
# bats test_tags=only:tcp,long
@test "nobody in the middle can lower the version" {
	at "$next" start_server
	between lower "$now"
	mkdir -p "$mnt"
	run at "$next" timeout 30 rmemfs -c /dev/null -o "transport=tcp,port=$proxy,key=$key_file,connect_timeout=1" \
		"$(mount_source)" "$mnt" 3>&-
	echo "$output"
	[ "$status" -ne 0 ]
	[ "$status" -lt 124 ]
	[[ $output == *"closed the connection: "* ]]
	if grep "session .* begins" "$dir/server.log"; then return 1; fi
	end_between
}
