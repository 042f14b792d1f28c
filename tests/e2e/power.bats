#!/usr/bin/env bats
# power.bats - a server that writes snapshots when it is stopped, and restores them after its memory was
# lost.

load helpers

nightly() {
	[ "${RMEMFS_TEST_NIGHTLY:-0}" = 1 ]
}

setup() {
	setup_rmem
	export_size=48MiB
	disk=$dir/disk
	mkdir -m 700 "$disk"
	configure
}

teardown() {
	teardown_rmem
}

# Two exports, snapshots at stop and start. The second one's name is like that of a mark in a set
# (.whole).
configure() {
	server_conf=$dir/server.conf
	cat >"$server_conf" <<-CONF
		exports = ( { name = "default"; size = "$export_size"; }, { name = "whole"; size = "32MiB"; } );
		snapshot_dir = "$disk";
		snapshot_on_stop = true;
		restore_on_start = true;
	CONF
}

# Does what a reboot does: all memory is lost.
lose_memory() {
	rm -rf "${memory:?}"/*
}

reboot() {
	[ -z "$daemon_pid" ] || umount_rmem
	[ -z "$server_pid" ] || stop_server
	lose_memory
	start_server
	mount_rmem
}

# ends_with STATUS: the server ends by itself with this status.
ends_with() {
	local pid=$server_pid status=0
	server_pid=''
	exit_status "$pid" 30 || status=$?
	[ $status -eq "$1" ] || die "the server ended with status $status, not $1"
}

logged() {
	grep -qF -- "$1" "$dir/server.log"
}

# does_not_start TEXT [STATUS]: the server ends by itself and logs TEXT.
does_not_start() {
	: >"$dir/server.log"
	spawn_server
	ends_with "${2:-78}"
	logged "$1" || die "it does not say '$1'"
}

latest_is() {
	[ "$(readlink "$disk/latest")" = "$1" ]
}

# waits_for_client_to DIR: the running snapshot, to DIR, waits for its client.
waits_for_client_to() {
	rmemfsctl status "$socket" >"$dir/out" &&
		grep "snapshot of default: waiting for its client, to $1" "$dir/out"
}

mount_second() {
	mkdir -p "$dir/second"
	rmemfs -f -c /dev/null -o "$(mount_options)" "$(mount_source whole)" "$dir/second" \
		>>"$dir/daemon.log" 2>&1 3>&- &
	second=$!
	echo $second >"$dir/second.pid"
	until_true 30 mountpoint -q "$dir/second"
}

# bats test_tags=once
@test "what was there comes back after a stop and the loss of all memory, and old mounts get ESTALE" {
	start_server
	logged "there is no snapshot in $disk: starting empty"
	mount_rmem
	make_tree "$dir/tree"
	cp -a "$dir/tree" "$mnt/tree"
	umount_rmem
	mount_second
	echo "of the other" >"$dir/second/file"
	umount "$dir/second"
	wait $second
	mount_rmem
	stop_server
	lose_memory
	start_server
	run cat "$mnt/tree/deep/file.1"
	[ "$status" -ne 0 ]
	[[ $output == *"Stale file handle"* ]]
	remount
	same_tree "$dir/tree" "$mnt/tree"
	mount_second
	[ "$(cat "$dir/second/file")" = "of the other" ]
	umount "$dir/second"
	wait $second
	umount_rmem
	stop_server
	rmemfsctl check "$memory"
}

@test "what is acknowledged up to the stop is in the snapshot, and writers wait for the next server" {
	local last
	start_server
	mount_rmem
	(
		for ((n = 1; ; n++)); do
			printf '%08d' $n | dd of="$mnt/count" conv=notrunc,fsync status=none || exit 0
			mkdir "$mnt/d.$n" || exit 0
			echo $n >"$dir/acknowledged.new"
			mv "$dir/acknowledged.new" "$dir/acknowledged"
		done
	) 3>&- 2>/dev/null &
	writer=$!
	until_true 20 test -s "$dir/acknowledged"
	stop_server
	last=$(cat "$dir/acknowledged")
	kill -KILL $writer
	umount -l "$mnt"
	kill -KILL "$daemon_pid"
	exit_status "$daemon_pid" 10 || [ $? -eq 137 ]
	daemon_pid=''
	lose_memory
	start_server
	mount_rmem
	echo "acknowledged $last"
	[ -d "$mnt/d.$last" ]
	[ "$((10#$(cat "$mnt/count")))" -ge "$last" ]
}

# bats test_tags=once
@test "memory that is there is served as it is, whatever the snapshots say" {
	start_server
	mount_rmem
	echo one >"$mnt/file"
	stop_server
	latest_is a
	start_server
	echo two >"$mnt/file"
	crash_server
	[ "$(cat "$mnt/file")" = two ]
	echo "SIGINT ends it without snapshots"
	kill -INT "$server_pid"
	ends_with 0
	[ ! -e "$disk/b" ]
	start_server
	stop_server
	latest_is b
	lose_memory
	start_server
	remount
	[ "$(cat "$mnt/file")" = two ]
}

# bats test_tags=once
@test "a second signal cancels the snapshots, and the one before stays" {
	start_server
	mount_rmem
	echo one >"$mnt/file"
	sync -f "$mnt/file"
	stop_server
	start_server
	random_file "$mnt/big" "24"
	sync -f "$mnt/big"
	# The server waits 5 s for a client that does not answer.
	suspend "$daemon_pid"
	kill -TERM "$server_pid"
	until_true 10 logged "writing snapshots of 2 exports to $disk/b"
	kill -TERM "$server_pid"
	ends_with 1
	kill -CONT "$daemon_pid"
	logged "cancelled by another signal"
	latest_is a
	[ ! -e "$disk/b/.whole" ]
	start_server
	[ "$(stat -c %s "$mnt/big")" -eq $((24 << 20)) ]
}

# bats test_tags=long
@test "a client that does not answer is not waited for longer than 5 s" {
	start_server
	mount_rmem
	echo one >"$mnt/file"
	sync -f "$mnt/file"
	suspend "$daemon_pid"
	stop_server
	kill -CONT "$daemon_pid"
	latest_is a
	logged "did not end its writes in time"
}

# bats test_tags=once
@test "an administrator's snapshot gives way to those of the stop, and a client is waited for for 5 s" {
	local status=0
	start_server
	mount_rmem
	echo one >"$mnt/file"
	sync -f "$mnt/file"
	suspend "$daemon_pid"
	rmemfsctl snapshot default "$dir/image" "$socket" >"$dir/taking.log" 2>&1 3>&- &
	taking=$!
	until_true 4 waits_for_client_to "$dir/image"
	stop_server
	kill -CONT "$daemon_pid"
	wait $taking || status=$?
	[ $status -eq 1 ]
	grep -F "snapshot of 'default' in $dir/image failed: " "$dir/taking.log"
	[ ! -e "$dir/image" ]
	logged "snapshot of export 'default' to $dir/image failed: the server is stopping"
	logged "did not end its writes in time"
	latest_is a
	lose_memory
	start_server
	remount
	[ "$(cat "$mnt/file")" = one ]
}

# bats test_tags=once
@test "a full disk fails the stop, and nothing else" {
	mount -t tmpfs -o size=8M,mode=0700 none "$disk"
	start_server
	mount_rmem
	echo small >"$mnt/first"
	stop_server
	start_server
	random_file "$dir/file" 24
	cp "$dir/file" "$mnt/file"
	sync -f "$mnt/file"
	kill -TERM "$server_pid"
	ends_with 1
	logged "can't write $disk/b/default/pages: No space left on device"
	logged "no snapshot was taken at this stop"
	latest_is a
	mount -o remount,size=64M "$disk"
	start_server
	cmp "$dir/file" "$mnt/file"
	stop_server
	latest_is b
}

# bats test_tags=once
@test "a server that is killed while it stops leaves memory as it was, and a set that was whole is the latest" {
	local point before points=(set.whole)
	! nightly || points+=(snapshot.written:1 snapshot.written:2 set.written set.named stop.published)
	start_server
	for point in "${points[@]}"; do
		echo "killed at $point"
		mount_rmem
		random_file "$dir/before" 3
		cp "$dir/before" "$mnt/file"
		umount_rmem
		stop_server
		before=$(readlink "$disk/latest")
		RMEMFS_CRASH_AT=$point start_server
		mount_rmem
		random_file "$dir/after" 3
		cp "$dir/after" "$mnt/file"
		umount_rmem
		kill -TERM "$server_pid"
		ends_with 137
		[ "$point" = stop.published ] || latest_is "$before"
		check_memory
		# The old set survives the loss of memory, and so does the new one if it was whole.
		reboot
		case $point in
		set.whole | stop.published) cmp "$dir/after" "$mnt/file" ;;
		*)
			cmp "$dir/before" "$mnt/file"
			logged "there is a newer set of snapshots that was not completed"
			;;
		esac
		umount_rmem
	done
}

# bats test_tags=once
@test "a server that is killed, or told to end, while it restores begins anew, and never empty" {
	local point points=(store.opened restore.batch:3)
	! nightly || points+=(restore.planned restore.batch:1 restore.done)
	start_server
	mount_rmem
	make_tree "$dir/tree"
	cp -a "$dir/tree" "$mnt/tree"
	umount_rmem
	stop_server
	lose_memory
	for point in "${points[@]}"; do
		echo "killed at $point"
		RMEMFS_CRASH_AT=$point spawn_server
		ends_with 137
		[ -e "$memory/restoring" ]
		if nightly; then
			start_server
			mount_rmem
			same_tree "$dir/tree" "$mnt/tree"
			umount_rmem
			stop_server
			check_memory
			lose_memory
		fi
	done
	for point in restore.begun restore.batch:5; do
		echo "told to end at $point"
		: >"$dir/server.log"
		RMEMFS_CRASH_AT=$point RMEMFS_CRASH_BY=TERM spawn_server
		ends_with 0
		logged "told to end: "
		[ -e "$memory/restoring" ]
	done
	# The server made no set of the half-restored files.
	nightly || latest_is a
	start_server
	mount_rmem
	same_tree "$dir/tree" "$mnt/tree"
	umount_rmem
	stop_server
	check_memory
}

# bats test_tags=once
@test "a damaged or incomplete set is refused and named, and an empty start has to be asked for" {
	start_server
	mount_rmem
	random_file "$mnt/file" 2
	umount_rmem
	stop_server
	lose_memory
	printf 'x' | dd of="$disk/a/default/pages" bs=1 seek=70000 conv=notrunc status=none
	does_not_start "can't restore $disk/a/default: $disk/a/default/pages is damaged"
	logged "restore_on_start = false"
	# The next start does not take the files left in memory for an empty server's.
	does_not_start "$disk/a/default/pages is damaged"
	rm "$disk/a/default/manifest"
	does_not_start "$disk/a/default is no complete snapshot"
	mv "$disk/a/.whole" "$dir/mark"
	does_not_start "$disk/latest does not lead to a whole set of snapshots"
	rm "$disk/latest"
	does_not_start "$disk holds no whole set of snapshots, but the beginning of one (a)"
	mv "$dir/mark" "$disk/a/.whole"
	does_not_start "holds a whole set of snapshots, but no link to it: ln -s a $disk/latest"
	sed -i 's/restore_on_start = true/restore_on_start = false/' "$server_conf"
	start_server
	mount_rmem
	[ -z "$(ls -A "$mnt")" ]
	umount_rmem
	# The next set must not replace this one, which may be the only one.
	stop_server
	latest_is b
	[ -e "$disk/a/.whole" ]
}

# bats test_tags=once
@test "an export that is new begins empty, one that is not configured any more is named" {
	start_server
	mount_rmem
	echo one >"$mnt/file"
	umount_rmem
	stop_server
	lose_memory
	sed -i 's/"whole"/"third"/' "$server_conf"
	start_server
	logged "$disk/a/whole is not restored: no export 'whole' is configured"
	logged "export 'third' begins empty: there is no $disk/a/third"
	mount_rmem
	[ "$(cat "$mnt/file")" = one ]
}

# bats test_tags=once
@test "a directory that can't be used is refused at the start" {
	rmdir "$disk"
	does_not_start "snapshot_dir: $disk does not exist"
	touch "$disk"
	does_not_start "snapshot_dir: can't open $disk: Not a directory"
	rm "$disk"
	mkdir -m 777 "$disk"
	chmod 777 "$disk"
	does_not_start "snapshot_dir: everybody can write to $disk"
	chown 1234 "$disk"
	chmod 755 "$disk"
	does_not_start "snapshot_dir: $disk belongs to user 1234"
	chown 0 "$disk"
	exec 8<"$disk"
	flock 8
	does_not_start "snapshot_dir: $disk is in use by another server" 1
	exec 8<&-
	mkdir -p "$disk/a/stranger"
	touch "$disk/a/stranger/file"
	sed -i 's/restore_on_start = true/restore_on_start = false/' "$server_conf"
	start_server
	kill -TERM "$server_pid"
	ends_with 1
	logged "$disk/a/stranger is in the way of a new snapshot"
	[ -e "$disk/a/stranger/file" ]
}

# bats test_tags=once
@test "a reload takes snapshots at the stop and at the start, and names what needs a restart" {
	local changed="has changed, and counts from the server's next start on: systemctl restart rmemfs-server"
	sed -i -E '/snapshot_on_stop|restore_on_start/d' "$server_conf"
	start_server
	rmemfsctl status "$socket" >"$dir/out"
	grep -x "a stop writes no snapshots: files are lost when the machine reboots" "$dir/out"
	mount_rmem
	echo one >"$mnt/file"
	umount_rmem
	cat >>"$server_conf" <<-'CONF'
		snapshot_on_stop = true;
		restore_on_start = true;
		lease_time = 11;
		peer_timeout = 6;
	CONF
	keyed_conf >/dev/null
	# A directory that can't be used: nothing changes.
	chmod 777 "$disk"
	run rmemfsctl reload "$socket"
	[ "$status" -eq 1 ]
	[[ $output == *"nothing is reloaded: snapshot_dir: everybody can write to $disk: "* ]]
	chmod 700 "$disk"
	rmemfsctl reload "$socket" | tee "$dir/answer"
	grep -x "a stop writes snapshots of all exports to $disk" "$dir/answer"
	grep -x "a start without memory of before begins with the latest snapshots" "$dir/answer"
	grep -x "lease_time $changed" "$dir/answer"
	grep -x "peer_timeout $changed" "$dir/answer"
	[ "$(grep -c "$changed" "$dir/answer")" -eq 2 ]
	logged "lease_time $changed"
	rmemfsctl status "$socket" >"$dir/out"
	grep -x "a stop writes snapshots of all exports to $disk" "$dir/out"
	grep -x "lease_time has changed, and counts from the server's next start on" "$dir/out"
	[ "$(status_of '[.snapshot_on_stop, .restore_on_start, .snapshot_dir, .restart_for] | tojson')" = \
		"[true,true,\"$disk\",[\"lease_time\",\"peer_timeout\"]]" ]
	# A value that goes back is in force already.
	sed -i -E 's/peer_timeout = 6/peer_timeout = 5/' "$server_conf"
	keyed_conf >/dev/null
	rmemfsctl reload "$socket" >"$dir/answer"
	[ "$(grep -v "^reloaded the clients" "$dir/answer")" = "lease_time $changed" ]
	stop_server
	latest_is a
	lose_memory
	start_server
	[ "$(status_of '.restart_for | tojson')" = "[]" ]
	mount_rmem
	[ "$(cat "$mnt/file")" = one ]
	umount_rmem
	# And back: the lock of the directory goes, and another server may have it.
	sed -i -E '/snapshot_on_stop|restore_on_start/d' "$server_conf"
	keyed_conf >/dev/null
	rmemfsctl reload "$socket" >"$dir/answer"
	grep "^a stop writes no snapshots: " "$dir/answer"
	flock -n "$disk" true
	stop_server
	latest_is a
}

# bats test_tags=once
@test "status tells of the snapshot that is on its way, and of the last one" {
	start_server
	mount_rmem
	rmemfsctl status "$socket" >"$dir/out"
	[ "$(grep -c "^snapshot of" "$dir/out")" -eq 0 ]
	mkdir "$dir/image"
	rmemfsctl snapshot default "$dir/image/1" "$socket"
	rmemfsctl status "$socket" | tee "$dir/out"
	completed=$(status_of '.exports[0].last_snapshot.completed')
	grep -F "snapshot of default: completed $(date -d "@$completed" '+%F %T %z') in $dir/image/1" "$dir/out"
	completed=$(TZ=IST-5:30 date -d "@$completed" '+%F %T %z')
	TZ=IST-5:30 rmemfsctl status "$socket" | grep -F "snapshot of default: completed $completed in"
	# The only state that lasts long enough to be seen is the one that waits for a client.
	echo one >"$mnt/file"
	suspend "$daemon_pid"
	rmemfsctl snapshot default "$dir/image/2" "$socket" >"$dir/out2" 2>&1 3>&- &
	taking=$!
	until_true 4 waits_for_client_to "$dir/image/2"
	grep "snapshot of default: completed .* in $dir/image/1" "$dir/out"
	kill -CONT "$daemon_pid"
	wait $taking
}
