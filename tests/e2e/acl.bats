#!/usr/bin/env bats
# acl.bats - POSIX access control lists: what they allow, how a list and the mode change each other,
# and what new files inherit.

load helpers

setup() {
	setup_rmem
	start_server
	chmod 755 "$dir"
	mount_rmem -o allow_other
	cd "$mnt"
}

teardown() {
	cd /
	teardown_rmem
}

remount_here() {
	cd /
	remount -o allow_other
	cd "$mnt"
}

# as_user UID COMMAND...: runs the command with group 5678 alone.
as_user() {
	local uid=$1
	shift
	setpriv --reuid "$uid" --regid 5678 --clear-groups "$@"
}

# refused COMMAND...: the command must fail.
refused() {
	run "$@"
	[ "$status" -ne 0 ] || die "$*: was allowed"
}

# acl FILE: prints its entries in one line, numeric.
acl() {
	getfacl -cpn "$1" | grep . | tr '\n' ' ' | sed 's/\t#[^ ]*//g; s/ $//'
}

is_acl() {
	local have
	have=$(acl "$1")
	[ "$have" = "$2" ] || die "$1: $have, wanted $2"
}

# modes FOLDER: the mode of each file there, and its list.
modes() {
	(cd "$1" && stat -c '%n %a %u:%g' -- * && getfacl -n -- *)
}

# cp(1) sets a list of three entries on each file while it is open.
@test "a list that says what a mode says is the mode, also of a file that is being written" {
	local mode
	mkdir "$dir/source"
	for mode in 600 644 640 755 4755 2755 6711 1644 000 777 2644; do
		echo "$mode" >"$dir/source/$mode"
		chmod "$mode" "$dir/source/$mode"
	done
	mkdir "$dir/source/folder" "$dir/source/sticky"
	chmod 2750 "$dir/source/folder"
	chmod 1777 "$dir/source/sticky"
	cp -a "$dir/source" "$mnt/copy"
	cp -p "$dir"/source/[0-9]* "$mnt"
	[ "$(modes "$mnt/copy")" = "$(modes "$dir/source")" ]
	remount_here
	[ "$(modes "$mnt/copy")" = "$(modes "$dir/source")" ]
	rm -r "$mnt/copy"
	[ "$(cd "$mnt" && modes .)" = "$(cd "$dir/source" && rmdir folder sticky && modes .)" ]
}

@test "a list that says what a mode says takes a longer one away, and set-group-id of another group" {
	local fd list
	echo file >file
	setfacl -m u:1234:rw file
	exec {fd}>>file
	setfacl -b "/proc/$$/fd/$fd"
	is_acl file 'user::rw- group::r-- other::r--'
	exec {fd}>&-
	touch mine
	chown 1234:5679 mine
	chmod 2755 mine
	list=$(printf '\x02\x00\x00\x00\x01\x00\x07\x00\xff\xff\xff\xff\x04\x00\x05\x00\xff\xff\xff\xff\x20\x00\x05\x00\xff\xff\xff\xff' | base64 -w 0)
	exec {fd}>>mine
	as_user 1234 setfattr -n system.posix_acl_access -v "0s$list" mine
	exec {fd}>&-
	[ "$(stat -c %a mine)" = 755 ]
	remount_here
	[ "$(stat -c %a mine)" = 755 ]
}

@test "a named user is let in, and nobody else" {
	echo secret >file
	chmod 600 file
	refused as_user 1234 cat file
	setfacl -m u:1234:r file
	[ "$(as_user 1234 cat file)" = secret ]
	refused as_user 1234 bash -c 'echo x >>file'
	refused as_user 1235 cat file
	setfacl -x u:1234 file
	refused as_user 1234 cat file
}

@test "a named group is let in, and the mask limits it" {
	echo secret >file
	chmod 600 file
	setfacl -m g:5678:rw file
	[ "$(as_user 1234 cat file)" = secret ]
	as_user 1234 bash -c 'echo more >>file'
	setfacl -m m::r file
	refused as_user 1234 bash -c 'echo more >>file'
	[ "$(as_user 1234 cat file)" = $'secret\nmore' ]
	setfacl -m m::- file
	refused as_user 1234 cat file
}

@test "an entry that forbids wins over what others may" {
	echo open >file
	chmod 644 file
	setfacl -m u:1234:- file
	refused as_user 1234 cat file
	[ "$(as_user 1235 cat file)" = open ]
}

@test "lists of directories decide over search, listing and new names" {
	mkdir -m 700 top
	echo inside >top/file
	setfacl -m u:1234:x top
	[ "$(as_user 1234 cat top/file)" = inside ]
	refused as_user 1234 ls top
	refused as_user 1234 touch top/new
	setfacl -m u:1234:rwx top
	[ "$(as_user 1234 ls top)" = file ]
	as_user 1234 touch top/new
	refused as_user 1235 cat top/file
}

@test "setting a list sets the mode's bits, at once" {
	touch file
	chmod 640 file
	stat file >/dev/null
	setfacl -m u:1234:rwx file
	[ "$(stat -c %A file)" = -rw-rwx--- ]
	setfacl -m o::r file
	[ "$(stat -c %A file)" = -rw-rwxr-- ]
	setfacl -b file
	[ "$(stat -c %A file)" = -rw-r--r-- ]
	is_acl file "user::rw- group::r-- other::r--"
}

@test "chmod sets the list's mask, and the kernel's list is the new one" {
	touch file
	setfacl -m u:1234:rwx,g::r file
	is_acl file "user::rw- user:1234:rwx group::r-- mask::rwx other::r--"
	chmod 750 file
	is_acl file "user::rwx user:1234:rwx group::r-- mask::r-x other::---"
	refused as_user 1234 bash -c 'echo x >>file'
	chmod 770 file
	as_user 1234 bash -c 'echo x >>file'
	remount_here
	is_acl file "user::rwx user:1234:rwx group::r-- mask::rwx other::---"
}

same_lists() {
	[ "$(acl "$mnt/dir")" = "$want_dir" ]
	[ "$(acl "$mnt/dir/file")" = "$want_file" ]
}

@test "lists stay" {
	cd /
	mkdir "$mnt/dir"
	touch "$mnt/dir/file"
	setfacl -m u:1234:rx,d:u:1234:rwx,d:g:7:r "$mnt/dir"
	setfacl -m u:1234:r,g:7:rw,u:99:- "$mnt/dir/file"
	want_dir=$(acl "$mnt/dir") want_file=$(acl "$mnt/dir/file")
	holds_everywhere same_lists
}

@test "a default list is inherited by files and directories, whatever the umask" {
	mkdir dir
	setfacl -m d:u:1234:rwx,d:g::rx,d:o::- dir
	umask 077
	touch dir/file
	mkdir dir/sub
	mkfifo dir/fifo
	is_acl dir/file "user::rw- user:1234:rwx group::r-x mask::rw- other::---"
	[ "$(stat -c %A dir/file)" = -rw-rw---- ]
	is_acl dir/sub "user::rwx user:1234:rwx group::r-x mask::rwx other::--- default:user::rwx default:user:1234:rwx default:group::r-x default:mask::rwx default:other::---"
	is_acl dir/fifo "user::rw- user:1234:rwx group::r-x mask::rw- other::---"
	mkdir dir/sub/sub
	[ "$(acl dir/sub/sub)" = "$(acl dir/sub)" ]
	remount_here
	is_acl dir/file "user::rw- user:1234:rwx group::r-x mask::rw- other::---"
	as_user 1234 bash -c 'echo x >>dir/file'
}

@test "a default list without named entries gives modes alone" {
	mkdir dir
	setfacl -m d:u::rwx,d:g::rx,d:o::r dir
	umask 077
	touch dir/file
	is_acl dir/file "user::rw- group::r-- other::r--"
	[ "$(stat -c %A dir/file)" = -rw-r--r-- ]
}

@test "a file without a name inherits, too" {
	mkdir dir
	setfacl -m d:u:1234:rw,d:g::r,d:o::r dir
	umask 077
	metaop tmpfile-link "$repository/LICENSE" dir dir/file </dev/null
	is_acl dir/file "user::rw- user:1234:rw- group::r-- mask::--- other::---"
	run metaop tmpfile-stat dir 666
	[ "$output" = "links 0 mode 664" ]
}

@test "without a default list the umask holds" {
	umask 027
	touch file
	mkdir dir
	mkfifo fifo
	[ "$(stat -c %a file dir fifo)" = $'640\n750\n640' ]
	umask 0
	touch file2
	mkdir dir2
	[ "$(stat -c %a file2 dir2)" = $'666\n777' ]
}

@test "links have no list, and files no default one" {
	ln -s file link
	touch file
	refused setfacl -d -m u:1234:r file
	[ "$(stat -c %A link)" = lrwxrwxrwx ]
}

@test "an ordinary user changes the lists of his own files alone" {
	touch his roots
	chown 1234:5678 his
	as_user 1234 setfacl -m u:1235:r his
	is_acl his "user::rw- user:1235:r-- group::r-- mask::r-- other::r--"
	refused as_user 1234 setfacl -m u:1235:r roots
	refused as_user 1235 setfacl -m u:1235:rw his
}

@test "an owner outside the file's group loses set-group-id with the list he sets" {
	touch his
	chown 1234:9999 his
	chmod 2755 his
	as_user 1234 setfacl -m u:1235:rx his
	[ "$(stat -c %a his)" = 755 ]
	chown 1234:5678 his
	chmod 2755 his
	as_user 1234 setfacl -m u:1236:rx his
	[ "$(stat -c %a his)" = 2755 ]
}

@test "setfacl --restore, cp -a and tar --acls bring lists back" {
	mkdir -p tree/sub
	touch tree/a tree/sub/b
	setfacl -m u:1234:r,g:7:rw tree/a
	setfacl -m d:u:1234:rx,u:9:x tree/sub
	setfacl -m u:1234:- tree/sub/b
	getfacl -Rn tree >"$dir/lists"
	cp -a tree copy
	(cd copy && getfacl -Rn .) >"$dir/copied"
	(cd tree && getfacl -Rn .) | cmp - "$dir/copied"
	tar --acls -cf "$dir/tar" tree
	mkdir out
	tar --acls -C out -xf "$dir/tar"
	(cd out && getfacl -Rn tree) | cmp - "$dir/lists"
	setfacl -Rbk tree
	is_acl tree/a "user::rw- group::r-- other::r--"
	setfacl --restore="$dir/lists"
	getfacl -Rn tree | cmp - "$dir/lists"
}

@test "lists of hundreds of entries" {
	touch file
	for i in {1..490}; do
		echo "u:$((10000 + i)):r"
	done >"$dir/entries"
	setfacl -M "$dir/entries" file
	[ "$(acl file | tr ' ' '\n' | grep -c '^user:10')" -eq 490 ]
	chmod 640 file
	remount_here
	[ "$(acl file | tr ' ' '\n' | grep -c '^user:10')" -eq 490 ]
	[[ $(acl file) == *" mask::r-- "* ]]
}
