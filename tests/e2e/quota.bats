#!/usr/bin/env bats
# quota.bats - the limits of users and groups, the limit of inodes, and the numbers of df.
#
# Alice, Bob and their group are ids that no user of this machine has.

load helpers

alice=41001 bob=41002 staff=41100
mib=1048576

setup() {
	setup_rmem
	chmod 755 "$dir"
	server_conf=$dir/server.conf
}

teardown() {
	cd /
	exec 5>&-
	teardown_rmem
}

# limit KEYS: configures the export's limits, as in: inodes = 9; quotas = ( ... );
limit() {
	echo "exports = ( { name = \"default\"; size = \"$export_size\"; $1 } )" >"$server_conf"
}

# serve KEYS: starts a server with these limits, and makes a mount that all users may write to.
serve() {
	limit "$1"
	start_server
	mount_rmem -o allow_other
	chmod 1777 "$mnt"
}

as() {
	setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"
}

# quota_of KIND ID MEMBER
quota_of() {
	status_of ".exports[0].quotas[] | select(.$1 == $2 and (.everybody | not)) | .$3"
}

used() {
	quota_of user "$1" used
}

# fill USER FILE: writes as USER until the quota is exceeded.
fill() {
	run as "$1" env LC_ALL=C dd if=/dev/urandom of="$2" bs=64k count=10000 oflag=append conv=notrunc
	[ "$status" -ne 0 ]
	[[ $output == *"Disk quota exceeded"* ]]
}

size_of() {
	stat -c %s "$1"
}

blocks_of() {
	echo $(($(stat -c %b "$1") * 512))
}

@test "data is taken to the last page and not beyond, and is never refused later" {
	serve 'quotas = ( { user = 41001; size = "3MiB"; } );'
	random_file "$dir/data" 4
	run as $alice env LC_ALL=C dd if="$dir/data" of="$mnt/a" bs=10000 conv=fsync
	[ "$status" -ne 0 ]
	[[ $output == *"Disk quota exceeded"* ]]
	[ "$(blocks_of "$mnt/a")" -eq $((3 * mib)) ]
	cmp -n "$(size_of "$mnt/a")" "$dir/data" "$mnt/a"
	[ "$(size_of "$mnt/a")" -gt $((3 * mib - 4096)) ]
	run as $alice env LC_ALL=C dd if="$dir/data" of="$mnt/b" bs=1 count=1
	[[ $output == *"Disk quota exceeded"* ]]
	as $bob dd if="$dir/data" of="$mnt/bobs" bs=1M conv=fsync status=none
	cmp "$dir/data" "$mnt/bobs"
	remount -o allow_other
	cmp -n $((3 * mib - 4096)) "$dir/data" "$mnt/a"
	[ "$(used $alice)" -eq $((3 * mib)) ]
	[ "$(used $bob)" -eq $((4 * mib)) ]
}

@test "a write that goes beyond is short, and the next one refused" {
	serve 'quotas = ( { user = 41001; size = "1MiB"; } );'
	run as $alice env LC_ALL=C dd if=/dev/zero of="$mnt/a" bs=640k count=2
	[ "$status" -ne 0 ]
	[[ $output == *"1+1 records out"* || $output == *"1048576 bytes"* ]]
	[ "$(size_of "$mnt/a")" -eq $mib ]
}

@test "what is there is overwritten without room" {
	serve 'quotas = ( { user = 41001; size = "1MiB"; } );'
	fill $alice "$mnt/a"
	random_file "$dir/data" 1
	as $alice dd if="$dir/data" of="$mnt/a" bs=64k conv=notrunc,fsync status=none
	cmp "$dir/data" "$mnt/a"
}

@test "root's writing counts for the file's owner, his own files for nobody" {
	serve 'quotas = ( { user = "*"; size = "1MiB"; } );'
	as $alice touch "$mnt/a"
	run env LC_ALL=C dd if=/dev/zero of="$mnt/a" bs=1M count=2
	[[ $output == *"Disk quota exceeded"* ]]
	[ "$(size_of "$mnt/a")" -eq $mib ]
	dd if=/dev/zero of="$mnt/roots" bs=1M count=4 conv=fsync status=none
	fill $bob "$mnt/b"
	[ "$(size_of "$mnt/b")" -eq $mib ]
}

@test "two writers of one user share the last pages" {
	serve 'quotas = ( { user = 41001; size = "4MiB"; } );'
	as $alice dd if=/dev/zero of="$mnt/a" bs=4k status=none 2>/dev/null &
	local first=$!
	as $alice dd if=/dev/zero of="$mnt/b" bs=12k status=none 2>/dev/null &
	local second=$!
	exit_status $first 60 || [ $? -eq 1 ]
	exit_status $second 60 || [ $? -eq 1 ]
	[ $(($(blocks_of "$mnt/a") + $(blocks_of "$mnt/b"))) -eq $((4 * mib)) ]
	[ "$(used $alice)" -eq $((4 * mib)) ]
}

@test "an open file's unused allowance does not keep others from it" {
	serve 'quotas = ( { user = 41001; size = "1MiB"; } );'
	as $alice bash -c 'exec 5>"$1/a"; head -c 4096 /dev/zero >&5
		head -c $((1048576 - 4096)) /dev/zero >"$1/b" && ! head -c 4096 /dev/zero >"$1/c"' _ "$mnt"
	[ "$(blocks_of "$mnt/b")" -eq $((mib - 4096)) ]
}

@test "deleting and cutting make room at once" {
	serve 'quotas = ( { user = 41001; size = "1MiB"; } );'
	fill $alice "$mnt/a"
	as $alice truncate -s 512K "$mnt/a"
	as $alice dd if=/dev/zero of="$mnt/b" bs=512k count=1 status=none
	rm "$mnt/a" "$mnt/b"
	as $alice dd if=/dev/zero of="$mnt/c" bs=1M count=1 status=none
	fill $alice "$mnt/c"
	[ "$(size_of "$mnt/c")" -eq $mib ]
	[ "$(used $alice)" -eq $mib ]
}

@test "what was closed and deleted before does not count, whoever of the daemon knows of it" {
	local as_alice=(setpriv "--reuid=$alice" "--regid=$alice" --clear-groups)
	serve 'quotas = ( { user = 41001; size = "1MiB"; } );'
	remount -o allow_other,io_threads=2
	fill $alice "$mnt/a"
	needs_room "$mnt/a" write "${as_alice[@]}" dd if=/dev/zero of="$mnt/b" bs=1M count=1 status=none
	needs_room "$mnt/b" fallocate "${as_alice[@]}" fallocate -l 1M "$mnt/c"
	fill $alice "$mnt/c"
	[ "$(size_of "$mnt/c")" -eq $mib ]
	[ "$(used $alice)" -eq $mib ]
}

@test "a file that was unlinked and is open counts" {
	serve 'quotas = ( { user = 41001; size = "1MiB"; } );'
	exec 5<>"$mnt/a"
	chown $alice "$mnt/a"
	dd if=/dev/zero bs=512k count=1 status=none >&5
	rm "$mnt/a"
	fill $alice "$mnt/b"
	[ "$(size_of "$mnt/b")" -eq $((mib / 2)) ]
	exec 5>&-
	until_true 10 as $alice dd if=/dev/zero of="$mnt/c" bs=512k count=1 status=none
	[ "$(blocks_of "$mnt/c")" -eq $((mib / 2)) ]
}

@test "a user's inodes" {
	serve 'quotas = ( { user = 41001; inodes = 4; } );'
	as $alice mkdir "$mnt/dir"
	as $alice ln -s nowhere "$mnt/link"
	as $alice mkfifo "$mnt/fifo"
	as $alice touch "$mnt/file"
	local kind
	for kind in mkdir mkfifo touch "ln -s nowhere"; do
		# shellcheck disable=SC2086 # a command and its arguments
		run as $alice env LC_ALL=C $kind "$mnt/more"
		[[ $output == *"Disk quota exceeded"* ]]
	done
	as $alice ln "$mnt/file" "$mnt/hard"
	as $bob touch "$mnt/bobs"
	rm "$mnt/fifo"
	as $alice touch "$mnt/more"
	[ "$(quota_of user $alice inodes)" -eq 4 ]
}

@test "the export's inodes" {
	serve 'inodes = 4;'
	touch "$mnt/a" "$mnt/b" "$mnt/c"
	run env LC_ALL=C touch "$mnt/d"
	[[ $output == *"No space left"* ]]
	rm "$mnt/a"
	touch "$mnt/d"
	[ "$(stat -f -c '%c %d' "$mnt")" = "4 0" ]
	[ "$(status_of '.exports[0] | .files, .max_inodes' | xargs)" = "4 4" ]
}

@test "a group's quota, in a directory that gives its group" {
	serve "quotas = ( { group = $staff; size = \"1MiB\"; inodes = 3; } );"
	mkdir -m 2777 "$mnt/shared"
	chgrp $staff "$mnt/shared"
	chmod 2777 "$mnt/shared"
	as $bob dd if=/dev/zero of="$mnt/shared/b" bs=512k count=1 status=none
	fill $alice "$mnt/shared/a"
	[ "$(size_of "$mnt/shared/a")" -eq $((mib / 2)) ]
	run as $bob touch "$mnt/shared/c"
	[ "$status" -ne 0 ]
	as $bob dd if=/dev/zero of="$mnt/c" bs=2M count=1 status=none
	[ "$(quota_of group $staff used)" -eq $mib ]
}

@test "a new owner has to have room" {
	serve 'quotas = ( { user = 41001; size = "1MiB"; } );'
	as $bob dd if=/dev/zero of="$mnt/a" bs=1M count=2 status=none
	run env LC_ALL=C chown $alice "$mnt/a"
	[[ $output == *"Disk quota exceeded"* ]]
	[ "$(stat -c %u "$mnt/a")" -eq $bob ]
	truncate -s 1M "$mnt/a"
	as $alice bash -c 'echo >"$1"' _ "$mnt/b"
	run chown $alice "$mnt/a"
	[ "$status" -ne 0 ]
	rm "$mnt/b"
	chown $alice "$mnt/a"
	[ "$(used $alice)" -eq $mib ]
	run as $alice dd if=/dev/zero of="$mnt/c" bs=4k count=1
	[ "$status" -ne 0 ]
}

@test "chown moves what was not committed yet, too" {
	serve 'quotas = ( { user = "*"; size = "8MiB"; } );'
	exec 5>"$mnt/a"
	chown $alice "$mnt/a"
	dd if=/dev/zero bs=1M count=3 status=none >&5
	chown $bob "$mnt/a"
	dd if=/dev/zero bs=1M count=2 status=none >&5
	[ "$(used $bob)" -ge $((3 * mib)) ]
	exec 5>&-
	[ "$(used $bob)" -eq $((5 * mib)) ]
	[ "$(quota_of user $alice used)" = "" ] || [ "$(used $alice)" -eq 0 ]
	fill $alice "$mnt/b"
	[ "$(size_of "$mnt/b")" -eq $((8 * mib)) ]
}

@test "fallocate to the last page, beside an allowance that is not used" {
	serve 'quotas = ( { user = 41001; size = "1MiB"; } );'
	as $alice bash -c 'exec 5>"$1/a"; echo >&5
		! fallocate -l 1048576 "$1/b" && fallocate -l $((1048576 - 4096)) "$1/b" &&
		! fallocate -l 4096 "$1/c"' _ "$mnt"
	[ $(($(blocks_of "$mnt/a") + $(blocks_of "$mnt/b"))) -eq $mib ]
}

@test "numbers stay right when the server is killed" {
	serve 'quotas = ( { user = 41001; size = "4MiB"; } );'
	random_file "$dir/data" 3
	as $alice dd if="$dir/data" of="$mnt/a" bs=1M status=none
	exec 5>>"$mnt/a"
	dd if=/dev/zero bs=100000 count=1 status=none >&5
	crash_server
	dd if=/dev/zero bs=100000 count=1 status=none >&5
	exec 5>&-
	fill $alice "$mnt/a"
	[ "$(blocks_of "$mnt/a")" -eq $((4 * mib)) ]
	cmp -n $((3 * mib)) "$dir/data" "$mnt/a"
	crash_server
	[ "$(used $alice)" -eq $((4 * mib)) ]
	rm "$mnt/a"
	fill $alice "$mnt/b"
	[ "$(blocks_of "$mnt/b")" -eq $((4 * mib)) ]
	umount_rmem
	kill_server
	start_server
}

@test "what a killed client had reserved comes back" {
	serve 'quotas = ( { user = 41001; size = "4MiB"; } );'
	as $alice bash -c 'exec 5>"$1/a"; head -c 2000000 /dev/zero >&5; sleep 60 3>&-' _ "$mnt" 3>&- &
	until_true 20 eval '[ "$(size_of "$mnt/a" 2>/dev/null || echo 0)" -eq 2000000 ]'
	kill_daemon
	kill %?setpriv 2>/dev/null || true
	mount_rmem -o allow_other
	rm -f "$mnt/a"
	fill $alice "$mnt/b"
	[ "$(blocks_of "$mnt/b")" -eq $((4 * mib)) ]
	[ "$(quota_of user $alice reserved)" -eq 0 ]
	umount_rmem
	kill_server
	start_server
}

@test "limits that a restart has changed hold for the mount that is there" {
	serve 'quotas = ( { user = 41001; size = "8MiB"; } );'
	as $alice dd if=/dev/zero of="$mnt/a" bs=1M count=4 status=none
	limit 'quotas = ( { user = 41001; size = "2MiB"; } );'
	sync "$mnt/a"
	kill_server
	start_server
	fill $alice "$mnt/b"
	[ "$(used $alice)" -ge $((4 * mib)) ]
	limit 'quotas = ( { user = 41001; size = "6MiB"; } );'
	kill_server
	start_server
	fill $alice "$mnt/b"
	[ "$(used $alice)" -le $((8 * mib)) ]
	rm "$mnt/a" "$mnt/b"
	fill $alice "$mnt/c"
	[ "$(size_of "$mnt/c")" -eq $((6 * mib)) ]
	limit ''
	kill_server
	start_server
	as $alice dd if=/dev/zero of="$mnt/d" bs=1M count=9 conv=fsync status=none
	[ "$(status_of '.exports[0].quotas | length')" -eq 0 ]
}

@test "quotas that are new count what is there" {
	serve ''
	as $alice dd if=/dev/zero of="$mnt/a" bs=1M count=3 status=none
	as $alice mkdir "$mnt/dir"
	sync "$mnt/dir" # with names=local it may not be there yet
	stop_server
	limit 'quotas = ( { user = 41001; size = "4MiB"; inodes = 3; } );'
	start_server
	[ "$(used $alice)" -eq $((3 * mib)) ]
	[ "$(quota_of user $alice inodes)" -eq 2 ]
	fill $alice "$mnt/b"
	[ "$(size_of "$mnt/b")" -eq $mib ]
}

@test "rmemfsctl quota lists owners and limits" {
	serve 'quotas = ( { user = 41001; size = "4MiB"; inodes = 9; }, { group = "*"; size = "1GiB"; } );'
	as $alice dd if=/dev/zero of="$mnt/a" bs=1M count=3 conv=fsync status=none
	until_true 20 eval '[ "$(quota_of user $alice reserved)" -eq 0 ]'
	rmemfsctl quota "$socket" >"$dir/quotas"
	cat "$dir/quotas"
	grep -qE "^default +user +$alice +3MiB +0B +4MiB +1 +9$" "$dir/quotas"
	grep -qE '^default +group +\* +0B +0B +1GiB +0 +-$' "$dir/quotas"
	grep -qE "^default +group +$alice +3MiB +0B +1GiB +1 +-$" "$dir/quotas"
}

# df_says PAGES: so many pages are used, and all others are free to be written.
df_says() {
	local total used
	read -r total used < <(stat -f -c '%b %f %a' "$mnt" | awk '$2 == $3 { print $1, $1 - $2 }')
	echo "$used of $total pages are used, and should be $1"
	[ "$used" -eq "$1" ]
}

@test "df tells what can be written: empty, with uncommitted data, and full" {
	export_size=64MiB
	serve ''
	[ "$(stat -f -c '%s %S %l %b' "$mnt")" = "4096 4096 255 16384" ]
	df_says 0
	exec 5>"$mnt/a"
	dd if=/dev/zero bs=1M count=5 status=none >&5
	df_says 1280
	dd if=/dev/zero bs=1000 count=1 status=none >&5
	df_says 1281
	exec 5>&-
	df_says 1281
	run env LC_ALL=C dd if=/dev/zero of="$mnt/b" bs=1M
	[[ $output == *"No space left"* ]]
	df_says 16384
	[ "$(blocks_of "$mnt/b")" -eq $(((16384 - 1281) * 4096)) ]
	rm "$mnt/b"
	until_true 20 df_says 1281
	rm "$mnt/a"
	until_true 20 df_says 0
}

# Each I/O thread answers, also one whose connection is still being made.
@test "df tells of free room from a mount's first moment on" {
	export_size=64MiB
	serve ''
	for _ in 1 2 3; do
		remount -o io_threads=8
		for _ in 1 2 3 4 5 6 7 8; do
			[ "$(stat -f -c %f "$mnt")" -eq 16384 ]
		done
	done
}

@test "df -i tells how many inodes there can be" {
	serve 'inodes = 100;'
	touch "$mnt/"{1..9}
	[ "$(stat -f -c '%c %d' "$mnt")" = "100 90" ]
	rm "$mnt/"{1..5}
	until_true 20 eval '[ "$(stat -f -c "%c %d" "$mnt")" = "100 95" ]'
	stop_server
	limit ''
	start_server
	until_true 20 eval '[ "$(stat -f -c %d "$mnt")" -gt 1000 ]'
	read -r total iused iavail < <(df --output=itotal,iused,iavail "$mnt" | tail -n 1)
	[ "$iused" -eq 5 ]
	[ "$total" -eq $((iused + iavail)) ]
}

@test "a long attribute that has no room is refused as a short one is" {
	serve 'quotas = ( { user = 41001; size = "1MiB"; } );'
	touch "$mnt/a"
	name=user.$(head -c 247 /dev/zero | tr '\0' n)
	for i in {100..355}; do
		setfattr -n "$name$i" -v x "$mnt/a"
	done
	for bytes in 10 60000; do
		head -c $bytes /dev/zero >"$dir/value"
		run metaop setxattr user.one-more "$mnt/a" "$dir/value"
		[ "$output" = 'metaop: ENOSPC' ]
	done
}
