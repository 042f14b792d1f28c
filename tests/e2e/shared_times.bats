#!/usr/bin/env bats
# shared_times.bats - the kernel of a mount with -o share caches attributes for a time. It does not ask
# for them again, and is notified before another mount changes them.

# shellcheck disable=SC2030,SC2031,SC2154 # what helpers set, and what each test has for itself
bats_require_minimum_version 1.5.0
load helpers
load mounts

lease=4 # seconds
# shellcheck disable=SC2034 # the helpers take it
test_seconds=90

setup() {
	setup_rmem
	mounts=()
	holders=()
}

teardown() {
	local pid
	for pid in "${holders[@]}"; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	end_mounts
}

# holds PATH: a process, $holder, has it open from now on.
holds() {
	tail -f /dev/null <"$1" 3>&- &
	holder=$!
	holders+=("$holder")
	until_true 10 [ -e "/proc/$holder/fd/0" ]
	until_true 10 [ "/proc/$holder/fd/0" -ef "$1" ]
}

let_go() {
	kill -KILL "$holder"
	wait "$holder" || true
	holders=()
}

# held FORMAT: prints the attributes of the open file, whatever its name.
held() {
	stat -L -c "$1" "/proc/$holder/fd/0"
}

# asked N WORD: prints how often mount N's kernel has sent that request.
asked() {
	grep -c " debug: $2 " "$dir/mount.$1.log"
}

# asked_for N WORD COMMAND...: prints how often it is sent while the command runs many times, all cached.
asked_for() {
	local n=$1 word=$2 before i
	shift 2
	for ((i = 0; i < 3; i++)); do
		"$@" >/dev/null
	done
	before=$(asked "$n" "$word")
	for ((i = 0; i < 50; i++)); do
		"$@" >/dev/null
	done
	echo $(($(asked "$n" "$word") - before))
}

# The kernel's version decides whether a LOOKUP's answer is cached for a time, too.
by_name() {
	stat -c %s "$dir/1/folder/file"
}

@test "what is known by a lease is asked for once in a while only" {
	local n
	start_server
	mount_number 1 ,share,debug_io
	mkdir "$dir/1/folder"
	echo text >"$dir/1/folder/file"
	holds "$dir/1/folder"
	[ "$(asked_for 1 getattr held %a)" -lt 5 ]
	let_go
	if grep -q 'debug: fuse: .* tells of evictions' "$dir/mount.1.log"; then
		[ "$(asked_for 1 getattr by_name)" -lt 5 ]
	fi
	# The mount's own changes are visible all the same.
	chmod 0640 "$dir/1/folder/file"
	[ "$(stat -c %a "$dir/1/folder/file")" = 640 ]
	ln "$dir/1/folder/file" "$dir/1/folder/second"
	[ "$(stat -c %h "$dir/1/folder/file")" = 2 ]
	rm "$dir/1/folder/file"
	[ "$(stat -c %h "$dir/1/folder/second")" = 1 ]
	echo more >>"$dir/1/folder/second"
	[ "$(stat -c %s "$dir/1/folder/second")" = 10 ]
	n=$(stat -c %h "$dir/1/folder")
	mkdir "$dir/1/folder/in"
	[ "$(stat -c %h "$dir/1/folder")" -eq $((n + 1)) ]
}

# sees FORMAT VALUE: mount 2 sees it on its open file, which it had cached before; then it caches it
# again.
sees() {
	local i
	[ "$(held "$1")" = "$2" ] || die "$(held "$1") is not $2"
	for ((i = 0; i < 3; i++)); do
		held "$1" >/dev/null
	done
}

@test "what one mount changes, the others see by what they have open" {
	local i
	begin 1 2
	echo text >"$dir/1/file"
	chmod 0644 "$dir/1/file"
	holds "$dir/2/file"
	for ((i = 0; i < 8; i++)); do
		sees %a 644
		chmod 0600 "$dir/1/file"
		sees %a 600
		chmod 0644 "$dir/1/file"
		sees %s 5
		echo more >>"$dir/1/file"
		sees %s 10
		truncate -s 5 "$dir/1/file"
		sees %s 5
		ln "$dir/1/file" "$dir/1/second"
		sees %h 2
		rm "$dir/1/second"
		sees %h 1
		mv "$dir/1/file" "$dir/1/moved"
		sees %h 1
		mv "$dir/1/moved" "$dir/1/file"
		touch -d @$((1000000000 + i)) "$dir/1/file"
		sees %Y $((1000000000 + i))
	done
	rm "$dir/1/file"
	sees %h 0
}

other=(setpriv --reuid 41001 --regid 41001 --clear-groups)

# Reads as another user, through mount 2. The working folder needs no lookup of its name.
reads() {
	"${other[@]}" cat "/proc/$holder/cwd/file"
}

@test "who may not any more is kept out by all mounts at once" {
	local round # run sets i itself
	chmod 0711 "$dir"
	begin 1 2
	chmod 0755 "$dir/1"
	mkdir -m 0755 "$dir/1/folder"
	echo text >"$dir/1/folder/file"
	(cd "$dir/2/folder" && exec "${other[@]}" sleep 1000 3>&-) &
	holder=$!
	holders+=("$holder")
	until_true 10 "${other[@]}" test -e "/proc/$holder/cwd/file"
	for ((round = 0; round < 10; round++)); do
		chmod 0755 "$dir/1/folder"
		reads
		reads
		chmod 0700 "$dir/1/folder"
		run -1 reads
		setfacl -m u:41001:rx "$dir/1/folder"
		reads
		reads
		setfacl -b "$dir/1/folder"
		run -1 reads
	done
	let_go
}

is_private() {
	[ "$(stat -c %a "$dir/1/folder")" = 700 ]
}

# bats test_tags=fenced
@test "the kernel of a mount that stands still tells nothing old after others have changed it" {
	local late i
	use_lease $lease
	begin 1 2
	mkdir "$dir/1/folder"
	chmod 0755 "$dir/1/folder"
	holds "$dir/1/folder"
	late=${mounts[1]}
	for ((i = 0; i < 5; i++)); do
		[ "$(held %a)" = 755 ]
	done
	suspend "$late"
	# The cached attributes are still valid, so the kernel answers.
	[ "$(timeout -s KILL 1 stat -L -c %a "/proc/$holder/fd/0")" = 755 ]
	chmod 0700 "$dir/2/folder"
	# From now on they may change: a caller waits.
	run -137 timeout -s KILL 1 stat -L -c %a "/proc/$holder/fd/0"
	[ "$output" = "" ]
	kill -CONT "$late"
	until_true 30 is_private
	[ "$(held %a)" = 700 ]
	let_go
}
