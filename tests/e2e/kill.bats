#!/usr/bin/env bats
# kill.bats - the server is killed and started again, under a mixed load or while it starts, at named
# points of its code (see common/base/crash_point.h) and at random times. A log outside the mount has the
# acknowledged operations (see acklog.c). Each of these must be there and done once, and the memory
# directory must be whole each time.
#
# RMEMFS_TEST_SEED=N repeats the points and times of a run; each run prints its seed.

load helpers
load loggers

nightly() {
	[ "${RMEMFS_TEST_NIGHTLY:-0}" = 1 ]
}

setup() {
	# shellcheck disable=SC2034 # the helpers take it
	if nightly; then test_seconds=1800; else test_seconds=400; fi
	setup_rmem
	# Each start and each check read the whole export.
	# shellcheck disable=SC2034 # the helpers take it
	export_size=160MiB
	seed_loggers
	RANDOM=$seed
	# A short lease time: the server reuses freed pages soon after a restart. A snapshot ends clients
	# that are away for longer than this, so they need enough time to reconnect.
	use_lease 4
}

teardown() {
	[ -z "${dir:-}" ] || touch "$dir/enough"
	rm -rf "${memory:-/nonexistent}.restored"
	teardown_rmem
}

# ---- points --------------------------------------------------------------------------------------

# Points that a load passes. For points passed all the time, a later passage is as good as the first.
often=(commit.before commit.after reply.none reply.sent)
seldom=(name.changed grant scrub.before scrub.half scrub.zeroed scrub.taken reap.step cut.hidden zero.before
	zero.after copy.before copy.after fallocate.step xattr.staged xattr.set snapshot.marked
	snapshot.half snapshot.written snapshot.renamed)
# Points of a start, of a mount and its end, and of a restoration.
first_start=(memdir.locked memdir.write memdir.written:1 region.made region.sized region.allocated
	store.allocated store.tables store.loaded store.opened memdir.written:2 region.register)
restart=(memdir.locked region.allocated store.allocated store.tables store.loaded store.opened
	region.register)
mounting=(attach.before attach.stored session.ending session.drained)
half_restored=(restore.begun restore.records restore.stored restore.filled)
restored=(restore.ended)
# A point of a client, over shm.
client=(landing.arrived)
# A point of a client that shared_fence.bats stops.
stopped=(write.post)
# Points of two daemons, of which one hands its mount over: upgrade.bats.
moving=(give.offered give.standing give.told give.went give.gone take.ready take.told take.adopted
	take.connected take.serving)
# A daemon that is killed while it tells of names that it has removed: names_removed.bats.
removing=(names.before names.answered)
# Points of a mount that comes to share: alone_shares.bats, alone_locks.bats.
converting=(convert.stored lock.stored)
# Points of a daemon that is killed, and of its successor: revive.bats.
reviving=(rpc.sent rpc.answered open.recorded write.acknowledged revive.opened revive.adopted revive.connected
	revive.settled revive.resent)

# bats test_tags=once
@test "every point that the code has is one that a test dies at" {
	local points
	points=$({
		printf '%s\n' "${often[@]}" "${seldom[@]}" "${first_start[@]}" "${restart[@]}" \
			"${mounting[@]}" "${half_restored[@]}" "${restored[@]}" "${client[@]}" \
			"${stopped[@]}" "${moving[@]}" "${converting[@]}" "${removing[@]}" "${reviving[@]}"
		cat "$BATS_TEST_DIRNAME"/{power,resize,exports}.bats | tr '\n' ' ' |
			grep -oP '\bpoints\+?=\(\K[^)]+' | tr -s '\t ' '\n'
	} | grep . | sed 's/:.*//' | sort -u)
	diff <(echo "$points") <(grep -rhoP 'CRASH_POINT\("\K[^"]+' --include='*.c' \
		"$repository/common" "$repository/server" "$repository/daemon" | sort -u)
	diff <(echo "$points") <(sed '/^ \*     /!d' "$repository/common/base/crash_point.h" |
		grep -oE '\b[a-z]+\.[a-z]+\b|\bgrant\b' | sort -u)
}

random_point() {
	if [ $((RANDOM % 2)) -eq 0 ]; then
		echo "${often[RANDOM % ${#often[@]}]}:$((1 + RANDOM % 200))"
	else
		echo "${seldom[RANDOM % ${#seldom[@]}]}:$((1 + RANDOM % 4))"
	fi
}

# ---- the load ------------------------------------------------------------------------------------

# Writes pages in random order, which makes many extents. Truncating and removing them gives the reaper
# work.
fio_load() {
	while [ ! -e "$dir/enough" ]; do
		fio --name=load --verify_state_save=0 --filename="$mnt/fio" --size=4M --rw=randwrite --bs=4k --fallocate=none \
			--verify=crc32c --do_verify=1 --verify_fatal=1 --fsync=64 --randseed="$RANDOM" \
			--output="$dir/fio.log" || exit 1
		truncate -s 5000 "$mnt/fio" || exit 1
		rm "$mnt/fio" || exit 1
	done
}

# Counts each committed row outside the mount.
sqlite_load() {
	local n=0
	sqlite3 "$mnt/db" 'CREATE TABLE t (n INTEGER PRIMARY KEY, pad TEXT)' || exit 1
	while [ ! -e "$dir/enough" ]; do
		n=$((n + 1))
		sqlite3 "$mnt/db" "INSERT INTO t VALUES ($n, hex(randomblob(500)))" || exit 1
		echo $n >"$dir/rows"
	done
}

# Takes one snapshot after the other; each may fail since the server dies. Keeps the last whole one.
snapshot_load() {
	local n
	for ((n = 0; ; n++)); do
		[ ! -e "$dir/enough" ] || return 0
		if rmemfsctl snapshot default "$dir/image.$n" "$socket" >>"$dir/snapshot.log" 2>&1; then
			rm -rf "$dir/whole"
			mv "$dir/image.$n" "$dir/whole"
		else
			rm -rf "$dir/image.$n"
			sleep 0.1 # pace while there is no server
		fi
	done
}

# A snapshot under load restores to a consistent export.
restore_the_last() {
	local memory=$memory.restored
	[ -e "$dir/whole/manifest" ] || die "no snapshot came to its end"
	mkdir "$memory"
	start_server --restore "$dir/whole"
	stop_server
	check_memory
	rm -r "$memory"
}

start_load() {
	snapshot_load >>"$dir/load.log" 2>&1 3>&- &
	snapshot_pid=$!
	fio_load >>"$dir/load.log" 2>&1 3>&- &
	fio_pid=$!
	sqlite_load >>"$dir/load.log" 2>&1 3>&- &
	sqlite_pid=$!
}

stop_load() {
	touch "$dir/enough"
	exit_status $snapshot_pid 60 || die "the snapshots failed"
	exit_status $fio_pid 60 || die "fio failed"
	exit_status $sqlite_pid 60 || die "SQLite failed"
	[ "$(sqlite3 "$mnt/db" 'PRAGMA integrity_check')" = ok ]
	[ "$(sqlite3 "$mnt/db" 'SELECT count(*), max(n) FROM t')" = "$(cat "$dir/rows")|$(cat "$dir/rows")" ]
}

# ---- cycles --------------------------------------------------------------------------------------

kill_at_random() {
	local ms=$((RANDOM % 1500))
	echo "cycle $1: after $ms ms"
	sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
	kill_server
}

die_at_point() {
	local point
	point=$(random_point)
	echo "cycle $1: $point"
	spawn_armed "$point"
	expect_death "$point"
}

# Kills twice for one comparison, which takes as long: at a random time, and at a point of the code.
cycle() {
	run_loggers
	kill_at_random "$1"
	die_at_point "$1"
	start_server
	go_on
	stop_loggers
	verify_loggers
}

@test "what was acknowledged under load is there after each kill, and was done once" {
	local cycles=3 n
	! nightly || cycles=50
	start_server
	mount_rmem
	start_load
	for ((n = 1; n <= cycles; n++)); do
		cycle $n
	done
	stop_load
	remount
	verify_loggers
	umount_rmem
	stop_server
	check_memory
	restore_the_last
}

# bats test_tags=once
@test "every point of the code that a load passes is one to die at" {
	local point
	start_server
	mount_rmem
	start_load
	run_loggers
	go_on
	kill_server
	# Each server goes on with the files of the one before. The loggers compare all answers.
	for point in "${seldom[@]}" "${often[@]}"; do
		echo "$point"
		spawn_armed "$point"
		expect_death "$point"
	done
	start_server
	go_on
	stop_loggers
	verify_loggers
	stop_load
}

@test "the operation that was on its way when all were killed was done or was not" {
	local n pid
	start_server
	mount_rmem
	for n in 1 2 3; do
		rm -f "$dir"/ack.*
		run_loggers
		go_on
		kill_server
		kill -KILL "${logger_pids[@]}"
		wait "${logger_pids[@]}" || true
		pid=$daemon_pid
		daemon_pid=''
		kill -KILL "$pid"
		exit_status "$pid" 10 || [ $? -eq 137 ]
		umount -l "$mnt"
		start_server
		mount_rmem
		verify_loggers
		rm -r "$mnt"/ack.*
	done
}

# bats test_tags=once
@test "a server that is killed at any point of its first start leaves nothing that hinders the next" {
	local point
	for point in "${first_start[@]}"; do
		echo "$point"
		spawn_armed "$point"
		expect_death "$point"
		start_server
		mount_rmem
		echo content >"$mnt/file"
		umount_rmem
		stop_server
		check_memory
		rm -r "${memory:?}"/*
	done
}

# bats test_tags=once
@test "a server that is killed at any point of a restart has lost nothing" {
	local point
	start_server
	mount_rmem
	random_file "$dir/a" 4
	cp "$dir/a" "$mnt/a"
	for point in "${restart[@]}"; do
		echo "$point"
		kill_server
		spawn_armed "$point"
		expect_death "$point"
		start_server
		fsop uncache "$mnt"
		cmp "$dir/a" "$mnt/a"
	done
}

# The mount may fail or not complete. It must not hang, and must not hinder the next one.
mount_and_umount() {
	rmemfs -f -c /dev/null -o "$(mount_options)" "$(mount_source)" "$mnt" \
		>>"$dir/daemon.log" 2>&1 3>&- &
	daemon_pid=$!
	until_true 30 mounted_or_dead || die "the mount hangs"
	! mountpoint -q "$mnt" || umount "$mnt"
}

@test "a server that is killed at any point of a mount or its end has lost nothing" {
	local point
	start_server
	mount_rmem
	random_file "$dir/a" 4
	cp "$dir/a" "$mnt/a"
	umount_rmem
	for point in "${mounting[@]}"; do
		echo "$point"
		kill_server
		spawn_armed "$point"
		until_true 60 server_answers || die "the server does not answer"
		mount_and_umount
		expect_death "$point"
		start_server
		exit_status "$daemon_pid" 60 || echo "the daemon ended with status $?"
		daemon_pid=''
		mount_rmem
		cmp "$dir/a" "$mnt/a"
		umount_rmem
	done
}

# bats test_tags=once
@test "a server that is killed at any point of a restoration leaves nothing that hinders the next" {
	local point
	start_server
	mount_rmem
	random_file "$dir/a" 4
	cp "$dir/a" "$mnt/a"
	sync -f "$mnt/a"
	rmemfsctl snapshot default "$dir/image" "$socket"
	umount_rmem
	stop_server
	for point in "${half_restored[@]}" "${restored[@]}"; do
		echo "$point"
		rm -r "${memory:?}"/*
		spawn_armed "$point" --restore "$dir/image"
		if [ "$point" = restore.ended ]; then
			expect_death "$point"
			start_server
		else
			expect_death "$point" half
			start_server --restore "$dir/image"
		fi
		mount_rmem
		cmp "$dir/a" "$mnt/a"
		umount_rmem
		stop_server
		check_memory
	done
}

dies_at() {
	local pid status=0
	RMEMFS_CRASH_AT=$1 mount_rmem
	pid=$daemon_pid
	! cp "$dir/a" "$mnt/b" || die "it did not die at $1"
	daemon_pid=''
	exit_status "$pid" 20 || status=$?
	[ $status -eq 137 ] || die "the daemon ended with status $status, not at $1"
	umount -l "$mnt"
}

# bats test_tags=once
@test "what a client had received when it was killed is in no page that others get" {
	local point
	# shellcheck disable=SC2034 # for the helpers
	transport=shm
	start_server
	random_file "$dir/a" 32
	for point in "${client[@]}"; do
		dies_at "$point:5"
		mount_rmem
		rm -f "$mnt/b"
		fallocate -l 150M "$mnt/zeros"
		cmp -n $((150 << 20)) "$mnt/zeros" /dev/zero
		rm "$mnt/zeros"
		umount_rmem
	done
}
