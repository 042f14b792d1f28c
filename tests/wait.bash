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

# until_true SECONDS COMMAND...: looks every 20 ms.
until_true() {
	local deadline=$((SECONDS + $1 + 1))
	shift
	until "$@"; do
		[ $SECONDS -lt $deadline ] || return 1
		pause 0.02
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
