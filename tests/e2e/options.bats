#!/usr/bin/env bats
# options.bats - mistakes of a user on a command line or in a file: the programs report each in one line.
# The unit tests have the whole table of cases; these tests show the output.

bats_require_minimum_version 1.5.0

# bats file_tags=once

load helpers

setup() {
	setup_rmem
}

teardown() {
	teardown_rmem
}

# fails_with STATUS LINE PROGRAM [ARGUMENT]...: the program prints this line and no other.
fails_with() {
	run timeout 30 "${@:3}" 3>&-
	echo "$output"
	[ "$status" -eq "$1" ] && [ "$output" = "$2" ]
}

says() {
	fails_with 1 "$@"
}

# The source leads nowhere, in case that the mount is tried.
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
	server_says "option '--key': is about the exports of --export, and there is none; for those of the configuration see clients in rmemfs.conf(5)" \
		-c /dev/null --key "$dir/web.key"
	server_says "option '--insecure': is about the exports of --export, and there is none; for those of the configuration see clients in rmemfs.conf(5)" \
		-c /dev/null --insecure
	server_says "option '--key': takes no '--insecure' beside it, which lets anybody in" \
		-c /dev/null --export a:1GiB --insecure --key "$dir/web.key"
	server_says "option '--key': given twice" -c /dev/null --export a:1GiB --key /a --key /b
	server_says "--key: '/k/Web.key': the file's name is the client's, and without '.key' it must be of small letters, digits, '.', '_' and '-'" \
		-c /dev/null --export a:1GiB --key /k/Web.key
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

# check [OPTION]...: runs --check-config; both outputs are in $output. It must not change any file.
check() {
	find "$memory" -printf '%p %i %s %T@\n' >"$dir/before"
	run timeout 30 rmemfs-server -c "$dir/server.conf" --memory-dir "$memory/place" --check-config "$@" 3>&-
	echo "$output"
	find "$memory" -printf '%p %i %s %T@\n' | diff "$dir/before" -
}

# checked STATUS LINE...: the last check had this status, and these lines after the first.
checked() {
	[ "$status" -eq "$1" ]
	diff <(printf '%s\n' "${@:2}") <(tail -n +2 <<<"$output")
}

@test "--check-config says what would be served, and what a start would do" {
	cat >"$dir/server.conf" <<-END
		exports = ( { name = "a"; size = "64MiB"; }, { name = "b"; size = "32MiB"; } );
		region_size = "16MiB";
		listen = "shm:$socket";
	END
	local access=("export 'a': nobody over tcp and verbs" "export 'b': nobody over tcp and verbs"
		"each export: over shm root and the server's user may read and write")
	check
	checked 0 "$memory/place: it is new, and a start begins empty" "export 'a': new, 64MiB; its share of the metadata is 41.3MiB" \
		"export 'b': new, 32MiB; its share of the metadata is 22.7MiB" "${access[@]}" "a start would succeed"
	[ "${lines[0]}" = "$dir/server.conf: 2 exports, 96MiB and 64MiB of metadata in $memory/place; listens on shm:$socket" ]
	mkdir -m 0700 "$memory/place"
	check
	checked 0 "$memory/place: it is new, and a start begins empty" "export 'a': new, 64MiB; its share of the metadata is 41.3MiB" \
		"export 'b': new, 32MiB; its share of the metadata is 22.7MiB" "${access[@]}" "a start would succeed"
	transport=shm memory=$memory/place server_conf=$dir/server.conf start_server
	# The server still runs, and its own socket is no error.
	check
	checked 0 "$memory/place: a server is running on it, process $server_pid: after its end a start goes on with what is there, which can't be looked at now" \
		"export 'a': there, 64MiB; its share of the metadata is 41.3MiB" \
		"export 'b': there, 32MiB; its share of the metadata is 22.7MiB" "${access[@]}" "a restart would succeed"
	rmemfsctl status "$socket" >/dev/null
	stop_server
	sed -i 's/64MiB/96MiB/; s/32MiB/16MiB/' "$dir/server.conf"
	check
	checked 0 "$memory/place: it holds a store, and a start goes on with that" \
		"export 'a': grows from 64MiB to 96MiB; its share of the metadata is 52MiB" \
		"export 'b': shrinks from 32MiB to 16MiB; its share of the metadata is 12MiB" "${access[@]}" "a start would succeed"
	transport=shm memory=$memory/place server_conf=$dir/server.conf start_server
	stop_server
	[ "$(stat -c %s "$memory/place/regions"/a.* | awk '{ sum += $1 } END { print sum }')" -eq $((96 << 20)) ]
	echo 01234567-89ab-cdef-0123-456789abcdef >"$memory/place/boot_id"
	check
	checked 0 "$memory/place: it is of an earlier boot of this machine, and a start begins empty" \
		"export 'a': new, 96MiB; its share of the metadata is 52MiB" \
		"export 'b': new, 16MiB; its share of the metadata is 12MiB" "${access[@]}" "a start would succeed"
}

@test "--check-config says who may do what, and warns of clients that may do too much" {
	printf 'RMEMFS-KEY-1:%s:\n' web1-k7q2:0sE89nwH9zEzWXYlRQCvpab6VpIkoqifrxLzD6dCImtODlil \
		a:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh/ZDHS5 >"$dir/web.key"
	chmod 0600 "$dir/web.key"
	cat >"$dir/server.conf" <<-END
		exports = (
			{ name = "a"; size = "16MiB"; clients = (
				{ name = "web"; keys = "$dir/web.key"; hosts = [ "10.0.0.0/24", "::1" ]; },
				{ name = "backup"; keys = "$dir/web.key"; access = "read-only"; sessions = 4; },
				{ name = "anybody"; insecure = true; access = "status"; } ); },
			{ name = "b"; size = "16MiB"; } );
		listen = [ "shm:$socket", "tcp:127.0.0.1:$port" ];
		local_access = "read-only";
	END
	check
	[ "$status" -eq 0 ]
	diff <(cat <<-END
		export 'a': client 'web' may read and write, with key web1-k7q2 (fingerprint 26d26a7d) or a (fingerprint 377736b6) of $dir/web.key, from 10.0.0.0/24, ::1
		export 'a': client 'backup' may read, with key web1-k7q2 (fingerprint 26d26a7d) or a (fingerprint 377736b6) of $dir/web.key, from any address; 4 sessions at a time
		export 'a': client 'anybody' may ask for its state, without a key, from any address
		export 'b': nobody over tcp and verbs
		each export: over shm root and the server's user may read
	END
	) <(grep -E "^(export|each).*( may |nobody)" <<<"$output")
	[[ $output == *"export 'a': key web1-k7q2 is of client 'web' and of client 'backup': the first one whose hosts have the peer's address counts"* ]]
	[[ $output == *"export 'a': client 'anybody' is insecure and may come from any address: anybody who reaches this server may ask for its state without a key; name its addresses in hosts"* ]]
	[[ $output == *"export 'b' has no clients: nobody can mount it over tcp and verbs. Make a key (rmemfsctl keygen) and name its file in clients, or say insecure there"* ]]
	# A key that others can read is nobody's.
	chmod 0644 "$dir/web.key"
	check
	[ "$status" -eq 78 ]
	[[ $output == *"$dir/server.conf:3: keys: key file $dir/web.key has mode 0644, and other users may read it: chmod "* ]]
	[ "${lines[-1]}" = "a start would be refused" ]
	# On the command line, too.
	check --export c:16MiB --key "$dir/web.key"
	[ "$status" -eq 78 ]
	[[ $output == *"--key: key file $dir/web.key has mode 0644, and other users may read it: chmod "* ]]
	chmod 0600 "$dir/web.key"
	check --export c:16MiB --key "$dir/web.key"
	[ "$status" -eq 0 ]
	[[ $output == *"export 'c': client 'web' may read and write, with key web1-k7q2 "* ]]
	check --export c:16MiB --insecure
	[ "$status" -eq 0 ]
	[[ $output == *"export 'c': client 'anybody' may read and write, without a key, from any address"* ]]
}

@test "--check-config names all problems, each with what to do, and has the status of the start" {
	cat >"$dir/server.conf" <<-END
		exports = ( { name = "a"; size = "64MiB"; } );
		region_size = "16MiB";
		listen = "shm:$socket";
	END
	transport=shm memory=$memory/place server_conf=$dir/server.conf start_server
	stop_server
	cat >"$dir/server.conf" <<-END
		exports = ( { name = "a"; size = "65MiB"; }, { name = "c"; size = "900TiB"; }, { name = "d"; size = "8TiB"; } );
		region_size = "1TiB";
		snapshot_dir = "$dir/nowhere";
		snapshot_on_stop = true;
		listen = [ "shm:$dir/no/such/socket", "tcp:192.0.2.1" ];
	END
	check
	[ "$status" -eq 78 ]
	[[ $output == *"export 'a' exists with 64MiB and is configured with 65MiB: it can have 64MiB or 80MiB, by whole regions of 16MiB"* ]]
	[[ $output == *"the memory of 3 exports: needed 908.0TiB, free "*"; make the exports smaller or the memory larger"* ]]
	[[ $output == *"snapshot_dir: $dir/nowhere does not exist: make it first (install -d -m 700), for the server's user"* ]]
	[[ $output == *"can't listen on shm:$dir/no/such/socket: no such directory: make it first"* ]]
	[[ $output == *"can't listen on tcp:192.0.2.1:7470: not an address of this machine: see 'ip address'"* ]]
	[[ $output == *"export 'c' has no clients: nobody can mount it over tcp and verbs. Make a key (rmemfsctl keygen) and name its file in clients, or say insecure there"* ]]
	[ "${lines[-1]}" = "a start would be refused" ]
	# An error that may go away by itself has another status.
	sed -i -e '/^exports/d' -e '/^snapshot/d' -e 's|"shm:[^"]*", ||' "$dir/server.conf"
	check --export a:64MiB
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = "a start would fail now" ]
}

# The leak sanitizer can't trace a process that has changed its user.
# bats test_tags=unsanitized
@test "--check-config of root looks as the unit's user where the memory directory is that user's" {
	# shellcheck disable=SC2016 # the inner shell's
	unshare --mount --propagation private -- bash -euc '
		mkdir "$1/over"
		mount -t tmpfs none "$1/over"
		mkdir "$1/over/upper" "$1/over/work"
		mount -t overlay -o "lowerdir=/etc,upperdir=$1/over/upper,workdir=$1/over/work" none /etc
		systemd-sysusers "$2/systemd/rmemfs.sysusers.conf" >/dev/null
		mount -t tmpfs -o mode=0755 none /run
		mount -t tmpfs -o mode=1777 none /dev/shm
		sed "s|@[A-Z_]*@|/etc|" "$2/systemd/rmemfs.tmpfiles.conf.in" >"$1/tmpfiles.conf"
		systemd-tmpfiles --create "$1/tmpfiles.conf"
		mkdir /etc/ours
		echo "snapshot_on_stop = true; exports = ( { name = \"a\"; size = \"64MiB\"; } );" >/etc/ours/server.conf
		ulimit -l 64
		rmemfs-server -c /etc/ours/server.conf --check-config
		chmod 0600 /etc/ours/server.conf
		echo "snapshot_dir = \"/etc/ours\";" >>/etc/ours/server.conf
		echo then
		rmemfs-server -c /etc/ours/server.conf --check-config || echo "status $?"
	' bash "$dir" "$repository" >"$dir/said" 2>&1 3>&-
	cat "$dir/said"
	[ "$(sed -e '/^then/,$d' -e '1,/listens on/d' "$dir/said")" = "looked at as user rmemfs, as whom the unit runs it
/dev/shm/rmemfs: it is new, and a start begins empty
export 'a': new, 64MiB
export 'a': nobody over tcp and verbs
each export: over shm root and the server's user may read and write
a start would succeed" ]
	sed -i '1,/^then/d' "$dir/said"
	grep -qF "server.conf: user rmemfs can't read it, and the unit runs the server as that user: Permission denied: chmod a+r it" "$dir/said"
	grep -qF "snapshot_dir: the unit lets the server write to /etc/ours only with ReadWritePaths=/etc/ours" "$dir/said"
	grep -qF "snapshot_dir: can't write to /etc/ours: Permission denied" "$dir/said"
	[ "$(tail -n 2 "$dir/said")" = $'a start would be refused\nstatus 78' ]
}

@test "wrong options of rmemfsctl are named, with the usage of the command" {
	local usage="(usage: rmemfsctl status [HOST] [--key FILE] [--json])"
	local snapshot="(usage: rmemfsctl snapshot EXPORT DIR [HOST])"
	says "rmemfsctl: a command is missing: status, mounts, log, upgrade, abort, evict, leases, who, quota, check, snapshot, reload, export, keygen, keycheck, doctor, health, report or top; see --help" rmemfsctl
	says "rmemfsctl: command 'statsu': unknown; must be status, mounts, log, upgrade, abort, evict, leases, who, quota, check, snapshot, reload, export, keygen, keycheck, doctor, health, report or top" rmemfsctl statsu
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
	for command in status mounts log abort evict leases who quota check snapshot reload export keygen keycheck doctor health report top; do
		rmemfsctl $command --help >"$dir/$command"
		[[ $(head -n 1 "$dir/$command") == "Usage: rmemfsctl $command "* ]]
		rmemfsctl -h $command ignored | diff "$dir/$command" -
	done
	for command in status mounts leases who quota reload doctor health top; do grep -q -e --json "$dir/$command"; done
	[ "$(cat "$dir"/{check,snapshot,log,abort,evict,keygen,keycheck,report} | grep -c -e --json)" -eq 0 ]
	[ "$(cat "$dir"/{check,mounts,log,abort,keygen,keycheck} | grep -c HOST)" -eq 0 ]
	grep -q HOST "$dir/reload"
	grep -q EXPORT "$dir/snapshot"
	says "rmemfsctl: command 'all': unknown; must be status, mounts, log, upgrade, abort, evict, leases, who, quota, check, snapshot, reload, export, keygen, keycheck, doctor, health, report or top" \
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

# default_server SCRIPT: runs SCRIPT beside a server without a configured address, in a namespace where
# nothing else has a port or a socket. $nobody is a user without rights.
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
		$nobody rmemfs -f -c /dev/null -o connect_timeout=1 127.0.0.1:/default "$1/mnt" >>"$1/said" 2>&1 || [ $? -eq 75 ]
		rmemfs -c /dev/null 127.0.0.1:/default "$1/mnt"
		echo root >"$1/mnt/a"
		umount "$1/mnt"
		rmemfs -c /dev/null /run/rmemfs/server.sock:/default "$1/mnt"
		[ "$(cat "$1/mnt/a")" = root ]
		umount "$1/mnt"'
	cat "$dir/said"
	grep -q "Permission denied" "$dir/said"
	[ "$(grep -c "warning: export" "$dir/server.log")" -eq 0 ]
}

# warned TEXT...: the log warns of clients in these words and no others.
warned() {
	diff <(grep -o " warning: export .*" "$dir/server.log") <([ $# -eq 0 ] || printf ' warning: %s\n' "$@")
}

@test "the server's log warns of exports that nobody can mount, and of those that anybody can" {
	local only_shm=(--listen "shm:$socket")
	local tcp=("${only_shm[@]}" --listen "tcp:127.0.0.1:$port")
	local server=(rmemfs-server -c /dev/null --memory-dir "$memory" --export a:16MiB)
	# logs OPTION...: a start and a stop of that server.
	logs() {
		"${server[@]}" "$@" >"$dir/server.log" 2>&1 3>&- &
		server_pid=$!
		until_true 20 server_answers
		stop_server
	}
	rmemfsctl keygen web "$dir/web.key" 2>/dev/null
	logs "${only_shm[@]}"
	warned
	logs "${tcp[@]}"
	warned "export 'a' has no clients: nobody can mount it over tcp and verbs. Make a key (rmemfsctl keygen) and name its file in --key, or say --insecure"
	logs "${tcp[@]}" --key "$dir/web.key"
	warned
	logs "${tcp[@]}" --insecure
	warned "export 'a': client 'anybody' is insecure and may come from any address: anybody who reaches this server may read and write without a key; name its addresses in hosts"
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
