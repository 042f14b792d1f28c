#!/usr/bin/env bats
# shared_late.bats - mounts that share an export (-o share) and come back after the server has ended their
# session, because others had waited longer than the lease time for their leases.

bats_require_minimum_version 1.5.0
# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts
load between

lease=2 # seconds
# shellcheck disable=SC2034 # the helpers take it
test_seconds=90

setup() {
	setup_rmem
	use_lease $lease
	mounts=()
	declare -gA keepers=()
}

teardown() {
	local name
	for name in "${!keepers[@]}"; do
		kill -KILL "${keepers[$name]}" 2>/dev/null || true
		wait "${keepers[$name]}" 2>/dev/null || true
	done
	end_mounts
}

# ---- programs with open files --------------------------------------------------------------------------

answers() {
	[ "$(wc -l <"$dir/said.$1")" -ge "$2" ]
}

# keep NAME PATH
keep() {
	mkfifo "$dir/to.$1"
	: >"$dir/said.$1"
	keeper "$2" <"$dir/to.$1" >"$dir/said.$1" 2>&1 3>&- &
	keepers[$1]=$!
	echo 0 >"$dir/orders.$1"
	exec {fd}>"$dir/to.$1"
	echo "$fd" >"$dir/fd.$1"
	until_true 20 answers "$1" 1
	[ "$(cat "$dir/said.$1")" = ok ]
}

# told NAME ORDER...: sends the order, and does not wait for its result.
told() {
	local n
	n=$(cat "$dir/orders.$1")
	echo $((n + 1)) >"$dir/orders.$1"
	echo "${*:2}" >&"$(cat "$dir/fd.$1")"
}

# gives NAME WORDS ORDER...: sends the order; its result is WORDS.
gives() {
	local n said
	told "$1" "${@:3}"
	n=$(($(cat "$dir/orders.$1") + 1))
	until_true 20 answers "$1" $n || die "$1: no answer to ${*:3}"
	said=$(sed -n ${n}p "$dir/said.$1")
	[ "$said" = "$2" ] || die "$1: ${*:3} gave $said, not $2"
}

let_go() {
	local pid=${keepers[$1]}
	told "$1" quit
	unset "keepers[$1]"
	exit_status "$pid" 20
}

# ---- being late ----------------------------------------------------------------------------------------

server_logged() {
	grep -qF "$1" "$dir/server.log"
}

mount_logged() {
	grep -qF "$2" "$dir/mount.$1.log"
}

# A session in the state "ending" counts as ended: its process is stopped meanwhile.
is_ended() {
	[ "$(status_of '[.sessions[] | select(.state != "ending")] | length')" -lt "$1" ]
}

# late N MAX: stops mount N until the server has ended its session, since others wait for it; then it goes
# on.
late() {
	local pid=${mounts[$1]} there
	there=$(status_of '[.sessions[] | select(.state != "ending")] | length')
	suspend "$pid"
	timeout 60 cat "$dir/$2" >/dev/null 3>&- &
	asker=$!
	until_true 30 is_ended "$there" || die "the session of mount $1 is not ended"
	kill -CONT "$pid"
}

wait_at_server() {
	[ "$(status_of '.exports[0].leases.waiting')" -eq "$1" ]
}

# The process that had to wait gets its answer.
served() {
	exit_status "$asker" 20
}

@test "what is open fails once when the session was ended, and then goes on" {
	begin 1 2
	keep a "$dir/1/a"
	keep b "$dir/1/b"
	gives a ok write first
	gives a ok fsync
	gives b ok write other
	gives b ok fsync
	late 1 2/a
	served
	gives a EIO read
	gives a first read
	gives a ok write second
	gives b EIO write lost
	gives b ok write more
	gives a ok fsync
	gives b ok fsync
	[ "$(cat "$dir/2/a")" = "first
second" ]
	[ "$(cat "$dir/2/b")" = "other
more" ]
	echo new >"$dir/1/c"
	[ "$(cat "$dir/2/c")" = new ]
	let_go a
	let_go b
	mount_logged 1 'session lost: session'
}

# bats test_tags=fenced
@test "an end that others have moved since is told by nobody who comes back late" {
	local heard
	begin 1 2
	keep a "$dir/1/a"
	gives a ok write first
	gives a ok fsync
	gives a first read
	gives a nothing read 6
	suspend "${mounts[1]}"
	echo second >>"$dir/2/a"
	# The stopped mount gets this read first when it goes on.
	told a read 6
	until_true 10 calling "${keepers[a]}" pread
	kill -CONT "${mounts[1]}"
	until_true 20 answers a 6
	heard=$(tail -n 1 "$dir/said.a")
	[ "$heard" = EIO ] || [ "$heard" = second ] || die "$heard"
	let_go a
}

writes_counted() {
	[ "$(status_of .totals.writes)" -eq "$1" ]
}

@test "what a mount has done is counted once, whatever sessions it has had" {
	begin 1 2
	keep a "$dir/1/a"
	gives a ok write first
	gives a ok fsync
	until_true 20 writes_counted 1
	late 1 2/a
	served
	until_true 20 mount_logged 1 'connected again'
	gives a EIO write lost
	gives a ok write second
	gives a ok fsync
	let_go a
	end_mount 1
	writes_counted 2
	[ "$(status_of .exports[0].counters.writes)" -eq 2 ]
}

# said NAME ORDER...
said() {
	local n
	told "$@"
	n=$(($(cat "$dir/orders.$1") + 1))
	until_true 20 answers "$1" $n || die "$1: no answer to ${*:2}"
	sed -n ${n}p "$dir/said.$1"
}

loads() {
	[ "$(said "$1" load)" = "$2" ]
}

# keep_mapped NAME PATH: maps a file that says "first", if the kernel can map it.
keep_mapped() {
	keep "$1" "$2"
	gives "$1" ok write first
	gives "$1" ok fsync
	case $(said "$1" map) in
	ENODEV)
		let_go "$1"
		skip "MAP_SHARED needs Linux 6.9"
		;;
	ok) ;;
	*) false ;;
	esac
	gives "$1" first load
}

@test "what was only stored when the session was ended is lost and told, and the others' mapped" {
	begin 1 2
	keep_mapped a "$dir/1/a"
	gives a ok store never
	late 1 2/a
	served
	[ "$(cat "$dir/2/a")" = first ]
	gives a EIO msync
	until_true 20 loads a first
	echo newer >"$dir/2/a"
	gives a newer load
	gives a ok store again
	[ "$(cat "$dir/2/a")" = again ]
	gives a ok msync
	let_go a
}

# bats test_tags=only:tcp
@test "a page that was on its way when the session ended is told once" {
	setup_between
	between pass
	start_server
	port=$proxy mount_number 1 ,share
	share 2
	keep_mapped a "$dir/1/a"
	keep b "$dir/1/a"
	gives a ok store never
	suspend "$middle_pid"
	told a msync
	until_true 10 calling "${keepers[a]}" msync
	timeout 60 cat "$dir/2/a" >"$dir/seen" 3>&- &
	asker=$!
	until_true 30 is_ended 2
	kill -CONT "$middle_pid"
	served
	[ "$(cat "$dir/seen")" = first ]
	until_true 20 answers a 7
	[ "$(tail -n 1 "$dir/said.a")" = EIO ]
	gives a ok msync
	gives a ok fsync
	gives b EIO close
	gives a ok close
	let_go a
	let_go b
	end_mount 1
	end_between
}

@test "what is read for a mapping uses up no error of its file's user" {
	begin 1 2
	keep_mapped a "$dir/1/a"
	late 1 2/a
	served
	until_true 20 loads a first
	gives a EIO read
	gives a first read
	let_go a
}

is_longer() {
	[ "$(stat -c %s "$1")" -gt "$2" ]
}

@test "what could not be written is told by fsync, and by close, and logged with its path" {
	local line
	begin 1 2
	mkdir -p "$dir/1/some/where"
	keep a "$dir/1/some/where/a"
	keep b "$dir/1/some/b"
	keep c "$dir/1/some/c"
	gives a ok write kept
	gives a ok fsync
	gives b ok write kept
	gives b ok fsync
	gives c ok write kept
	gives c ok fsync
	mv "$dir/1/some/b" "$dir/1/some/moved"
	# At any time there are changes that the client has not yet sent to the server.
	told a fill
	told b fill
	until_true 10 is_longer "$dir/1/some/where/a" 5
	until_true 10 is_longer "$dir/1/some/moved" 5
	late 1 2/some/where/a
	served
	until_true 10 answers a 4
	until_true 10 answers b 4
	gives a EIO fsync
	gives a ok fsync
	gives a ok write again
	gives b EIO close
	gives c EIO read
	gives c kept read
	gives c ok close
	[ "$(head -n 1 "$dir/2/some/where/a")" = kept ]
	[ "$(tail -n 1 "$dir/2/some/where/a")" = again ]
	[ "$(head -n 1 "$dir/2/some/moved")" = kept ]
	cmp "$dir/1/some/moved" "$dir/2/some/moved"
	line='what was written last is lost with the session'
	mount_logged 1 "/some/where/a: $line"
	mount_logged 1 "/some/moved: $line"
	run ! mount_logged 1 "/some/c: $line"
	let_go a
	let_go b
	let_go c
}

@test "who had a lock when the session was ended can do nothing by that file" {
	local lost
	begin 1 2
	keep a "$dir/1/file"
	keep b "$dir/1/file"
	keep c "$dir/1/file"
	keep d "$dir/1/other"
	gives a ok write first
	gives a ok fsync
	gives a ok flock
	gives b ok record
	gives c first read
	gives d ok flock
	gives d ok unflock
	late 1 2/file
	served
	gives a EIO read
	gives a EIO read
	gives a EIO flock
	gives b EIO write lost
	gives b EIO write lost
	gives c EIO read
	gives c first read
	gives d EIO read
	gives d nothing read
	mount_logged 1 "fail once with EIO, locked files until they are closed"
	lost='its locks are lost with the session; it fails with EIO until it is closed'
	mount_logged 1 "/file: $lost"
	run ! mount_logged 1 "/other: $lost"
	keep e "$dir/2/file"
	gives e ok flock
	gives e ok record
	for name in a b c d e; do
		let_go $name
	done
}

@test "what a stopped mount has is waited for until it goes on, which status tells" {
	local text
	begin 1 2
	keep a "$dir/1/a"
	gives a ok write first
	gives a ok fsync
	suspend "${mounts[1]}"
	timeout 60 cat "$dir/2/a" >"$dir/read" 3>&- &
	asker=$!
	until_true 30 server_logged 'is ended: it has not given back'
	if [ "$transport" = shm ]; then
		text=$(rmemfsctl status "$socket")
		[[ $text == *"waiting: 1 for leases"* ]]
		[[ $text == *$'\n'"  others get what it had when process ${mounts[1]} goes on or ends (is it stopped?"* ]]
		text=$(rmemfsctl who default /a "$socket")
		[[ $text == *"; its session is ending: others get what it had when process ${mounts[1]} goes on or ends"* ]]
		[ ! -s "$dir/read" ]
		kill -CONT "${mounts[1]}"
		served
	else
		served
		kill -CONT "${mounts[1]}"
	fi
	until_true 20 mount_logged 1 'connected again'
	gives a EIO read
	gives a ok write second
	gives a ok fsync
	[ "$(cat "$dir/2/a")" = "$(cat "$dir/1/a")" ]
	let_go a
}

says_to_umount() {
	local said
	! said=$(timeout 20 rmemfs -f -c /dev/null -o "$(mount_options),share" "$(mount_source)" \
		"$dir/1" 2>&1 3>&-) &&
		[[ $said == *"lost its session or the server's memory is there: umount it first" ]]
}

@test "who mounts over a mount whose server has lost its memory is told to unmount that" {
	begin 1
	kill_server
	rm -rf "${memory:?}"/*
	start_server
	until_true 20 mount_logged 1 'session lost'
	until_true 20 says_to_umount
	end_mount 1
	share 1
	echo new >"$dir/1/file"
}

# Each change waits at the server before anything is changed.
@test "who changes what a stopped mount has can be killed, and has changed nothing" {
	local name names=(chmod chown xattr link)
	use_lease 20
	begin 1 2
	for name in "${names[@]}"; do
		echo "$name" >"$dir/1/$name"
		keep "$name" "$dir/2/$name"
		keep "holder.$name" "$dir/1/$name"
		gives "holder.$name" ok write more
		gives "holder.$name" ok fsync
	done
	suspend "${mounts[1]}"
	for name in "${names[@]}"; do
		told "$name" "$name" "$dir/2/linked"
	done
	until_true 10 wait_at_server ${#names[@]}
	for name in "${names[@]}"; do
		kill -KILL "${keepers[$name]}"
		exit_status "${keepers[$name]}" 5 || [ $? -eq 137 ] || die "$name can't be killed"
		unset "keepers[$name]"
	done
	until_true 10 wait_at_server 0
	kill -CONT "${mounts[1]}"
	for name in "${names[@]}"; do
		gives "holder.$name" "$name" read
		let_go "holder.$name"
		[ "$(stat -c '%a %u %h' "$dir/2/$name")" = "644 0 1" ]
		run ! getfattr -n user.name "$dir/2/$name"
	done
	[ ! -e "$dir/2/linked" ]
	run ! server_logged 'is ended'
}

goes_on() {
	! alive "$1"
}

# The server is killed while the removal is in flight. The client sends it again, after its caller's end.
@test "what a killed program has left on its way for what a stopped mount has holds up nobody" {
	local remover writer
	use_lease 60
	begin 1 2
	keep a "$dir/1/a"
	gives a ok write first
	gives a ok fsync
	mkdir "$dir/2/own"
	echo first >"$dir/2/own/file"
	suspend "${mounts[1]}"
	rm "$dir/2/a" 3>&- &
	remover=$!
	until_true 10 wait_at_server 1
	kill_server
	kill -KILL "$remover"
	exit_status "$remover" 10 || [ $? -eq 137 ]
	start_server
	(echo second >>"$dir/2/own/file") 3>&- &
	writer=$!
	until_true 30 goes_on "$writer" || {
		kill -CONT "${mounts[1]}"
		die "it waits for the stopped mount"
	}
	wait "$writer"
	until_true 10 wait_at_server 0
	kill -CONT "${mounts[1]}"
	gives a first read
	let_go a
	[ "$(cat "$dir/2/a")" = first ]
	[ "$(cat "$dir/1/own/file")" = "first
second" ]
	run ! server_logged 'is ended'
}

# A read of an open file waits by its mount's LEASE. The reader is killed while the server is away.
@test "what was wanted of a stopped mount by a program that was killed is taken back when the server is back" {
	use_lease 60
	start_server
	share 1
	mount_number 2 ,share,io_threads=1
	keep a "$dir/1/a"
	keep reader "$dir/2/a"
	gives a ok write first
	gives a ok fsync
	mkdir "$dir/2/own"
	echo first >"$dir/2/own/file"
	suspend "${mounts[1]}"
	told reader read
	until_true 10 wait_at_server 1
	kill_server
	kill -KILL "${keepers[reader]}"
	exit_status "${keepers[reader]}" 10 || [ $? -eq 137 ]
	unset "keepers[reader]"
	start_server
	# The client sends this after the request that was in flight before.
	echo second >>"$dir/2/own/file"
	until_true 10 wait_at_server 0
	kill -CONT "${mounts[1]}"
	gives a first read
	let_go a
	[ "$(cat "$dir/2/a")" = first ]
	run ! server_logged 'is ended'
}
