#!/bin/bash
# selftest.sh SHARERS - players on a local filesystem find nothing, and any damage done to their
# files is found; TAP on standard output.
set -euo pipefail

# shellcheck source=tests/tap.bash
. "$(dirname "$0")/../../tap.bash"
sharers=${1:?the program}
work=$(mktemp -d "${RMEMFS_TEST_SHM:-/dev/shm}/rmemfs-sharers.XXXXXX")
trap 'rm -rf "$work"' EXIT
dir=$work/files journal=$work/journal
nplayers=3

play_all() {
	local n pids=()
	rm -rf "$dir" "$journal"
	mkdir "$dir"
	"$sharers" make "$journal" $nplayers 7 "$dir"
	for ((n = 0; n < nplayers; n++)); do
		"$sharers" play "$journal" $n "$dir" &
		pids[n]=$!
	done
	sleep 2
	"$@"
	sleep 1
	"$sharers" leave "$journal"
	wait "${pids[@]}"
}

strike_one() {
	"$sharers" strike "$journal" 1
	"$sharers" leave "$journal" 1
	wait "${pids[1]}"
	"$sharers" play "$journal" 1 "$dir" &
	pids[1]=$!
}

finds_nothing() {
	"$sharers" check "$journal" "$dir"
}

plays_well() {
	play_all "$@" && finds_nothing
}

waits_for_nothing() {
	local waited
	waited=$("$sharers" pause "$journal")
	[ "${waited%% *}" -lt 1000 ] || {
		echo "waited: $waited"
		return 1
	}
}

# finds DAMAGE...: does the damage to a copy.
finds() {
	local status=0 said
	rm -rf "$work/damaged" "$work/journal.2"
	cp -a "$dir" "$work/damaged"
	cp "$journal" "$work/journal.2"
	(cd "$work/damaged" && "$@")
	said=$("$sharers" check "$work/journal.2" "$work/damaged" 2>&1) || status=$?
	[ "$status" -eq 1 ] && [[ $said == *"VIOLATION"* ]] || {
		echo "status $status: $said"
		return 1
	}
}

# Changes a byte.
changes() {
	printf '\xa5\x5a' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

shortens() {
	truncate -s -"$2" "$1"
}

doubles() {
	cat "$1" "$1" >"$1.new"
	mv "$1.new" "$1"
}

loses() {
	rm "$1"
}

a_message() {
	local all=(new/*)
	"$1" "${all[0]}" "${@:2}"
}

leaves() {
	touch "$1"
}

check "three players" plays_well true
check "one of three is struck, and comes back" plays_well strike_one
check "nobody waits on a local filesystem" waits_for_nothing
until [ -s "$dir/log0" ] && [ -n "$(ls "$dir/new")" ]; do
	play_all true
done
check "finds a register that was overwritten" finds changes registers 20000
check "finds a record that is damaged" finds changes log0 40
check "finds a log's end that is lost" finds shortens log0 1
check "finds a log that is empty" finds truncate -s 0 log0
check "finds records that stand there twice" finds doubles log0
check "finds a message that is lost" finds a_message loses
check "finds a message that is damaged" finds a_message changes 0
check "finds a message that was cut short" finds a_message shortens 1
check "finds what nobody left" finds leaves tmp/0.1
check_end
