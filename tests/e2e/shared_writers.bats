#!/usr/bin/env bats
# shared_writers.bats - files of an export that several mounts write (-o share): files that one mount has
# written and closed, and files that several write at the same time.

# shellcheck disable=SC2154 # what helpers set
load helpers
load mounts

setup() {
	setup_rmem
	mounts=()
}

teardown() {
	local pid
	for pid in "${holders[@]:-}"; do
		[ -z "$pid" ] || kill "$pid" 2>/dev/null || true
	done
	end_mounts
}

holders=()

# leases KIND: prints how many the export has, or another count of the status.
leases() {
	status_of ".exports[0].leases.$1"
}

has_leases() {
	[ "$(leases "$1")" -eq "$2" ]
}

# ---- closed files --------------------------------------------------------------------------------------

@test "what one has written and closed the others read without a recall" {
	local nfiles=100 i line recalled
	! small || nfiles=30
	begin 1 2
	mkdir "$dir/1/closed"
	for ((i = 0; i < nfiles; i++)); do
		echo "file $i" >"$dir/1/closed/$i"
	done
	# If a file's times were sent between write and close, its lease is downgraded with other leases'
	# returns.
	until_true 10 has_leases exclusive 0
	recalled=$(leases recalled)
	for ((i = 0; i < nfiles; i++)); do
		read -r line <"$dir/2/closed/$i"
		[ "$line" = "file $i" ]
	done
	[ "$(leases recalled)" -eq "$recalled" ]
	# Both mounts have the file leased now; a writer gets it alone.
	echo more >>"$dir/2/closed/0"
	[ "$(cat "$dir/1/closed/0")" = "file 0
more" ]
	echo "and more" >>"$dir/1/closed/0"
	[ "$(tail -n 1 "$dir/2/closed/0")" = "and more" ]
}

# times N: prints sizes and times of all files as mount N sees them.
times() {
	find "$dir/$1/tree" -type f -printf '%P %s %T@ %C@\n' | sort
}

# keep_open FILE: a process of its own has it open for reading and writing.
keep_open() {
	local ready=$dir/ready.${#holders[@]}
	(
		exec 7<>"$1"
		touch "$ready"
		exec sleep 600
	) 3>&- &
	holders+=($!)
	until_true 10 test -e "$ready"
}

let_go() {
	local pid
	for pid in "${holders[@]}"; do
		kill "$pid"
		exit_status "$pid" 10 || [ $? -eq 143 ]
	done
	holders=()
}

# hold_open FILE: a process of its own has written to it and not yet closed it.
hold_open() {
	local ready=$dir/ready.${#holders[@]}
	(
		exec 7>>"$1"
		# The shell closes a copy of 7 after each echo. The first such close commits the changes
		# like a last close.
		echo first >&7
		echo last >&7
		touch "$ready"
		exec sleep 600
	) 3>&- &
	holders+=($!)
	until_true 10 test -e "$ready"
}

@test "when a client is killed the times stay of what it had closed, and change of what it wrote" {
	local killed n
	make_tree "$dir/tree"
	find "$dir/tree" -exec touch -h -d '2001-02-03 04:05:06 UTC' {} +
	tar -C "$dir" -cf "$dir/tree.tar" tree
	begin 1 2
	tar -C "$dir/1" -xf "$dir/tree.tar"
	echo closed >"$dir/1/tree/closed"
	n=$(find "$dir/1/tree" -type f | wc -l)
	[ "$n" -gt 10 ]
	until_true 10 has_leases exclusive 0
	hold_open "$dir/1/tree/open"
	has_leases exclusive 1
	times 2 >"$dir/before"
	[ "$(wc -l <"$dir/before")" -eq $((n + 1)) ]
	grep -q ' 981173106.0' "$dir/before"
	# Since mount 2 has looked at the file, mount 1 has only a lease to read.
	has_leases exclusive 0
	hold_open "$dir/1/tree/open"
	killed=$(date +%s%N)
	kill -KILL "${mounts[1]}"
	exit_status "${mounts[1]}" 20 || [ $? -eq 137 ]
	until_true 10 umount -l "$dir/1"
	mount_number 1 ,share
	times 2 | grep -v '^open ' >"$dir/after"
	grep -v '^open ' "$dir/before" | diff - "$dir/after"
	[ "$(stat -c %.9Y "$dir/2/tree/open" | tr -d .)" -ge "$killed" ]
	times 1 | diff - <(times 2)
}

# ---- files with several writers ------------------------------------------------------------------------

# odd_ranges SEED: prints "MOUNT OFFSET LENGTH" for all parts of a file, in any order. A part has 1 to
# 9,000 bytes, no multiple of 8. Adjacent parts belong to different mounts.
odd_ranges() {
	awk -v seed="$1" -v end="$odd_bytes" 'BEGIN {
		srand(seed)
		for (at = 0; at < end; at += len) {
			do {
				len = 1 + int(rand() * (n % 3 ? 9000 : 100))
			} while (len % 8 == 0)
			if (len > end - at)
				len = end - at
			print rand(), 1 + n++ % 2, at, len
		}
	}' | sort -n | cut -d " " -f 2-
}

# write_odd N: writes the parts of mount N, each by one write(2).
write_odd() {
	local n at len
	while read -r n at len; do
		[ "$n" -ne "$1" ] || dd if="$dir/bytes" iflag=skip_bytes,count_bytes skip="$at" count="$len" \
			of="$dir/$1/odd" oflag=seek_bytes seek="$at" bs=16k conv=notrunc status=none || return 1
	done <"$dir/ranges"
}

@test "odd pieces that two write at a time, side by side, are all there" {
	local odd_bytes=1000003 seed other n
	! small || odd_bytes=200003
	begin 1 2
	: >"$dir/1/odd"
	# Into an empty file, which both make longer; over old bytes; and while both have it open.
	for seed in 1 2 3; do
		odd_ranges $seed >"$dir/ranges"
		[ "$(wc -l <"$dir/ranges")" -gt 50 ]
		head -c $odd_bytes /dev/urandom >"$dir/bytes"
		[ $seed -ne 3 ] || for n in 1 2; do
			keep_open "$dir/$n/odd"
		done
		write_odd 1 3>&- &
		other=$!
		write_odd 2
		wait $other
		cmp "$dir/1/odd" "$dir/bytes"
		cmp "$dir/2/odd" "$dir/bytes"
	done
	let_go
}

# overwrite N BLOCK COUNT [SOURCE]: mount N overwrites pages that exist, by direct I/O.
overwrite() {
	dd if="${4:-/dev/zero}" of="$dir/$1/file" bs=4k seek="$2" count="$3" oflag=direct conv=notrunc \
		status=none
}

# Each mount overwrites one half, and both have the file open.
overwrite_halves() {
	local pids=() n
	share 1 2
	keep_open "$dir/1/file"
	keep_open "$dir/2/file"
	# Repeats this until both have layouts.
	overwrite 1 0 1
	overwrite 2 1 1
	has_leases exclusive 0
	has_leases layouts 2
	for n in 1 2; do
		overwrite $n $(((n - 1) * blocks)) "$1" 3>&- &
		pids+=($!)
	done
	wait "${pids[0]}"
	wait "${pids[1]}"
	for n in 1 2; do
		dd if="$dir/$n/file" of=/dev/null bs=4k count="$1" iflag=direct status=none
	done
	let_go
	until_true 10 has_leases layouts 0
	end_mount 1
	end_mount 2
	until_true 10 eval '[ "$(status_of ".sessions | length")" = 0 ]'
}

# cost COMMAND...: prints how many RPCs it takes.
cost() {
	local before
	before=$(status_of '.exports[0].counters.rpcs')
	"$@" >&2
	echo $(($(status_of '.exports[0].counters.rpcs') - before))
}

@test "two that overwrite one file, and read it, send nothing for that" {
	local blocks=4000 few many began
	! small || blocks=400
	begin 1
	dd if=/dev/zero of="$dir/1/file" bs=4k count=$((2 * blocks)) status=none
	end_mount 1
	few=$(cost overwrite_halves 10)
	began=$SECONDS
	many=$(cost overwrite_halves $blocks)
	echo "RPCs: $few for 10 writes and reads of each, $many for $blocks"
	# The clients commit the new times once a second.
	[ $((many - few)) -le $((10 + 4 * (SECONDS - began + 1))) ]
}

@test "of what several overwrite each reads what was written last, and stat tells when" {
	local i n before
	begin 1 2 3
	random_file "$dir/a" 1
	random_file "$dir/b" 1
	cp "$dir/a" "$dir/1/file"
	keep_open "$dir/1/file"
	keep_open "$dir/2/file"
	for ((i = 0; i < 20; i++)); do
		before=$(date +%s%N)
		overwrite 1 0 128 "$dir/a"
		overwrite 2 128 128 "$dir/b"
		for n in 1 2 3; do
			[ "$(stat -c %.9Y "$dir/$n/file" | tr -d .)" -ge "$before" ]
		done
		cmp "$dir/1/file" "$dir/2/file"
		cmp -n $((128 * 4096)) "$dir/3/file" "$dir/a"
		cmp -n $((128 * 4096)) -i $((128 * 4096)):0 "$dir/3/file" "$dir/b"
		[ "$(stat -c '%.9Y %.9Z' "$dir/1/file")" = "$(stat -c '%.9Y %.9Z' "$dir/2/file")" ]
		# A write that makes the file grow or fills holes has the lease alone meanwhile.
		head -c 4096 "$dir/a" >>"$dir/1/file"
		[ "$(stat -c %s "$dir/2/file")" -eq $((1048576 + 4096)) ]
		overwrite 2 256 1 "$dir/b"
		cmp -n 4096 -i 1048576:0 "$dir/1/file" "$dir/b"
		truncate -s 1M "$dir/2/file"
		[ "$(stat -c %s "$dir/1/file")" -eq 1048576 ]
	done
	let_go
	until_true 10 has_leases layouts 0
}

@test "what is written to a file that another one cuts lands in no other file" {
	local i pids=()
	begin 1 2 3
	random_file "$dir/kept" 1
	yes 'this is of the file that is cut' | head -c 1M >"$dir/bytes"
	cp "$dir/bytes" "$dir/1/file"
	for i in 1 2; do
		keep_open "$dir/$i/file"
		until test -e "$dir/enough"; do
			overwrite $i 0 256 "$dir/bytes"
		done 3>&- &
		pids+=($!)
	done
	for ((i = 0; i < 20; i++)); do
		until_true 10 eval '[ "$(leases layouts)" -ge 1 ]'
		truncate -s 0 "$dir/3/file"
		cp "$dir/kept" "$dir/3/kept.$i"
		cp "$dir/kept" "$dir/1/kept.too.$i"
	done
	touch "$dir/enough"
	wait "${pids[0]}"
	wait "${pids[1]}"
	for ((i = 0; i < 20; i++)); do
		cmp "$dir/kept" "$dir/2/kept.$i"
		cmp "$dir/kept" "$dir/2/kept.too.$i"
	done
	overwrite 2 0 256 "$dir/bytes"
	cmp "$dir/bytes" "$dir/3/file"
	let_go
}

append_on() {
	local line
	printf -v line 'x%.0s' {1..1000}
	while [ ! -e "$dir/stop" ]; do
		printf %s "$line"
	done >>"$1"
}

# The kernel lets an open with O_TRUNC overtake a write that is running.
@test "what is appended while the file is cut stands at its end then, and in front of it are no zeros" {
	local i
	begin 1
	append_on "$dir/1/log" 3>&- &
	holders=($!)
	for ((i = 0; i < $(mib 500 200); i++)); do
		: >"$dir/1/log"
		[ "$(tr -d x <"$dir/1/log" | wc -c)" -eq 0 ]
	done
	touch "$dir/stop"
	wait "${holders[0]}"
	holders=()
}
