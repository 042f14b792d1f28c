# shellcheck shell=bash disable=SC2154,SC2119,SC2120
# guest.bash - functions that the tests of two machines run in a guest, each in a shell of its own.
# A program that shall go on runs in the background, known by the files of its name in $dir.

set -euo pipefail
two_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
RMEMFS_BIN=$TMPDIR/bin RMEMFS_TEST_SMALL=1 BATS_TEST_DIRNAME=$two_here/../../e2e
# shellcheck source=tests/e2e/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"
dir=$TMPDIR/test mnt=$TMPDIR/test/mnt memory=/dev/shm/rmemfs-test
socket=$dir/server.sock server_address=10.9.0.1 port=7470
export_size=192MiB key_file=$dir/test.key
mkdir -p "$dir"
# Both machines have the key that two.sh has made.
[ -s "$key_file" ] || (umask 077 && echo "$RMEMFS_TEST_KEY_LINE" >"$key_file")

# ---- programs ------------------------------------------------------------------------------------

# program NAME COMMAND...: runs it; $dir has NAME.pid and NAME.log, and NAME.status when it has
# ended.
program() {
	local name=$1 status=0
	shift
	rm -f "$dir/$name".{pid,status}
	{
		"$@" >>"$dir/$name.log" 2>&1 &
		echo $! >"$dir/$name.pid"
		wait $! || status=$?
		echo $status >"$dir/$name.status"
	} </dev/null >/dev/null 2>&1 &
	until_true 10 test -s "$dir/$name.pid"
}

pid_of() {
	cat "$dir/$1.pid"
}

has_ended() {
	[ -s "$dir/$1.status" ]
}

# ends NAME SECONDS [STATUS]: it ends within the time, and with that status.
ends() {
	local status
	until_true "$2" has_ended "$1" || die "the $1 runs still after $2 s" || return
	status=$(cat "$dir/$1.status")
	[ "$status" -eq "${3:-0}" ] || die "the $1 ended with status $status"
}

# Milliseconds of this machine's clock.
now_ms() {
	echo $((${EPOCHREALTIME/./} / 1000))
}

# log_says NAME SECONDS PATTERN: the line appears within the time.
log_says() {
	until_true "$2" grep -qE "$3" "$dir/$1.log" || die "the $1's log has no line with: $3"
}

# logged_ms NAME PATTERN: the time at which the line was logged.
logged_ms() {
	date -d "$(grep -m 1 -E "$2" "$dir/$1.log" | cut -d ' ' -f 2,3)" +%s%3N
}

# ---- server and mount ----------------------------------------------------------------------------

served_or_ended() {
	has_ended server || rmemfsctl status "$socket" >/dev/null 2>&1
}

serve() {
	local exports=()
	[ -n "$server_conf" ] || exports=(--export "default:$export_size" --key "$key_file")
	program server rmemfs-server -c "$(keyed_conf)" --memory-dir "$memory" \
		"${exports[@]}" --listen "shm:$socket" \
		--listen "$transport:$server_address:$port" "$@"
	until_true 60 served_or_ended || die "the server does not answer"
	! has_ended server || die "the server ended at its start"
}

stop_server() {
	kill -TERM "$(pid_of server)"
	ends server 20
}

# serve_anew SIZE LEASE: serves a new, empty export of that size, with that lease time.
serve_anew() {
	stop_server
	rm -r "$memory"
	export_size=$1
	use_lease "$2"
	serve
}

mounted_or_ended() {
	mountpoint -q "$2" || has_ended "$1"
}

# mount_as NAME PLACE SOURCE OPTIONS
mount_as() {
	mkdir -p "$2"
	program "$1" rmemfs -f -c /dev/null -o "$4" "$3" "$2"
	until_true 60 mounted_or_ended "$1" "$2" || die "nothing was mounted"
	! has_ended "$1" || die "the $1 ended at its start"
}

# mount_remote [OPTIONS]: mounts the export of the other machine.
remote_options() {
	echo "transport=$transport,port=$port,key=$key_file,connect_timeout=30${1:+,$1}"
}

mount_remote() {
	mount_as daemon "$mnt" "$server_address:/default" "$(remote_options "$@")"
}

# share_remote N...: mounts it several times, at $dir/N, each as a client of its own that lets
# others write, too.
share_remote() {
	local n
	for n in "$@"; do
		mount_as "mount.$n" "$dir/$n" "$server_address:/default" "$(remote_options share)"
		shares+=("$dir/$n")
	done
}

# mount_here [OPTIONS]: mounts it on the server's own machine, as another client.
mount_here() {
	mount_as daemon "$mnt" "$socket:/default" "transport=shm,connect_timeout=60${1:+,$1}"
}

# A forced umount ends the requests, but reports a busy mount while processes still end.
unmount_by_force() {
	umount -f "$mnt" || until_true 10 umount "$mnt"
	ends daemon 2
}

unmount() {
	timeout 10 umount "$mnt"
	ends daemon 2
}

remount() {
	unmount
	mount_remote
}

show_logs() {
	local log
	for log in "$dir"/*.log; do
		[ ! -s "$log" ] || {
			echo "--- ${log##*/}"
			tail -n 40 "$log"
		}
	done
}

# Ends everything, whatever state the test has left; false if some of it does not end well.
clean_up() {
	local failed=0 pid place
	show_logs
	for place in "$dir"/[0-9]; do
		! mountpoint -q "$place" || umount "$place" || failed=1
	done
	if mountpoint -q "$mnt"; then
		unmount || failed=1
		! mountpoint -q "$mnt" || umount -l "$mnt"
	fi
	if [ -e "$dir/server.pid" ] && ! has_ended server; then
		stop_server || failed=1
	fi
	for pid in "$dir"/*.pid; do
		[ ! -e "$pid" ] || kill -KILL "$(cat "$pid")" 2>/dev/null || true
	done
	rm -rf "$dir" "$memory" /etc/modprobe.d/rmemfs-test.conf
	return $failed
}

# ---- several clients that write -------------------------------------------------------------------

# tally N: counts a number up N times under a lock of each kind, which excludes only others of its
# kind, and adds N lines of this machine's to the log.
tally() {
	local n kind
	for kind in flock process; do
		locker count $kind "$mnt/$kind" "$1"
	done
	for ((n = 0; n < $1; n++)); do
		echo "$HOSTNAME $n" >>"$mnt/log"
	done
}

# Checks the result from here: the work of both machines is there, whole and in order.
tallied() {
	local host kind
	for kind in flock process; do
		[ "$(cat "$mnt/$kind")" -eq $((2 * $1)) ]
	done
	[ "$(wc -l <"$mnt/log")" -eq $((2 * $1)) ]
	for host in client server; do
		grep "^$host " "$mnt/log" | cmp - <(seq -f "$host %.0f" 0 $(($1 - 1)))
	done
}

# ---- what the wire shows ----------------------------------------------------------------------------

# capture: records all frames of this machine in $dir/frames.
capture() {
	program capture tcpdump -i eth0 -s 0 -U -Z root -w "$dir/frames"
	log_says capture 20 'listening on eth0'
}

end_capture() {
	kill -INT "$(pid_of capture)"
	ends capture 20
}

# kernel_tls on|off: whether this machine's kernel has TLS for sockets from now on.
kernel_tls() {
	local off=/etc/modprobe.d/rmemfs-test.conf
	modprobe -r tls
	mkdir -p "${off%/*}"
	if [ "$1" = on ]; then
		rm -f "$off"
		modprobe tls
	else
		echo 'install tls /bin/false' >"$off"
		if modprobe tls 2>/dev/null; then die "it loads tls all the same"; fi
	fi

}

# The sockets that the kernel protects now, in both directions.
tls_sockets() {
	[ -e /proc/net/tls_stat ] || echo 0
	[ ! -e /proc/net/tls_stat ] || awk '/^TlsCurr[TR]xSw/ { n += $2 } END { print n + 0 }' /proc/net/tls_stat
}

# ---- who has files open ---------------------------------------------------------------------------

keep_open() {
	exec keeper "$mnt/$2" <>"$dir/to.$1"
}

# keep NAME FILE: a program of that name keeps the file open.
keep() {
	mkfifo "$dir/to.$1"
	program "$1" keep_open "$1" "$2"
	log_says "$1" 20 '^ok$'
}

# tell NAME ORDER...: gives it an order, without waiting for the result.
tell() {
	echo "${*:2}" >"$dir/to.$1"
}

has_said() {
	[ "$(wc -l <"$dir/$1.log")" -gt "$2" ]
}

# gives NAME WORDS ORDER...: gives it an order and expects these words.
gives() {
	local before said
	before=$(wc -l <"$dir/$1.log")
	tell "$1" "${@:3}"
	until_true 20 has_said "$1" "$before" || die "$1: no answer to ${*:3}"
	said=$(tail -n 1 "$dir/$1.log")
	[ "$said" = "$2" ] || die "$1: ${*:3} gave $said, not $2"
}

let_go() {
	local name
	for name in "$@"; do
		tell "$name" quit
		ends "$name" 20
	done
}

# ---- data ----------------------------------------------------------------------------------------

# verified_file MIB NAME: makes a random file, copies it onto the mount and syncs; prints its sum.
verified_file() {
	random_file "$dir/$2" "$1"
	dd if="$dir/$2" of="$mnt/$2" bs=1M conv=fsync status=none
	sum "$dir/$2"
}

sum() {
	sha256sum <"$1" | cut -d ' ' -f 1
}

# sum_here NAME: the sum as read from the mount, without the kernel's cache.
sum_here() {
	drop_caches
	sum "$mnt/$1"
}

# overwrite NAME MIB: overwrites the file in place; prints how many ms it took.
overwrite() {
	local began
	random_file "$dir/over" "$2"
	began=$(now_ms)
	dd if="$dir/over" of="$mnt/$1" bs=1M conv=notrunc,fsync status=none
	echo $(($(now_ms) - began))
}

# refill NAME MIB: frees the file's pages, then writes others, with random bytes behind a first
# line; prints the sum.
refill() {
	random_file "$dir/$1" "$2"
	sed -i '1s/^/first line\n/' "$dir/$1"
	truncate -s 0 "$mnt/$1"
	dd if="$dir/$1" of="$mnt/$1" bs=1M conv=fsync status=none
	sum "$dir/$1"
}

# use_pages NAME MIB: writes until no free page is left, and there are fewer than MIB; prints the
# sum of the written bytes.
use_pages() {
	random_file "$dir/$1" "$2"
	! dd if="$dir/$1" of="$mnt/$1" bs=1M oflag=direct status=none 2>"$dir/full.log" ||
		die "there are more"
	grep -q 'No space left' "$dir/full.log"
	[ "$(status_of '.exports[0] | .free + .granted + .dirty')" -lt $((4 << 20)) ]
	truncate -s "$(stat -c %s "$mnt/$1")" "$dir/$1"
	sum "$dir/$1"
}

# Becomes fio, so that killing the program's pid kills fio.
fio_verify() {
	exec fio --name=verify --aux-path="$dir" --directory="$mnt" --rw=randwrite --randrepeat=1 \
		--verify=crc32c --verify_fatal=1 --output="$dir/fio.log" "$@"
}

hold_open() {
	exec 3<"$mnt/$1"
	read -r <"$dir/gate"
	cat <&3
}

# The bytes that a program has passed to write(2).
written() {
	awk '$1 == "wchar:" { print $2 }' "/proc/$(pid_of "$1")/io" 2>/dev/null || echo 0
}

has_written() {
	has_ended "$1" || [ "$(written "$1")" -ge "$2" ]
}

# writes_on NAME MIB: the program writes that much more and goes on.
writes_on() {
	until_true 60 has_written "$1" $(($2 << 20)) || die "the $1 does not get on"
	! has_ended "$1" || die "the $1 has ended with status $(cat "$dir/$1.status")"
}

# Watches a file of its own grow: the kernel does not count bytes written asynchronously.
io_under_way() {
	until_true 60 test -s "$mnt/verify.0.0" || die "the $1 does not get on"
	! has_ended "$1" || die "the $1 has ended with status $(cat "$dir/$1.status")"
}

# killed NAME...: each is gone within 5 s of SIGKILL.
killed() {
	local name
	for name in "$@"; do
		kill -KILL "$(pid_of "$name")"
	done
	for name in "$@"; do
		ends "$name" 5 137
	done
}
