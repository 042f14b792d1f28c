# shellcheck shell=bash disable=SC2154,SC2119,SC2120
# guest.bash - what the tests of two machines have run in a guest, each function by a shell of its
# own: what is to last is a program in the background, known by the files of its name in $dir.

set -euo pipefail
two_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
RMEMFS_BIN=$TMPDIR/bin RMEMFS_TEST_SMALL=1 BATS_TEST_DIRNAME=$two_here/../../e2e
# shellcheck source=tests/e2e/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"
dir=$TMPDIR/test mnt=$TMPDIR/test/mnt memory=/dev/shm/rmemfs-test
socket=$dir/server.sock server_address=10.9.0.1 port=7470
export_size=192MiB
mkdir -p "$dir"

# ---- programs ------------------------------------------------------------------------------------

# program NAME COMMAND...: $dir has its NAME.pid and NAME.log, and NAME.status when it has ended.
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

# ends NAME SECONDS [STATUS]: within the time, and well.
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

# log_says NAME SECONDS PATTERN: in that time at the latest.
log_says() {
	until_true "$2" grep -qE "$3" "$dir/$1.log" || die "the $1's log has no line with: $3"
}

# logged_ms NAME PATTERN: when the line was logged.
logged_ms() {
	date -d "$(grep -m 1 -E "$2" "$dir/$1.log" | cut -d ' ' -f 2,3)" +%s%3N
}

# ---- server and mount ----------------------------------------------------------------------------

served_or_ended() {
	has_ended server || rmemfsctl status "$socket" >/dev/null 2>&1
}

serve() {
	local exports=()
	[ -n "$server_conf" ] || exports=(--export "default:$export_size")
	program server rmemfs-server -c "${server_conf:-/dev/null}" --memory-dir "$memory" \
		"${exports[@]}" --listen "shm:$socket" \
		--listen "$transport:$server_address:$port" "$@"
	until_true 60 served_or_ended || die "the server does not answer"
	! has_ended server || die "the server ended at its start"
}

stop_server() {
	kill -TERM "$(pid_of server)"
	ends server 20
}

# serve_anew SIZE LEASE: an export of that size, with nothing in it, and that lease time.
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

# mount_remote [OPTIONS]: the export of the other machine.
remote_options() {
	echo "transport=$transport,port=$port,connect_timeout=30${1:+,$1}"
}

mount_remote() {
	mount_as daemon "$mnt" "$server_address:/default" "$(remote_options "$@")"
}

# share_remote N...: several, as $dir/N, each a client of its own that lets others write, too.
share_remote() {
	local n
	for n in "$@"; do
		mount_as "mount.$n" "$dir/$n" "$server_address:/default" "$(remote_options share)"
		shares+=("$dir/$n")
	done
}

# mount_here [OPTIONS]: on the server's own machine, as another client.
mount_here() {
	mount_as daemon "$mnt" "$socket:/default" "transport=shm,connect_timeout=60${1:+,$1}"
}

# What asks for it asynchronously (libaio) can't be killed while it waits: the kernel interrupts no
# such request. Forced, umount ends them, and says that the mount is busy with those who wait yet.
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

# Whatever state the test has left; false if not all of it ends well.
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
	rm -rf "$dir" "$memory"
	return $failed
}

# ---- several clients that write -------------------------------------------------------------------

# tally N: counts a number up N times under a lock of each kind, which others of its kind alone keep
# out, and adds N lines of this machine's to the log.
tally() {
	local n kind
	for kind in flock process; do
		locker count $kind "$mnt/$kind" "$1"
	done
	for ((n = 0; n < $1; n++)); do
		echo "$HOSTNAME $n" >>"$mnt/log"
	done
}

# The same as seen from here: all of both machines is there, whole and in order.
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

# ---- who has files open ---------------------------------------------------------------------------

keep_open() {
	exec keeper "$mnt/$2" <>"$dir/to.$1"
}

# keep NAME FILE: has it open, as the program of that name.
keep() {
	mkfifo "$dir/to.$1"
	program "$1" keep_open "$1" "$2"
	log_says "$1" 20 '^ok$'
}

# tell NAME ORDER...: without waiting for what comes of it.
tell() {
	echo "${*:2}" >"$dir/to.$1"
}

has_said() {
	[ "$(wc -l <"$dir/$1.log")" -gt "$2" ]
}

# gives NAME WORDS ORDER...: what comes of it.
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

# verified_file MIB NAME: random, copied onto the mount and synced; its sum goes out.
verified_file() {
	random_file "$dir/$2" "$1"
	dd if="$dir/$2" of="$mnt/$2" bs=1M conv=fsync status=none
	sum "$dir/$2"
}

sum() {
	sha256sum <"$1" | cut -d ' ' -f 1
}

# sum_here NAME: as it is read from the mount, past what the kernel has cached.
sum_here() {
	drop_caches
	sum "$mnt/$1"
}

# overwrite NAME MIB: in its place; how many ms it took goes out.
overwrite() {
	local began
	random_file "$dir/over" "$2"
	began=$(now_ms)
	dd if="$dir/over" of="$mnt/$1" bs=1M conv=notrunc,fsync status=none
	echo $(($(now_ms) - began))
}

# refill NAME MIB: its pages are freed, then it gets others, with random bytes behind a first line; the
# sum goes out.
refill() {
	random_file "$dir/$1" "$2"
	sed -i '1s/^/first line\n/' "$dir/$1"
	truncate -s 0 "$mnt/$1"
	dd if="$dir/$1" of="$mnt/$1" bs=1M conv=fsync status=none
	sum "$dir/$1"
}

# use_pages NAME MIB: as many as there are, which are fewer, until none is left for anything else; the
# sum of what they have goes out.
use_pages() {
	random_file "$dir/$1" "$2"
	! dd if="$dir/$1" of="$mnt/$1" bs=1M oflag=direct status=none 2>"$dir/full.log" ||
		die "there are more"
	grep -q 'No space left' "$dir/full.log"
	[ "$(status_of '.exports[0] | .free + .granted + .dirty')" -lt $((4 << 20)) ]
	truncate -s "$(stat -c %s "$mnt/$1")" "$dir/$1"
	sum "$dir/$1"
}

# Becomes fio, so that as a program it is killed with its pid.
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

# writes_on NAME MIB: it has written that much more and goes on.
writes_on() {
	until_true 60 has_written "$1" $(($2 << 20)) || die "the $1 does not get on"
	! has_ended "$1" || die "the $1 has ended with status $(cat "$dir/$1.status")"
}

# A file of its own grows: the kernel does not count what is written asynchronously.
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
