#!/usr/bin/env bats
# hostile.bats - a mount whose server lies: of its replies one byte is wrong, again and again (see
# liar.c). Operations may fail, and say wrong things. The mount does not crash or hang, and it can be
# unmounted.
#
# bats file_tags=only:tcp

load helpers
load between

rounds=6
[ "${RMEMFS_TEST_NIGHTLY:-0}" = 0 ] || rounds=60

setup() {
	# A round takes some seconds under a sanitizer.
	# shellcheck disable=SC2034 # the helpers take it
	test_seconds=$((90 + 10 * rounds))
	setup_rmem
	without_key
	setup_between
	mount_pid=''
}

teardown() {
	[ -z "$mount_pid" ] || kill -KILL "$mount_pid" || true
	teardown_rmem
}

end_lies() {
	end_between
	cat "$dir/middle.log" >>"$dir/lies"
}

is_mounted_or_over() {
	! alive "$mount_pid" || is_mount_point "$mnt"
}

# Each command ends, and may fail.
use_the_mount() {
	timeout -k 5 60 bash -c "
		cd '$mnt' || exit 0
		mkdir -p d e; echo text >d/file; cat d/file; ls -lR .; ln d/file d/other; ln -s file d/link
		readlink d/link; mv d/file e/moved; mv e d/e; rm -f d/other; stat -f .; chmod 640 d/e/moved
		chown 5:6 d/e/moved; touch -d 2001-02-03 d/e/moved; truncate -s 9000 d/e/moved
		setfattr -n user.a -v value d/e/moved; getfattr -d d/e/moved; setfattr -x user.a d/e/moved
		dd if=/dev/zero of=d/data bs=64k count=4 conv=fsync; cp d/data d/copy; cmp d/data d/copy
		fallocate -l 100000 d/room; sync -f .; mknod d/fifo p; rm -rf d" >"$dir/use.log" 2>&1 3>&- ||
		[ $? -lt 124 ] || die "a command does not end: $(cat "$dir/use.log")"
}

is_over() {
	! alive "$mount_pid"
}

# mount_and_use OPTIONS
mount_and_use() {
	local status=0
	rmemfs -f -c /dev/null -o "transport=tcp,port=$proxy,connect_timeout=2$1" \
		"$(mount_source)" "$mnt" >>"$dir/mount.log" 2>&1 3>&- &
	mount_pid=$!
	echo $mount_pid >"$dir/mount.pid"
	until_true 30 is_mounted_or_over
	if alive "$mount_pid"; then
		use_the_mount
		timeout -k 5 60 umount "$mnt" || die "it can't be unmounted"
	fi
	exit_status "$mount_pid" 60 || status=$?
	mount_pid=''
	[ $status -lt 124 ] || die "the mount ended with status $status"
	if grep -E "Sanitizer|runtime error" "$dir/mount.log"; then return 1; fi
}

# sweep OPTIONS ROUNDS
sweep() {
	local i
	use_lease 1 # of a mount that could not even say BYE
	start_server
	for ((i = 0; i < $2; i++)); do
		# Most changes of a header end the channel, so every other time begins behind it.
		stands_between liar "$proxy" "$port" $((3 + i % 7)) $((i % 2 ? 16 : i * 5))
		mount_and_use "$1"
		end_lies
	done
	sort "$dir/lies" | awk '$2 { n[$1] += $2; all += $2 } END { for (op in n) print op, n[op]; print "all", all }'
	# A real server has made of it what it could.
	[ "$(awk '$2 { n += $2 } END { print n }' "$dir/lies")" -ge $((2 * $2)) ]
	stop_server
	check_memory
}

@test "a server that lies: a mount of its own neither crashes nor hangs" {
	sweep '' $rounds
}

@test "a server that lies: a mount that shares neither crashes nor hangs" {
	sweep ,share $(((rounds + 2) / 3))
}

@test "a server that lies: a mount that makes files by itself neither crashes nor hangs" {
	sweep ,names=local $(((rounds + 2) / 3))
}
