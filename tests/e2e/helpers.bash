# shellcheck shell=bash disable=SC2034,SC2119,SC2120
# helpers.bash - a server and a mount for a test, and their orderly end.
#
# Each test has its own folder ($dir), its own memory folder in /dev/shm, a socket and a port. Both
# programs run in the foreground as children of the test, so that teardown can demand exit status 0,
# unless the test has killed them on purpose. The environment sets the transport (RMEMFS_TEST_TRANSPORT),
# smaller files (RMEMFS_TEST_SMALL=1), the mounts' cache and ack modes (RMEMFS_TEST_CACHE,
# RMEMFS_TEST_ACK), and a command that runs the server (RMEMFS_TEST_SERVER_UNDER).

transport=${RMEMFS_TEST_TRANSPORT:?}
bin=${RMEMFS_BIN:?}
export PATH=$bin:$PATH
verbs_address=${RMEMFS_TEST_VERBS_ADDRESS:-10.9.0.1}
repository=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd) # a test may lie elsewhere
# shellcheck source=tests/wait.bash
. "$repository/tests/wait.bash"

server_pid='' daemon_pid=''
key_file='' # over tcp and verbs, of the server's exports and the mounts
export_size=192MiB
server_conf='' # a configuration file that names the exports
# The mounts' modes; empty: the default.
cache_mode=${RMEMFS_TEST_CACHE:-}
ack_mode=${RMEMFS_TEST_ACK:-}
names_mode=${RMEMFS_TEST_NAMES:-}
share_mode=${RMEMFS_TEST_SHARE:-} # not empty: no mount starts alone
test_seconds=150 # a test may take
# A user without rights, except to reach the programs in any folder.
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups
	--inh-caps=+dac_read_search --ambient-caps=+dac_read_search)

small() {
	[ "${RMEMFS_TEST_SMALL:-0}" = 1 ]
}

# at_full_size: nightly, where neither a sanitizer nor an emulated guest slows the programs down.
at_full_size() {
	[ "${RMEMFS_TEST_NIGHTLY:-0}${RMEMFS_TEST_SANITIZED:-0}${RMEMFS_TEST_SMALL:-0}" = 100 ]
}

# mib NATIVE SMALL: prints how many MiB a test is to use.
mib() {
	if small; then echo "$2"; else echo "$1"; fi
}

# Prints a message and fails the test.
die() {
	echo "$*" >&2
	return 1
}

# ---- conditions ----------------------------------------------------------------------------------

alive() {
	kill -0 "$1" 2>/dev/null
}

all_stand() {
	! grep -h '^State:' "/proc/$1/task/"*/status 2>/dev/null | grep -qv '(stopped)'
}

# suspend PID: sends SIGSTOP, and waits until all threads have stopped.
suspend() {
	kill -STOP "$1"
	until_true 10 all_stand "$1"
}

# calling PID NAME: is the process in that system call, by its number on x86 or on newer architectures?
calling() {
	local numbers
	case $2 in
	read) numbers='0|63' ;;
	pread) numbers='17|67' ;;
	io_getevents) numbers='208|4' ;;
	write) numbers='1|64' ;;
	close) numbers='3|57' ;;
	mkdir) numbers='83|34' ;;
	msync) numbers='26|227' ;;
	fsync) numbers='74|82' ;;
	create) numbers='257|56' ;;
	rmdir) numbers='84|35' ;;
	unlink) numbers='263|35' ;;
	chmod) numbers='268|53' ;;
	fallocate) numbers='285|47' ;;
	lseek) numbers='8|62' ;;
	getdents) numbers='217|61' ;;
	esac
	[[ $(cat "/proc/$1/syscall" 2>/dev/null) == @($numbers)" "* ]]
}

# exit_status PID SECONDS: waits for a child, and returns its exit status, or 124 if it lasts longer.
exit_status() {
	timeout "$2" tail --pid="$1" -s 0.02 -f /dev/null || return 124
	wait "$1"
}

# ---- the server ----------------------------------------------------------------------------------

listen_address() {
	case $transport in
	tcp) echo "tcp:127.0.0.1:$port" ;;
	verbs) echo "verbs:$verbs_address:$port" ;;
	esac
}

server_answers() {
	! alive "$server_pid" || { [ -S "$socket" ] && rmemfsctl status "$socket" >/dev/null 2>&1 3>&-; }
}

# without_key: the test is about channels that nothing protects. Servers and mounts that begin from now on
# need no key.
without_key() {
	key_file=''
}

# keyed_conf: the configuration file. Exports without clients get one that has the mounts' key.
keyed_conf() {
	local client="clients = ( { name = \"test\"; keys = \"$key_file\"; } );"
	if [ "$transport" = shm ] || [ -z "$server_conf" ] || grep -q clients "$server_conf"; then
		echo "${server_conf:-/dev/null}"
		return
	fi
	[ -n "$key_file" ] || client='clients = ( { name = "test"; insecure = true; } );'
	sed -E "/^[[:blank:]]*#/!s|(\{ *)(name *= *\"[^\"]*\"; *size)|\1$client \2|g" "$server_conf" >"$dir/keyed.conf"
	echo "$dir/keyed.conf"
}

# spawn_server [OPTION]...
spawn_server() {
	local listen=(--listen "shm:$socket") exports=()
	[ "$transport" = shm ] || listen+=(--listen "$(listen_address)")
	[ -n "$server_conf" ] || exports=(--export "default:$export_size")
	if [ -z "$server_conf" ] && [ "$transport" != shm ]; then
		if [ -n "$key_file" ]; then exports+=(--key "$key_file"); else exports+=(--insecure); fi
	fi
	# shellcheck disable=SC2086 # a command and its arguments
	${RMEMFS_TEST_SERVER_UNDER:-} rmemfs-server -c "$(keyed_conf)" \
		--memory-dir "$memory" "${exports[@]}" "${listen[@]}" "$@" >>"$dir/server.log" 2>&1 3>&- &
	server_pid=$!
	echo $server_pid >"$dir/server.pid"
}

# start_server [OPTION]...: waits until the server answers. Its Unix socket is the last to open.
start_server() {
	spawn_server "$@"
	until_true 60 server_answers || die "the server does not answer"
	alive "$server_pid" || die "the server ended at its start"
}

stop_server() {
	local pid=$server_pid status=0
	server_pid=''
	kill -TERM "$pid"
	exit_status "$pid" 20 || status=$?
	[ $status -eq 0 ] || die "the server ended with status $status on SIGTERM"
}

# The files that a server has left are whole, however it ended.
check_memory() {
	rmemfsctl check "$memory" >"$dir/check.log" 2>&1 3>&- || {
		cat "$dir/check.log"
		die "the memory directory is not whole"
	}
}

# Kills the server, as a crash does: without a request or a message before.
kill_server() {
	local pid=$server_pid
	server_pid=''
	kill -KILL "$pid"
	exit_status "$pid" 20 || [ $? -eq 137 ]
	check_memory
}

crash_server() {
	kill_server
	start_server "$@"
}

# use_lease SECONDS: sets the lease time of servers that start from now on. The kernel caches attributes
# and names for as long.
use_lease() {
	server_conf=$dir/server.conf
	cat >"$server_conf" <<-END
		lease_time = $1;
		exports = ({ name = "default"; size = "$export_size"; });
	END
}

# spawn_armed POINT [OPTION]...: starts a server that dies at POINT (see common/base/crash_point.h).
spawn_armed() {
	export RMEMFS_CRASH_AT=$1
	spawn_server "${@:2}"
	unset RMEMFS_CRASH_AT
}

# expect_death POINT [half]: the server has died there by itself. Its files are whole, unless `half` is
# given.
expect_death() {
	local pid=$server_pid status=0
	server_pid=''
	exit_status "$pid" 60 || status=$?
	[ $status -eq 137 ] || die "the server ended with status $status, not at $1"
	[ "${2:-whole}" != half ] || return 0
	check_memory
}

# ---- the mount -----------------------------------------------------------------------------------

# The source and options to reach the test's server over the test's transport.
mount_source() {
	case $transport in
	shm) echo "$socket:/${1:-default}" ;;
	tcp) echo "127.0.0.1:/${1:-default}" ;;
	verbs) echo "$verbs_address:/${1:-default}" ;;
	esac
}

mount_options() {
	local modes=${cache_mode:+,cache=$cache_mode}${ack_mode:+,ack=$ack_mode}${names_mode:+,names=$names_mode}${share_mode:+,share}
	if [ "$transport" = shm ]; then
		echo "transport=shm$modes"
	else
		echo "transport=$transport,port=$port${key_file:+,key=$key_file}$modes"
	fi
}

mounted_or_dead() {
	mountpoint -q "$mnt" || ! alive "$daemon_pid"
}

# mount_rmem [OPTION]...: mounts the export at $mnt; the daemon is a child of the test.
mount_rmem() {
	mkdir -p "$mnt"
	rmemfs -f -c /dev/null -o "$(mount_options)" "$@" "$(mount_source)" "$mnt" \
		>>"$dir/daemon.log" 2>&1 3>&- &
	daemon_pid=$!
	echo $daemon_pid >"$dir/daemon.pid"
	until_true 30 mounted_or_dead || die "nothing was mounted"
	alive "$daemon_pid" || die "the daemon ended at its start"
}

# A mount namespace that began meanwhile has a copy of the mount and keeps it alive.
name_holders() {
	local process
	for process in /proc/[0-9]*; do
		[ "$process/ns/mnt" -ef /proc/self/ns/mnt ] || ! grep -qs " $mnt " "$process/mountinfo" ||
			echo "$mnt is held by $process: $(tr '\0' ' ' <"$process/cmdline")"
	done
}

# hold_thread INDEX: this I/O thread of the daemon reads and sends nothing until release_thread.
hold_thread() {
	hold "$daemon_pid" "rmemfs-io/$1" >"$dir/held" 3>&- &
	holder=$!
	until_true 10 grep -q held "$dir/held" || die "the thread was not stopped"
}

# hold_thread_with_release FILE: opens the file and stops thread 0 when it has read the RELEASE. The
# thread does nothing from then on, until release_thread.
hold_thread_with_release() {
	hold "$daemon_pid" rmemfs-io/0 18 >"$dir/held" 3>&- &
	holder=$!
	has_it() {
		head -c 0 "$1"
		grep -q held "$dir/held"
	}
	until_true 10 has_it "$1" || die "the thread was not stopped"
}

release_thread() {
	kill -KILL "$holder"
	exit_status "$holder" 10 || [ $? -eq 137 ]
}

# needs_room FILE CALL COMMAND...: the command waits in that system call for the pages of FILE. FILE is
# removed, but one thread of the daemon has read its last RELEASE and does not handle it. The other thread
# serves all later requests.
needs_room() {
	local file=$1 call=$2 needy
	shift 2
	hold_thread_with_release "$file"
	rm "$file"
	"$@" 3>&- &
	needy=$!
	until_true 10 calling $needy "$call" || ! alive $needy
	# After this mkdir the other thread knows that there is no room.
	mkdir "$mnt/after.$call"
	release_thread
	exit_status $needy 20
}

# without_waiting: drops the line about waiting from the output of a mount that fails.
without_waiting() {
	grep -vE ' notice: .*; (trying for [0-9]+ s|waiting for that, for [0-9]+ s at most)$' || true
}

umount_rmem() {
	local pid=$daemon_pid status=0
	umount "$mnt"
	daemon_pid=''
	exit_status "$pid" 10 || status=$?
	[ $status -eq 0 ] || {
		name_holders
		die "the daemon ended with status $status after umount"
	}
}

# The daemon dies at once, if it has not yet; its mount goes, too.
kill_daemon() {
	local pid=$daemon_pid
	daemon_pid=''
	kill -KILL "$pid" 2>/dev/null || true
	exit_status "$pid" 20 || [ $? -eq 137 ]
	umount -l "$mnt" 2>/dev/null || true
}

remount() {
	umount_rmem
	mount_rmem "$@"
}

# The kernel's cache would hide bytes that the server has lost. While there is a server, fsop uncache is
# faster: after this the guest has to read all programs anew.
drop_caches() {
	sync
	echo 3 2>/dev/null >/proc/sys/vm/drop_caches || true
}

# holds_everywhere CHECK...: the check passes now, after the server was killed and started again
# under the mount, and on a new mount.
holds_everywhere() {
	echo "now"
	"$@"
	echo "after umount and a new mount"
	remount
	"$@"
	echo "after kill -9 of the server and its restart"
	crash_server
	fsop uncache "$mnt"
	"$@"
	echo "on a new mount after that"
	remount
	"$@"
}

# status_of JQ-FILTER: filters the output of rmemfsctl status --json.
status_of() {
	rmemfsctl status --json "$socket" | jq -r "$1"
}

# ---- data ----------------------------------------------------------------------------------------

# random_file PATH MIB
random_file() {
	dd if=/dev/urandom of="$1" bs=1M count="$2" status=none
}

# make_tree FOLDER: makes files that cp, tar and rsync may stumble over.
make_tree() {
	local size
	mkdir -p "$1/deep/er/and deeper" "$1/empty"
	for size in 0 1 511 4095 4096 4097 65536 100000 1048577 3000000; do
		head -c $size /dev/urandom >"$1/deep/file.$size"
	done
	for size in {1..200}; do
		echo "small $size" >"$1/deep/er/small.$size"
	done
	printf 'odd' >"$1/deep/er/and deeper/"$'a name\twith \\ "odd"\nbytes \303\251'
	ln -s ../deep/file.4096 "$1/empty/relative"
	ln -s /nowhere/at/all "$1/dangling"
	ln -s "$(head -c 1000 /dev/zero | tr '\0' x)" "$1/dangling-long"
	ln "$1/deep/file.100000" "$1/deep/er/hard"
	truncate -s 10M "$1/deep/sparse"
	printf 'end' | dd of="$1/deep/sparse" bs=1 seek=9000000 conv=notrunc status=none
	chmod 0755 "$1/deep/file.4095"
	chmod 0400 "$1/deep/file.4097"
	chmod 1777 "$1/empty"
	chown 1234:5678 "$1/deep/file.511"
	touch -d '2001-02-03 04:05:06.123456789' "$1/deep/file.4096"
	mkfifo "$1/fifo"
}

listing() {
	(cd "$1" && find . ! -type d -printf '%p %y %m %U %G %n %s %T@ %l\n' -o \
		-printf '%p %y %m %U %G\n' | LC_ALL=C sort)
}

# same_tree A B: compares names, types, modes, owners, times, links and every byte.
same_tree() {
	listing "$1" >"$dir/listing.a"
	listing "$2" >"$dir/listing.b"
	diff "$dir/listing.a" "$dir/listing.b" >"$dir/listing.diff" || {
		head -n 30 "$dir/listing.diff"
		return 1
	}
	diff -r --no-dereference -x fifo "$1" "$2"
}

# Prints this repository, or a new one made of these sources if they have none. A guest gets a part of them: in it this
# repository would take minutes, and more with each commit.
source_repository() {
	local parts=(common README.md)
	small || parts+=(tests)
	if ! small && git -C "$repository" rev-parse --git-dir >/dev/null 2>&1; then
		echo "$repository"
		return
	fi
	git init -q "$dir/repository"
	cp -r "${parts[@]/#/$repository/}" "$dir/repository/"
	git -C "$dir/repository" add .
	git -C "$dir/repository" -c user.name=test -c user.email=test@localhost commit -q -m sources
	echo "$dir/repository"
}

# ---- for every test ------------------------------------------------------------------------------

# A test that hangs fails alone, not the whole run: once its daemon is killed, each process that waits for
# the mount gets an error.
watch_over() {
	mkfifo "$dir/never"
	(
		pause "$1"
		echo "the test took longer than $1 s" >>"$dir/watch.log"
		cat "$dir"/*.pid | while read -r pid; do
			[[ $(readlink "/proc/$pid/exe") != "$(readlink -f "$bin")"/* ]] || kill -KILL "$pid"
		done
	) 3>&- >/dev/null 2>&1 &
}

# Takes a port that no other test uses while this test's folder exists, even when its server is away.
take_port() {
	while :; do
		port=$(free_port)
		dir=${TMPDIR:-/tmp}/rmemfs-test.$port
		! mkdir -m 700 "$dir" || break
		[ -e "$dir" ] || return 1
	done
}

setup_rmem() {
	[ "$(id -u)" -eq 0 ] || skip "mounting takes root"
	[ -c /dev/fuse ] || skip "there is no /dev/fuse"
	uptime_began=$(cut -d. -f1 /proc/uptime)
	take_port
	memory=$(mktemp -d "${RMEMFS_TEST_SHM:-/dev/shm}/rmemfs-test.XXXXXX")
	mnt=$dir/mnt
	socket=$dir/server.sock
	mkdir "$mnt"
	if [ "$transport" != shm ]; then
		key_file=$dir/test.key
		rmemfsctl keygen test "$key_file" 2>/dev/null
		export RMEMFS_TEST_KEY=$key_file
	fi
	if small; then
		export_size=160MiB
		watch_over $((test_seconds * 8 / 3))
	else
		watch_over "$test_seconds"
	fi
}

# A test that stood still may have got no CPU or disk. Then the kernel has logged complaints since the
# test began, also about kworkers that starve.
kernel_complaints() {
	dmesg 2>/dev/null | awk -v began="${uptime_began:-0}" -F '[][]' \
		'$2 + 0 >= began && /lockup|stall|starved|stuck for|blocked for more/'
}

show_logs() {
	local log complaints
	complaints=$(kernel_complaints)
	[ -z "$complaints" ] || echo "--- the kernel
$complaints"
	for log in "$dir"/*.log; do
		[ -s "$log" ] || continue
		echo "--- ${log##*/}"
		tail -n 60 "$log"
	done
}

# Unmounts all other mounts in the test's directory, the last first. A killed daemon leaves a dead mount;
# only a failed test may do that.
umount_rest() {
	local at failed=0
	for at in $(awk -v below="$dir/" 'index($2, below) == 1 { print $2 }' /proc/self/mounts | tac); do
		umount "$at" || umount -l "$at" || failed=1
	done
	return $failed
}

# Ends all that is left, in any state of the test, and fails if that does not end well.
teardown_rmem() {
	local failed=0
	[ -n "${dir:-}" ] || return 0
	if mountpoint -q "$mnt"; then
		if [ -n "$daemon_pid" ]; then
			umount_rmem || failed=1
		else
			umount "$mnt" || failed=1
		fi
		! mountpoint -q "$mnt" || umount -l "$mnt"
	fi
	if [ -n "$server_pid" ]; then
		stop_server || failed=1
	fi
	for pid in $(jobs -p); do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	umount_rest || failed=1
	if [ $failed -ne 0 ] || [ -z "${BATS_TEST_COMPLETED:-}" ]; then
		show_logs
	fi
	rm -rf "$memory" "$dir"
	return $failed
}
