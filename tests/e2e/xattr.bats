#!/usr/bin/env bats
# xattr.bats - extended attributes, and capabilities.

load helpers

setup() {
	setup_rmem
	start_server
	mount_rmem
	file=$mnt/file
	echo data >"$file"
}

teardown() {
	teardown_rmem
}

# as_user COMMAND...: runs it as an ordinary user.
as_user() {
	setpriv --reuid 1234 --regid 5678 --clear-groups "$@"
}

# For tests with an ordinary user.
let_users_in() {
	chmod 755 "$dir"
	remount -o allow_other
}

# set_value NAME FILE BYTES-FILE
set_value() {
	metaop setxattr "$1" "$2" "$3"
}

# same_value NAME FILE BYTES-FILE
same_value() {
	metaop getxattr "$1" "$2" >"$dir/value.back"
	cmp "$dir/value.back" "$3"
}

# says ERRNO COMMAND...
says() {
	local errno=$1
	shift
	run "$@"
	[ "$output" = "metaop: $errno" ] || die "$*: $output, wanted $errno"
}

lengths=(0 1 100 4096 15744 15745 15746 16000 31744 31745 31746 50000 65535 65536)

values_are_there() {
	for len in "${lengths[@]}"; do
		same_value "user.n$len" "$file" "$dir/value.$len"
	done
}

@test "values of every length, up to 65,536 bytes" {
	for len in "${lengths[@]}"; do
		head -c "$len" /dev/urandom >"$dir/value.$len"
		set_value "user.n$len" "$file" "$dir/value.$len"
	done
	holds_everywhere values_are_there
}

@test "a value over 65,536 bytes is refused" {
	head -c 65537 /dev/zero >"$dir/value"
	says E2BIG set_value user.long "$file" "$dir/value"
}

@test "a value is replaced by a shorter and by a longer one" {
	for len in 20000 3 60000 100 0 17; do
		head -c "$len" /dev/urandom >"$dir/value"
		set_value user.x "$file" "$dir/value"
		same_value user.x "$file" "$dir/value"
	done
}

@test "all namespaces, on files, directories and links" {
	mkdir "$mnt/dir"
	ln -s nowhere "$mnt/link"
	mkfifo "$mnt/fifo"
	for what in "$file" "$mnt/dir"; do
		setfattr -n user.a -v 1 "$what"
		setfattr -n trusted.a -v 2 "$what"
		setfattr -n security.a -v 3 "$what"
		[ "$(getfattr --only-values -n user.a "$what")" = 1 ]
		[ "$(getfattr --only-values -n trusted.a "$what")" = 2 ]
		[ "$(getfattr --only-values -n security.a "$what")" = 3 ]
	done
	for what in "$mnt/link" "$mnt/fifo"; do
		setfattr -h -n trusted.a -v 2 "$what"
		[ "$(getfattr -h --only-values -n trusted.a "$what")" = 2 ]
		says EPERM metaop lsetxattr user.a "$what"
	done
}

@test "names that nobody keeps are not supported, an empty one is invalid" {
	echo x >"$dir/value"
	for name in other.a system.other nodot; do
		says EOPNOTSUPP set_value "$name" "$file" "$dir/value"
		says EOPNOTSUPP metaop getxattr "$name" "$file"
		says EOPNOTSUPP metaop removexattr "$name" "$file"
	done
	says EINVAL set_value user. "$file" "$dir/value"
}

@test "names of 255 bytes, not more" {
	name=user.$(head -c 250 /dev/zero | tr '\0' n)
	setfattr -n "$name" -v long "$file"
	[ "$(getfattr --only-values -n "$name" "$file")" = long ]
	echo x >"$dir/value"
	says ERANGE set_value "${name}n" "$file" "$dir/value"
}

@test "a name that is not there, one that is, one to be replaced" {
	echo x >"$dir/value"
	says ENODATA metaop getxattr user.a "$file"
	says ENODATA metaop removexattr user.a "$file"
	says ENODATA metaop setxattr-replace user.a "$file" "$dir/value"
	metaop setxattr-create user.a "$file" "$dir/value"
	says EEXIST metaop setxattr-create user.a "$file" "$dir/value"
	metaop setxattr-replace user.a "$file" "$dir/value"
	says ENODATA metaop getxattr user.b "$file"
	metaop removexattr user.a "$file"
	says ENODATA metaop getxattr user.a "$file"
}

@test "room that is too small is ERANGE, no room asks for the length" {
	printf 12345 >"$dir/value"
	set_value user.a "$file" "$dir/value"
	[ "$(metaop xattr-length user.a "$file")" = 5 ]
	says ERANGE metaop getxattr-room user.a "$file" 4
	metaop getxattr-room user.a "$file" 5
	[ "$(metaop list-length "$file")" = 7 ]
	says ERANGE metaop list-room "$file" 6
	metaop list-room "$file" 7
	[ "$(metaop list-length "$mnt")" = 0 ]
}

names() {
	getfattr -h -m - --absolute-names "$1" | grep -v '^#' | grep . | LC_ALL=C sort
}

all_listed() {
	names "$file" | cmp - "$dir/names"
}

@test "a list of many names is complete, and stays" {
	for i in {1..600}; do
		echo "user.a.rather.long.name.of.number.$i"
	done | LC_ALL=C sort >"$dir/names"
	while read -r name; do
		echo "setfattr -n $name -v $name $file"
	done <"$dir/names" | bash -e
	holds_everywhere all_listed
	while read -r name; do
		[ "$(getfattr --only-values -n "$name" "$file")" = "$name" ]
	done < <(sed -n '1p;300p;600p' "$dir/names")
}

@test "attributes come with cp, tar and a rename, and go with their file" {
	printf 12345 >"$dir/value"
	set_value user.a "$file" "$dir/value"
	cp --preserve=xattr "$file" "$mnt/copy"
	same_value user.a "$mnt/copy" "$dir/value"
	tar --xattrs -C "$mnt" -cf "$dir/tar" file
	mkdir "$mnt/out"
	tar --xattrs -C "$mnt/out" -xf "$dir/tar"
	same_value user.a "$mnt/out/file" "$dir/value"
	mv "$mnt/copy" "$mnt/moved"
	same_value user.a "$mnt/moved" "$dir/value"
	ln "$mnt/moved" "$mnt/linked"
	same_value user.a "$mnt/linked" "$dir/value"
	rm "$file"
	echo new >"$file"
	[ -z "$(names "$file")" ]
}

@test "an open file's are reached by its descriptor, unlinked, too" {
	metaop fd-xattr "$mnt/open"
}

@test "setting and removing one sets the ctime, and nothing else" {
	touch -d 2001-01-01 "$file"
	for what in "setfattr -n user.a -v 1" "setfattr -x user.a"; do
		before=$(stat -c %z "$file")
		$what "$file"
		[[ $(stat -c %z "$file") > $before ]]
	done
	[ "$(stat -c %Y "$file")" = "$(date -d 2001-01-01 +%s)" ]
}

@test "what was set before a crash of the server is there after it" {
	for i in {1..50}; do
		setfattr -n "user.n$i" -v "$i" "$file"
	done
	crash_server
	for i in {1..50}; do
		[ "$(getfattr --only-values -n "user.n$i" "$file")" = "$i" ]
	done
}

@test "long values set and read while the server crashes are old or new, not mixed" {
	head -c 60000 /dev/zero | tr '\0' a >"$dir/value.a"
	head -c 64000 /dev/zero | tr '\0' b >"$dir/value.b"
	set_value user.x "$file" "$dir/value.a"
	(
		trap 'exit 0' TERM
		while :; do
			set_value user.x "$file" "$dir/value.b"
			set_value user.x "$file" "$dir/value.a"
		done
	) &
	setter=$!
	for i in {1..40}; do
		[ $((i % 20)) -ne 0 ] || crash_server
		metaop getxattr user.x "$file" >"$dir/value.back"
		cmp -s "$dir/value.back" "$dir/value.a" || cmp "$dir/value.back" "$dir/value.b"
	done
	kill -TERM "$setter"
	wait "$setter"
}

# ---- an ordinary user ----------------------------------------------------------------------------

@test "a value that is read while it gets longer and shorter is one of the two, whole" {
	metaop xattr-in-turns user.a "$file" 1000
}

@test "an ordinary user has his own files' user attributes, and sees nothing of trusted ones" {
	let_users_in
	setfattr -n trusted.secret -v x "$file"
	setfattr -n user.plain -v y "$file"
	chmod 644 "$file"
	[ "$(as_user getfattr --only-values -n user.plain "$file")" = y ]
	as_user getfattr -m - "$file" >"$dir/list"
	grep -q user.plain "$dir/list"
	those=$(grep -c trusted "$dir/list" || true)
	[ "$those" -eq 0 ]
	says EACCES as_user "$bin/metaop" removexattr user.plain "$file"
	says EPERM as_user "$bin/metaop" removexattr trusted.secret "$file"
	says ENODATA as_user "$bin/metaop" getxattr trusted.secret "$file"
	chown 1234 "$file"
	as_user setfattr -n user.plain -v z "$file"
	as_user setfattr -x user.plain "$file"
	[ "$(names "$file")" = trusted.secret ]
}

@test "attributes of a sticky directory belong to its owner" {
	let_users_in
	mkdir -m 1777 "$mnt/sticky"
	says EPERM as_user "$bin/metaop" lsetxattr user.a "$mnt/sticky"
}

# ---- capabilities --------------------------------------------------------------------------------

has_caps() {
	[ -n "$(getcap "$mnt/prog")" ]
}

has_no_caps() {
	[ -z "$(getcap "$mnt/prog")" ]
}

# Makes a program that needs a capability for its work.
make_prog() {
	cp "$bin/metaop" "$mnt/prog"
	chmod 755 "$mnt/prog"
	setcap cap_dac_read_search+ep "$mnt/prog"
	has_caps
}

@test "a program's capabilities work for an ordinary user, and outlive the server" {
	chmod 755 "$dir"
	remount -o allow_other,suid
	echo secret >"$mnt/secret"
	chmod 600 "$mnt/secret"
	make_prog
	says EACCES as_user "$bin/metaop" cat "$mnt/secret"
	[ "$(as_user "$mnt/prog" cat "$mnt/secret")" = secret ]
	crash_server
	[ "$(as_user "$mnt/prog" cat "$mnt/secret")" = secret ]
	remount -o allow_other,suid
	has_caps
	[ "$(as_user "$mnt/prog" cat "$mnt/secret")" = secret ]
}

@test "capabilities stay that were given after a new owner, before the file is closed" {
	local n
	for n in 1 2 3 4 5; do
		metaop owner-caps "$mnt/prog.$n"
	done
	check() {
		[ "$(getcap "$mnt"/prog.* | wc -l)" -eq 5 ]
	}
	holds_everywhere check
}

loses_caps() {
	make_prog
	"$@"
	has_no_caps
	remount
	has_no_caps
}

append() {
	printf '\0' >>"$mnt/prog"
}

write_direct() {
	dd if=/dev/zero of="$mnt/prog" bs=4096 count=1 oflag=direct conv=notrunc status=none
}

write_mixed() {
	metaop rewrite "$mnt/prog"
}

truncate_it() {
	truncate -s 5000 "$mnt/prog"
}

overwrite() {
	echo new >"$mnt/prog"
}

@test "writing, truncation and a change of owner take them away, from root, too" {
	for how in append write_direct write_mixed truncate_it overwrite \
		"chown 1:1 $mnt/prog" "fallocate -l 10000000 $mnt/prog"; do
		echo "$how"
		# shellcheck disable=SC2086 # a command and its arguments
		loses_caps $how
		rm "$mnt/prog"
	done
}

@test "reading, chmod and links leave them" {
	make_prog
	cat "$mnt/prog" >/dev/null
	chmod 700 "$mnt/prog"
	ln "$mnt/prog" "$mnt/other"
	mv "$mnt/prog" "$mnt/third"
	mv "$mnt/third" "$mnt/prog"
	has_caps
}

@test "an ordinary user's write takes set-user-id away, and capabilities" {
	let_users_in
	make_prog
	chmod 6777 "$mnt/prog"
	has_caps
	as_user dd if=/dev/zero of="$mnt/prog" bs=1 count=1 conv=notrunc status=none
	[ "$(stat -c %a "$mnt/prog")" = 777 ]
	has_no_caps
}

total() {
	status_of ".exports[0].counters.$1"
}

ask_often() {
	local i
	for ((i = 0; i < 100; i++)); do
		metaop xattr-length user.none "$file" 2>/dev/null || true
	done
	for ((i = 0; i < 100; i++)); do
		printf x >>"$file"
	done
	ls -l "$mnt" >/dev/null
}

@test "asking for what is not there, and writing, costs no RPC for attributes" {
	[ -z "$share_mode" ] || skip "needs a mount that is alone: others may have changed it"
	umount_rmem
	until_true 10 eval '[ "$(status_of ".sessions | length")" = 0 ]'
	before=$(total rpcs)
	mount_rmem
	ask_often
	umount_rmem
	until_true 10 eval '[ "$(status_of ".sessions | length")" = 0 ]'
	rpcs=$(($(total rpcs) - before))
	echo "RPCs: $rpcs"
	# Each closed file costs a COMMIT, and there are a few more RPCs.
	[ $rpcs -le 130 ]
}
