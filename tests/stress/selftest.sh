#!/bin/bash
# selftest.sh COHERENCE - coherence finds nothing where one local filesystem is given several times,
# and finds each kind of falsified result; TAP on standard output.
set -euo pipefail

# shellcheck source=tests/tap.bash
. "$(dirname "$0")/../tap.bash"
coherence=${1:?the program}
dir=$(mktemp -d "${RMEMFS_TEST_SHM:-/dev/shm}/rmemfs-coherence.XXXXXX")
trap 'rm -rf "$dir"' EXIT

finds_nothing() {
	local said
	said=$("$coherence" --strict "$@" "$dir" "$dir" "$dir") || {
		echo "$said"
		return 1
	}
	[[ $said == *"coherence: consistent: "* ]] || return 1
	[ -z "$(ls "$dir")" ]
}

# finds HOW: chance alone need not meet it, so some rounds must be enough. The run without shows
# that the falsified result is the reason. The end of the output must say what was wrong, and the
# seed.
finds() {
	local status=0 said seed=$RANDOM
	said=$("$coherence" --seed "$seed" --seconds 30 --break "$1" "$dir" "$dir") || status=$?
	rm -rf "$dir"/coherence.*
	[ "$status" -eq 1 ] &&
		[[ $(tail -n 2 <<<"$said") == *"VIOLATION in round "*" of seed $seed: "*" falsified on purpose"* ]] || {
		echo "status $status"
		echo "$said" | tail -n 20
		return 1
	}
}

# operations SEED: a hash of each of four players, over all its operations.
operations() {
	"$coherence" --seed "$1" --ops 600 --players 2 --verbose "$dir" "$dir" | grep ' was to do '
}

same_operations() {
	local first second other
	first=$(operations 7)
	second=$(operations 7)
	other=$(operations 8)
	[ "$(awk '{ print $NF }' <<<"$first" | sort -u | wc -l)" -eq 4 ] &&
		[ "$first" = "$second" ] &&
		[ -z "$(comm -12 <(sort <<<"$first") <(sort <<<"$other"))" ]
}

# gives_up LIMIT STATUS ROUNDS: with searches that end so early.
gives_up() {
	local status=0 said
	said=$("$coherence" --limit "$1" --ops $(($3 * 60)) "$dir" "$dir") || status=$?
	[ "$status" -eq "$2" ] && [[ $said == *" searches undecided in $3 rounds"* ]]
}

refuses() {
	local status=0
	"$coherence" "$@" >/dev/null 2>&1 || status=$?
	[ "$status" -eq 2 ]
}

check "one player a mount" finds_nothing --seconds 3
check "several players a mount" finds_nothing --seconds 3 --players 4 --files 2
check "long rounds" finds_nothing --seconds 3 --players 2 --round 200
check "the same seed, the same operations" same_operations
check "a few rounds may be undecided" gives_up 1 0 5
check "most of them may not" gives_up 1 3 30
check "no directory" refuses
check "different filesystems" refuses "$dir" "${TMPDIR:-/tmp}"
rm -rf "$dir"/coherence.*
for how in $("$coherence" --break list); do
	check "finds $how" finds "$how"
done
check_end
