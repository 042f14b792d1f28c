#!/usr/bin/env bats
# options.bats - what a user can write wrong on a command line or in a file, said by the programs in
# one line. The whole table of cases stands in the unit tests; here is how it comes out.

bats_require_minimum_version 1.5.0

# bats file_tags=once

load helpers

setup() {
	setup_rmem
}

teardown() {
	teardown_rmem
}

# fails_with STATUS LINE PROGRAM [ARGUMENT]...: this line and no other.
fails_with() {
	run timeout 30 "${@:3}" 3>&-
	echo "$output"
	[ "$status" -eq "$1" ] && [ "$output" = "$2" ]
}

says() {
	fails_with 1 "$@"
}

# With a source that leads nowhere, in case that the mount were tried.
mount_says() {
	local expected=$1
	shift
	says "rmemfs: $expected" rmemfs -c /dev/null "$@" 192.0.2.1:/none "$mnt"
}

server_says() {
	local expected=$1
	shift
	fails_with 78 "rmemfs-server: $expected" rmemfs-server --check-config "$@"
}

@test "wrong options of rmemfs are named" {
	mount_says "option '--fast': unknown; see --help" --fast
	mount_says "option '--foregruond': unknown; did you mean '--foreground'?" --foregruond
	mount_says "option '--foreground': takes no value" --foreground=yes
	mount_says "option '-c': given twice" -c /dev/null
	mount_says "option 'port': given twice" -o port=1 -o port=2
	mount_says "option 'prot': unknown; did you mean 'port'?" -o prot=1
	mount_says "option 'port= 7': must be a whole number from 1 to 65535" -o 'port= 7'
	mount_says "option 'timeo': needs soft; a hard mount waits without end" -o timeo=5
	mount_says "option '--log-level=loud': must be error, warning, notice, info or debug" \
		--log-level loud
	mount_says "option 'log_level': given twice" --log-level info -o log_level=debug
	says "rmemfs: option '--config': needs a value" rmemfs --config
	says "rmemfs: MOUNTPOINT is missing; see --help" rmemfs a:/b
}

@test "a wrong client configuration is named by its line" {
	printf '# ours\ntransport = "ib";\n' >"$dir/client.conf"
	says "rmemfs: $dir/client.conf:2: transport: 'ib': must be auto, verbs, tcp or shm" \
		rmemfs -c "$dir/client.conf" 192.0.2.1:/none "$mnt"
}

@test "wrong options of rmemfs-server are named" {
	server_says "option '--exprot': unknown; did you mean '--export'?" --exprot a:1GiB
	server_says "option '-x': unknown; see --help" -x
	server_says "option '--listen': needs a value" --listen
	server_says "option '--check-config': takes no value" --check-config=1
	server_says "'extra': takes no operands; see --help" extra
	server_says "option '-c': given twice" -c /dev/null --config /dev/null
	server_says "option '--memory-dir': given twice" --memory-dir /a --memory-dir /b
	server_says "option '--memory-dir': must not be empty" --memory-dir ""
	server_says "option '--log-level': given twice" --log-level info --log-level info
	server_says "--log-level: 'loud': must be error, warning, notice, info or debug" \
		-c /dev/null --log-level loud
	server_says "--export: 'a b:1GiB': the name must be of letters, digits, '.', '_' and '-'" \
		-c /dev/null --export 'a b:1GiB'
	server_says "--export: 'a': there is another export of this name" \
		-c /dev/null --export a:1GiB --export a:2GiB
	server_says "--listen: 'tcp:127.0.0.1:65536': port '65536' is not in 1..65535" \
		-c /dev/null --listen tcp:127.0.0.1:65536
}

@test "a wrong server configuration is named by its line" {
	cat >"$dir/server.conf" <<-'END'
		exports = (
			{ name = "a"; size = "1GiB"; },
			{ name = "a"; size = "2GiB"; }
		);
	END
	server_says "$dir/server.conf:3: exports: 'a': there is another export of this name" \
		-c "$dir/server.conf"
	printf 'listen = [ "tcp:127.0.0.1",\n "shm:/x", "tcp:127.0.0.1:7470" ];\n' >"$dir/server.conf"
	server_says "$dir/server.conf:2: listen: 'tcp:127.0.0.1:7470': the same address is there twice" \
		-c "$dir/server.conf"
}

@test "--check-config says what would be served" {
	local is_default="in /dev/shm/rmemfs; listens on shm:/run/rmemfs/server.sock"
	cat >"$dir/server.conf" <<-'END'
		exports = ( { name = "a"; size = "64GiB"; }, { name = "b"; size = "1GiB"; } );
	END
	run rmemfs-server -c "$dir/server.conf" --check-config
	[ "$status" -eq 0 ]
	[ "$output" = "$dir/server.conf: 2 exports, 65GiB and 4160MiB of metadata $is_default" ]
	run rmemfs-server -c "$dir/server.conf" --check-config --export a:1GiB --memory-dir /m \
		--listen tcp:127.0.0.1:7471
	[ "$status" -eq 0 ]
	[ "$output" = "$dir/server.conf: 1 export, 1GiB and 64MiB of metadata in /m; listens on tcp:127.0.0.1:7471" ]
	[ ! -e /etc/rmemfs/server.conf ] || return 0
	run rmemfs-server --check-config
	[ "$status" -eq 0 ]
	[ "$output" = "no /etc/rmemfs/server.conf is there: 1 export, 1GiB and 64MiB of metadata $is_default" ]
}

@test "wrong options of rmemfsctl are named, with the usage of the command" {
	local usage="(usage: rmemfsctl status [HOST] [--json])"
	local snapshot="(usage: rmemfsctl snapshot EXPORT DIR [HOST])"
	says "rmemfsctl: a command is missing: status, leases, who, quota, check or snapshot; see --help" rmemfsctl
	says "rmemfsctl: command 'statsu': unknown; must be status, leases, who, quota, check or snapshot" rmemfsctl statsu
	says "rmemfsctl: option '--jsno': unknown; did you mean '--json'?" rmemfsctl --jsno
	says "rmemfsctl: option '--jsno': unknown; did you mean '--json'? $usage" rmemfsctl status --jsno
	says "rmemfsctl: option '--json': takes no value $usage" rmemfsctl status --json=1
	says "rmemfsctl: option '-j': unknown; see --help $usage" rmemfsctl -j status
	says "rmemfsctl: 'b': one operand too many $usage" rmemfsctl status a b
	says "rmemfsctl: HOST must not be empty $usage" rmemfsctl status ""
	says "rmemfsctl: EXPORT is missing $snapshot" rmemfsctl snapshot
	says "rmemfsctl: DIR is missing $snapshot" rmemfsctl snapshot a
	says "rmemfsctl: DIR must not be empty $snapshot" rmemfsctl snapshot a ""
	says "rmemfsctl: option '--json': has no meaning for snapshot $snapshot" \
		rmemfsctl snapshot a b --json
	says "rmemfsctl: 'd': one operand too many $snapshot" rmemfsctl snapshot a b c d
}

@test "each command of rmemfsctl has a help of its own" {
	local command
	for command in status leases who quota check snapshot; do
		rmemfsctl $command --help >"$dir/$command"
		[[ $(head -n 1 "$dir/$command") == "Usage: rmemfsctl $command "* ]]
		rmemfsctl -h $command ignored | diff "$dir/$command" -
	done
	for command in status leases who quota; do grep -q -e --json "$dir/$command"; done
	[ "$(cat "$dir/check" "$dir/snapshot" | grep -c -e --json)" -eq 0 ]
	[ "$(grep -c HOST "$dir/check")" -eq 0 ]
	grep -q EXPORT "$dir/snapshot"
	says "rmemfsctl: command 'all': unknown; must be status, leases, who, quota, check or snapshot" \
		rmemfsctl all --help
}

@test "under systemd a refusal is an error's line" {
	mkfifo "$dir/journal"
	cat "$dir/journal" >"$dir/said" 3>&- &
	(
		exec 2>"$dir/journal"
		JOURNAL_STREAM=$(stat -L -c '%d:%i' /proc/self/fd/2) rmemfs-server --nothing || true
	)
	wait $!
	[ "$(cat "$dir/said")" = "<3>option '--nothing': unknown; see --help" ]
}

# default_server SCRIPT: with a server that was told no address, where nothing else has a port or a
# socket. $nobody is a user without rights.
default_server() {
	# shellcheck disable=SC2016 # the inner shell's
	nobody=${nobody[*]} unshare --mount --net --propagation private -- bash -euc '
		mount -t tmpfs none /run
		mount -t tmpfs none "$2"
		rmemfs-server -c /dev/null --memory-dir "$2/memory" --export default:64MiB 2>"$1/server.log" &
		server=$!
		until rmemfsctl status >/dev/null 2>&1; do
			kill -0 $server
			sleep 0.02
		done
		eval "$3"
		kill -TERM $server
		wait $server' bash "$dir" "$memory" "$1" 3>&-
}

@test "a server that was told no address is reached by root, and by no ordinary user" {
	# shellcheck disable=SC2016 # the inner shell's
	default_server '
		[ -z "$(tail -q -n +2 /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6)" ]
		ip link set lo up
		if $nobody rmemfsctl status >"$1/said" 2>&1; then exit 1; fi
		if $nobody rmemfsctl status 127.0.0.1 >>"$1/said" 2>&1; then exit 1; fi
		$nobody rmemfs -f -c /dev/null -o connect_timeout=1 127.0.0.1:/default "$1/mnt" >>"$1/said" 2>&1 || [ $? -eq 32 ]
		rmemfs -c /dev/null 127.0.0.1:/default "$1/mnt"
		echo root >"$1/mnt/a"
		umount "$1/mnt"
		rmemfs -c /dev/null /run/rmemfs/server.sock:/default "$1/mnt"
		[ "$(cat "$1/mnt/a")" = root ]
		umount "$1/mnt"'
	cat "$dir/said"
	grep -q "Permission denied" "$dir/said"
	[ "$(grep -c "authentication" "$dir/server.log")" -eq 0 ]
}

# exposed ADDRESS...: the log has a warning for each, and no other of its kind.
exposed() {
	diff <(grep -o ' warning: listen: .*' "$dir/server.log") <(for address; do
		echo " warning: listen: $address: there is no authentication yet: anybody who reaches this" \
			"address may mount every export, and read and change every byte of it"
	done)
}

@test "the server's log warns of each address that anybody may mount at" {
	transport=shm start_server
	exposed
	stop_server
	transport=shm start_server --listen "tcp:127.0.0.1:$port" --listen "tcp:[::1]:$port"
	exposed "tcp:127.0.0.1:$port" "tcp:[::1]:$port"
}

@test "--log-level says what the server logs" {
	start_server --log-level error
	stop_server
	[ ! -s "$dir/server.log" ]
	start_server --log-level notice
	grep -q ' notice: ready' "$dir/server.log"
}

@test "hard, soft and the rest are taken by a mount" {
	start_server
	mount_rmem --log-level warning -o soft,timeo=30,peer_timeout=20,debug_io,hard,soft
	random_file "$mnt/a" 1
	cp "$mnt/a" "$dir/a"
	remount -o hard
	cmp "$mnt/a" "$dir/a"
}

cpus_held_awake() {
	readlink "/proc/$daemon_pid/fd"/* | grep -qx /dev/cpu_dma_latency
}

@test "low_latency keeps the CPUs awake while the mount lasts" {
	[ -c /dev/cpu_dma_latency ] || skip "there is no /dev/cpu_dma_latency"
	start_server
	mount_rmem
	run ! cpus_held_awake
	remount -o low_latency
	cpus_held_awake
	[ "$(od -An -N4 -tdI /dev/cpu_dma_latency)" -eq 0 ]
	run ! grep low_latency "$dir/daemon.log"
}

# numa_conf NODE
numa_conf() {
	server_conf=$dir/server.conf
	cat >"$server_conf" <<-END
		numa_node = $1;
		exports = ({ name = "default"; size = "$export_size"; });
	END
}

@test "numa_node binds all regions to a node, and is refused where there is none" {
	[ -e /proc/self/numa_maps ] || skip "the kernel knows no NUMA nodes"
	numa_conf 1023
	server_says "$server_conf: numa_node: this machine has no node 1023: see 'lscpu'" \
		-c "$server_conf"
	numa_conf 0
	start_server
	grep -q "bind:0 file=$memory/regions/default.0000 .*N0=" "/proc/$server_pid/numa_maps"
	stop_server
	rm -r "${memory:?}"/*
	server_conf=''
	start_server
	run ! grep bind: "/proc/$server_pid/numa_maps"
}
