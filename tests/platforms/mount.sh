#!/bin/bash
# mount.sh BIN - in a clean root: root's mount begins, has its sandbox, and ends by SIGTERM and by umount(8).
# How libfuse mounts and unmounts differs between its versions.
set -euo pipefail

bin=${1:?the folder of the programs}
dir=$(mktemp -d /dev/shm/rmemfs-platform.XXXXXX)
mkdir "$dir/mnt"

within() {
	local deadline=$((SECONDS + 20))
	until "$@"; do
		[ $SECONDS -lt $deadline ] || {
			echo "$* does not come" >&2
			cat "$dir"/*.log >&2
			exit 1
		}
		sleep 0.1
	done
}

has_ended() {
	! kill -0 "$1" 2>/dev/null
}

is_not_mounted() {
	! mountpoint -q "$dir/mnt"
}

"$bin/rmemfs-server" -c /dev/null --memory-dir "$dir/memory" --export a:64MiB --listen "shm:$dir/socket" \
	2>"$dir/server.log" &
server=$!
within grep -qs ready "$dir/server.log"
for end in "kill -TERM" "umount $dir/mnt #"; do
	"$bin/rmemfs" -f -c /dev/null -o transport=shm "$dir/socket:/a" "$dir/mnt" 2>"$dir/mount.log" &
	mount=$!
	within mountpoint -q "$dir/mnt"
	echo data >"$dir/mnt/file"
	[ "$(cat "$dir/mnt/file")" = data ]
	grep -q "^Seccomp:[[:blank:]]*2$" "/proc/$mount/status"
	eval "$end $mount"
	within is_not_mounted
	within has_ended "$mount"
	wait "$mount"
done
kill -TERM "$server"
wait "$server"
