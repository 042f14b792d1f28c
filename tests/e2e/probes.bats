#!/usr/bin/env bats
# probes.bats - the static probes in the order in which they fire, with the arguments that
# config/tracing/README.md says; gdb reads them.
bats_require_minimum_version 1.5.0

# The sanitizers trace their own process.
# bats file_tags=once,unsanitized

# shellcheck disable=SC2154 # what helpers set
load helpers

setup() {
	setup_rmem
	tracers=()
	other=$dir/other
}

teardown() {
	local pid
	# At SIGTERM gdb takes its breakpoints out.
	for pid in "${tracers[@]}"; do
		kill -TERM "$pid" 2>/dev/null || continue
		exit_status "$pid" 5 || kill -KILL "$pid" 2>/dev/null || true
	done
	[ -z "${other_pid:-}" ] || kill -TERM "$other_pid" 2>/dev/null || true
	teardown_rmem
}

# watch_probes NAME PID: gdb follows the script $dir/NAME.gdb in the process, and prints to $dir/NAME.
watch_probes() {
	gdb -q -nx -batch -ex 'set auto-load off' -ex 'handle SIGPIPE nostop noprint pass' -p "$2" -x "$dir/$1.gdb" \
		-ex detach >"$dir/$1" 2>&1 </dev/null 3>&- &
	tracers+=($!)
	until_true 20 grep -q "^ready" "$dir/$1" || die "gdb does not follow the process: $(cat "$dir/$1")"
}

# saw NAME LINE...: gdb has ended, and has printed these lines.
saw() {
	local name=$1
	shift
	exit_status "${tracers[-1]}" 20 || die "gdb failed: $(cat "$dir/$name")"
	grep '^saw' "$dir/$name" >"$dir/$name.saw"
	diff <(printf 'saw %s\n' "$@") "$dir/$name.saw" || die "$(cat "$dir/$name")"
}

# at PROBE CONDITION FORMAT ARGUMENT...: lines of gdb's script that wait for the probe, and print.
at() {
	local probe=$1 condition=$2 format=$3
	shift 3
	cat <<-END
		tbreak -probe-stap $probe
		condition \$bpnum $condition
		continue
		printf "saw ${probe#*:} $format\\n"$(printf ', %s' "$@")
	END
}

@test "a lookup asks the server, and a read transfers" {
	start_server
	mount_rmem
	head -c 65536 /dev/zero >"$mnt/file"
	remount
	{
		cat <<-'END'
			tbreak -probe-stap rmemfs:request_receive
			condition $bpnum $_probe_arg1 == 1
			printf "ready\n"
			continue
			set $lookup = $_probe_arg0
			printf "saw request_receive %lu %u\n", $_probe_arg2, $_probe_arg1
		END
		at rmemfs:rpc_send '$_probe_arg0 == $lookup' '%u' '$_probe_arg1'
		at rmemfs:rpc_reply '$_probe_arg0 == $lookup' '%d' '$_probe_arg1'
		at rmemfs:request_reply '$_probe_arg0 == $lookup' '%d %lu' '$_probe_arg1' '$_probe_arg2'
		cat <<-'END'
			tbreak -probe-stap rmemfs:request_receive
			condition $bpnum $_probe_arg1 == 15
			continue
			set $read = $_probe_arg0
			printf "saw request_receive %lu %u %lu\n", $_probe_arg2, $_probe_arg5, $_probe_arg4
		END
		at rmemfs:transfer_post '$_probe_arg0 == $read' '%u' '$_probe_arg1'
		at rmemfs:transfer_complete '$_probe_arg0 == $read' '%d' '$_probe_arg1'
		at rmemfs:request_reply '$_probe_arg0 == $read' '%d %lu %d' '$_probe_arg1' '$_probe_arg2' '$_probe_arg3 > 0'
	} >"$dir/client.gdb"
	watch_probes client "$daemon_pid"
	dd if="$mnt/file" of="$dir/copy" bs=32K skip=1 iflag=direct status=none
	# 1: FUSE_LOOKUP in the root. 16: RPC_LOOKUP.
	saw client "request_receive 1 1" "rpc_send 16" "rpc_reply 0" "request_reply 0 0" \
		"request_receive $(stat -c %i "$mnt/file") 32768 32768" "transfer_post 0" "transfer_complete 0" \
		"request_reply 0 32768 1"
	cmp "$mnt/file" "$dir/copy" -n 32768
}

@test "a lease that another client has: the request waits, and the recall begins and ends" {
	start_server
	mount_rmem -o share
	mkdir "$other"
	rmemfs -f -c /dev/null -o "$(mount_options),share" "$(mount_source)" "$other" >>"$dir/other.log" 2>&1 3>&- &
	other_pid=$!
	until_true 20 mountpoint -q "$other"
	echo one >"$mnt/file"
	{
		cat <<-'END'
			tbreak -probe-stap rmemfs:lease_wait
			printf "ready\n"
			continue
			set $waits = $_probe_arg0
			printf "saw lease_wait %lu\n", $_probe_arg1
		END
		at rmemfs:lease_go '$_probe_arg0 == $waits' '%d' '$_probe_arg1'
		at rmemfs:request_reply '$_probe_arg0 == $waits' '%d' '$_probe_arg1'
	} >"$dir/client.gdb"
	watch_probes client "$other_pid"
	{
		cat <<-'END'
			tbreak -probe-stap rmemfs_server:request_wait
			printf "ready\n"
			continue
			set $waits = $_probe_arg0
			set $inode = $_probe_arg2
			printf "saw request_wait %s\n", (char *)$_probe_arg1
		END
		at rmemfs_server:recall_begin '$_probe_arg2 == $inode' '%s' '(char *)$_probe_arg1'
		at rmemfs_server:recall_end '$_probe_arg2 == $inode' '%s' '(char *)$_probe_arg1'
		at rmemfs_server:request_reply '$_probe_arg0 == $waits' '%u %d' '$_probe_arg1' '$_probe_arg2'
	} >"$dir/server.gdb"
	watch_probes server "$server_pid"
	echo two >>"$other/file"
	# 51: RPC_LEASE.
	saw server "request_wait $(client_of "$other_pid")" "recall_begin $(client_of "$daemon_pid")" \
		"recall_end $(client_of "$daemon_pid")" "request_reply 51 0"
	tracers=("${tracers[0]}")
	saw client "lease_wait $(stat -c %i "$mnt/file")" "lease_go 0" "request_reply 0"
	umount "$other"
	exit_status "$other_pid" 10
	other_pid=''
}

# client_of PID: the name of that client, as status has it.
client_of() {
	status_of ".sessions[] | select(.client | test(\"\\\\b$1\\\\b\")) | .client"
}
