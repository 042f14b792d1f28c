# shellcheck shell=bash disable=SC2154 # what helpers set
# steps.bash - a process that has a file open and does what the test tells it: fsop's step.

# begin_steps FILE
begin_steps() {
	mkfifo "$dir/steps"
	fsop step "$1" <"$dir/steps" >"$dir/ended" 2>&1 3>&- &
	stepper=$!
	exec 8>"$dir/steps"
	asked=0
}

has_ended() {
	[ "$(grep -c '\.$' "$dir/ended")" -ge "$asked" ]
}

ask() {
	asked=$((asked + 1))
	echo "$*" >&8
}

# step VERB [AT [TEXT]] = RESULT: it ends at once with that result.
step() {
	ask "${@:1:$#-2}"
	ends "${!#}"
}

ends() {
	until_true 10 has_ended || die "it does not end: $(cat "$dir/ended")"
	[ "$(tail -n 1 "$dir/ended")" = "$1 ." ] || die "not $1: $(tail -n 1 "$dir/ended")"
}

# waits VERB...: it does not end while the server is stopped.
waits() {
	ask "$@"
	! until_true 1 has_ended || die "it did not wait: $(tail -n 1 "$dir/ended")"
}

end_steps() {
	exec 8>&-
	exit_status "$stepper" 20
}

# kill_stepper: kills it; it must end, whatever it waited for.
kill_stepper() {
	exec 8>&-
	kill -KILL "$stepper"
	exit_status "$stepper" 20 || [ $? -eq 137 ]
}
