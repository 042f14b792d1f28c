#!/usr/bin/env bats
# names_later.bats - a mount with names=local makes and removes files by itself while it is alone.
# When another mount comes, all of that is at the server before the other one is let in.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts
load between

test_seconds=120

setup() {
	setup_rmem
	names_mode=local
	mounts=() pids=()
	use_lease 3
}

teardown() {
	end_programs
	end_mounts
}

entries() {
	find "$1" -mindepth 1 -maxdepth 1 | wc -l
}

# rpcs COMMAND...: how many the server has got meanwhile.
rpcs() {
	local before
	before=$(status_of '.sessions[0].requests')
	"$@" >&2
	echo $(($(status_of '.sessions[0].requests') - before))
}

# pack N: $dir/tree has so many files, and $dir/tree.tar, too.
pack() {
	local i
	mkdir "$dir/tree"
	for ((i = 0; i < $1; i++)); do
		echo "$i" >"$dir/tree/$i"
	done
	tar -C "$dir" -cf "$dir/tree.tar" tree
}

unpack() {
	tar -C "$1" -xf "$dir/tree.tar"
}

# costs_little N: mount 1 unpacks and removes a tree of so many files by about a message a file.
costs_little() {
	local made removed
	mkdir "$dir/1/little"
	: >"$dir/1/little/first"
	made=$(rpcs unpack "$dir/1/little")
	removed=$(rpcs rm -r "$dir/1/little")
	echo "RPCs: $made for $1 files, $removed to remove them"
	[ "$made" -le $(($1 + $1 / 4 + 20)) ]
	# Each thread sends once a second those that wait, and pings count.
	[ "$removed" -le $(($1 / 4 + 20)) ]
}

@test "alone names are made here, beside another mount at the server, and here again afterwards" {
	start_server
	pack 150
	come 1
	costs_little 150
	come 2
	is_sharing 1
	unpack "$dir/1"
	diff -r "$dir/tree" "$dir/2/tree"
	rm -r "$dir/1/tree"
	[ ! -e "$dir/2/tree" ]
	unpack "$dir/2"
	[ "$(entries "$dir/1/tree")" -eq 150 ]
	rm "$dir/2/tree/7"
	echo other >"$dir/2/tree/8"
	end_mount 2
	until_true 30 is_alone 1
	# Nothing is known any more of what was true when it was alone before.
	[ ! -e "$dir/1/tree/7" ]
	[ "$(cat "$dir/1/tree/8")" = other ]
	costs_little 150
	come 2
	diff <(cd "$dir/1" && find . | sort) <(cd "$dir/2" && find . | sort)
	nobody_was_late
}

@test "names that a mount knew when it was alone are not believed when it is alone again" {
	start_server
	come 1
	mkdir "$dir/1/old"
	echo one >"$dir/1/old/file"
	[ ! -e "$dir/1/old/missing" ]
	ls "$dir/1/old" >/dev/null
	come 2
	mv "$dir/2/old/file" "$dir/2/old/missing"
	echo two >"$dir/2/old/file"
	end_mount 2
	until_true 30 is_alone 1
	[ "$(cat "$dir/1/old/missing")" = one ]
	[ "$(cat "$dir/1/old/file")" = two ]
	rm "$dir/1/old/file"
	echo three >"$dir/1/old/file"
	[ "$(cat "$dir/1/old/file")" = three ]
	nobody_was_late
}

@test "files that are open, new or without a name, go on while another mount comes" {
	start_server
	come 1
	mkdir "$dir/1/folder"
	echo first >"$dir/1/folder/first"
	echo gone >"$dir/1/folder/gone"
	exec 6>"$dir/1/folder/new" 7<>"$dir/1/folder/gone"
	rm "$dir/1/folder/gone"
	echo before >&6
	come 2 6>&- 7>&-
	[ "$(cat "$dir/2/folder/new")" = before ]
	[ ! -e "$dir/2/folder/gone" ]
	echo after >&6
	exec 6>&-
	[ "$(cat "$dir/2/folder/new")" = $'before\nafter' ]
	[ "$(cat <&7)" = gone ]
	exec 7>&-
	all_have_names() {
		[ "$(find "$dir/1" | wc -l)" = "$(status_of '.exports[0].files')" ]
	}
	until_true 20 all_have_names
	nobody_was_late
}

# changes: makes and removes files in mount 1 by several programs, until the test says "enough".
changes() {
	local n=0
	while [ ! -e "$dir/enough" ]; do
		n=$((n + 1))
		mkdir "$dir/1/$n" && unpack "$dir/1/$n" && cp -r "$dir/1/$n/tree" "$dir/1/$n/copy" &&
			rm -r "$dir/1/$n/tree" && mv "$dir/1/$n/copy/7" "$dir/1/$n/copy/a" &&
			mv "$dir/1/$n/copy/a" "$dir/1/$n/copy/7" && mkdir "$dir/1/$n/sub" && rmdir "$dir/1/$n/sub" &&
			chmod 2751 "$dir/1/$n/copy" && chown 0:77 "$dir/1/$n/copy" &&
			touch -cd '2001-02-03 4:05:06' "$dir/1/$n/copy" &&
			diff -r "$dir/tree" "$dir/1/$n/copy" || return 1
		[ $((n % 3)) -ne 0 ] || rm -r "$dir/1/$n" || return 1
	done
	echo $n >"$dir/rounds"
}

# changes_end: they have gone well, and both mounts show the same.
changes_end() {
	local n
	touch "$dir/enough"
	exit_status "${pids[0]}" 120 || die "the program failed: $(cat "$dir/changes.log")"
	pids=()
	rm "$dir/enough"
	diff -r "$dir/1" "$dir/2"
	for ((n = 1; n <= $(cat "$dir/rounds"); n++)); do
		if [ $((n % 3)) -eq 0 ]; then
			[ ! -e "$dir/2/$n" ]
		else
			diff -r "$dir/tree" "$dir/2/$n/copy"
			[ "$(ls "$dir/2/$n")" = copy ]
			[ "$(stat -c '%a %u %g %y' "$dir/2/$n/copy" | cut -c1-29)" = '2751 0 77 2001-02-03 04:05:06' ]
		fi
	done
}

changes_begin() {
	changes >"$dir/changes.log" 2>&1 3>&- &
	pids=($!)
	until_true 20 test -e "$dir/1/2"
}

@test "what is unpacked, copied and removed while another mount comes is the same for both" {
	start_server
	pack 60
	come 1
	changes_begin
	come 2
	changes_end
	rm -r "$dir"/1/*
	[ -z "$(ls "$dir/2")" ]
	nobody_was_late
}

@test "a server that dies while the mount begins to share keeps all of it" {
	start_server
	pack 60
	come 1
	changes_begin
	kill_server
	spawn_armed convert.stored
	coming 2
	exit_status "$server_pid" 60 || [ $? -eq 137 ]
	server_pid=''
	start_server
	arrived 2
	changes_end
	no_log_says 'did not (take|make|remove)'
}

@test "an upgrade of the daemon, alone and beside others" {
	start_server
	pack 60
	come 1
	upgraded() {
		local pid=${mounts[1]}
		rmemfsctl upgrade "$dir/1" >>"$dir/moved.log" 2>&1 3>&-
		exit_status "$pid" 20
		unset 'mounts[1]'
	}
	unpack "$dir/1"
	rm "$dir/1/tree/5"
	upgraded
	[ ! -e "$dir/1/tree/5" ]
	[ "$(entries "$dir/1/tree")" -eq 59 ]
	echo 5 >"$dir/1/tree/5"
	come 2
	diff -r "$dir/tree" "$dir/2/tree"
	diff -r "$dir/tree" "$dir/1/tree"
	umount "$dir/1"
}

# keeps_new FILE: a program makes it and keeps it open, until descriptor 5 is closed. A program that ends with a copy
# of the file's descriptor would tell the server, so this shell has none.
keeps_new() {
	mkfifo "$dir/go"
	{
		exec 6>"$1"
		: >"$dir/made"
		read -r _ <"$dir/go" || true
	} 3>&- &
	pids+=($!)
	exec 5>"$dir/go"
	until_true 10 test -e "$dir/made"
}

missing() {
	local i
	for i in {1..20}; do
		[ -e "$1/$i" ] || echo "$i"
	done
}

# bats test_tags=fenced
@test "what the server did not learn of before it ended the session is not there, and nothing hangs" {
	start_server
	come 1
	mkdir "$dir/1/folder"
	for i in {1..20}; do
		echo "$i" >"$dir/1/folder/$i"
	done
	keeps_new "$dir/1/folder/new"
	rm "$dir/1/folder/"{1..10} 5>&-
	mkdir -p "$dir/1/folder/sub/in" 5>&-
	mv "$dir/1/folder/20" "$dir/1/folder/m" 5>&-
	kill -STOP "${mounts[1]}"
	come 2 5>&-
	grep -q 'nothing was heard of it\|has not ended and committed' "$dir/server.log"
	missing "$dir/2/folder" >"$dir/missing"
	kill -CONT "${mounts[1]}"
	until_true 30 is_sharing 1
	[ "$(rmemfsctl status --json "$dir/1" | jq -c '[.sharing | .begun, .ended]')" = '[1,0]' ]
	exec 5>&-
	wait "${pids[0]}" || true
	pids=()
	# Either a removal had gone before it stood still, or it has not happened.
	same() {
		diff <(ls "$dir/1/folder") <(ls "$dir/2/folder")
	}
	until_true 20 same
	missing "$dir/1/folder" | diff - "$dir/missing"
	! grep -qx 20 "$dir/missing" || [ "$(cat "$dir/2/folder/m")" = 20 ]
	usable() {
		mkdir -p "$dir/1/folder/sub/in" && echo in >"$dir/1/folder/sub/in/file" && ls "$dir/1/folder/sub/in"
	}
	until_true 20 usable
	[ "$(cat "$dir/2/folder/sub/in/file")" = in ]
	echo again >"$dir/1/folder/1"
	[ "$(cat "$dir/2/folder/1")" = again ]
	rm "$dir/1/folder/1"
	rm -f "$dir/1/folder/new"
	echo new >"$dir/1/folder/new"
	[ "$(cat "$dir/2/folder/new")" = new ]
}

# syncing PATH: fsync of it waits. lost_by PATH: that has failed, for another reason than that it waited.
declare -gA syncs
syncing() {
	sync "$1" 2>"$dir/sync.${1##*/}" 3>&- &
	syncs[$1]=$!
	until_true 10 calling $! fsync
}

lost_by() {
	local status=0
	exit_status "${syncs[$1]}" 30 || status=$?
	[ $status -eq 1 ]
	grep -q 'Input/output error' "$dir/sync.${1##*/}"
}

# bats test_tags=only:tcp,fenced
@test "fsync of a folder or file that waited for names tells that they are lost with the session" {
	setup_between
	between pass
	start_server
	port=$proxy come 1
	mkdir "$dir/1/folder" "$dir/1/elsewhere"
	echo two >"$dir/1/elsewhere/clean"
	cat "$dir/1/elsewhere/clean"
	sync -f "$dir/1"
	suspend "$middle_pid"
	mkdir "$dir/1/folder/sub"
	syncing "$dir/1/folder"
	syncing "$dir/1/elsewhere/clean"
	come 2
	kill -CONT "$middle_pid"
	lost_by "$dir/1/folder"
	lost_by "$dir/1/elsewhere/clean"
	[ -z "$(ls "$dir/1/folder")" ]
	[ "$(ls "$dir/1/elsewhere")" = clean ]
	# It was told once.
	sync "$dir/1/folder" "$dir/1/elsewhere/clean"
	mkdir "$dir/1/folder/sub"
	[ -d "$dir/2/folder/sub" ]
	end_mount 1
	end_between
}

# dies_sharing SEED MS: a program makes and removes files in mount 1, another mount comes, and the first one's
# daemon dies so many milliseconds after that.
dies_sharing() {
	local runner
	come 1
	mkdir -p "$dir/1/$1"
	ordered run "$dir/1/$1" "$dir/progress" "$1" 100000 2>>"$dir/ordered.log" 3>&- &
	runner=$!
	until_true 20 test -e "$dir/1/$1/2"
	coming 2
	sleep "$(printf '0.%03d' "$2")"
	kill -KILL "${mounts[1]}"
	wait "${mounts[1]}" || true
	unset 'mounts[1]'
	exit_status "$runner" 30 || [ $? -eq 1 ]
	umount -l "$dir/1"
	arrived 2
	ordered check "$dir/2/$1" "$dir/progress" "$1"
	end_mount 2
}

@test "a daemon that dies while it begins to share leaves a beginning of all that was to be" {
	local seed=0 times=(50 300 700)
	[ "${RMEMFS_TEST_NIGHTLY:-0}" = 0 ] || times=({20..999..60})
	start_server
	for ms in "${times[@]}"; do
		seed=$((seed + 1))
		echo "$ms"
		dies_sharing "$seed" "$ms"
	done
}
