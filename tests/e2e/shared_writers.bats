#!/usr/bin/env bats
# shared_writers.bats - files of an export that several mounts write (-o share): what one has written and
# closed, and what several write at the same time.

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

# leases KIND: how many the export has, or what is told beside them.
leases() {
	status_of ".exports[0].leases.$1"
}

has_leases() {
	[ "$(leases "$1")" -eq "$2" ]
}

# ---- what is closed ------------------------------------------------------------------------------

@test "what one has written and closed the others read without a recall" {
	local nfiles=100 i line recalled
	! small || nfiles=30
	begin 1 2
	mkdir "$dir/1/closed"
	for ((i = 0; i < nfiles; i++)); do
		echo "file $i" >"$dir/1/closed/$i"
	done
	has_leases exclusive 0
	recalled=$(leases recalled)
	for ((i = 0; i < nfiles; i++)); do
		read -r line <"$dir/2/closed/$i"
		[ "$line" = "file $i" ]
	done
	[ "$(leases recalled)" -eq "$recalled" ]
	# Both know them now, and whoever writes has them alone.
	echo more >>"$dir/2/closed/0"
	[ "$(cat "$dir/1/closed/0")" = "file 0
more" ]
	echo "and more" >>"$dir/1/closed/0"
	[ "$(tail -n 1 "$dir/2/closed/0")" = "and more" ]
}

# times N: of all that is there, as mount N sees it.
times() {
	find "$dir/$1/tree" -type f -printf '%P %s %T@ %C@\n' | sort
}

# Opened for writing, and not yet closed, by a process of its own.
hold_open() {
	local ready=$dir/ready.${#holders[@]}
	(
		exec 7>>"$1"
		# What the first one has changed goes with its end, as if that were the last.
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
	# To be looked at by others has made it a reader.
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
