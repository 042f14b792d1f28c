#!/usr/bin/env bats
# client_crashes.bats - a daemon with names=local dies at each crash point that the client's code has
# (common/base/crash_point.h), in a sequence of operations that a seed tells (ordered.c). Then the server
# has a beginning of the sequence, with all that was closed. A new point is found in the code, and this
# fails until it is listed here.
bats_require_minimum_version 1.5.0

load helpers

# shellcheck disable=SC2034 # the helpers take it
test_seconds=600

setup() {
	setup_rmem
	# A mount whose daemon has died in an upgrade keeps its session for so long.
	use_lease 2
	# shellcheck disable=SC2034 # the helpers take it
	names_mode=local
	start_server
	# Points that the sequence passes.
	reached=(open.recorded rpc.answered write.post write.acknowledged names.before names.answered)
	declare -gA unreached
	list_unreached
	if [ "$transport" = shm ]; then
		reached+=(landing.arrived)
	else
		unreached[landing.arrived]="over shm alone a write lands in the region"
	fi
}

teardown() {
	[ -z "${runner:-}" ] || kill -KILL "$runner" 2>/dev/null || true
	teardown_rmem
}

# Points that it does not pass, with the reason.
list_unreached() {
	local point
	unreached[rpc.sent]="only a mount that a service can revive passes it, and that makes names at the server"
	for point in revive.{opened,adopted,connected,settled,resent}; do
		unreached[$point]="only the successor of such a mount passes it"
	done
	for point in give.{offered,standing,told,went,gone} take.{ready,told,adopted,connected,serving}; do
		unreached[$point]="only an upgrade passes it: see the test of upgrades"
	done
}

# client_points: all that a mount's daemon may pass. rmemfsctl, which is below daemon/, is no client.
client_points() {
	grep -rhoP 'CRASH_POINT\("\K[^"]+' --include='*.c' --exclude-dir=ctl \
		"$repository/daemon" "$repository/common" | sort -u
}

# mount_for SEED [POINT]: with a folder for the sequence, which is there before the daemon can die.
mount_for() {
	mount_rmem
	mkdir "$mnt/$1"
	umount_rmem
	if [ -n "${2:-}" ]; then
		RMEMFS_CRASH_AT=$2 mount_rmem
	else
		mount_rmem
	fi
}

# go_through SEED STEPS: the sequence.
go_through() {
	ordered run "$mnt/$1" "$dir/progress.$1" "$1" "$2" large 2>>"$dir/ordered.log" 3>&-
}

# is_a_beginning SEED: a mount that begins now has that.
is_a_beginning() {
	mount_rmem
	ordered check "$mnt/$1" "$dir/progress.$1" "$1" large
	umount_rmem
}

# has_died: the daemon, as by kill -9.
has_died() {
	local pid=$daemon_pid status=0
	daemon_pid=''
	exit_status "$pid" 60 || status=$?
	[ $status -eq 137 ] || die "the daemon ended with status $status, not at $1"
	umount -l "$mnt"
}

# bats test_tags=once
@test "each crash point of the client is one that the sequence passes, or there is a reason why not" {
	diff <(printf '%s\n' "${reached[@]}" "${!unreached[@]}" | sort) <(client_points)
}

# bats test_tags=nightly
@test "a daemon that dies at a crash point leaves a beginning of all that was to be, with all that was closed" {
	local point n seed=0
	for point in "${reached[@]}"; do
		for n in 1 2 5 12; do
			seed=$((seed + 1))
			echo "$point:$n, seed $seed"
			mount_for $seed "$point:$n"
			run ! go_through $seed 100000
			has_died "$point:$n"
			is_a_beginning $seed
		done
	done
}

# bats test_tags=nightly
@test "no other crash point is passed by the sequence" {
	local point seed=100
	for point in "${!unreached[@]}"; do
		seed=$((seed + 1))
		echo "$point: ${unreached[$point]}"
		mount_for $seed "$point"
		go_through $seed 400
		umount_rmem
		is_a_beginning $seed
	done
}

# is_at STEP: the sequence that runs has come so far.
is_at() {
	[ "$(od -An -t u8 -N 8 "$dir/progress.$seed" | tr -d ' ')" -ge "$1" ]
}

pid_of_mount() {
	rmemfsctl status "$mnt" --json | jq .pid
}

ended() {
	! kill -0 "$1" 2>/dev/null
}

# upgrade_during POINT: daemons die at that point of an upgrade, and whoever has the mount then dies, too.
upgrade_during() {
	local old=$daemon_pid left status=0
	go_through "$seed" 100000 &
	runner=$!
	until_true 10 test -s "$dir/progress.$seed"
	until_true 10 is_at 100
	case $1 in
	take.*) RMEMFS_CRASH_AT=$1 rmemfsctl upgrade "$mnt" >>"$dir/moved.log" 2>&1 3>&- || status=$? ;;
	*) rmemfsctl upgrade "$mnt" >>"$dir/moved.log" 2>&1 3>&- || status=$? ;;
	esac
	case $1 in
	take.*) # The new daemon has died, and the old one goes on.
		[ $status -ne 0 ]
		left=$(pid_of_mount)
		[ "$left" -eq "$old" ]
		kill -KILL "$old"
		;;
	give.went | give.gone) # The new one has the mount.
		left=$(pid_of_mount)
		[ "$left" -ne "$old" ]
		kill -KILL "$left"
		until_true 10 ended "$left"
		;;
	*) [ $status -ne 0 ] ;;
	esac
	has_died "$1"
	exit_status "$runner" 20 || [ $? -eq 1 ]
	runner=''
}

# bats test_tags=nightly
@test "so does one that dies at a point of an upgrade, whichever of the two has the mount then" {
	local point seed=200
	for point in "${!unreached[@]}"; do
		[[ $point == @(give|take).* ]] || continue
		seed=$((seed + 1))
		echo "$point, seed $seed"
		if [[ $point == give.* ]]; then
			mount_for $seed "$point"
		else
			mount_for $seed
		fi
		upgrade_during "$point"
		is_a_beginning $seed
	done
}
