#!/usr/bin/env bats
# shared.bats - several mounts of one export that all write (-o share) are one filesystem for their users.
# `coherence` (see ../stress) checks this at random. These tests ask for each property by name, with
# programs that people use.

load helpers
load mounts

nightly() {
	[ "${RMEMFS_TEST_NIGHTLY:-0}" = 1 ]
}

setup() {
	# shellcheck disable=SC2034 # the helpers take it
	if nightly; then test_seconds=900; fi
	setup_rmem
	mounts=()
}

teardown() {
	[ -z "${dir:-}" ] || touch "$dir/enough"
	end_mounts
}

# refused OPTIONS: prints the message of a mount that must be refused.
refused() {
	mkdir -p "$dir/refused"
	! rmemfs -f -c /dev/null -o "$(mount_options),connect_timeout=1$1" "$(mount_source)" \
		"$dir/refused" 2>&1
}

# each COMMAND...: runs it once for each mount, all at once, with the mount's number as the last argument.
each() {
	local n pids=()
	for n in "${!mounts[@]}"; do
		"$@" "$n" 3>&- &
		pids+=($!)
	done
	for n in "${pids[@]}"; do
		wait "$n"
	done
}

# same_everywhere PATH LOCAL: PATH on every mount has the bytes of LOCAL.
same_everywhere() {
	local n
	for n in "${!mounts[@]}"; do
		cmp "$dir/$n/$1" "$2"
	done
}

# ---- admission -----------------------------------------------------------------------------------------

@test "who keeps others out and who shares are told of each other" {
	local said
	start_server
	share 1
	said=$(refused ,exclusive)
	[[ $said == *"in use by"*"needs an export that no other mount uses"* ]]
	end_mount 1
	mount_number 1 ,exclusive
	said=$(refused ,share)
	[[ $said == *"in use by"*"for itself alone"* ]]
	echo alone >"$dir/1/file"
	end_mount 1
	share 1 2
	[ "$(cat "$dir/2/file")" = alone ]
}

# ---- data ----------------------------------------------------------------------------------------

@test "what one has written and closed, all others read" {
	local n size
	begin 1 2 3 4
	for size in 0 1 4095 4097 100000 3000000; do
		for n in 1 2 3 4; do
			head -c $size /dev/urandom >"$dir/bytes"
			cp "$dir/bytes" "$dir/$n/file"
			same_everywhere file "$dir/bytes"
		done
	done
	# Writes in place, then truncates.
	for n in 1 2 3 4; do
		head -c 5000 /dev/urandom >"$dir/patch"
		dd if="$dir/patch" of="$dir/$n/file" bs=1 seek=$((n * 12345)) conv=notrunc status=none
		dd if="$dir/patch" of="$dir/bytes" bs=1 seek=$((n * 12345)) conv=notrunc status=none
		same_everywhere file "$dir/bytes"
		truncate -s $((2000000 - n)) "$dir/$n/file" "$dir/bytes"
		same_everywhere file "$dir/bytes"
	done
}

@test "a tree that one has made is the others', and each changes it for all" {
	local n
	begin 1 2 3
	make_tree "$dir/tree"
	cp -a "$dir/tree" "$dir/1/tree"
	same_tree "$dir/tree" "$dir/2/tree"
	same_tree "$dir/tree" "$dir/3/tree"
	for n in 2 3; do
		rm "$dir/$n/tree/deep/er/small.$n" "$dir/tree/deep/er/small.$n"
		mv "$dir/$n/tree/deep/er" "$dir/$n/tree/moved"
		mv "$dir/tree/deep/er" "$dir/tree/moved"
		chmod 0640 "$dir/$n/tree/moved/small.5" "$dir/tree/moved/small.5"
		touch -d "2002-02-0$n 04:05:06" "$dir/$n/tree/moved/small.6" "$dir/tree/moved/small.6"
		same_tree "$dir/tree" "$dir/1/tree"
		mv "$dir/1/tree/moved" "$dir/1/tree/deep/er"
		mv "$dir/tree/moved" "$dir/tree/deep/er"
		same_tree "$dir/tree" "$dir/2/tree"
		same_tree "$dir/tree" "$dir/3/tree"
	done
	rm -r "$dir/3/tree"
	[ -z "$(ls -A "$dir/1")" ]
	[ -z "$(ls -A "$dir/2")" ]
}

append_lines() {
	local i
	for ((i = 1; i <= nlines; i++)); do
		printf '%s %s %*s\n' "$1" $i $((1 + i * 37 % 300)) . >>"$dir/$1/log"
	done
}

append_on() {
	local i
	exec 7>>"$dir/$1/log"
	for ((i = 1; i <= nlines; i++)); do
		printf '%s %s %*s\n' "$1" $i $((1 + i * 37 % 300)) . >&7
	done
}

# Each line of each mount is there once and whole, and the lines are in order.
check_lines() {
	awk -v nlines="$nlines" '
		NF != 3 || $3 != "." || $2 != ++last[$1] || length($0) != length($1 $2) + 2 + 1 + $2 * 37 % 300 {
			print "line " NR ": " substr($0, 1, 100)
			exit bad = 1
		}
		END {
			if (bad) exit 1
			for (n = 1; n <= 4; n++)
				if (last[n] != nlines) {
					print "mount " n ": " last[n] " lines"
					exit 1
				}
		}' "$1"
}

@test "what four mounts append to one file stands there whole, once and in order" {
	local nlines n
	begin 1 2 3 4
	nlines=$(mib 300 50)
	: >"$dir/1/log"
	each append_on
	cp "$dir/2/log" "$dir/log"
	check_lines "$dir/log"
	same_everywhere log "$dir/log"
	: >"$dir/3/log"
	each append_lines
	cp "$dir/4/log" "$dir/log"
	check_lines "$dir/log"
	same_everywhere log "$dir/log"
}

# append_letters LETTER MOUNT BYTES TIMES: appends each time by one write(2).
append_letters() {
	local i
	tr '\0' "$1" </dev/zero | head -c "$3" >"$dir/letters.$1"
	for ((i = 0; i < $4; i++)); do
		dd if="$dir/letters.$1" of="$dir/$2/letters" bs="$3" iflag=fullblock oflag=append conv=notrunc \
			status=none || return 1
	done
}

# letters LETTER: prints how many there are.
letters() {
	tr -cd "$1" <"$dir/1/letters" | wc -c
}

@test "a MiB that one write appends stands there in one piece, and of more nothing is lost" {
	local mib=$((1 << 20)) times=30 bytes other i piece
	! small || times=8
	begin 1 2
	for bytes in $mib $((mib + 1)) $((2 * mib)); do
		append_letters a 1 "$bytes" $times 3>&- &
		other=$!
		append_letters b 2 "$bytes" $times
		wait $other
		for i in a b; do
			[ "$(letters $i)" -eq $((times * bytes)) ]
		done
		[ "$(stat -c %s "$dir/2/letters")" -eq $((2 * times * bytes)) ]
		for ((i = 0; bytes == mib && i < 2 * times; i++)); do
			piece=$(dd if="$dir/2/letters" bs=$mib skip=$i count=1 status=none | tr -s ab)
			[[ $piece == [ab] ]]
		done
		rm "$dir/2/letters"
	done
}

write_log() {
	local i
	exec 7>>"$1"
	for ((i = 1; i <= $2; i++)); do
		printf '%s %*s\n' $i $((1 + i * 131 % 2000)) . >&7
	done
}

@test "a file that grows by one mount is followed by others, and is never zeros" {
	local nlines n writer pids=()
	begin 1 2 3
	nlines=$(mib 2000 300)
	: >"$dir/1/log"
	write_log "$dir/1/log" "$nlines" 3>&- &
	writer=$!
	for n in 2 3; do
		tail ---disable-inotify -s 0.01 -c +1 -f --pid=$writer "$dir/$n/log" >"$dir/tail.$n" 3>&- &
		pids+=($!)
	done
	wait $writer
	wait "${pids[0]}"
	wait "${pids[1]}"
	write_log "$dir/expected" "$nlines"
	cmp "$dir/1/log" "$dir/expected"
	cmp "$dir/tail.2" "$dir/expected"
	cmp "$dir/tail.3" "$dir/expected"
}

read_only_letters() {
	while [ ! -e "$dir/enough" ]; do
		[ -z "$(tr -d x <"$1" | head -c 10)" ] || return 1
	done
}

@test "a file that one cuts and fills has nothing else in it for who reads" {
	local reader i
	begin 1 2
	head -c 1048576 /dev/zero | tr '\0' x >"$dir/letters"
	cp "$dir/letters" "$dir/1/file"
	read_only_letters "$dir/2/file" 3>&- &
	reader=$!
	for ((i = 0; i < $(mib 40 8); i++)); do
		# At a page's end, since otherwise the rest of the page is zeroed before all mounts have
		# seen the new end.
		truncate -s $((RANDOM % 200 * 4096)) "$dir/1/file"
		head -c $((RANDOM * 10)) "$dir/letters" >>"$dir/1/file"
	done
	touch "$dir/enough"
	wait $reader
	cp "$dir/1/file" "$dir/last"
	same_everywhere file "$dir/last"
}

@test "where one has cut a file, the others know at once, and it grows by zeros" {
	local i n size
	begin 1 2 3
	random_file "$dir/file" 1
	cp "$dir/file" "$dir/1/file"
	for ((i = 0; i < $(mib 60 10); i++)); do
		n=$((1 + RANDOM % 3))
		size=$((RANDOM * 40))
		truncate -s $size "$dir/file" "$dir/$n/file"
		for n in 1 2 3; do
			[ "$(stat -c %s "$dir/$n/file")" -eq $size ]
		done
		same_everywhere file "$dir/file"
		printf more >>"$dir/file"
		printf more >>"$dir/$((1 + RANDOM % 3))/file"
		same_everywhere file "$dir/file"
	done
}

# fio_part MOUNT PART DIRECT [OPTION]...: works on one of two parts of a file that both mounts use.
fio_part() {
	local mount=$1 part=$2 direct=$3 half
	half=$(mib 16 4)
	shift 3
	fio --name=part --aux-path="$dir" --filename="$dir/$mount/file" --offset=$(((part - 1) * half))M \
		--size="${half}M" --rw=randwrite --bsrange=512-256k \
		--ioengine=psync --direct="$direct" --verify=crc32c --verify_fatal=1 --randrepeat=1 \
		--randseed="$part" --output="$dir/fio.$mount.$part.log" "$@"
}

@test "fio, two mounts write parts of one file and read each other's, buffered and direct" {
	local direct other
	begin 1 2
	truncate -s $((2 * $(mib 16 4)))M "$dir/1/file"
	for direct in 0 1; do
		fio_part 1 1 $direct --do_verify=0 3>&- &
		other=$!
		fio_part 2 2 $direct --do_verify=0
		wait $other
		fio_part 1 2 $direct --verify_only=1 3>&- &
		other=$!
		fio_part 2 1 $direct --verify_only=1
		wait $other
		fio_part 1 1 $((1 - direct)) --verify_only=1
	done
	cp "$dir/1/file" "$dir/bytes"
	same_everywhere file "$dir/bytes"
}

# ---- attributes ----------------------------------------------------------------------------------

# same_stat FORMAT VALUE PATH
same_stat() {
	local n
	for n in "${!mounts[@]}"; do
		[ "$(stat -c "$1" "$dir/$n/$3")" = "$2" ] ||
			die "mount $n: $1 is $(stat -c "$1" "$dir/$n/$3") and not $2"
	done
}

@test "stat sees size and time, mode, owner and links of the others at once" {
	local i n size=0 before after
	begin 1 2 3
	: >"$dir/1/file"
	before=$(stat -c %.Y "$dir/1/file")
	for ((i = 0; i < $(mib 60 10); i++)); do
		n=$((1 + i % 3))
		printf '%*s' $i x >>"$dir/$n/file"
		size=$((size + (i > 0 ? i : 1)))
		same_stat %s $size file
		after=$(stat -c %.Y "$dir/$((1 + (n + i) % 3))/file")
		same_stat %.Y "$after" file
		[[ ! $after < $before ]]
		before=$after
	done
	chmod 0751 "$dir/1/file"
	same_stat %a 751 file
	chown 12:34 "$dir/2/file"
	same_stat %u:%g 12:34 file
	touch -d '2001-02-03 04:05:06.123456789 UTC' "$dir/3/file"
	same_stat %.Y 981173106.123456789 file
	ln "$dir/1/file" "$dir/1/second"
	same_stat %h 2 file
	rm "$dir/2/file"
	same_stat %h 1 second
	mkdir "$dir/3/folder" "$dir/1/folder/in"
	same_stat %h 3 folder
	setfattr -n user.key -v value "$dir/2/second"
	[ "$(getfattr --only-values -n user.key "$dir/3/second" 2>/dev/null)" = value ]
	setfattr -x user.key "$dir/1/second"
	run getfattr -n user.key "$dir/2/second"
	[ "$status" -ne 0 ]
}

# ---- names ---------------------------------------------------------------------------------------

stat_often() {
	local i
	for ((i = 0; i < $1; i++)); do
		stat "$dir/2/a/b/file" "$dir/2/a/link" >/dev/null
		[ ! -e "$dir/2/a/none" ]
	done
}

# rpcs_of COMMAND...: prints how many RPCs a mount costs that runs this.
rpcs_of() {
	local before
	before=$(status_of .exports[0].counters.rpcs)
	share 2 >&2
	"$@" >&2
	end_mount 2 >&2
	until_true 10 eval '[ "$(status_of ".sessions | length")" = 0 ]'
	echo $(($(status_of .exports[0].counters.rpcs) - before))
}

@test "what is looked at again and again costs no message" {
	local few many
	start_server
	share 2
	mkdir -p "$dir/2/a/b"
	echo text >"$dir/2/a/b/file"
	ln "$dir/2/a/b/file" "$dir/2/a/link"
	end_mount 2
	until_true 10 eval '[ "$(status_of ".sessions | length")" = 0 ]'
	few=$(rpcs_of stat_often 10)
	many=$(rpcs_of stat_often 110)
	echo "RPCs: $few for 10, $many for 110"
	# Each run looks up three paths of three or four parts, and gets their attributes.
	[ $((many - few)) -lt 100 ]
}

# known_by N: mount N looks at the file often enough to cache it.
known_by() {
	local i
	for ((i = 0; i < 3; i++)); do
		stat "$dir/$1/folder/file" >/dev/null || return 1
		[ ! -e "$dir/$1/folder/new" ]
	done
}

@test "what one knows, another one changes, and the next look sees it" {
	local i n other
	begin 1 2
	mkdir "$dir/1/folder"
	for ((i = 0; i < $(mib 40 8); i++)); do
		n=$((1 + i % 2)) other=$((2 - i % 2))
		echo text >"$dir/$n/folder/file"
		known_by $other
		chmod 0600 "$dir/$n/folder/file"
		[ "$(stat -c %a "$dir/$other/folder/file")" = 600 ]
		known_by $other
		chmod 0711 "$dir/$n/folder"
		[ "$(stat -c %a "$dir/$other/folder")" = 711 ]
		chmod 0755 "$dir/$n/folder"
		known_by $other
		ln "$dir/$n/folder/file" "$dir/$n/folder/new"
		[ "$(stat -c %h "$dir/$other/folder/file" "$dir/$other/folder/new")" = $'2\n2' ]
		rm "$dir/$n/folder/new"
		[ ! -e "$dir/$other/folder/new" ]
		[ "$(stat -c %h "$dir/$other/folder/file")" = 1 ]
		known_by $other
		mv "$dir/$n/folder/file" "$dir/$n/folder/new"
		[ ! -e "$dir/$other/folder/file" ]
		[ "$(cat "$dir/$other/folder/new")" = text ]
		echo more >"$dir/$n/file"
		mv "$dir/$n/file" "$dir/$n/folder/new"
		[ "$(cat "$dir/$other/folder/new")" = more ]
		rm "$dir/$n/folder/new"
		[ ! -e "$dir/$other/folder/new" ]
		rmdir "$dir/$n/folder"
		[ ! -e "$dir/$other/folder" ]
		mkdir "$dir/$n/folder"
		[ "$(ls -A "$dir/$other/folder")" = "" ]
	done
}

waits_at_server() {
	[ "$(status_of .exports[0].leases.waiting)" -eq 1 ]
}

# Mount 1 has the attributes of its target, and waits for mount 3's lease of the source. Its kernel does
# not forget the target, since a process works there.
@test "a folder that another mount moves away before it is replaced lives on" {
	local i mover holder
	begin 1 2 3
	mkdir "$dir/1/"{new,old}
	(cd "$dir/1/old" && exec tail -f /dev/null) 3>&- &
	holder=$!
	until_true 10 [ "/proc/$holder/cwd" -ef "$dir/1/old" ]
	for ((i = 0; i < 3; i++)); do
		stat "$dir/3/new" >/dev/null
	done
	# This recalls mount 3's lease of the root folder.
	mkdir "$dir/2/some"
	rmdir "$dir/2/some"
	suspend "${mounts[3]}"
	mv -T "$dir/1/new" "$dir/1/old" 3>&- &
	mover=$!
	until_true 10 waits_at_server
	mv -T "$dir/2/old" "$dir/2/else"
	kill -CONT "${mounts[3]}"
	exit_status "$mover" 20
	echo text >"$dir/1/else/file" || { kill "$holder" && false; }
	kill "$holder"
	wait "$holder" || true
	[ "$(cat "$dir/2/else/file")" = text ]
	[ "$(ls "$dir/1")" = $'else\nold' ]
	rmdir "$dir/2/old"
	[ ! -e "$dir/1/old" ]
}

# crowd MOUNT: makes, renames, looks up and removes names of its own in a common folder.
crowd() {
	local i
	for ((i = 0; i < rounds; i++)); do
		: >"$dir/$1/folder/$1.$i"
		[ -e "$dir/$1/folder/$1.$i" ]
		mv "$dir/$1/folder/$1.$i" "$dir/$1/folder/$1.moved"
		[ ! -e "$dir/$1/folder/$1.$i" ]
		rm "$dir/$1/folder/$1.moved"
		[ ! -e "$dir/$1/folder/$1.moved" ]
	done
}

@test "two that change one folder all the time don't take it from each other" {
	local rounds before recalled
	begin 1 2
	rounds=$(mib 200 50)
	mkdir "$dir/1/folder"
	before=$(status_of .exports[0].leases.recalled)
	each crowd
	recalled=$(($(status_of .exports[0].leases.recalled) - before))
	echo "recalled: $recalled"
	[ -z "$(ls -A "$dir/1/folder")" ]
	[ "$recalled" -lt "$rounds" ]
	nobody_was_late
}

race() {
	local i
	set -C
	for ((i = 0; i < races; i++)); do
		{ echo "$1" >"$dir/$1/lock.$i"; } 2>/dev/null && echo "lock.$i" >>"$dir/won.$1"
		mkdir "$dir/$1/folder.$i" 2>/dev/null && echo "folder.$i" >>"$dir/won.$1"
		ln -s "$1" "$dir/$1/link.$i" 2>/dev/null && echo "link.$i" >>"$dir/won.$1"
	done
	return 0
}

@test "of four who create one name, one wins" {
	local races n name
	begin 1 2 3 4
	races=$(mib 100 20)
	each race
	cat "$dir"/won.* | sort >"$dir/won"
	[ -z "$(uniq -d "$dir/won")" ]
	[ "$(wc -l <"$dir/won")" -eq $((3 * races)) ]
	for n in 1 2 3 4; do
		(cd "$dir/$n" && printf '%s\n' *) | sort | cmp - "$dir/won"
		grep '^lock' "$dir/won.$n" | while read -r name; do
			[ "$(cat "$dir/1/$name")" = "$n" ]
		done
		grep '^link' "$dir/won.$n" | while read -r name; do
			[ "$(readlink "$dir/4/$name")" = "$n" ]
		done
	done
}

# A whole version begins and ends with its number.
read_versions() {
	local last=0 text first
	while [ ! -e "$dir/enough" ]; do
		text=$(cat "$dir/$1/conf") || return 1
		first=${text%% *}
		[ "$first" = "${text##* }" ] || die "torn: $first and ${text##* }"
		[ "$first" -ge "$last" ] || die "$first after $last"
		last=$first
	done
}

@test "a file that is replaced is whole, and never an older one, for who reads it" {
	local i readers=()
	begin 1 2 3
	echo "0 0" >"$dir/1/conf"
	for i in 2 3; do
		read_versions $i 3>&- &
		readers+=($!)
	done
	for ((i = 1; i <= $(mib 200 30); i++)); do
		printf '%s %*s %s\n' $i $((1 + i * 977 % 20000)) . $i >"$dir/1/conf.new"
		mv "$dir/1/conf.new" "$dir/1/conf"
	done
	touch "$dir/enough"
	wait "${readers[0]}"
	wait "${readers[1]}"
}

@test "a file that one replaces or removes stays for who has it open elsewhere" {
	local n
	begin 1 2 3
	random_file "$dir/old" 2
	cp "$dir/old" "$dir/1/a"
	cp "$dir/old" "$dir/1/b"
	exec 7<"$dir/2/a" 8<>"$dir/3/b"
	echo new >"$dir/1/a.new"
	mv "$dir/1/a.new" "$dir/1/a"
	rm "$dir/1/b"
	# This file takes the space if it was freed.
	random_file "$dir/1/other" "$(mib 32 8)"
	[ "$(cat "$dir/2/a")" = new ]
	[ ! -e "$dir/3/b" ]
	cmp "$dir/old" - <&7
	[ "$(stat -L -c %h /proc/self/fd/8)" -eq 0 ]
	printf changed >&8
	printf changed | dd of="$dir/old" conv=notrunc status=none
	[ "$(stat -L -c %s /proc/self/fd/8)" -eq $((2 << 20)) ]
	cmp -i 7:0 "$dir/old" - <&8
	exec 7<&- 8<&-
}

# stays_in MOUNT: works in `folder` of that mount until another one has removed it.
stays_in() {
	cd "$dir/$1/folder"
	touch "$dir/is_in"
	until_true 20 test -e "$dir/is_removed"
	[ "$(stat -c %h .)" -eq 0 ]
	[ "$(stat -c %h - <&7)" -eq 0 ]
	[ -z "$(ls -A)" ]
	! touch file
}

@test "a folder that one removes is an empty one to who is in it or has it open elsewhere" {
	local pid
	begin 1 2
	mkdir "$dir/1/folder"
	stays_in 2 7<"$dir/2/folder" 3>&- &
	pid=$!
	until_true 20 test -e "$dir/is_in"
	rmdir "$dir/1/folder"
	touch "$dir/is_removed"
	wait "$pid"
}

deliver() {
	local i
	for ((i = 0; i < messages; i++)); do
		printf 'message %s of %s%*s\n' $i "$1" $((1 + i * 91 % 9000)) . >"$dir/$1/tmp/$1.$i"
		ln "$dir/$1/tmp/$1.$i" "$dir/$1/new/$1.$i"
		rm "$dir/$1/tmp/$1.$i"
	done
}

# collect MOUNT: takes each message; if two take the same one, the second finds it gone.
collect() {
	local path name
	until [ -e "$dir/delivered" ] && [ -z "$(ls "$dir/$1/new")" ]; do
		for path in "$dir/$1"/new/*; do
			name=${path##*/}
			mv "$path" "$dir/$1/cur/$name.$1" 2>/dev/null || continue
			printf 'message %s of %s%*s\n' "${name#*.}" "${name%.*}" \
				$((1 + ${name#*.} * 91 % 9000)) . | cmp - "$dir/$1/cur/$name.$1" || return 1
			rm "$dir/$1/cur/$name.$1" || return 1
			echo "$name" >>"$dir/collected.$1"
		done
	done
}

@test "a spool of two mounts: every message is delivered, and taken once" {
	local messages n collectors=()
	begin 1 2
	messages=$(mib 150 25)
	mkdir "$dir/1/tmp" "$dir/1/new" "$dir/1/cur"
	for n in 1 2; do
		collect $n 3>&- &
		collectors+=($!)
	done
	each deliver
	touch "$dir/delivered"
	wait "${collectors[0]}"
	wait "${collectors[1]}"
	[ "$(cat "$dir"/collected.* | sort -u | wc -l)" -eq $((2 * messages)) ]
	[ "$(cat "$dir"/collected.* | wc -l)" -eq $((2 * messages)) ]
	for n in 1 2; do
		[ -z "$(find "$dir/$n/tmp" "$dir/$n/new" "$dir/$n/cur" -type f)" ]
	done
}

# ---- kept leases ---------------------------------------------------------------------------------------

# cost OPTIONS COMMAND...: prints the RPCs of a new mount, for the command and all else.
cost() {
	local before
	until_true 10 eval '[ "$(status_of ".sessions | length")" = 0 ]'
	before=$(status_of '.exports[0].counters.rpcs')
	mount_number 1 ",noatime$1" >&2
	"${@:2}" >&2 || die "failed: ${*:2}" || return 1
	end_mount 1 || return 1
	until_true 10 eval '[ "$(status_of ".sessions | length")" = 0 ]'
	echo $(($(status_of '.exports[0].counters.rpcs') - before))
}

# more COMMAND...: prints how many more RPCs it costs with share than without; $kind is with or without.
# shellcheck disable=SC2034 # commands take $kind
more() {
	local with without kind
	kind=without
	without=$(cost '' "$@") || return 1
	kind=with
	with=$(cost ,share "$@") || return 1
	echo "RPCs with share and without: $with and $without for $*" >&2
	echo $((with - without))
}

# nothing_recalled: the server has recalled no lease since it started.
nothing_recalled() {
	[ "$(status_of .exports[0].leases.recalled)" -eq 0 ]
}

# make_files NAME
make_files() {
	local i
	for ((i = 0; i < nfiles; i++)); do
		echo "file $i" >"$dir/1/$1.$i"
	done
}

# read_files TIMES [NAME]: opens, reads and closes each file.
read_files() {
	local i n line
	for ((n = 0; n < $1; n++)); do
		for ((i = 0; i < nfiles; i++)); do
			read -r line <"$dir/1/${2:-file}.$i"
			[ "$line" = "file $i" ] || return 1
		done
	done
}

append_files() {
	local i
	for ((i = 0; i < nfiles; i++)); do
		echo more >>"$dir/1/$1.$i"
	done
}

@test "a small file costs nothing more than without share to be made, and a GETATTR and a LEASE to be read" {
	local nfiles=50 none made once again writes
	start_server
	none=$(more true)
	writes=$(status_of '.exports[0].counters.writes')
	made=$(more eval 'make_files "$kind"')
	[ $(($(status_of '.exports[0].counters.writes') - writes)) -eq $((2 * nfiles)) ]
	once=$(more read_files 1 with)
	again=$(more read_files 3 with)
	echo "$made more to make $nfiles files, $once to read them, $again three times"
	[ $((made - none)) -le 5 ]
	[ $((once - none)) -le $((2 * nfiles + 5)) ]
	[ $((again - none)) -le $((2 * nfiles + 5)) ]
	nothing_recalled
}

@test "a file that is closed and written to again costs a LEASE more than without share" {
	local nfiles=50 none once again
	start_server
	none=$(more true)
	once=$(more eval 'make_files "once.$kind"; append_files "once.$kind"')
	again=$(more eval 'make_files "$kind"; append_files "$kind"; append_files "$kind"')
	echo "$once more to make $nfiles files and write to them again, $again twice"
	# Each file costs a LOOKUP, too.
	[ $((once - none)) -le $((2 * nfiles + 5)) ]
	[ $((again - none)) -le $((4 * nfiles + 5)) ]
	nothing_recalled
}

# has_leases N: all mounts together have N leases of the files. (They may have some of their roots, too.)
has_leases() {
	local i
	for ((i = 0; i < nfiles; i++)); do
		rmemfsctl who default "/file.$i" "$socket" --json || return 1
	done >"$dir/who"
	jq -s -e --argjson files "$nfiles" --argjson n "$1" \
		'length == $files and
			([.[].holders[] | select(.lease != "none")] | length == $n)' <"$dir/who" >/dev/null
}

@test "what a mount has leased and does not use goes to who wants it, or when it is forgotten" {
	local nfiles=30
	begin 1 2
	make_files file
	read_files 1
	has_leases $nfiles
	grep -q 'file 7' "$dir/2/file.7"
	echo more >>"$dir/2/file.8"
	[ "$(cat "$dir/1/file.8")" = "file 8
more" ]
	read_files 1
	# A file that the kernel is still closing keeps its lease; one that was just used keeps it for a
	# round.
	forgotten() {
		echo 2 >/proc/sys/vm/drop_caches
		has_leases 0
	}
	until_true 10 forgotten
	read_files 1
}

# The client returns leases only after the reply that made them too many.
few_leases() {
	leases=$(status_of '.exports[0].leases | .shared + .exclusive')
	echo "$leases leases"
	[ "$leases" -gt 8 ] && [ "$leases" -le 18 ]
}

@test "of more files than may be kept leased the least recently used go back, in batches" {
	local nfiles=60 line leases i
	use_lease 10
	echo 'lease_limit = 16;' >>"$server_conf"
	start_server
	share 1 2
	make_files file
	for ((i = 0; i < nfiles; i++)); do
		read -r line <"$dir/1/file.$i"
		[ "$line" = "file $i" ]
		[ $((i % 10)) -eq 9 ] || continue
		until_true 10 few_leases
	done
	# Each open file has a lease or a pin, so it survives a removal by the other mount.
	exec 7<"$dir/1/file.0" 8<"$dir/1/file.1"
	for ((i = 2; i < nfiles; i++)); do
		read -r line <"$dir/1/file.$i"
	done
	rm "$dir/2/file.0" "$dir/2/file.1"
	[ "$(cat <&7)" = "file 0" ]
	[ "$(cat <&8)" = "file 1" ]
	exec 7<&- 8<&-
}

# bats test_tags=only:tcp
@test "of 200 files of which 64 may be kept leased, several go back with each message" {
	local nfiles=200 all few
	start_server
	cost ,share make_files file
	all=$(cost ,share read_files 1)
	stop_server
	use_lease 10
	echo 'lease_limit = 64;' >>"$server_conf"
	start_server
	few=$(cost ,share read_files 1)
	echo "$all RPCs to read $nfiles files, $few while 64 may be kept leased"
	[ $((few - all)) -ge 1 ]
	[ $((few - all)) -le 50 ]
}

# is_free BYTES: at least so many bytes are in no file.
is_free() {
	[ "$(status_of '.exports[0] | .free + .granted + .dirty')" -ge "$1" ]
}

@test "a file that another mount removes lives as long as it is open under a kept lease, and no longer" {
	local free
	begin 1 2
	free=$(status_of '.exports[0] | .free + .granted + .dirty')
	random_file "$dir/bytes" 4
	cp "$dir/bytes" "$dir/1/removed"
	cp "$dir/bytes" "$dir/1/replaced"
	# The lease that the copy has left covers these opens: no message tells the server of them.
	exec 7<"$dir/1/removed" 8<"$dir/1/replaced"
	rm "$dir/2/removed"
	: >"$dir/2/other"
	mv "$dir/2/other" "$dir/2/replaced"
	run is_free $((free - (4 << 20)))
	[ "$status" -ne 0 ]
	cmp "$dir/bytes" - <&7
	cmp "$dir/bytes" - <&8
	exec 7<&- 8<&-
	until_true 10 is_free "$free"
	# A file that is closed is gone with its name.
	cp "$dir/bytes" "$dir/1/closed"
	rm "$dir/2/closed"
	until_true 10 is_free "$free"
	# A mount that has a file open and removes it keeps it, too.
	cp "$dir/bytes" "$dir/1/own"
	exec 7<"$dir/1/own"
	rm "$dir/1/own"
	cmp "$dir/bytes" - <&7
	exec 7<&-
	until_true 10 is_free "$free"
}

# ---- programs ------------------------------------------------------------------------------------

git_commit() {
	git -C "$1" -c user.name=test -c user.email=test@localhost commit -q -m "$2"
}

@test "git: two mounts work in one repository in turn" {
	local i n
	begin 1 2
	git init -q "$dir/1/work"
	for ((i = 1; i <= $(mib 10 4); i++)); do
		n=$((1 + i % 2))
		[ -z "$(git -C "$dir/$n/work" status --porcelain)" ]
		head -c $((i * 1000)) /dev/urandom >"$dir/$n/work/file.$((i % 3))"
		echo "$i" >>"$dir/$n/work/log"
		git -C "$dir/$n/work" add .
		git_commit "$dir/$n/work" "change $i"
		[ "$(git -C "$dir/$((3 - n))/work" log --format=%s -1)" = "change $i" ]
	done
	git -C "$dir/1/work" gc -q
	git -C "$dir/2/work" fsck --strict
	[ "$(git -C "$dir/2/work" log --oneline | wc -l)" -eq $((i - 1)) ]
}

# A push that is too late takes the others' changes and tries again.
push_changes() {
	local i tries clone=$dir/$1/clone.$1
	git clone -q "$dir/$1/bare" "$clone"
	for ((i = 1; i <= changes; i++)); do
		echo $i >"$clone/file.$1"
		git -C "$clone" add . || return 1
		git_commit "$clone" "change $i of $1" || return 1
		for ((tries = 0; tries < 50; tries++)); do
			git -C "$clone" -c user.name=test -c user.email=test@localhost pull -q --rebase &&
				git -C "$clone" push -q && continue 2
		done
		return 1
	done
}

# bats test_tags=nightly
@test "git: two mounts push to one repository at once" {
	local changes
	begin 1 2
	changes=$(mib 8 3)
	git init -q "$dir/first"
	echo first >"$dir/first/file"
	git -C "$dir/first" add .
	git_commit "$dir/first" first
	git clone -q --bare "$dir/first" "$dir/1/bare"
	each push_changes 2>"$dir/push.log"
	git -C "$dir/1/bare" fsck --strict
	[ "$(git -C "$dir/2/bare" log --oneline | wc -l)" -eq $((1 + 2 * changes)) ]
	git clone -q "$dir/2/bare" "$dir/last"
	[ "$(cat "$dir/last/file.1" "$dir/last/file.2")" = "$changes
$changes" ]
}

# ---- failures ------------------------------------------------------------------------------------------

# in_stat PID: is it in statx(2) or newfstatat(2), by their numbers on x86 or on newer architectures?
in_stat() {
	[[ $(cat "/proc/$1/syscall" 2>/dev/null) == @(332|262|291|79)" "* ]]
}

# Only the file's writer knows its size. A process that waits for the stopped writer can be killed.
@test "who asks for what a stopped client has can be killed" {
	local asker holder stopped
	use_lease 20
	begin 1 2
	# Only this process may have the file open: a close by another one would wait for the stopped
	# daemon.
	(
		exec >"$dir/1/file"
		echo more
		exec sleep 1000
	) 3>&- &
	holder=$!
	until_true 10 test -s "$dir/1/file"
	stopped=${mounts[1]}
	suspend "$stopped"
	stat "$dir/2/file" >/dev/null 3>&- &
	asker=$!
	until_true 10 in_stat $asker
	kill -KILL $asker
	exit_status $asker 5 || [ $? -eq 137 ]
	kill -CONT "$stopped"
	[ "$(stat -c %s "$dir/2/file")" = 5 ]
	kill $holder
	exit_status $holder 5 || [ $? -eq 143 ]
}

# bats test_tags=long
@test "coherence of four mounts, for minutes" {
	begin 1 2 3 4
	coherence --seconds 400 "$dir/1" "$dir/2" "$dir/3" "$dir/4"
	coherence --seconds 100 --players 3 --files 2 --round 100 "$dir/1" "$dir/2" "$dir/3"
	coherence --seconds 100 --files 1 --size 16384 --names 0 "$dir/1" "$dir/2" "$dir/3" "$dir/4"
}
