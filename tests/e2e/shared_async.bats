#!/usr/bin/env bats
# shared_async.bats - asynchronous direct I/O (libaio, io_uring) of files that several mounts write (-o
# share): all requests are in flight at once, reads are coherent, and appended pieces are in order.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts

setup() {
	setup_rmem
	mounts=()
	holder='' worker='' opener='' keeper=''
	controls=$dir/controls
}

teardown() {
	[ -z "$holder" ] || kill -KILL "$holder" 2>/dev/null || true
	[ -z "$worker" ] || kill -KILL "$worker" 2>/dev/null || true
	[ -z "$opener" ] || kill "$opener" 2>/dev/null || true
	[ -z "$keeper" ] || kill -KILL "$keeper" 2>/dev/null || true
	! mountpoint -q "$controls" || umount "$controls"
	end_mounts
}

# in_each_kind COMMAND...: runs it with each available kind of asynchronous I/O.
in_each_kind() {
	"$@" aio
	if [ "$(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null)" = 0 ]; then
		"$@" uring
	fi
}

# hold_open FILE: a process of its own, $opener, appends to FILE and keeps it open as descriptor 7.
hold_open() {
	rm -f "$dir/ready"
	(
		exec 7>>"$1"
		# The shell closes a copy of 7 after each echo. The first such close commits the changes
		# like a last close.
		echo first >&7
		echo last >&7
		touch "$dir/ready"
		exec sleep 600
	) 3>&- 8>&- &
	opener=$!
	until_true 10 test -e "$dir/ready"
}

let_go() {
	kill "$opener"
	exit_status "$opener" 10 || [ $? -eq 143 ]
	opener=''
}

# ---- requests in flight --------------------------------------------------------------------------------

# begin_later OPERATION ARGS...: $worker opens its file now, and goes on after go_on.
begin_later() {
	local operation=$1
	shift
	mkfifo "$dir/go"
	timeout 60 direct "$operation" "$dir/go" "$@" >"$dir/later.log" 2>&1 3>&- &
	worker=$!
	exec 8>"$dir/go"
}

go_on() {
	exec 8>&-
	rm "$dir/go"
}

# requests N: prints how many requests of mount N the kernel waits for.
requests() {
	local device
	device=$(mountpoint -d "$dir/$1")
	cat "$controls/${device#*:}/waiting"
}

has_requests() {
	[ "$(requests "$1")" -eq "$2" ]
}

has_at_least() {
	[ "$(requests "$1")" -ge "$2" ]
}

# deep OPERATION KIND: eight requests of mount 1 are in flight at once. None is answered, since mount 2
# has the lease of the file and is stopped.
deep() {
	begin_later "later-$1" "$2" "$dir/1/file" 0 32768
	hold_open "$dir/2/file"
	[ "$(status_of '.exports[0].leases.exclusive')" -eq 1 ]
	suspend "${mounts[2]}"
	go_on
	until_true 5 has_requests 1 8 || die "there are $(requests 1) requests"
	kill -CONT "${mounts[2]}"
	exit_status "$worker" 30 || die "$(cat "$dir/later.log")"
	worker=''
	let_go
	until_true 10 has_requests 1 0
}

@test "asynchronous direct reads and writes are all on their way at once" {
	mkdir "$controls"
	mount -t fusectl none "$controls"
	begin 1 2
	head -c 1M /dev/zero >"$dir/1/file"
	in_each_kind deep read
	in_each_kind deep write
	direct read aio "$dir/2/file" 0 32768 | grep -qx 32768
}

# ---- what waits and what does not ----------------------------------------------------------------

# flood OPERATION LENGTH: mount 1 sends 1024 requests at once for the first LENGTH bytes of a file. Mount
# 2 has the lease of the file and is stopped.
flood() {
	head -c "$2" /dev/zero >"$dir/1/file"
	begin_later "later-$1-many" aio "$dir/1/file" 0 "$2"
	hold_open "$dir/2/file"
	suspend "${mounts[2]}"
	go_on
	until_true 20 has_many 1 || die "there are $(requests 1) requests"
}

has_many() {
	[ "$(requests "$1")" -ge 1024 ]
}

# None of the requests has ended before, and all end now.
flood_ends() {
	has_many 1 || die "of 1024 requests there are $(requests 1)"
	kill -CONT "${mounts[2]}"
	exit_status "$worker" 60 || die "$(cat "$dir/later.log")"
	worker=''
	let_go
	until_true 10 has_requests 1 0
}

# at_once COMMAND...: the command must not wait.
at_once() {
	timeout -s KILL 5 "$@"
}

others_go_on() {
	at_once stat "$dir/1" >/dev/null
	at_once stat "$dir/1/other" >/dev/null
	[ "$(at_once cat "$dir/1/other")" = other ]
	at_once cp "$dir/1/other" "$dir/1/another"
	at_once cmp "$dir/1/other" "$dir/1/another"
	echo another | at_once tee "$dir/1/other" >/dev/null
	[ "$(at_once cat "$dir/1/other")" = another ]
	echo other | at_once tee "$dir/1/other" >/dev/null
}

@test "very many requests for what a mount has that stands still hold up nothing else" {
	mkdir "$controls"
	mount -t fusectl none "$controls"
	use_lease 60
	start_server
	mount_number 1 ,share,io_threads=2
	share 2
	echo other >"$dir/1/other"
	: >"$dir/1/another"
	flood write $((1024 * 16384))
	others_go_on
	flood_ends
	direct written "$dir/1/file" $((1024 * 16384))
	flood read $((1024 * 4096))
	others_go_on
	flood_ends
	[ "$(cat "$dir/later.log")" = $((1024 * 4096)) ]
}

# keep_mapped FILE: a process of its own, $keeper, maps the file and stores into it.
keep_mapped() {
	mkfifo "$dir/orders"
	: >"$dir/said"
	keeper "$1" <"$dir/orders" >"$dir/said" 2>&1 3>&- &
	keeper=$!
	exec 9>"$dir/orders"
	printf '%s\n' "write line" map >&9
	until_true 10 has_said 3
	! grep -q ENODEV "$dir/said" || skip "MAP_SHARED needs Linux 6.9"
	echo "store LINE" >&9
	until_true 10 has_said 4
	[ "$(sort -u "$dir/said")" = ok ]
}

has_said() {
	[ "$(wc -l <"$dir/said")" -ge "$1" ]
}

# has_little PID: the process has less memory of its own than the waiting requests took.
has_little() {
	[ "$(sed -n 's/^RssAnon:[[:space:]]*\([0-9]*\) kB$/\1/p' "/proc/$1/status")" -lt 65536 ]
}

@test "very many writes that wait fail for no want of memory while what is mapped goes back" {
	local len=$((1024 * 98304))
	mkdir "$controls"
	mount -t fusectl none "$controls"
	use_lease 60
	start_server
	mount_number 1 ,share,io_threads=1
	share 2 3
	keep_mapped "$dir/1/mapped"
	flood write $len
	[ "$(at_once cat "$dir/3/mapped")" = LINE ]
	flood_ends
	direct written "$dir/2/file" $len
	# A sanitizer keeps freed memory.
	[ "${RMEMFS_TEST_SANITIZED:-0}" = 1 ] || until_true 10 has_little "${mounts[1]}"
	echo quit >&9
	exec 9>&-
	exit_status "$keeper" 10
	keeper=''
}

# ---- reads ---------------------------------------------------------------------------------------------

# verify N OPTION...: runs fio's verification of the N-th half of the file by mount N.
verify() {
	local n=$1
	shift
	fio --name="half$n" --aux-path="$dir" --filename="$dir/$n/file" --offset="$(((n - 1) * size))M" \
		--size="${size}M" --rw=randwrite --bsrange=4k-2M --ioengine=libaio --iodepth=8 --direct=1 \
		--verify=crc32c --verify_fatal=1 --randrepeat=1 --output="$dir/fio.$n.log" "$@" 3>&-
}

@test "fio, random blocks, direct, 8 at once, by two mounts of one file" {
	local size
	size=$(mib 32 8)
	begin 1 2
	truncate -s "$((2 * size))M" "$dir/1/file"
	verify 1 --do_verify=1 &
	worker=$!
	verify 2 --do_verify=1
	wait "$worker"
	worker=''
	# Each mount reads the other's half.
	ln -s 1 "$dir/other"
	fio_other() {
		verify "$1" --verify_only=1 --filename="$dir/$2/file"
	}
	fio_other 1 2
	fio_other 2 1
}

# grows KIND: mount 1 makes the file grow. Mount 2 has opened it before, and reads it up to the new end.
grows() {
	local i at=0
	rm -f "$dir/1/growing"
	: >"$dir/1/growing"
	exec 8<"$dir/2/growing"
	for ((i = 1; i <= 20; i++)); do
		direct append aio "$dir/1/growing" $((i * 65536)) 1 0
		at=$((at + i * 65536))
		[ "$(direct read "$1" "$dir/2/growing" $((at - 32768)) 65536)" -eq 32768 ]
		[ "$(direct read "$1" "$dir/2/growing" 0 $((at + 4096 - at % 4096)))" -eq "$at" ]
	done
	exec 8<&-
}

@test "what has grown by another mount is read asynchronously up to its end" {
	begin 1 2
	in_each_kind grows
}

# ---- appends -------------------------------------------------------------------------------------------

# append_all KIND LENGTH TIMES: two mounts append at the same time.
append_all() {
	local kind=$1 len=$2 times=$3
	rm -f "$dir/1/log"
	: >"$dir/1/log"
	direct append "$kind" "$dir/1/log" "$len" "$times" 0 3>&- &
	worker=$!
	direct append "$kind" "$dir/2/log" "$len" "$times" 1
	exit_status "$worker" 60
	worker=''
	direct appended "$dir/1/log" "$len" "$times" 2 $((len < 1048576 ? len : 1048576))
	cmp "$dir/1/log" "$dir/2/log"
}

small_appends() {
	append_all "$1" 4096 "$(mib 80 50)"
}

large_appends() {
	append_all "$1" $((5 * 1048576)) "$(mib 4 3)"
}

@test "what two mounts append asynchronously stays whole, and in order" {
	begin 1 2
	in_each_kind small_appends
	in_each_kind large_appends
}

# One thread has read a piece from the kernel, and handles it only after the other thread has read the
# pieces behind it. Earlier pieces, if the other thread got them first, are done, or wait until this one
# is seen, too. This piece and all behind it wait.
@test "the pieces of a large append are in order, whichever thread reads them when" {
	mkdir "$controls"
	mount -t fusectl none "$controls"
	start_server
	mount_number 1 ,share,io_threads=2
	: >"$dir/1/log"
	local offset waiting
	hold "${mounts[1]}" rmemfs-io/0 16 >"$dir/held" 3>&- &
	holder=$!
	until_true 10 grep -q follows "$dir/held"
	direct append aio "$dir/1/log" $((6 * 1048576)) 1 0 3>&- &
	worker=$!
	until_true 10 grep -q held "$dir/held" || die "the thread has read no WRITE"
	offset=$(sed -n 's/^held //p' "$dir/held")
	waiting=$((6 - offset / 1048576))
	until_true 10 has_at_least 1 "$waiting"
	# This lookup comes after those pieces.
	[ ! -e "$dir/1/nothing" ]
	has_at_least 1 "$waiting"
	kill -KILL "$holder"
	exit_status "$holder" 10 || [ $? -eq 137 ]
	holder=''
	exit_status "$worker" 30
	worker=''
	direct appended "$dir/1/log" $((6 * 1048576)) 1 1 1048576
}

# The same on a mount that is alone. It begins to share while the thread has the piece: this one is held, and the
# pieces behind it have been written.
@test "a piece of a large append that is held while a mount begins to share is where it belongs" {
	start_server
	mount_number 1 "$(to_come),io_threads=2"
	: >"$dir/1/log"
	hold "${mounts[1]}" rmemfs-io/0 16 >"$dir/held" 3>&- &
	holder=$!
	until_true 10 grep -q follows "$dir/held"
	direct append aio "$dir/1/log" $((6 * 1048576)) 1 0 3>&- &
	worker=$!
	until_true 10 grep -q held "$dir/held" || die "the thread has read no WRITE"
	coming 2
	until_true 20 grep -q 'another mount of the export waits' "$dir/mount.1.log"
	kill -KILL "$holder"
	exit_status "$holder" 10 || [ $? -eq 137 ]
	holder=''
	exit_status "$worker" 30
	worker=''
	arrived 2
	direct appended "$dir/2/log" $((6 * 1048576)) 1 1 1048576
	cmp "$dir/1/log" "$dir/2/log"
}
