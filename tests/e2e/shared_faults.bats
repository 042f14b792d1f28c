#!/usr/bin/env bats
# shared_faults.bats - four mounts of one export work on the same files (see ../stress/sharers). Round
# after round one of them is killed, stopped for longer than the lease time, or loses its link. The others
# wait for the lease time at most, and no committed data is lost.
#
# RMEMFS_TEST_SEED=N repeats the choices of a run; each run prints its seed.

# shellcheck disable=SC2034 # what mounts.bash takes
load helpers
load mounts
load wire

lease=2 # seconds

nightly() {
	[ "${RMEMFS_TEST_NIGHTLY:-0}" = 1 ]
}

setup() {
	# shellcheck disable=SC2034 # the helpers take it
	if nightly; then test_seconds=1800; else test_seconds=150; fi
	setup_rmem
	seed=${RMEMFS_TEST_SEED:-$RANDOM}
	echo "RMEMFS_TEST_SEED=$seed"
	RANDOM=$seed
	use_lease $lease
	mounts=() players=()
	journal=$dir/journal
}

teardown() {
	[ -z "${victim:-}" ] || kill -CONT "${mounts[victim]:-$$}" 2>/dev/null || true
	local n
	for n in "${!players[@]}"; do
		kill -KILL "${players[n]}" 2>/dev/null || true
	done
	wires_end
	end_mounts
}

# ---- players -------------------------------------------------------------------------------------

play() {
	sharers play "$journal" $(($1 - 1)) "$dir/$1" >>"$dir/player.$1.log" 2>&1 3>&- &
	players[$1]=$!
}

# end_player N [STATUS]: the player ends with status 0. If its mount was struck, STATUS is right, too.
end_player() {
	local pid=${players[$1]} status=0
	unset "players[$1]"
	exit_status "$pid" $((20 + penalty)) || status=$?
	[ $status -eq 0 ] || [ $status -eq "${2:-0}" ] || die "player $1 ended with status $status"
}

# The players whose mounts were not struck go on, and none has waited for too long.
others_go_on() {
	local n waited
	for n in "${!players[@]}"; do
		alive "${players[n]}" || die "player $n has ended"
	done
	waited=$(sharers pause "$journal")
	[ "${waited%% *}" -le $(((lease + 1) * 1000)) ] || die "waited for ms: $waited"
}

# pause_ms LEAST MORE: pauses for a random time.
pause_ms() {
	local ms=$(($1 + RANDOM % $2))
	pause "$(printf %d.%03d $((ms / 1000)) $((ms % 1000)))"
}

# ---- strikes -------------------------------------------------------------------------------------

struck=3 # status of a player that has met the strike

# A mount that was late again and again waits so many seconds for its next session, at most.
penalty=60

# At random, the mount comes back at once or after its leases have expired.
strike_by_kill() {
	local pid=${mounts[victim]}
	unset "mounts[victim]"
	kill -KILL "$pid"
	exit_status "$pid" 20 || [ $? -eq 137 ]
	end_player "$victim" "$struck"
	until_true 10 umount "$dir/$victim"
	[ $((RANDOM % 2)) -eq 0 ] || pause $((lease + 1))
}

# Over shm all may wait for the mount until its process has ended.
strike_by_stop() {
	[ "$transport" != shm ] || sharers hold "$journal"
	suspend "${mounts[victim]}"
	pause_ms $((lease * 1000 + 500)) 2000
	kill -CONT "${mounts[victim]}"
	back
	[ "$transport" != shm ] || sharers go "$journal"
}

strike_by_cut() {
	wire_cut "$victim"
	pause_ms $((lease * 1000 + 500)) 6000
	wire_mend "$victim"
	back
}

# The mount may have lost its session, or not.
back() {
	sharers leave "$journal" $((victim - 1))
	end_player "$victim" "$struck"
	end_mount "$victim"
}

# Each mount over tcp is a client of its own: one that was late makes no other one wait.
make_clients() {
	local n clients=''
	[ "$transport" != shm ] || return 0
	for n in 1 2 3 4 5; do
		rmemfsctl keygen "mount$n" "$dir/$n.key" 2>>"$dir/keygen.log"
		clients+="${clients:+, }{ name = \"mount$n\"; keys = \"$dir/$n.key\"; }"
	done
	sed -i "s|name = \"default\";|& clients = ( $clients );|" "$server_conf"
}

# mount_client N: by its own key.
mount_client() {
	key_file=$dir/$1.key
	mount_number "$1" ",share,connect_timeout=$((penalty + 5))"
}

# strike HOW
strike() {
	victim=$((1 + RANDOM % 4))
	pause_ms 300 1000
	echo "mount $victim: $1"
	sharers strike "$journal" $((victim - 1))
	strike_by_"$1"
	mount_client "$victim"
	play "$victim"
	others_go_on
}

strikes() {
	local ways=(kill stop) rounds=3 i n
	if [ "$transport" = tcp ]; then
		ways+=(cut)
		wires 1 2 3 4
	fi
	mount_seconds=$((penalty + 10))
	if nightly; then
		if small; then rounds=10; else rounds=50; fi
	fi
	make_clients
	start_server "${listens[@]}"
	for n in 1 2 3 4; do
		mount_client $n
	done
	sharers make "$journal" 4 "$seed" "$dir/1"
	for n in 1 2 3 4; do
		play $n
	done
	for ((i = 0; i < rounds; i++)); do
		strike "${ways[(seed + i) % ${#ways[@]}]}"
	done
	sharers leave "$journal"
	for n in 1 2 3 4; do
		end_player $n
	done
	others_go_on
}

@test "one of four mounts is struck again and again: the others wait for the lease time at most" {
	local n
	strikes
	sharers pause "$journal"
	for n in 1 2 3 4; do
		end_mount $n
	done
	# A new mount has nothing cached.
	mount_client 5
	sharers check "$journal" "$dir/5"
}
