# shellcheck shell=bash disable=SC2154 # what helpers set
# carry.bash - a program that has all kinds of things of a mount in use, while that moves to another daemon.

ended() {
	! alive "$1" || [[ $(cat "/proc/$1/stat") == *") Z "* ]]
}

# begin_carrying DIR: see carry.c.
begin_carrying() {
	mkdir -p "$1"
	coproc carry "$1" 2>"$dir/carry.log" 3>&-
	carrier=$COPROC_PID
	eval "exec {from_carrier}<&${COPROC[0]} {to_carrier}>&${COPROC[1]}"
	eval "exec ${COPROC[0]}<&- ${COPROC[1]}>&-"
	round=0
	carried ready
}

carried() {
	local line
	read -r -t 30 line <&"$from_carrier" && [ "$line" = "$1" ] || die "$(cat "$dir/carry.log")"
}

try_carried() {
	round=$((round + 1))
	echo >&"$to_carrier"
	carried "round $round"
}

end_carrying() {
	exec {to_carrier}>&-
	carried 'done'
	exec {from_carrier}<&-
	wait "$carrier"
}
