# shellcheck shell=bash disable=SC2154 # what helpers set
# mounts.bash - several mounts of one export, by numbers: N is mounted at $dir/N by the process
# ${mounts[N]}.

# For a mount elsewhere (wire.bash): the command that runs it, and the source by which it reaches the
# server.
within=() source_of=()

# Seconds within which a mount has to be there.
mount_seconds=30

# mount_number N OPTIONS
mount_number() {
	local at=$dir/$1 n=$1
	mkdir -p "$at"
	# shellcheck disable=SC2086 # a command and its arguments
	${within[n]:-} rmemfs -f -c /dev/null -o "$(mount_options)$2" \
		"${source_of[n]:-$(mount_source)}" "$at" \
		>>"$dir/mount.$n.log" 2>&1 3>&- &
	mounts[n]=$!
	echo "${mounts[n]}" >"$dir/mount.$n.pid"
	until_true "$mount_seconds" mountpoint -q "$at" || die "mount $n: $(cat "$dir/mount.$n.log")"
}

# share N...: makes these mounts, which all write.
share() {
	local n
	for n in "$@"; do
		mount_number "$n" ,share
	done
}

# Before Linux 6.9 the kernel maps no file that goes past its cache, so all files use the cache on a mount that is
# alone, and another one waits until those are closed that are written.
maps_past_cache() {
	local release
	release=$(uname -r)
	[ "$(printf '6.9\n%s\n' "$release" | sort -V | head -n 1)" = 6.9 ]
}

# For tests that take one kind of kernel. (../run.sh permits a skip for that reason where the kernel is the other kind.)
needs_linux_6_9() {
	maps_past_cache || skip "needs Linux 6.9: $1"
}

needs_linux_before_6_9() {
	! maps_past_cache || skip "needs Linux before 6.9: $1"
}

# come N [OPTIONS]: makes a mount that shares when another one comes, whatever is open there.
come() {
	mount_number "$1" "$(to_come)${2:-}"
}

to_come() {
	maps_past_cache || [ -n "${cache_mode:-}" ] || printf ,cache=none
}

# coming N: the same, and does not wait. arrived N: waits for that.
coming() {
	mkdir -p "$dir/$1"
	rmemfs -f -c /dev/null -o "$(mount_options)$(to_come)" "$(mount_source)" "$dir/$1" \
		>>"$dir/mount.$1.log" 2>&1 3>&- &
	mounts[$1]=$!
}

arrived() {
	until_true 60 mountpoint -q "$dir/$1" || die "mount $1: $(cat "$dir/mount.$1.log")"
}

# is_sharing N: whether the mount goes by leases.
is_sharing() {
	[ "$(rmemfsctl status --json "$dir/$1" | jq .options.share)" = true ]
}

# is_alone N: whether it does not.
is_alone() {
	[ "$(rmemfsctl status --json "$dir/$1" | jq .options.share)" = false ]
}

begin() {
	start_server
	share "$@"
}

# by_orders COMMAND...: a program of ${pids[@]} that reads what comes by descriptor 5. Its answers are in $dir/answers.
by_orders() {
	mkfifo "$dir/go"
	"$@" >"$dir/answers" 2>&1 <"$dir/go" 3>&- 6>&- 7>&- &
	pids+=($!)
	exec 5>"$dir/go"
}

# writes_to FILE: a program of ${pids[@]} has it open, and writes each line that comes by descriptor 5. Its answers are
# in $dir/answers.
writes_to() {
	mkfifo "$dir/go"
	{
		exec 6>"$1"
		while read -r line; do
			echo "$line" >&6 && echo "wrote $line" || echo "lost $line"
		done <"$dir/go" >"$dir/answers" 2>/dev/null
	} 3>&- &
	pids+=($!)
	exec 5>"$dir/go"
}

# answered LINE: the last answer is that.
answered() {
	[ "$(tail -n 1 "$dir/answers")" = "$1" ]
}

# end_programs: the processes ${pids[@]}, which end when the file $dir/enough is there, when descriptor 5 is closed, or by
# themselves.
end_programs() {
	local pid
	exec 5>&-
	[ -z "${dir:-}" ] || touch "$dir/enough"
	for pid in "${pids[@]}"; do
		wait "$pid" 2>/dev/null || true
	done
}

# no_log_says PATTERN: neither the server's log nor a mount's has it.
no_log_says() {
	! grep -E "$1" "$dir/server.log" "$dir"/mount.*.log
}

# nobody_was_late: no client kept a lease for so long that the server logged it, and none has lost its
# session. Only for tests that harm no mount.
nobody_was_late() {
	no_log_says 'has not given back|session lost'
}

end_mount() {
	local pid=${mounts[$1]}
	unset "mounts[$1]"
	umount "$dir/$1" || return 1
	exit_status "$pid" 30 || die "mount $1 ended with status $?"
}

# All mounts end well, and the files they leave are whole, unless the test has failed already.
end_mounts() {
	local n failed=0
	if [ -n "${BATS_TEST_COMPLETED:-}" ]; then
		for n in "${!mounts[@]}"; do
			end_mount "$n" || failed=1
		done
		[ -z "$server_pid" ] || { stop_server && check_memory; } || failed=1
		[ $failed -eq 0 ] || show_logs
	fi
	teardown_rmem && [ $failed -eq 0 ]
}
