# shellcheck shell=bash disable=SC2034,SC2154,SC2178
# bench.bash - shared by all benchmarks: folders of their own and their orderly end, rmemfs-server
# and its mounts, records of the measurements.
#
# A place is where work is done: ${folder[PLACE]} is its folder, ${daemon[PLACE]} the process that
# serves it, if that is one of ours. bench_end ends all started programs, in reverse order.

bench_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bench_root=$(cd "$bench_here/../.." && pwd)
# shellcheck source=tests/wait.bash
. "$bench_root/tests/wait.bash"
bin=${RMEMFS_BIN:-$bench_root/build/release/bin}
PATH=$PATH:/usr/sbin:/sbin

declare -A folder daemon mounts
declare -A visits # ${visits[PLACE]}: rmem_mount's arguments, where the mount lasts for one work only
work='' memory='' results='' server='' rep=0
undo=() # commands, the last one first

bench_die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

note() {
	echo "# $*" >&2
}

later() {
	undo+=("$*")
}

# bench_begin RESULTS: $work is for small files, $memory for the bytes that are measured with.
bench_begin() {
	local program
	for program in rmemfs rmemfs-server rmemfsctl null_own null_stock handover mdbench nameops pages stream; do
		[ -x "$bin/$program" ] || bench_die "$bin/$program is missing: set RMEMFS_BIN, or build the preset release"
	done
	[ "$(id -u)" -eq 0 ] || bench_die "mounting takes root"
	results=$1
	work=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-bench.XXXXXX")
	memory=$(mktemp -d /dev/shm/rmemfs-bench.XXXXXX)
	trap bench_end EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

# Undoes all that was begun, the last first.
bench_undo() {
	local i status=0
	for ((i = ${#undo[@]} - 1; i >= 0; i--)); do
		${undo[i]} || {
			note "failed: ${undo[i]}"
			status=1
		}
	done
	undo=() folder=() daemon=() mounts=() visits=()
	rm -rf "${work:?}"/* "${memory:?}"/*
	return $status
}

bench_end() {
	local status=$?
	trap - EXIT
	bench_undo || status=1
	rm -rf "$work" "$memory"
	exit "$status"
}

# stop PID: ends a process of ours; it must end well.
stop() {
	! kill -TERM "$1" 2>/dev/null || wait "$1"
}

# leave MOUNTPOINT PID: unmounts, and so ends the process that serves it. After a signal a command
# of ours may still be ending there.
leave() {
	! mountpoint -q "$1" || umount "$1" 2>/dev/null || umount -l "$1"
	wait "$2"
}

# ended_or PID COMMAND...: the command is true, or can't become true since the process has ended.
ended_or() {
	"${@:2}" || ! kill -0 "$1" 2>/dev/null
}

# wait_mounted MOUNTPOINT PID WHAT
wait_mounted() {
	until_true 60 ended_or "$2" mountpoint -q "$1" || bench_die "$3 mounted nothing within 60 s"
	mountpoint -q "$1" || bench_die "$3 ended without a mount: $(tail -n 3 "$work/$3.log")"
}

# ---- rmemfs --------------------------------------------------------------------------------------

# Nothing is protected: what that costs is a measurement of its own.
# server_start ADDRESS NAME:SIZE...: listens on shm, and on tcp (and verbs, where there is a device) at
# the address.
server_start() {
	local address=$1 listen each comma=
	shift
	port=$(free_port)
	listen="\"shm:$work/socket\", \"tcp:$address:$port\""
	[ -z "$rdma_device" ] || listen+=", \"verbs:$address:$((port + 1))\""
	{
		echo "listen = [ $listen ];"
		echo "exports = ("
		for each in "$@"; do
			printf '%s{ name = "%s"; size = "%s"; clients = ( { name = "bench"; insecure = true; } ); }\n' \
				"$comma" "${each%%:*}" "${each#*:}"
			comma=,
		done
		echo ");"
		[ -z "${metadata_reserve:-}" ] || echo "metadata_reserve = \"$metadata_reserve\";"
		[ -z "${lease_time:-}" ] || echo "lease_time = $lease_time;"
	} >"$work/server.conf"
	"$bin/rmemfs-server" -c "$work/server.conf" --memory-dir "$memory/store" >"$work/server.log" 2>&1 &
	server=$!
	later server_stop
	until_true 300 ended_or "$server" server_answers || bench_die "the server does not answer"
	server_answers || bench_die "the server ended: $(tail -n 3 "$work/server.log")"
	server_address=$address
}

server_answers() {
	"$bin/rmemfsctl" status "$work/socket" >/dev/null 2>&1
}

# Unmounts its mounts first: else their daemons would wait for it.
server_stop() {
	local place status=0
	for place in "${!mounts[@]}"; do
		rmem_umount "$place" || status=1
	done
	stop "$server" || status=1
	return $status
}

# rmem_mount PLACE TRANSPORT EXPORT [OPTIONS]
rmem_mount() {
	local place=$1 transport=$2 export=$3 options=${4:+,$4} source=$server_address:/$3
	case $transport in
	shm) source=$work/socket:/$export ;;
	tcp) options+=",port=$port" ;;
	verbs) options+=",port=$((port + 1))" ;;
	esac
	mkdir -p "$work/$place"
	"$bin/rmemfs" -f -c /dev/null -o "transport=$transport,log_level=warning$options${RMEMFS_BENCH_OPTIONS:+,$RMEMFS_BENCH_OPTIONS}" \
		"$source" "$work/$place" >"$work/$place.log" 2>&1 &
	daemon[$place]=$! mounts[$place]=1
	wait_mounted "$work/$place" "${daemon[$place]}" "$place"
	folder[$place]=$work/$place
}

rmem_umount() {
	local pid=${daemon[$1]}
	unset "daemon[$1]" "folder[$1]" "mounts[$1]"
	leave "$work/$1" "$pid"
}

# ---- other places --------------------------------------------------------------------------------

# A tmpfs of its own: then cp crosses filesystems, as at all other places.
tmpfs_place() {
	mkdir "$work/tmpfs"
	mount -t tmpfs -o size="$1" rmemfs-bench "$work/tmpfs"
	later umount "$work/tmpfs"
	folder[tmpfs]=$work/tmpfs
}

# null_place PLACE PROGRAM
null_place() {
	mkdir "$work/$1"
	"$bin/$2" "$work/$1" >"$work/$1.log" 2>&1 &
	daemon[$1]=$!
	later leave "$work/$1" "$!"
	wait_mounted "$work/$1" "$!" "$1"
	folder[$1]=$work/$1
}

# Null servers keep no data to compare.
keeps_data() {
	[[ $1 != null-* ]]
}

# ---- records -------------------------------------------------------------------------------------

# record WORK PLACE VALUE UNIT [X]: X is the variable of a series.
record() {
	[[ $3 =~ ^[0-9.e+-]+$ ]] || bench_die "$1 on $2 gave no number: '$3'"
	[[ $4 != */s && $4 != /min ]] || [[ $3 =~ [1-9] ]] || bench_die "$1 on $2: nothing was done"
	echo "$1,$2,${5:-},$rep,$3,$4" >>"$results/raw.csv"
	note "$1 $2${5:+ ($5)}: $3 $4"
}

ratio() {
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.6g\n", a / b }'
}

# timed COMMAND...: sets $seconds.
timed() {
	local begin=$EPOCHREALTIME end
	"$@"
	end=$EPOCHREALTIME
	seconds=$(awk -v b="$begin" -v e="$end" 'BEGIN { printf "%.6f", e - b }')
}

# Seconds of CPU that a place's daemon has used, children and I/O threads included.
cpu_seconds() {
	awk -v hz="$(getconf CLK_TCK)" '{ sub(/^.*\) /, ""); print ($12 + $13) / hz }' "/proc/${daemon[$1]}/stat"
}
