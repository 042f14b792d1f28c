#!/usr/bin/env bats
# doctor.bats - rmemfsctl doctor: what it finds on this machine, and on the way to a server. Other tests run
# at the same time, and their mounts and daemons are found, too: so each test looks for its own.

load helpers
load wire

setup() {
	setup_rmem
}

teardown() {
	wires_end
	teardown_rmem
}

# examine FILE [ARGUMENT]...: keeps the findings in FILE. Each warning and each failure has cause and remedy.
examine() {
	local file=$1 status=0
	shift
	rmemfsctl doctor --json "$@" >"$file" 2>"$dir/said" 3>&- || status=$?
	cat "$dir/said"
	jq -r '.findings[] | "\(.verdict) \(.check): \(.found)"' "$file"
	[ ! -s "$dir/said" ]
	jq -e 'all(.findings[]; .verdict == "ok" or .verdict == "note" or (.cause and .remedy))' "$file" >/dev/null
	[ "$status" -eq "$(jq 'if .failures > 0 then 2 elif .warnings > 0 then 1 else 0 end' "$file")" ]
	[ "$(jq '[.findings[] | select(.verdict == "failure")] | length' "$file")" -eq "$(jq .failures "$file")" ]
}

# finds FILE CHECK VERDICT TEXT [REMEDY]
finds() {
	jq -e --arg check "$2" --arg verdict "$3" --arg text "$4" --arg remedy "${5:-}" \
		'any(.findings[]; .check == $check and .verdict == $verdict and (.found | contains($text))
			and (.remedy // "" | contains($remedy)))' "$1" >/dev/null ||
		die "no $3 of $2 says: $4 ${5:-}"
}

# bats test_tags=once
@test "a machine and a server that are well" {
	start_server
	examine "$dir/tcp" --key "$key_file" "127.0.0.1:$port"
	[ "$(jq .failures "$dir/tcp")" -eq 0 ]
	finds "$dir/tcp" fuse ok "can open /dev/fuse"
	jq -e 'any(.findings[]; .check == "features") and all(.findings[]; .check != "features" or
		.verdict == "ok" or (.found | startswith("with this kernel ")))' "$dir/tcp"
	finds "$dir/tcp" host ok "127.0.0.1:$port, on this machine"
	finds "$dir/tcp" key ok "$key_file: key test-"
	finds "$dir/tcp" tcp ok "both have proven key test-"
	finds "$dir/tcp" transport ok "over tcp"
	finds "$dir/tcp" exports ok "export default has"
	finds "$dir/tcp" latency ok "(median of 5)"
	finds "$dir/tcp" bandwidth note "not measured"
	finds "$dir/tcp" clock note "not compared"
	# Its socket, where nobody proves a key.
	examine "$dir/shm" "$socket"
	[ "$(jq .failures "$dir/shm")" -eq 0 ]
	finds "$dir/shm" shm ok "no key was proven"
	finds "$dir/shm" exports ok "export default has"
	finds "$dir/shm" directory ok "the server's memory is in $memory"
	# A stranger sees the versions, and the text has the same findings.
	run rmemfsctl doctor "tcp:127.0.0.1:$port"
	[ "$status" -lt 2 ]
	[[ $output == *"note     exports: what may be mounted is not told to strangers"* ]]
	[[ ${lines[-1]} == "0 failures, "*" warning"* ]]
}

# bats test_tags=once
@test "without HOST it looks at this machine alone, also for users without rights" {
	examine "$dir/all"
	[ "$(jq .host "$dir/all")" = null ]
	[ "$(jq '[.findings[] | select(.check == "host" or .check == "tcp")] | length' "$dir/all")" -eq 0 ]
	"${nobody[@]}" rmemfsctl doctor --json >"$dir/user" 2>"$dir/said" || [ $? -le 2 ]
	[ ! -s "$dir/said" ]
	finds "$dir/user" features note "not seen"
	finds "$dir/user" namespaces note "are not seen without root"
}

# bats test_tags=once
@test "a limit of 64 KiB on locked memory" {
	(
		ulimit -l 64
		# The file belongs to the test's user: jq reads it there.
		"${nobody[@]}" rmemfsctl doctor --json >"$dir/user" || [ $? -le 2 ]
	)
	jq -e 'any(.findings[]; .check == "memlock" and (.verdict == "warning" or .verdict == "failure")
		and (.found | contains("only 64KiB")) and (.remedy | contains("ulimit -l unlimited")))' "$dir/user"
}

# bats test_tags=once
@test "a key that the server does not have, and a file of keys that others may read" {
	start_server
	rmemfsctl keygen other "$dir/other.key" 2>/dev/null
	examine "$dir/other" --key "$dir/other.key" "127.0.0.1:$port"
	finds "$dir/other" key ok "$dir/other.key: key other-"
	finds "$dir/other" tcp failure "does not accept key other-" "rmemfsctl keycheck FILE"
	finds "$dir/other" transport failure "no transport leads to the server"
	chmod 644 "$dir/other.key"
	examine "$dir/open" --key "$dir/other.key" "127.0.0.1:$port"
	finds "$dir/open" key failure "other users may read it" "rmemfsctl keycheck $dir/other.key"
	# The way to the server is looked at without it.
	finds "$dir/open" tcp ok "no key was proven"
}

# bats test_tags=once
@test "a server that is stopped, which keeps its port open" {
	start_server
	suspend "$server_pid"
	examine "$dir/tcp" "tcp:127.0.0.1:$port" >"$dir/tcp.log" 3>&- &
	examine "$dir/shm" "$socket"
	wait $!
	kill -CONT "$server_pid"
	finds "$dir/shm" shm failure "the server, process $server_pid, is stopped" "kill -CONT $server_pid"
	finds "$dir/tcp" tcp failure "the port is open, but nobody answers" "-CONT"
}

# bats test_tags=once
@test "nobody listens, and names that nobody has" {
	examine "$dir/port" "127.0.0.1:$port"
	finds "$dir/port" tcp failure "127.0.0.1:$port: nobody listens there" "systemctl start rmemfs-server"
	examine "$dir/socket" "$dir/no.sock"
	finds "$dir/socket" shm failure "nobody listens there" "name its socket as HOST"
	examine "$dir/form" "here:/e/f"
	finds "$dir/form" host failure "an export's name has no /" "--help"
	examine "$dir/verbs" "verbs:127.0.0.1:$port"
	finds "$dir/verbs" verbs failure "verbs 127.0.0.1:$port"
	run rmemfsctl doctor one two
	[ "$status" -eq 2 ]
	[[ $output == *"one operand too many"* ]]
}

# stand_in COMMAND...: badpeer listens at the server's address.
stand_in() {
	badpeer "$@" >"$dir/stand_in.out" 3>&- &
	other=$!
	stands_in() {
		! alive $other || grep -q ready "$dir/stand_in.out"
	}
	until_true 10 stands_in
}

# bats test_tags=once
@test "a server of another version, and one whose words a terminal would act upon" {
	local address=tcp:127.0.0.1:$port
	stand_in serve "$address" 7
	examine "$dir/old" "$address"
	kill $other
	finds "$dir/old" tcp failure "the server speaks version 7 of the protocol" "upgrade rmemfs on the server"
	stand_in answer "$address" 5 $'no \033[2J\u202e\007'
	examine "$dir/rude" "$address"
	kill $other
	finds "$dir/rude" tcp failure 'no ?[2J??'
	if LC_ALL=C grep -q $'[\001-\011\013-\037]' "$dir/rude"; then return 1; fi
}

# It never touches the mount: a request to a stopped daemon would wait for ever.
# bats test_tags=once
@test "a mount whose daemon is stopped, and then gone" {
	start_server
	mount_rmem
	examine "$dir/well"
	finds "$dir/well" mounts ok "$mnt ($(mount_source)): served by process $daemon_pid"
	suspend "$daemon_pid"
	examine "$dir/stopped"
	finds "$dir/stopped" mounts failure "process $daemon_pid, is stopped" "kill -CONT $daemon_pid"
	kill -KILL "$daemon_pid"
	exit_status "$daemon_pid" 10 || [ $? -eq 137 ]
	daemon_pid=''
	examine "$dir/gone"
	finds "$dir/gone" mounts failure "$mnt ($(mount_source)) has no daemon" "umount $mnt"
	umount "$mnt"
	examine "$dir/unmounted"
	if grep -qF "$mnt" "$dir/unmounted"; then return 1; fi
}

# A check that waits for the file of keys is ended, and the others go on.
# bats test_tags=once
@test "nothing waits for a file that can't be read" {
	start_server
	mount_rmem
	cp "$key_file" "$mnt/key"
	suspend "$daemon_pid"
	examine "$dir/late" --key "$mnt/key" "127.0.0.1:$port"
	kill -CONT "$daemon_pid"
	finds "$dir/late" key failure "did not end within 3 s" "dmesg"
	finds "$dir/late" mounts failure "process $daemon_pid, is stopped"
	finds "$dir/late" tcp ok "no key was proven"
}

# across FILE: as from the other end of the wire.
across() {
	# shellcheck disable=SC2086 # a command and its arguments
	examine "$1" "$(wire_address 1 1):$port"
}

# shellcheck disable=SC2154 # within: a command and its arguments
# bats test_tags=once
@test "packets of full size that the other end does not take, and a wire that is cut" {
	local near far
	wires 1
	near=$(wire_device 1 m) far=$(wire_device 1 s)
	start_server "${listens[@]}"
	# The command runs at the mount's end of the wire.
	rmemfsctl() {
		if [ "$1" = doctor ]; then ${within[1]} "$bin/rmemfsctl" "$@"; else command rmemfsctl "$@"; fi
	}
	ip link set "$far" mtu 9000
	ip -n "$(wire_space 1)" link set "$near" mtu 9000
	across "$dir/well"
	finds "$dir/well" route ok "by $near from $(wire_address 1 2), MTU 9000"
	finds "$dir/well" mtu ok "packets of 9000 bytes, the MTU of $near, arrive"
	finds "$dir/well" tcp ok "no key was proven"
	ip link set "$far" mtu 1500
	across "$dir/lost"
	finds "$dir/lost" mtu failure "get lost without a word; 1500 bytes arrive" \
		"here, until the next boot: ip link set $near mtu 1500; or give each switch between"
	wire_cut 1
	across "$dir/cut"
	finds "$dir/cut" mtu note "not measured"
	finds "$dir/cut" tcp failure "no answer within 2 s" "ping"
	ip -n "$(wire_space 1)" link set "$near" down
	across "$dir/down"
	finds "$dir/down" route failure "unreachable" "ip link set INTERFACE up"
}

# bats test_tags=once
@test "another mount namespace keeps a mount alive" {
	start_server
	mount_rmem
	unshare --mount --propagation private sleep infinity 3>&- &
	other=$!
	separated() {
		[ "$(readlink "/proc/$other/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ]
	}
	until_true 5 separated
	examine "$dir/copied"
	finds "$dir/copied" namespaces note "$mnt ($(mount_source)) has a copy in the mount namespace of process $other"
	umount "$mnt"
	examine "$dir/kept"
	finds "$dir/kept" namespaces warning "$mnt ($(mount_source)) was unmounted, but the mount namespace of process $other (sleep)" \
		"nsenter -t $other -m umount -l $mnt"
	# The remedy.
	nsenter -t $other -m umount -l "$mnt"
	exit_status "$daemon_pid" 10
	daemon_pid=''
	kill -KILL $other
	examine "$dir/over"
	if grep -qF "$mnt" "$dir/over"; then return 1; fi
}

# bats test_tags=only:verbs
@test "over verbs: the device, the path, and the connection" {
	start_server
	examine "$dir/verbs" --key "$key_file" "$verbs_address:$port"
	[ "$(jq .failures "$dir/verbs")" -eq 0 ]
	finds "$dir/verbs" rdma ok "node GUID"
	finds "$dir/verbs" rdma ok "RoCE, active, MTU"
	finds "$dir/verbs" verbs ok "verbs $verbs_address:$port: by rxe"
	finds "$dir/verbs" verbs ok "both have proven key test-"
	finds "$dir/verbs" tcp note "nobody listens there"
	finds "$dir/verbs" transport ok "over verbs"
	finds "$dir/verbs" exports ok "export default has"
	finds "$dir/verbs" latency ok "verbs: the wire not measured"
	# Nobody listens there over verbs, either.
	examine "$dir/port" "verbs:$verbs_address:$((port + 1))"
	finds "$dir/port" verbs failure "nobody listens there" "systemctl start rmemfs-server"
}
