#!/usr/bin/env bats
# keys.bats - rmemfsctl keygen and keycheck: keys, and the files that they lie in.

# bats file_tags=once

load helpers

setup() {
	setup_rmem
	key=$dir/web.key
	umask 022
}

teardown() {
	teardown_rmem
}

# says STATUS TEXT COMMAND...: the command ends with STATUS and prints TEXT, on either output.
says() {
	local expected=$1 text=$2
	shift 2
	run "$@"
	echo "$output"
	[ "$status" -eq "$expected" ]
	[[ $output == *"$text"* ]]
}

is_line() {
	grep -qxE 'RMEMFS-KEY-1:web-[a-z0-9]{4}:[A-Za-z0-9+/]{48}:' "$1"
	[ "$(wc -l <"$1")" -eq 1 ]
}

@test "keygen makes a file for its owner alone, and tells the next steps" {
	umask 0
	rmemfsctl keygen web "$key" >"$dir/out" 2>"$dir/said"
	cat "$dir/said"
	[ ! -s "$dir/out" ]
	[ "$(stat -c '%a %u %F' "$key")" = "600 0 regular file" ]
	is_line "$key"
	grep -qxF "   clients = ( { name = \"web\"; keys = \"$key\"; } );" "$dir/said"
	grep -qF "scp SERVER:$key $key" "$dir/said"
	grep -qF -- "-o key=$key" "$dir/said"
	if grep -qF "$(cut -d : -f 3 "$key")" "$dir/said"; then return 1; fi
	# Both ends print the same line for the key.
	says 0 "$(head -n 1 "$dir/said")" rmemfsctl keycheck "$key"
	[ "${#lines[@]}" -eq 1 ]
	[[ $output =~ ^"key web-"[a-z0-9]{4}", fingerprint "[0-9a-f]{8}$ ]]
}

@test "the umask takes no right from the owner, and a relative path is made whole" {
	cd "$dir"
	umask 777
	says 0 "keys = \"$key\";" rmemfsctl keygen web web.key
	umask 022
	[ "$(stat -c %a web.key)" = 600 ]
	rmemfsctl keycheck web.key
}

@test "keygen replaces no file and follows no link" {
	rmemfsctl keygen web "$key" 2>/dev/null
	cp "$key" "$dir/before"
	says 1 "$key is there already, and stays as it is" rmemfsctl keygen web "$key"
	cmp "$key" "$dir/before"
	ln -s "$dir/nowhere" "$dir/link"
	says 1 "$dir/link is there already" rmemfsctl keygen web "$dir/link"
	[ ! -e "$dir/nowhere" ]
}

@test "a key that could not be written whole leaves no file" {
	mkdir "$dir/full"
	mount -t tmpfs -o size=4k,nr_inodes=4 full "$dir/full"
	head -c 4096 /dev/zero >"$dir/full/filler"
	run rmemfsctl keygen web "$dir/full/key"
	ls "$dir/full" >"$dir/left"
	umount "$dir/full"
	echo "$output"
	[ "$status" -eq 1 ]
	[ "$output" = "rmemfsctl: can't make the key file $dir/full/key: No space left on device" ]
	[ "$(cat "$dir/left")" = filler ]
	says 1 "make its folder first, or name another" rmemfsctl keygen web "$dir/none/key"
	[ "${#lines[@]}" -eq 1 ]
}

@test "standard output gets a key, unless it would show the key to others" {
	rmemfsctl keygen web 2>/dev/null | cat >"$dir/piped"
	is_line "$dir/piped"
	(
		umask 077
		rmemfsctl keygen web >"$key" 2>/dev/null
	)
	is_line "$key"
	rmemfsctl keygen web >>"$key" 2>/dev/null
	says 0 "key web-" rmemfsctl keycheck "$key"
	[ "${#lines[@]}" -eq 2 ]

	says 1 "standard output is a file of mode 0644" bash -c "rmemfsctl keygen web >'$dir/open'"
	[ ! -s "$dir/open" ]
	says 1 "No space left on device" bash -c "rmemfsctl keygen web >/dev/full"
	says 1 "standard output is a terminal" script -qec "rmemfsctl keygen web" /dev/null
	[[ $output != *RMEMFS-KEY* ]]
}

@test "keycheck names all faults of a file, and shows the other keys" {
	rmemfsctl keygen web "$key" 2>/dev/null
	line=$(cat "$key")
	printf '# keys\n%s\n%s\n\n%s\n' "${line%?????:}" "$line" "${line/web-/wed-}" >"$key"
	chmod 664 "$key"
	says 1 "" rmemfsctl keycheck "$key"
	[ "${#lines[@]}" -eq 4 ]
	[[ $output == *"key file $key has mode 0664, and other users may change it: chmod g-w,o-rw $key"* ]]
	[[ $output == *"$key:2: the key was cut"* ]]
	[[ $output == *"$key:5: the key or its id was changed"* ]]
	[[ $output == *"key web-"*", fingerprint "* ]]
	[[ $output != *"$(cut -d : -f 3 <<<"$line" | cut -c 1-20)"* ]]
	says 1 "key file $dir/none: No such file or directory" rmemfsctl keycheck "$dir/none"
	mkfifo "$dir/fifo"
	says 1 "key file $dir/fifo is no regular file" timeout 10 rmemfsctl keycheck "$dir/fifo"
}

@test "keycheck knows its user: the server reads root's file by its group" {
	chmod 755 "$dir"
	rmemfsctl keygen web "$key" 2>/dev/null
	reader=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	cp "$(command -v rmemfsctl)" "$dir/rmemfsctl"
	says 1 "Permission denied: user 65534 reads it" "${reader[@]}" "$dir/rmemfsctl" keycheck "$key"
	chgrp 65534 "$key"
	chmod 640 "$key"
	says 0 "key web-" "${reader[@]}" "$dir/rmemfsctl" keycheck "$key"
	chown 65534 "$key"
	says 0 "key web-" "${reader[@]}" "$dir/rmemfsctl" keycheck "$key"
	says 1 "key file $key belongs to user 65534" rmemfsctl keycheck "$key"
}

@test "wrong usage" {
	local usage="(usage: rmemfsctl keygen NAME [FILE])"
	says 1 "rmemfsctl: NAME is missing $usage" rmemfsctl keygen
	says 1 "rmemfsctl: NAME must not be empty $usage" rmemfsctl keygen ""
	says 1 "rmemfsctl: 'more': one operand too many $usage" rmemfsctl keygen web "$key" more
	says 1 "rmemfsctl: NAME must be 1 to 27 characters" rmemfsctl keygen "Web 1" "$key"
	[ ! -e "$key" ]
	says 1 "rmemfsctl: FILE is missing (usage: rmemfsctl keycheck FILE)" rmemfsctl keycheck
}
