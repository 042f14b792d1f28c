#!/usr/bin/env bats
# acl_twins.bats - the same random work with ACLs is done on the mount and on a tmpfs, where the
# kernel keeps the ACLs. The output of each command, the rights and the result must be the same.

load helpers

paths=(. a a/b a/b/c a/f a/b/f f g a/b/c/f)
users=(0 1001 1002 1003)

setup() {
	setup_rmem
	chmod 711 "$dir"
	start_server
	mount_rmem -o allow_other
	mkdir "$dir/twin"
	mount -t tmpfs -o mode=755 none "$dir/twin"
}

teardown() {
	! mountpoint -q "$dir/twin" || umount "$dir/twin"
	teardown_rmem
}


# one_of WORD...: draws into $drawn, as the functions below do: a subshell would not move $RANDOM
# on.
one_of() {
	shift $((RANDOM % $#))
	drawn=$1
}

permissions() {
	local all=(r w x) i
	drawn=
	for i in 0 1 2; do
		((RANDOM % 3)) && drawn+=${all[i]} || drawn+=-
	done
}

# Draws a list of some entries, as setfacl -m takes it.
entries() {
	local kinds=(u: g: o: m: u:1001 u:1002 g:1002 g:1003) text='' n=$((1 + RANDOM % 3)) kind
	while ((n--)); do
		one_of "${kinds[@]}"
		kind=$drawn
		permissions
		text+=${text:+,}$kind:$drawn
	done
	drawn=$text
}

# Draws one line of shell.
command_line() {
	local path user mode umasks=(000 022 027 077 017) umask
	one_of "${paths[@]}" && path=$drawn
	one_of "${users[@]}" && user=$drawn
	one_of "${umasks[@]}" && umask=$drawn
	printf -v mode %o $((RANDOM % 4096))
	case $((RANDOM % 16)) in
	0 | 1) drawn="(umask $umask && mkdir $path)" ;;
	2 | 3) drawn="(umask $umask && touch $path)" ;;
	4) drawn="(umask $umask && mkdir -m $mode $path)" ;;
	5) drawn="(umask $umask && mkfifo $path-fifo)" ;;
	6 | 7) entries && drawn="setfacl -m $drawn $path" ;;
	8 | 9) entries && drawn="setfacl -d -m $drawn $path" ;;
	10) drawn="setfacl -x u:1001 $path" ;;
	11) drawn="setfacl -$( ((RANDOM % 2)) && echo b || echo k) $path" ;;
	12) drawn="chmod $mode $path" ;;
	13) drawn="chown $user:$user $path" ;;
	14) drawn="as $user setfacl -m u:1003:rwx $path" ;;
	15) drawn="cp -a $path copy-$RANDOM" ;;
	esac
}

# make_script SEED: prints commands, and after each a test of the rights of each user to a path.
make_script() {
	local n
	RANDOM=$1
	cat <<-'EOF'
		as() {
			local id=$1
			shift
			setpriv --reuid="$id" --regid="$id" --clear-groups -- "$@"
		}
	EOF
	for ((n = 0; n < $2; n++)); do
		command_line
		printf '%s\necho "%d: $?"\n' "$drawn" "$n"
		one_of "${users[@]}" && printf 'as %s sh -c ' "$drawn"
		one_of "${paths[@]}"
		printf "'for t in r w x; do test -\$t %s; echo -n \$?; done; echo'\n" "$drawn"
	done
}

# look ROOT: prints modes, owners and lists of all files there.
look() {
	(cd "$1" && find . -printf '%p %M %U %G\n' | LC_ALL=C sort)
	(cd "$1" && find . -print0 | LC_ALL=C sort -z | xargs -0 getfacl -np)
}

same_look() {
	look "$mnt" >"$dir/look.mnt"
	diff "$dir/look.twin" "$dir/look.mnt"
}

# bats test_tags=once
@test "random work with ACLs leaves what it leaves on a tmpfs" {
	local seed
	for seed in 5 6; do
		echo "seed $seed"
		make_script $seed 120 >"$dir/script"
		(cd "$dir/twin" && bash "$dir/script") >"$dir/said.twin" 2>&1
		(cd "$mnt" && bash "$dir/script") >"$dir/said.mnt" 2>&1
		diff "$dir/said.twin" "$dir/said.mnt"
		look "$dir/twin" >"$dir/look.twin"
		same_look
		cat "$dir/look.twin" >>"$dir/looks"
		[ "$seed" -ne 6 ] || holds_everywhere same_look
		find "$dir/twin" "$mnt" -mindepth 1 -delete
		setfacl -bk "$dir/twin" "$mnt"
		chmod 755 "$dir/twin" "$mnt"
		chown 0:0 "$dir/twin" "$mnt"
	done
	# There was something to compare.
	grep -q '^default:user:100' "$dir/looks"
	grep -q '^user:100' "$dir/looks"
}
