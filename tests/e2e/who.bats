#!/usr/bin/env bats
# who.bats - the mounts that have a file of a shared export, and those that wait for it: rmemfsctl who and
# leases, and the log's lines about mounts that keep others waiting.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts

test_seconds=60

setup() {
	setup_rmem
	# This is longer than any of these tests stops a mount.
	use_lease 120
	mounts=()
	locker=''
	begin 1 2
	mkdir -p "$dir/1/some where"
	file="some where/file"
	# A process of its own holds the lock: the test itself would wait for the mount that it stops.
	mkfifo "$dir/go"
	locker hold process alone "$dir/1/$file" 5 <"$dir/go" >"$dir/said" 3>&- &
	locker=$!
	exec 5>"$dir/go"
	until_true 20 grep -q got "$dir/said"
	echo changed >>"$dir/1/$file"
}

teardown() {
	if [ -n "$locker" ]; then
		exec 5>&-
		[ -z "${mounts[1]:-}" ] || kill -CONT "${mounts[1]}"
		wait "$locker"
	fi
	end_mounts
}

# who_has JQ-FILTER
who_has() {
	rmemfsctl who default "/$file" "$socket" --json | jq -r "$1"
}

# who_says JQ-FILTER WORDS: waits until the filter prints WORDS.
who_says() {
	until_true 20 is_said "$@" || die "$(rmemfsctl who default "/$file" "$socket" --json)"
}

is_said() {
	[ "$(who_has "$1")" = "$2" ]
}

@test "who names the one that has a file, and what it has of it" {
	local said
	who_says '.holders | length' 1
	[ "$(who_has '.holders[0] | "\(.lease) \(.pin) \(.recall)"')" = "exclusive true null" ]
	[[ $(who_has '.holders[0].client') == *":$dir/1 (pid ${mounts[1]})" ]]
	[ "$(who_has '.locks[] | "\(.kind) \(.lock) \(.start) \(.end) \(.pid)"')" = \
		"fcntl exclusive 5 5 $locker" ]
	said=$(rmemfsctl who default "/$file" "$socket")
	[[ $said == "/$file: inode "*" of export default, file"* ]]
	[[ $said == *"held by session "*", "*":$dir/1 (pid ${mounts[1]}): exclusive lease since "* ]]
	[[ $said == *"fcntl exclusive lock of bytes 5 to 5, process $locker"* ]]
	[[ $said != *open* ]]
	# The inode number works, too.
	said=$(rmemfsctl who default "$(stat -c %i "$dir/2/$file")" "$socket")
	[[ $said == "inode "*" of export default, file"*"$dir/1 (pid"* ]]
}

@test "who says open only of those who have no lease" {
	local said
	echo more >>"$dir/2/$file"
	who_says '[.holders[] | select(.lease == "none") | .pin] | tostring' '[true]'
	said=$(rmemfsctl who default "/$file" "$socket")
	[[ $said == *"$dir/1 (pid ${mounts[1]}): open, without a lease since "* ]]
	[[ $said == *"$dir/2 (pid ${mounts[2]}): "*" lease since "* ]]
}

@test "who names those who wait, and the log who keeps them waiting" {
	local waits reader
	suspend "${mounts[1]}"
	stat -c %s "$dir/2/$file" >"$dir/size" 3>&- &
	reader=$!
	who_says '.waiting | length' 1
	who_says '.holders[0].recall.keep' shared
	[[ $(who_has '.waiting[0].client') == *":$dir/2 (pid ${mounts[2]})" ]]
	[ "$(who_has '.waiting[0].lease')" = shared ]
	waits=$(who_has '.waiting[0].ms')
	until_true 20 grep -q "others wait for it: /$file\(;.*\)\?\$" "$dir/server.log"
	# Only over shm the server sees the process.
	[ "$RMEMFS_TEST_TRANSPORT" != shm ] ||
		grep -q "others wait for it: /$file; its process ${mounts[1]} is stopped: kill -CONT ${mounts[1]}\$" "$dir/server.log"
	grep "others wait for it" "$dir/server.log" | grep -q "of .*:$dir/1 (pid ${mounts[1]})"
	[ "$(who_has '.waiting[0].ms')" -gt "$waits" ]
	[[ $(rmemfsctl who default "/$file" "$socket") == *"; asked "*" s ago to give back all but a shared lease, has "[1-9]*" s more"* ]]
	[[ $(rmemfsctl who default "/$file" "$socket") == *": lookup, for a shared lease, for "*" s"* ]]
	until_true 20 is_silent
	[[ $(rmemfsctl status "$socket") == *"lease_time 120 s"* ]]
	[[ $(rmemfsctl leases "$socket") == *" 1 "*"s  /$file"* ]]
	[ "$(status_of '.exports[0].contested[0] | "\(.path) \(.waiting) \(.recalls)"')" = "/$file 1 1" ]
	kill -CONT "${mounts[1]}"
	wait "$reader"
	[ "$(cat "$dir/size")" = 8 ]
	[ "$(who_has '.waiting | length')" = 0 ]
	[ "$(status_of '.exports[0].contested | length')" = 0 ]
	# It is remembered.
	[ "$(status_of '[.sessions[] | select(.late_recalls.count == 1 and .late_recalls.longest_ms >= 1000) | .client][0]')" = \
		"$(status_of '[.sessions[] | select(.client | endswith("/1 (pid '"${mounts[1]}"')")) | .client][0]')" ]
	[ "$(status_of '[.sessions[] | select(.late_recalls.count == 0)] | length')" = 1 ]
	[ "$(rmemfsctl leases "$socket" | grep -c 'pid [0-9]*), 1 given back late ([0-9.]* s at most)$')" = 1 ]
}

# Mount 1 is silent, and no other.
is_silent() {
	local said
	said=$(rmemfsctl status "$socket" | grep ^SESSION)
	[ "$(grep -c ', silent for ' <<<"$said")" = 1 ] &&
		[[ $said == *"$dir/1 (pid ${mounts[1]}) at export default, active, silent for "*" s"*", share"* ]]
}

@test "who names nobody any more who was killed while he waited" {
	local reader
	mkfifo "$dir/read"
	(exec 6<"$dir/2/$file" && read -r <"$dir/read" && exec dd bs=1 count=1 of=/dev/null <&6) 3>&- 5>&- &
	reader=$!
	until_true 20 test -e "/proc/$reader/fd/6"
	echo again >>"$dir/1/$file"
	suspend "${mounts[1]}"
	echo >"$dir/read"
	who_says '.waiting[0].request' lease
	kill -KILL $reader
	exit_status $reader 5 || [ $? -eq 137 ]
	who_says '.waiting | length' 0
	kill -CONT "${mounts[1]}"
	[ "$(tail -n 1 "$dir/2/$file")" = again ]
}

@test "who names those who wait for a lock" {
	local waiter
	locker hold process alone "$dir/2/$file" 5 </dev/null >"$dir/said.2" 3>&- &
	waiter=$!
	who_says '.lock_waits | length' 1
	[ "$(who_has '.lock_waits[0] | "\(.kind) \(.lock) \(.start) \(.end) \(.pid)"')" = \
		"fcntl exclusive 5 5 $waiter" ]
	[[ $(who_has '.lock_waits[0].client') == *":$dir/2 (pid ${mounts[2]})" ]]
	[[ $(rmemfsctl who default "/$file" "$socket") == *"to be locked by session "*", for "*" s"* ]]
	[ "$(status_of '.exports[0].leases | "\(.locks) \(.lock_waits)"')" = "1 1" ]
	[ "$(status_of '.exports[0].contested_locks[] | "\(.inode) \(.waiting)"')" = "$(who_has .inode) 1" ]
	rmemfsctl leases "$socket" | grep -qE "^default +$(who_has .inode) lock +1 +- +[0-9.]+s  -\$"
	[[ $(rmemfsctl status "$socket") == *"default is shared by 2 mounts: "*"; locks 1; "*", 1 for locks"* ]]
	echo >&5
	wait "$waiter"
	who_says '.lock_waits | length' 0
	[ "$(status_of '.exports[0].contested_locks | length')" = 0 ]
}

@test "an administrator ends the session that keeps others waiting, and its mount begins another" {
	local session reader
	suspend "${mounts[1]}"
	stat -c %s "$dir/2/$file" >"$dir/size" 3>&- &
	reader=$!
	who_says '.waiting | length' 1
	session=$(who_has '.holders[0].session')
	rmemfsctl evict "$session" "$socket"
	# Over shm a process that is stopped may still write to the memory.
	[ "$transport" != shm ] || kill -CONT "${mounts[1]}"
	wait "$reader"
	[ -s "$dir/size" ]
	grep -q "session $session of .*:$dir/1 (pid ${mounts[1]}) at export 'default' has ended: an administrator ended it" "$dir/server.log"
	[[ $(refused evict "$session" "$socket") == *": no session is ended: there is no session $session" ]]
	kill -CONT "${mounts[1]}"
	until_true 20 touch "$dir/1/after"
	[ -e "$dir/2/after" ]
	[[ $(refused evict 1x "$socket") == "rmemfsctl: SESSION '1x': not the number of a session, as 'rmemfsctl status' has it" ]]
}

@test "the log says of each session that it shares" {
	[ "$(grep -c ": session .*:$dir/[12] (pid [0-9]*)) at export 'default' begins over .*, share\$" "$dir/server.log")" -eq 2 ]
}

@test "what each mount has is counted, until it ends" {
	[ "$(status_of '[.sessions[] | .leases.locks] | add')" = 1 ]
	[[ $(rmemfsctl leases "$socket") == *" 1 "*"$dir/1 (pid ${mounts[1]})"*"nobody waits for a lease or a lock" ]]
	[[ $(rmemfsctl leases "$socket") != *OPEN* ]]
	[ "$(rmemfsctl leases --json "$socket" | jq '[.sessions[] | select(.shared) | .leases.locks] | add')" = 1 ]
	[[ $(rmemfsctl status "$socket") == *"leases "*" exclusive; locks 1, recalls 0"* ]]
	exec 5>&-
	wait "$locker"
	locker=''
	end_mount 1
	until_true 20 nothing_is_held || die "$(rmemfsctl status --json "$socket")"
	[[ $(rmemfsctl who default "/$file" "$socket") == *$'\nnobody has it, and nobody waits for it' ]]
}

# Mount 1 holds nothing; the other one may keep a lease of its root for longer.
nothing_is_held() {
	[ "$(status_of '[.sessions[].client] | map(select(contains("/1 (pid"))) | length')" = 0 ] &&
		[ "$(status_of '.exports[0].leases | "\(.exclusive) \(.pins) \(.locks)"')" = "0 0 0" ] &&
		[ "$(status_of '.exports[0].leases.shared == ([.sessions[].leases.shared] | add)')" = true ]
}

# refused ARGUMENTS...: prints the message of rmemfsctl, which must fail.
refused() {
	! rmemfsctl "$@" 2>&1
}

@test "who refuses what is not there, and others than the server's" {
	local said
	said=$(refused who default /none "$socket")
	[[ $said == "rmemfsctl: $socket: export 'default' has no file /none (from the export's root, without the mount point; "* ]]
	grep -q " info: .*: request 'who' is refused: export 'default' has no file /none" "$dir/server.log"
	said=$(refused who default 99999999 "$socket")
	[ "$said" = "rmemfsctl: $socket: export 'default' has no inode 99999999" ]
	said=$(refused who "/$file" "$socket")
	[ "$said" = "rmemfsctl: EXPORT is missing (usage: rmemfsctl who EXPORT PATH [HOST] [--json])" ]
	said=$(refused who none / "$socket")
	[ "$said" = "rmemfsctl: $socket: no export 'none'; exports: default" ]
	said=$(refused who default file "$socket")
	[[ $said == "rmemfsctl: $socket: a path begins with / at the root"* ]]
	said=$(refused who default)
	[ "$said" = "rmemfsctl: PATH is missing (usage: rmemfsctl who EXPORT PATH [HOST] [--json])" ]
	if [ "$transport" = tcp ]; then
		said=$(refused who default / "127.0.0.1:$port")
		[[ $said == *"only root and the server's user may ask this"* ]]
	fi
}

# blames CHECK CAUSE REMEDY: so says a finding of health.
blames() {
	rmemfsctl health "$socket" --json >"$dir/health" || true
	jq -e --arg check "$1" --arg cause "$2" --arg remedy "$3" 'any(.findings[]; .check == $check and
		(.cause | contains($cause)) and (.remedy | contains($remedy)))' "$dir/health"
}

blames_no_process() {
	! grep -F kill "$dir/health"
}

# keep_waiting: mount 1 is stopped and has the file, and mount 2 reads it.
keep_waiting() {
	suspend "${mounts[1]}"
	cat "$dir/2/$file" >"$dir/read" 3>&- 5>&- &
	reader=$!
}

go_on() {
	kill -CONT "${mounts[1]}"
	wait "$reader"
	cmp "$dir/read" "$dir/1/$file"
}

@test "health tells a process to go on only if the server sees that it is stopped" {
	keep_waiting
	if [ "$RMEMFS_TEST_TRANSPORT" = shm ]; then
		until_true 20 blames recalls "process ${mounts[1]} is stopped" "kill -CONT ${mounts[1]}"
	else
		until_true 20 blames recalls "nothing was heard of it for" "rmemfsctl evict"
		blames_no_process
	fi
	go_on
}

has_waited() {
	[ "$(status_of '[.exports[0].contested[].ms] | max // 0')" -ge 1100 ]
}

@test "stops that are over are remembered: files were given back late" {
	local i
	for i in 1 2 3; do
		echo "$i" >>"$dir/1/$file"
		keep_waiting
		until_true 20 has_waited
		go_on
	done
	until_true 20 blames late "its process is stopped for moments" "did not run for"
	blames_no_process
	[[ $(rmemfsctl status "$socket") == *", 3 given back late ("* ]]
}

waits_for_mounts() {
	rmemfsctl status "$dir/2" --json | jq -e '.requests[] | select(.waits_for == "server") | .for_mounts' &&
		[[ $(rmemfsctl status "$dir/2") == *"the server's answer to "*", and that for another mount that has the file"* ]]
}

@test "a call that waits at the server for another mount is told from one that waits for the server" {
	suspend "${mounts[1]}"
	stat "$dir/2/$file" >"$dir/read" 3>&- 5>&- &
	reader=$!
	until_true 20 waits_for_mounts
	until_true 20 grep -q 'it waits for server (.*), perhaps for another mount that has the file' "$dir/mount.2.log"
	kill -CONT "${mounts[1]}"
	wait "$reader"
}
