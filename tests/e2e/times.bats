#!/usr/bin/env bats
# times.bats - the times that each call sets, to the nanosecond, and that they are kept.

load helpers

setup() {
	setup_rmem
	start_server
	mount_rmem
	old='2001-02-03 04:05:06.123456789'
}

teardown() {
	teardown_rmem
}

times() {
	stat -c '%x %y %z' "$1"
}

# is_new WHICH FILE: the time (%X %Y %Z of stat) was old, and is new now.
is_new() {
	[ "$(stat -c "%$1" "$2")" -gt 1700000000 ]
}

is_old() {
	[ "$(TZ=UTC stat -c "%$1" "$2")" = "$old +0000" ]
}

# age FILE...: sets atime and mtime to long ago; ctime can't be set.
age() {
	TZ=UTC touch -h -d "$old" "$@"
}

set_times() {
	[ "$(TZ=UTC stat -c '%x|%y' "$mnt/file")" = "1999-12-31 23:59:59.999999999 +0000|$old +0000" ]
}

@test "utimensat sets both to the nanosecond, and they stay" {
	touch "$mnt/file"
	TZ=UTC touch -a -d '1999-12-31 23:59:59.999999999' "$mnt/file"
	TZ=UTC touch -m -d "$old" "$mnt/file"
	holds_everywhere set_times
}

@test "times before 1970 and far from now" {
	for time in '1901-12-13 20:45:52.000000001' '1969-12-31 23:59:59.5' '2106-02-07 06:28:16.25' \
		'2200-01-01 00:00:00.000000007'; do
		TZ=UTC touch -d "$time" "$mnt/file"
		want=$(TZ=UTC date -d "$time" '+%Y-%m-%d %H:%M:%S.%N +0000')
		[ "$(TZ=UTC stat -c %y "$mnt/file")" = "$want" ]
		remount
		[ "$(TZ=UTC stat -c %y "$mnt/file")" = "$want" ]
	done
}

# is_taken_as TIME WANT: after touch -d TIME the file has WANT, in the kernel's cache and at the server.
is_taken_as() {
	TZ=UTC touch -d "$1" "$mnt/file"
	for _ in 1 2; do
		[ "$(TZ=UTC stat -c '%x|%y' "$mnt/file")" = "$2 +0000|$2 +0000" ]
		remount
	done
}

@test "times that nanoseconds in 64 bits don't reach become the nearest that they do" {
	first='1677-09-21 00:12:43.145224192' last='2262-04-11 23:47:16.854775807'
	is_taken_as "$first" "$first"
	is_taken_as '1677-09-21 00:12:43.145224191' "$first"
	is_taken_as '1600-01-01 00:00:00' "$first"
	is_taken_as "$last" "$last"
	is_taken_as '2262-04-11 23:47:16.854775808' "$last"
	is_taken_as '9999-12-31 23:59:59.999999999' "$last"
}

@test "UTIME_OMIT leaves a time alone, UTIME_NOW sets it to now" {
	touch "$mnt/file"
	age "$mnt/file"
	touch -a "$mnt/file"
	is_new X "$mnt/file"
	is_old y "$mnt/file"
	age "$mnt/file"
	touch -m "$mnt/file"
	is_old x "$mnt/file"
	is_new Y "$mnt/file"
}

# changes_ctime FILE COMMAND...
changes_ctime() {
	local before file=$1
	shift
	before=$(stat -c %z "$file")
	"$@"
	[[ $(stat -c %z "$file") > $before ]] || die "ctime of $file: not changed by $*"
	[ ! -e "$mnt/dir/other" ] || rm "$mnt/dir/other"
}

@test "each change of a file's metadata sets its ctime" {
	mkdir "$mnt/dir"
	echo data >"$mnt/dir/file"
	ln "$mnt/dir/file" "$mnt/dir/second"
	changes_ctime "$mnt/dir/file" chmod 640 "$mnt/dir/file"
	changes_ctime "$mnt/dir/file" chown 1:2 "$mnt/dir/file"
	changes_ctime "$mnt/dir/file" touch -a "$mnt/dir/file"
	changes_ctime "$mnt/dir/file" ln "$mnt/dir/file" "$mnt/dir/other"
	changes_ctime "$mnt/dir/file" rm "$mnt/dir/second"
	changes_ctime "$mnt/dir/file" truncate -s 7 "$mnt/dir/file"
	changes_ctime "$mnt/dir/file" dd if=/dev/zero of="$mnt/dir/file" bs=7 count=1 conv=notrunc status=none
	changes_ctime "$mnt/dir" chmod 700 "$mnt/dir"
	before=$(stat -c %z "$mnt/dir/file")
	mv "$mnt/dir/file" "$mnt/dir/renamed"
	[[ $(stat -c %z "$mnt/dir/renamed") > $before ]]
}

# touches_dir "DIR..." COMMAND...: the folders' mtimes and ctimes become new and equal.
touches_dir() {
	local folders folder
	read -ra folders <<<"$1"
	shift
	age "${folders[@]}"
	"$@"
	for folder in "${folders[@]}"; do
		is_new Y "$folder" || die "mtime of $folder: not changed by $*"
		[ "$(stat -c %y "$folder")" = "$(stat -c %z "$folder")" ]
	done
}

@test "names that come and go set the mtime and ctime of their directories" {
	cd "$mnt"
	mkdir a b
	touches_dir a touch a/file
	touches_dir a ln a/file a/second
	touches_dir a ln -s x a/link
	touches_dir a mkfifo a/fifo
	touches_dir a mkdir a/dir
	touches_dir a rmdir a/dir
	touches_dir a rm a/second
	touches_dir "a b" mv a/file b/file
	touches_dir b mv b/file b/renamed
	age a b
	echo more >>b/renamed
	chmod 600 b/renamed
	is_old y b
	is_old y a
	cd /
}

@test "writing sets mtime and ctime, reading neither" {
	echo data >"$mnt/file"
	age "$mnt/file"
	before=$(stat -c %z "$mnt/file")
	cat "$mnt/file" >/dev/null
	is_old y "$mnt/file"
	[ "$(stat -c %z "$mnt/file")" = "$before" ]
	echo more >>"$mnt/file"
	is_new Y "$mnt/file"
	[ "$(stat -c %y "$mnt/file")" = "$(stat -c %z "$mnt/file")" ]
}

@test "truncation sets mtime and ctime, to the same size, too" {
	echo data >"$mnt/file"
	age "$mnt/file"
	truncate -s 100 "$mnt/file"
	is_new Y "$mnt/file"
	age "$mnt/file"
	: >"$mnt/file"
	is_new Y "$mnt/file"
}

# ---- reading -------------------------------------------------------------------------------------

# Makes a file of each kind that was read long ago; nothing is cached.
aged_tree() {
	mkdir "$mnt/dir"
	echo data >"$mnt/file"
	ln -s target "$mnt/link"
	age "$mnt/dir" "$mnt/file" "$mnt/link"
	remount "$@"
}

read_tree() {
	cat "$mnt/file" >/dev/null
	ls "$mnt/dir"
	readlink "$mnt/link"
}

were_read() {
	is_new X "$mnt/file"
	is_new X "$mnt/dir"
	is_new X "$mnt/link"
	is_old y "$mnt/file"
}

were_not_read() {
	is_old x "$mnt/file"
	is_old x "$mnt/dir"
	is_old x "$mnt/link"
}

@test "reading files, directories and links sets their access times, which stay" {
	aged_tree
	read_tree
	holds_everywhere were_read
}

@test "an access time that is later than all changes stays for a day" {
	echo data >"$mnt/file"
	cat "$mnt/file" >/dev/null
	first=$(stat -c %x "$mnt/file")
	fsop uncache "$mnt"
	cat "$mnt/file" >/dev/null
	[ "$(stat -c %x "$mnt/file")" = "$first" ]
	echo more >>"$mnt/file"
	fsop uncache "$mnt"
	cat "$mnt/file" >/dev/null
	[[ $(stat -c %x "$mnt/file") > $first ]]
}

@test "with strictatime each read that arrives sets it" {
	aged_tree -o strictatime
	read_tree
	were_read
	first=$(stat -c %x "$mnt/dir")
	ls "$mnt/dir"
	[[ $(stat -c %x "$mnt/dir") > $first ]]
}

@test "noatime, read-only mounts and O_NOATIME leave it alone" {
	aged_tree -o noatime
	read_tree
	were_not_read
	remount -o ro
	read_tree
	were_not_read
	remount
	metaop read-noatime "$mnt/file"
	is_old x "$mnt/file"
}

@test "nodiratime leaves those of directories alone" {
	aged_tree -o nodiratime
	read_tree
	is_new X "$mnt/file"
	is_old x "$mnt/dir"
}

@test "what is set by hand is not overtaken by an earlier read" {
	aged_tree
	for ((i = 0; i < 20; i++)); do
		fsop uncache "$mnt"
		cat "$mnt/file" >/dev/null
		age "$mnt/file"
		is_old x "$mnt/file"
	done
	remount
	is_old x "$mnt/file"
}

@test "an unlinked file is read without leaving anything behind" {
	echo data >"$mnt/file"
	age "$mnt/file"
	mkfifo "$dir/go" "$dir/held"
	fsop hold "$mnt/file" <"$dir/go" >"$dir/held" &
	holder=$!
	exec 7>"$dir/go" 8<"$dir/held"
	read -r line <&8
	[ "$line" = held ]
	rm "$mnt/file"
	fsop uncache "$mnt"
	exec 7>&-
	[ "$(cat <&8)" = data ]
	wait "$holder"
	exec 8<&-
	until_true 10 eval '[ "$(status_of ".exports[0].files")" = 1 ]'
}

# ---- birth ---------------------------------------------------------------------------------------

born() {
	[ "$(stat -c %w "$mnt/file")" = "$birth" ]
}

@test "the birth time is when it was made, and nothing changes it" {
	echo data >"$mnt/file"
	birth=$(stat -c %w "$mnt/file")
	# Kernels before 6.6 do not ask FUSE for it.
	[ "$birth" != - ] || grep -q '^6\.[0-5]\.' /proc/sys/kernel/osrelease
	if [ "$birth" != - ]; then
		[[ $birth == "$(date +%Y)"-* ]]
		[[ ! $birth > $(stat -c %y "$mnt/file") ]]
	fi
	age "$mnt/file"
	echo more >>"$mnt/file"
	chmod 600 "$mnt/file"
	mv "$mnt/file" "$mnt/other"
	mv "$mnt/other" "$mnt/file"
	holds_everywhere born
}
