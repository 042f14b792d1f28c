# shellcheck shell=bash disable=SC2154,SC2034 # what helpers set, and tests take
# stewarded.bash - a mount at $mnt that a service manager's stand-in starts again when it is killed.

# start_service [-n TIMES] [-k] [OPTION...]: the mount as a service, which the steward starts again.
start_service() {
	local -a flags=()
	while [[ ${1:-} == -[nkc] ]]; do
		if [ "$1" = -n ]; then flags+=("$1" "$2"); shift; else flags+=("$1"); fi
		shift
	done
	mkdir -p "$mnt"
	: >"$dir/steward"
	steward "${flags[@]}" "$dir/notify" rmemfs -f -c /dev/null -o "$(mount_options),revive${*:+,$*}" \
		"$(mount_source)" "$mnt" >"$dir/steward" 2>>"$dir/daemon.log" 3>&- &
	steward=$!
	until_true 30 is_ready 1 || die "nothing was mounted"
	! grep -q "can't be revived: this kernel" "$dir/daemon.log" || skip "reviving a mount needs Linux 6.9"
}

# is_ready N: the daemon, or its N-1st successor, serves.
is_ready() {
	[ "$(grep -c '^told READY=1$' "$dir/steward")" -ge "$1" ]
}

has_run() {
	[ "$(grep -c '^run ' "$dir/steward")" -ge "$1" ]
}

pid_of_daemon() {
	sed -n 's/^run //p' "$dir/steward" | tail -n 1
}

stop_service() {
	[ -n "${steward:-}" ] || return 0
	kill -TERM "$steward"
	exit_status "$steward" 15 || die "the service ended with status $?"
	steward=
}

# strike: kills the daemon; its successor serves then.
strike() {
	local n
	n=$(grep -c '^told READY=1$' "$dir/steward")
	kill -KILL "$(pid_of_daemon)"
	until_true 30 is_ready $((n + 1)) || die "no successor"
	[[ $(status_of '.sessions[].client') == *"(pid $(pid_of_daemon))"* ]] || die "the server has the former process"
}

# is_path FD: it is opened with O_PATH, which needs no OPEN.
is_path() {
	(($(awk '/^flags:/ {print "0" $2}' "/proc/$carrier/fdinfo/$1") & 010000000))
}

# Nothing of the files that the program has open waits for a COMMIT.
settled() {
	local file
	for file in "/proc/$carrier/fd/"*; do
		[ ! "$file" -ef /dev/null ] && [[ $(readlink "$file") == "$mnt"/* ]] || continue
		! is_path "${file##*/}" || continue
		sync "$file"
	done
}
