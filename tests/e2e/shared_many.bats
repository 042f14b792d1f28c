#!/usr/bin/env bats
# shared_many.bats - 64 mounts of one export work at once: all get their answers, those that ask for
# little are not starved by those that ask for much, and the server's memory is as in rmemfs-server(8).

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts

setup() {
	test_seconds=400
	setup_rmem
	mounts=()
	crowds=()
	many=64 work=6 export_size=1GiB
	if small; then many=12 work=10 export_size=256MiB; fi
}

teardown() {
	local pid
	for pid in "${crowds[@]}"; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	end_mounts
}

note() {
	echo "# $*" >&3
}

# begin_crowd N THREADS: mount N works until stop_crowds.
begin_crowd() {
	mkdir "$dir/1/crowd.$1"
	crowd "$dir/$1/crowd.$1" "$2" <"$dir/go" >"$dir/made.$1" 2>"$dir/crowd.log.$1" 3>&- 5>&- &
	crowds[$1]=$!
}

# All crowds must end well.
stop_crowds() {
	local n failed=0
	exec 5>&-
	for n in "${!crowds[@]}"; do
		exit_status "${crowds[n]}" 120 || {
			echo "crowd $n: $(cat "$dir/crowd.log.$n")"
			failed=1
		}
		unset "crowds[$n]"
	done
	return $failed
}

share_many() {
	local options=share,io_threads=2 n
	for ((n = 1; n <= many; n++)); do
		mount_number "$n" ",$options"
	done
}

# Prints the KiB of the server itself, without the regions and the store.
server_memory() {
	awk '/^RssAnon:/ { print $2 }' "/proc/$server_pid/status"
}

# Prints the requests of each mount so far: "N COUNT" each.
counts() {
	status_of '.sessions[] | "\(.client) \(.requests)"' |
		sed -nE 's|.*/([0-9]+) \(pid [0-9]+\) ([0-9]+)$|\1 \2|p' | sort -n
}

# requests BEGAN N...: prints the fewest and the most requests of these mounts since the counts in BEGAN.
requests() {
	counts | awk -v mounts=" ${*:2} " -v began="$1" '
		BEGIN { while ((getline line <began) > 0) { split(line, of, " "); before[of[1]] = of[2] } }
		index(mounts, " " $1 " ") { print $2 - before[$1] }' | sort -n | sed -n '1p;$p' | paste -sd ' '
}

# The limit for each mount: two channels that read no long values, see Exports in rmemfs-server(8). Their
# use is far below it, except for the buffers of queue pairs.
most_kib() {
	if [ "$transport" = verbs ]; then
		echo $((256 + 2 * 1024))
	else
		echo 256
	fi
}

# bats test_tags=unsanitized,nightly
@test "many mounts work at once, and the server's memory for each is bounded" {
	local before idle busy n total=0
	start_server
	before=$(server_memory)
	share_many
	idle=$(server_memory)
	mkfifo "$dir/go"
	exec 5<>"$dir/go"
	for ((n = 1; n <= many; n++)); do
		begin_crowd "$n" 2
	done
	pause "$work"
	busy=$(server_memory)
	stop_crowds
	for ((n = 1; n <= many; n++)); do
		[ "$(cat "$dir/made.$n")" -gt 0 ]
		total=$((total + $(cat "$dir/made.$n")))
	done
	note "$many mounts: $(((idle - before) / many)) KiB of the server's for each that is idle," \
		"$(((busy - before) / many)) KiB for each at work; $total operations in $work s"
	[ "$(status_of '.sessions | length')" = "$many" ]
	[ $((busy - before)) -le $((many * $(most_kib))) ]
	rm -r "$dir"/1/crowd.*
}

# Here the processors are the bottleneck. The transports' contract shows the turns at a server that is
# itself the bottleneck (turns__are_the_sessions).
@test "those who ask for little go on beside those who ask for much" {
	local n greedy=() modest=() alone beside least most most_greedy
	start_server
	share_many
	mkfifo "$dir/go"
	exec 5<>"$dir/go"
	for ((n = 1; n <= many; n++)); do
		if [ $((n % 8)) = 1 ]; then
			greedy+=("$n")
		else
			modest+=("$n")
			begin_crowd "$n" 1
		fi
	done
	until_true 200 all_have_had "$dir/none" 20 "${modest[@]}"
	alone=$(least_rate 200 "${modest[@]}")
	counts >"$dir/began"
	for n in "${greedy[@]}"; do
		begin_crowd "$n" 32
	done
	until_true 200 all_have_had "$dir/began" 300 "${greedy[@]}"
	beside=$(least_rate 200 "${modest[@]}")
	read -r least most <<<"$(requests "$dir/began" "${modest[@]}")"
	read -r _ most_greedy <<<"$(requests "$dir/began" "${greedy[@]}")"
	stop_crowds
	note "of ${#modest[@]} modest mounts the least has $alone requests a second alone, and $beside" \
		"beside ${#greedy[@]} greedy ones; then $least to $most in all, and a greedy one $most_greedy"
	# A modest mount has one request at a time, a greedy one 32. The rate that is left depends on the
	# machine's other work as well.
	[ $((least * 4)) -ge "$most" ]
	rm -r "$dir"/1/crowd.*
}

# least_rate COUNT N...: waits until each mount has had COUNT requests, and prints the requests a second
# of the slowest. $dir/began has the counts of the beginning.
least_rate() {
	local began=${EPOCHREALTIME/./} least
	counts >"$dir/began"
	until_true 200 all_have_had "$dir/began" "$@" || return 1
	read -r least _ <<<"$(requests "$dir/began" "${@:2}")"
	echo $((least * 1000000 / (${EPOCHREALTIME/./} - began)))
}

# all_have_had BEGAN COUNT N...
all_have_had() {
	local least most
	read -r least most <<<"$(requests "$1" "${@:3}")"
	[ "$least" -ge "$2" ]
}
