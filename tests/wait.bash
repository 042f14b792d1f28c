# shellcheck shell=bash
# wait.bash - functions for scripts that start programs: waiting, and the port of a test.

# pause SECONDS: sleeps; a test of e2e starts no other process for it.
pause() {
	if [ -p "${dir:-}/never" ]; then
		read -r -t "$1" <>"$dir/never" || true
	else
		sleep "$1"
	fi
}

# until_true SECONDS COMMAND...: tries every 20 ms. A second in which all of us were stopped, or the
# machine was paused, does not count, since the other side did not run either.
until_true() {
	local left=$(($1 + 1)) now=$SECONDS
	shift
	until "$@"; do
		[ $left -gt 0 ] || return 1
		pause 0.02
		left=$((left - (SECONDS != now)))
		now=$SECONDS
	done
}

# is_mount_point PLACE: whether something is mounted there, without asking it. mountpoint(1) asks it, and says
# no when it answers with an error.
is_mount_point() {
	grep -qF " $1 " /proc/self/mountinfo
}

free_port() {
	local port
	while :; do
		port=$((20000 + RANDOM % 10000))
		[ -n "$(ss -Hltn "sport = :$port")" ] || break
	done
	echo "$port"
}
