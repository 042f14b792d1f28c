# shellcheck shell=bash disable=SC2154 # what helpers set
# lockers.bash - programs that have locks of files, or wait for them. The test has `holders=()`, and waits_are COUNT, which
# says whether so many callers wait.

# start NAME COMMAND...: a program that reads what `tell NAME` says, and whose output `said` shows.
start() {
	local name=$1 fd
	mkfifo "$dir/to.$name"
	"${@:2}" <"$dir/to.$name" >"$dir/said.$name" 2>&1 3>&- &
	holders[$!]=$name
	echo $! >"$dir/pid.$name"
	exec {fd}>"$dir/to.$name"
	echo "$fd" >"$dir/fd.$name"
}

tell() {
	echo >&"$(cat "$dir/fd.$1")"
}

said() {
	[ "$(tr '\n' ' ' <"$dir/said.$1")" = "$2 " ]
}

# says NAME WORDS: waits until the program has printed WORDS.
says() {
	until_true 20 said "$1" "$2" || die "$1 said: $(cat "$dir/said.$1")"
}

# let_go NAME: lets the program go on to its end.
let_go() {
	local fd pid
	fd=$(cat "$dir/fd.$1") pid=$(cat "$dir/pid.$1")
	tell "$1"
	exec {fd}>&-
	timeout 20 tail --pid="$pid" -s 0.02 -f /dev/null || die "$1 does not end"
	wait "$pid"
	unset "holders[$pid]"
}

let_go_all() {
	local pid fd
	for pid in "${!holders[@]}"; do
		fd=$(cat "$dir/fd.${holders[pid]}")
		exec {fd}>&-
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	holders=()
}

# finds WORD MOUNT KIND TYPE AT: a try to take the lock prints WORD.
finds() {
	local got
	got=$(locker try "$3" "$4" "$dir/$2/file" "$5")
	[ "$got" = "$1" ] || die "$3 $4 at $5 on mount $2: $got"
}

soon_finds() {
	until_true 20 finds "$@"
}

# wait_for_each_other HAS WANTS HAS WANTS: the paths of the first and of the second process.
wait_for_each_other() {
	start one locker cross "$1" 0 "$2" 1
	says one got
	start two locker cross "$3" 1 "$4" 0
	says two got
	tell one
	until_true 20 waits_are 1
	tell two
	says two "got deadlock"
	says one "got got"
}
