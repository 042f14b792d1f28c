#!/usr/bin/env bats
# machines.bats - a server and a client on two machines: what holds over the wire, and when the wire
# or one of them is gone.

load machines

setup() {
	setup_machines
	on server serve
	on client mount_remote
}

teardown() {
	teardown_machines
}

# ---- all is well ---------------------------------------------------------------------------------

@test "a tree copied over the wire is the same on a new mount" {
	on client eval 'make_tree "$dir/tree"; cp -a "$dir/tree" "$mnt/"'
	on client remount
	on client eval 'same_tree "$dir/tree" "$mnt/tree"'
}

# bats test_tags=only:verbs
@test "32 MiB over the wire have the same sum on a new mount" {
	sum=$(on client verified_file 32 a)
	on client remount
	[ "$(on client sum_here a)" = "$sum" ]
}

# bats test_tags=only:verbs
@test "names made, moved and removed over the wire" {
	on client eval 'cd "$mnt"
		mkdir -p a/b c
		for n in {1..100}; do echo "$n" >"a/b/$n"; done
		mv a/b c/moved
		ln c/moved/1 c/link
		rm c/moved/{51..100}
		! mkdir c 2>/dev/null || exit 1
		! rmdir c 2>/dev/null'
	on client remount
	on client eval 'cd "$mnt"
		[ ! -e a/b ] && [ "$(ls c/moved | wc -l)" -eq 50 ] &&
		[ "$(stat -c %h c/link)" -eq 2 ] && [ "$(cat c/moved/50)" = 50 ]'
}

# bats test_tags=only:verbs
@test "fio over the wire, random blocks, direct, 8 at once, each verified" {
	on client fio_verify --size=8M --bsrange=512-1M --ioengine=libaio --iodepth=8 --direct=1
}

# ---- what the wire shows ----------------------------------------------------------------------------

# bats test_tags=only:verbs
@test "over verbs no name can be read on the wire, and bytes of files can" {
	on client capture
	on client eval 'echo bytes-that-go-plain >"$mnt/name-that-goes-sealed"
		ln -s target-that-goes-sealed "$mnt/link"
		setfattr -n user.value -v value-that-goes-sealed "$mnt/name-that-goes-sealed"
		drop_caches'
	on client remount
	on client eval '[ "$(ls "$mnt")" = "$(printf "%s\n" link name-that-goes-sealed)" ]
		[ "$(readlink "$mnt/link")" = target-that-goes-sealed ]
		[ "$(cat "$mnt/name-that-goes-sealed")" = bytes-that-go-plain ]'
	on client end_capture
	on client eval '! grep -a sealed "$dir/frames" && grep -aq bytes-that-go-plain "$dir/frames"'
}

# bats test_tags=only:tcp
@test "TLS by the kernel of one machine only, then by the other's, and by none" {
	for with in client server none; do
		on client unmount
		on server stop_server
		for guest in client server; do
			on $guest kernel_tls "$([ $guest = $with ] && echo on || echo off)"
		done
		on server serve
		on client mount_remote
		on client eval "make_tree \"\$dir/$with\"; cp -a \"\$dir/$with\" \"\$mnt/\""
		on client remount
		on client eval "same_tree \"\$dir/$with\" \"\$mnt/$with\""
		for guest in client server; do
			on $guest eval "$([ $guest = $with ] && echo '[ "$(tls_sockets)" -gt 0 ]' || echo '[ "$(tls_sockets)" -eq 0 ]')"
		done
	done
	on server log_says server 1 'the kernel has no TLS for sockets, so this process protects .*: modprobe tls'
}

# ---- several clients that write -------------------------------------------------------------------

# Times come from the server, whose clock each guest sets to the second at its start.
@test "coherence of three mounts over the wire" {
	on client unmount
	on client eval 'share_remote 1 2 3
		program tester coherence --seconds 20 --slack 2000 "${shares[@]}"'
	on client ends tester 300
}

@test "both machines count up under a lock and append to one file" {
	on client unmount
	on client mount_remote share
	on server mount_here share
	begin client tally 50
	tallies=("$begun")
	begin server tally 50
	tallies+=("$begun")
	for one in "${tallies[@]}"; do
		end "$one" 300
	done
	on client tallied 50
	on server tallied 50
}

# ---- the wire is cut -----------------------------------------------------------------------------

@test "the wire is cut for 20 s in the middle of a copy, which goes on" {
	on client eval 'random_file "$dir/a" 64
		program copy dd if="$dir/a" of="$mnt/a" bs=256k conv=fsync'
	on client writes_on copy 8
	cut_wire
	sleep 5
	before=$(on client written copy)
	sleep 15
	[ "$(on client written copy)" -eq "$before" ]
	[ "$before" -lt $((64 << 20)) ]
	heal_wire
	on client ends copy 90
	on client log_says daemon 1 'connection lost'
	on client log_says daemon 1 'connected again after'
	on client eval '[ "$(sum_here a)" = "$(sum "$dir/a")" ]'
	on client remount
	on client eval '[ "$(sum_here a)" = "$(sum "$dir/a")" ]'
}

# The server's machine mounts the export itself while the client, cut off, is writing the same file.
@test "a client that was cut off and fenced writes nothing over its successor's bytes" {
	on client eval 'truncate -s 8M "$mnt/a"
		program writer fio_verify --filename=a --thread --loops=1000 --size=8M --bs=1M --direct=1 \
			--do_verify=0'
	on client writes_on writer 4
	cut_wire
	on server mount_here
	sum=$(on server verified_file 8 a)
	heal_wire
	on client log_says daemon 30 'session lost'
	on client ends writer 30 1
	on client log_says writer 1 'Stale file handle'
	[ "$(on server sum_here a)" = "$sum" ]
	on server log_says server 1 'session 1 of client:.* has ended'
}

# At the time of the cut both write the file. They overwrite large blocks in place, which are in
# flight to pages that another file will get. They append lines behind the end, of which the server
# does not know yet. A third mount has the file open and does nothing.
@test "a client that shares is cut off for longer than the lease time: the other machine goes on" {
	local lease=2 alone passed sums guest
	on client unmount
	on server serve_anew 48MiB $lease
	on client mount_remote share
	on server mount_here share
	on server verified_file 4 mine
	alone=$(on server overwrite mine 4)
	on client eval 'truncate -s 8M "$mnt/a"
		program writer fio_verify --filename=a --thread --loops=1000 --size=8M --bs=1M --direct=1 \
			--do_verify=0
		keep filler a
		keep idle a
		tell filler fill'
	on client writes_on writer 8
	on client until_true 60 has_written filler 1000
	[[ $(on server eval 'rmemfsctl who default /a "$socket"') == *": exclusive lease since "* ]]
	cut_wire
	passed=$(on server overwrite a 4)
	echo "went on after $passed ms, $alone ms alone"
	on server log_says server 1 'session .* of client:.* is ended: it has not given back inode .*, /a, for'
	[ "$passed" -le $((lease * 1000 + 1000 + 3000 + 4 * alone)) ]
	sums=$(on server refill a 8)
	sums+=" $(on server use_pages other 64)"
	run on client has_ended writer
	[ "$status" -eq 1 ]
	heal_wire
	on client log_says daemon 30 'session lost'
	on client ends writer 30 1
	on client log_says writer 1 'Input/output error'
	on client log_says filler 30 '^EIO$'
	on client gives idle EIO read
	on client gives idle 'first line' read
	on client gives filler EIO fsync
	on client gives filler ok fsync
	on client log_says daemon 1 ', /a: what was written last is lost with the session'
	for guest in client server; do
		[ "$(on $guest sum_here a) $(on $guest sum_here other)" = "$sums" ]
	done
	on client let_go filler idle
	on client unmount
	on server unmount
	on server stop_server
	on server check_memory
}

# ---- the server's machine dies -------------------------------------------------------------------

@test "an idle client notices within peer_timeout that the server's machine is gone" {
	before=$(on client now_ms)
	power_off server
	on client log_says daemon 15 'connection lost'
	passed=$(($(on client logged_ms daemon 'connection lost') - before))
	echo "noticed after $passed ms"
	[ $passed -le 7000 ]
}

# bats test_tags=only:verbs
@test "the server's machine dies: who waits for it can be killed, umount works, the daemon ends" {
	on client verified_file 8 a
	on client eval 'program writer fio_verify --thread --loops=1000 --size=16M --bsrange=512-1M'
	on client writes_on writer 4
	on client drop_caches
	power_off server
	on client eval 'program reader dd if="$mnt/a" of=/dev/null bs=64k
		program lister ls -l "$mnt"'
	on client log_says daemon 15 'connection lost'
	for name in writer reader lister; do
		run on client has_ended $name
		[ "$status" -eq 1 ]
	done
	on client killed writer reader lister
	on client unmount
}

# bats test_tags=only:verbs
@test "the server's machine dies: umount -f ends asynchronous I/O and the daemon" {
	on client eval 'program writer fio_verify --thread --loops=1000 --size=16M --bs=64k --direct=1 \
		--ioengine=libaio --iodepth=8'
	on client io_under_way writer
	power_off server
	on client log_says daemon 15 'connection lost'
	on client unmount_by_force
	on client ends writer 10 1
}

# bats test_tags=only:verbs
@test "the server's machine dies: a soft mount gives EIO in its time" {
	on client unmount
	on client mount_remote soft,timeo=5
	on client verified_file 4 a
	on client eval 'program writer dd if=/dev/zero of="$mnt/b" bs=64k count=2000 oflag=direct'
	on client writes_on writer 4
	power_off server
	on client ends writer 10 1
	on client log_says writer 1 'Input/output error'
	on client eval 'program reader dd if="$mnt/a" of=/dev/null bs=64k iflag=direct'
	on client ends reader 10 1
	on client log_says reader 1 'Input/output error'
	on client unmount
}

# bats test_tags=only:verbs
@test "the server's machine comes back with nothing: what is open is stale, a new mount works" {
	on client eval 'echo old >"$mnt/a"
		mkfifo "$dir/gate"
		drop_caches
		program holder hold_open a'
	power_off server
	power_on server
	on server serve
	on client log_says daemon 30 'session lost'
	on client eval 'echo go >"$dir/gate"'
	on client ends holder 10 1
	on client log_says holder 1 'Stale file handle'
	on client unmount
	on client mount_remote
	on client eval '[ -z "$(ls "$mnt")" ]'
	sum=$(on client verified_file 4 b)
	[ "$(on client sum_here b)" = "$sum" ]
}

# ---- the client's machine dies -------------------------------------------------------------------

@test "the server notices within peer_timeout that an idle client's machine is gone" {
	before=$(on server now_ms)
	power_off client
	on server log_says server 15 'client:.* has been silent'
	passed=$(($(on server logged_ms server 'client:.* has been silent') - before))
	echo "noticed after $passed ms"
	[ $passed -le 7000 ]
}

# bats test_tags=only:verbs
@test "the client's machine dies while it writes: another one mounts, what was synced is there" {
	sum=$(on client verified_file 16 a)
	on client eval 'program writer fio_verify --thread --loops=1000 --size=16M --bs=64k'
	on client writes_on writer 4
	power_off client
	power_on client
	on client hostname successor
	on client mount_remote
	[ "$(on client sum_here a)" = "$sum" ]
	on server log_says server 1 'session 1 of client:.* has ended'
	on server log_says server 1 'session 2 of test \(successor:.* begins'
	sum=$(on client verified_file 16 a)
	[ "$(on client sum_here a)" = "$sum" ]
}
