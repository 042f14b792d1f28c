# shellcheck shell=bash
# wait.bash - what every script that starts programs waits for, and by which port it reaches them.

# pause SECONDS: sleeps, in a test of e2e without another process.
pause() {
	if [ -p "${dir:-}/never" ]; then
		read -r -t "$1" <>"$dir/never" || true
	else
		sleep "$1"
	fi
}

# until_true SECONDS COMMAND...: looks every 20 ms. A second in which we did not run, since all of us
# were stopped or the machine was paused, was none for what we wait for either.
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

free_port() {
	local port
	while :; do
		port=$((20000 + RANDOM % 10000))
		[ -n "$(ss -Hltn "sport = :$port")" ] || break
	done
	echo "$port"
}
