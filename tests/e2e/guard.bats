#!/usr/bin/env bats
# guard.bats - the tests themselves: a test that fails leaves nothing behind.

# bats file_tags=once

load helpers

setup() {
	setup_rmem
	export TMPDIR=$dir/tmp RMEMFS_TEST_RUN=$dir RMEMFS_TEST_SHM=$memory
	mkdir "$TMPDIR"
	"$repository/tests/leftovers.sh" >"$dir/before"
}

teardown() {
	teardown_rmem
}

# Other programs may change /var/tmp and /run, so only this test's own paths and processes count.
left() {
	"$repository/tests/leftovers.sh" >"$dir/after"
	comm -13 "$dir/before" "$dir/after" | grep -E "^process|$dir|$memory" || true
}

nothing_left() {
	[ -z "$(left)" ]
}

# run_test BODY: runs a test with a server and a mount of its own, in a bats of its own.
run_test() {
	{
		echo "load $repository/tests/e2e/helpers"
		echo 'setup() { setup_rmem; start_server; mount_rmem; }'
		echo 'teardown() { teardown_rmem; }'
		echo '@test "inner" {' "$1"
		echo '}'
	} >"$dir/inner.bats"
	run bats --tap "$dir/inner.bats"
	echo "$output"
}

@test "a test that passes leaves nothing behind" {
	run_test 'echo data >"$mnt/a"'
	[ "$status" -eq 0 ]
	nothing_left || left
	nothing_left
}

# bats test_tags=nightly
@test "a test that fails leaves nothing behind" {
	run_test 'sleep 1000 >"$mnt/a" 3>&- & sleep 1000 3>&- & echo "came as far"; false'
	[ "$status" -eq 1 ]
	[[ $output == *"# came as far"* ]]
	until_true 5 nothing_left || left
	nothing_left
}

@test "what a test leaves is found" {
	(exec sleep 1000) 3>&- &
	sleeper=$!
	left | grep -q "^process $sleeper "
	kill $sleeper
	mkdir "$TMPDIR/rmemfs-some"
	left | grep -q "^file $TMPDIR/rmemfs-some\$"
}

# Prints the mount namespace of the process that has started the tests.
outside() {
	echo "/proc/$(awk '$1 == "PPid:" { print $2 }' "/proc/$BATS_ROOT_PID/status")/ns/mnt"
}

sleeps() {
	[ "$(cat "/proc/$1/comm")" = sleep ]
}

@test "umount ends a test's mount, though a mount namespace that the machine has begun meanwhile lasts" {
	start_server
	mount_rmem
	nsenter --mount="$(outside)" unshare --mount --propagation private sleep 1000 3>&- &
	until_true 5 sleeps $!
	umount_rmem
	alive $!
}
