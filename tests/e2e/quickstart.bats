#!/usr/bin/env bats
# quickstart.bats - config/quickstart.sh, from its own folder with these programs in it, on a machine that
# has nothing else: the test has its own mounts and processes.

# bats file_tags=once

load helpers

setup() {
	setup_rmem
	mkdir -p "$dir/root/config" "$dir/root/build/release/bin" "$dir/tree/some" "$dir/tools" "$dir/tmp"
	cp "$repository"/config/{quickstart,packages}.sh "$dir/root/config"
	cp "$bin"/{rmemfs,rmemfs-server,rmemfsctl} "$dir/root/build/release/bin"
	random_file "$dir/tree/some/header" 1
	ln -s some/header "$dir/tree/link"
	# The programs are already built: the test only checks that the script would build them.
	printf '#!/bin/sh\necho "$*" >>"%s"\n' "$dir/cmake.log" >"$dir/tools/cmake"
	chmod +x "$dir/tools/cmake"
}

teardown() {
	teardown_rmem
}

# alone SCRIPT: runs SCRIPT; $quickstart is the command. All processes end with its first one.
alone() {
	# shellcheck disable=SC2016 # the inner shell's
	unshare --mount --propagation private --pid --fork --kill-child --mount-proc -- bash -euc '
		umount -a -t fuse.rmemfs # the copies of other tests
		mount -t tmpfs none /run
		mount -t tmpfs none /dev/shm
		mount -t tmpfs none /mnt
		mount --bind "$1/tree" /usr/include
		export PATH=$1/tools:$1/root/build/release/bin:$PATH TMPDIR=$1/tmp
		export RMEMFS_QUICKSTART_MIB=48
		quickstart=$1/root/config/quickstart.sh
		out=$1/out
		cd /
		is_mounted() { grep -q " $1 fuse.rmemfs " /proc/self/mounts; }
		# refused TEXT [ARGUMENT]...: with this in what it says.
		refused() {
			local text=$1
			shift
			if "$quickstart" "$@" >"$out" 2>&1; then return 1; fi
			cat "$out"
			grep -F -- "$text" "$out"
		}
		ended() { ! pgrep -x "rmemfs|rmemfs-server"; }
		nothing_left() {
			local deadline=$((SECONDS + 10))
			rm -rf /run/mount # of mount(8)
			[ -z "$(find /run /dev/shm /mnt "$TMPDIR" -mindepth 1 | tee /dev/stderr)" ]
			if grep fuse.rmemfs /proc/self/mounts; then return 1; fi
			until ended; do
				[ $SECONDS -lt $deadline ]
				sleep 0.02
			done
		}
		eval "$2"' bash "$dir" "$1" 3>&-
}

@test "it mounts and copies; again, it uses what runs; --stop leaves nothing" {
	alone '
		"$quickstart" >"$out"
		grep " 4 files and folders are equal" "$out"
		grep "sha256 of both: " "$out"
		is_mounted /mnt/rmem
		diff -r --no-dereference /usr/include /mnt/rmem/quickstart/tree
		[ "$(stat -c %s /mnt/rmem/quickstart/file)" -eq $((16 << 20)) ]
		command=$(sed -n "s/.*What the server says: //p" "$out")
		$command | grep -E "^default +48MiB"
		server=$(pgrep -x rmemfs-server)
		cp /usr/include/some/header /mnt/rmem/mine

		"$quickstart" >"$out"
		grep "the server runs already" "$out"
		grep "/mnt/rmem is mounted already" "$out"
		[ "$(pgrep -x rmemfs-server)" = "$server" ]
		cmp /usr/include/some/header /mnt/rmem/mine
		RMEMFS_QUICKSTART_MIB=64 refused "the server runs already with 48 MiB, not with 64"

		"$quickstart" --stop
		nothing_left
		"$quickstart" --stop | grep "nothing of the quick start runs here"'
	[ "$(grep -c -- --build "$dir/cmake.log")" -eq 2 ]
}

@test "a mount point is removed as far as it was made, and only if nobody uses it" {
	alone '
		mkdir /mnt/mine
		RMEMFS_QUICKSTART_MOUNT=/mnt/mine/a/b "$quickstart" >"$out"
		is_mounted /mnt/mine/a/b
		refused "it is mounted at /mnt/mine/a/b already: umount /mnt/mine/a/b"
		(cd /mnt/mine/a/b/quickstart && refused "/mnt/mine/a/b is in use: leave it" --stop)
		is_mounted /mnt/mine/a/b
		"$quickstart" --stop
		[ "$(find /mnt -mindepth 1)" = /mnt/mine ]
		rmdir /mnt/mine
		nothing_left'
}

@test "what is in its way is named, and left as it is" {
	alone '
		touch /mnt/rmem
		refused "/mnt/rmem is no directory"
		rm /mnt/rmem
		mkdir -p /mnt/rmem/theirs
		refused "/mnt/rmem is not empty"
		mount -t tmpfs none /mnt/rmem
		refused "something else is mounted at /mnt/rmem: umount /mnt/rmem"
		umount /mnt/rmem
		rm -r /mnt/rmem
		RMEMFS_QUICKSTART_MIB=1 refused "MiB has no room for /usr/include and a file"
		RMEMFS_QUICKSTART_MIB=3GiB refused "RMEMFS_QUICKSTART_MIB: '"'3GiB'"': must be a whole number"
		refused "usage: config/quickstart.sh [--stop]" --stpo
		mount -o remount,size=64M /dev/shm
		refused "/dev/shm has 64 MiB free; 115 are needed"
		mount -o remount,size=1G /dev/shm
		nothing_left'
}

@test "another server on its memory or its socket is named, and serves on" {
	alone '
		serve() {
			rmemfs-server -c /dev/null --memory-dir "$1" --export default:16MiB \
				--listen "shm:$2" >"$out.other" 2>&1 &
			until rmemfsctl status "$2" >/dev/null 2>&1; do
				kill -0 $!
				sleep 0.02
			done
		}
		serve /dev/shm/rmemfs-quickstart /run/other.sock
		refused "/dev/shm/rmemfs-quickstart is in use"
		refused "another server uses /dev/shm/rmemfs-quickstart: stop it" --stop
		rmemfsctl status /run/other.sock >/dev/null
		kill $!
		wait $!
		"$quickstart" --stop

		mkdir /run/rmemfs-quickstart
		serve /dev/shm/other /run/rmemfs-quickstart/server.sock
		refused "the server did not start; its log is"
		grep "shm:/run/rmemfs-quickstart/server.sock: " "$out"
		rmemfsctl status /run/rmemfs-quickstart/server.sock >/dev/null
		kill $!
		wait $!
		rm -r /dev/shm/other
		"$quickstart" --stop
		nothing_left'
}
