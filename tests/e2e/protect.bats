#!/usr/bin/env bats
# protect.bats - channels that a key protects, under load.

load helpers

setup() {
	setup_rmem
}

teardown() {
	teardown_rmem
}

resumed() {
	[ "$(grep -c "resumed over" "$dir/server.log")" -ge "$1" ]
}

@test "keys that are worn are replaced under load, and no operation notices" {
	start_server
	# Over verbs only messages wear a key, and they are few.
	if [ "$transport" = tcp ]; then
		export RMEMFS_WORN_BLOCKS=500000
	else
		export RMEMFS_WORN_BLOCKS=2000
	fi
	mount_rmem
	unset RMEMFS_WORN_BLOCKS
	until_resumed=3
	[ "$transport" != shm ] || until_resumed=0 # nothing is encrypted there
	for ((i = 0; i < 1000; i++)); do
		! { [ "$i" -gt 0 ] && resumed $until_resumed; } || break
		fio --name="verify" --directory="$mnt" --size=16m --rw=randrw --bs=64k --direct=1 \
			--verify=crc32c --verify_state_save=0 --numjobs=2 --minimal >"$dir/fio.log"
	done
	[ "$i" -lt 1000 ]
	[ "$(grep -c "connection lost" "$dir/daemon.log")" -eq 0 ]
}

warned() {
	[ "$(grep -c "come from a server which proves no key" "$dir/daemon.log")" -eq "$1" ]
}

@test "set-user-id programs of a server that proves no key are warned of" {
	start_server
	mount_rmem -o suid
	warned 0
	umount_rmem
	stop_server
	without_key
	start_server
	mount_rmem
	warned 0
	umount_rmem
	mount_rmem -o suid
	if [ "$transport" = shm ]; then warned 0; else warned 1; fi
}
