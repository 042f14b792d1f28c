# between.bash - for tests over tcp: a man in the middle of mounts and their server.
# shellcheck shell=bash disable=SC2154

setup_between() {
	proxy=$(free_port)
	middle_pid=''
}

middle_is_ready() {
	! alive "$middle_pid" || grep -q ready "$dir/middle.log"
}

# between HOW...: from now on a man in the middle does this to what mounts and server send.
between() {
	stands_between middle "$proxy" "$port" "$@"
}

# stands_between PROGRAM ARGUMENT...: the same by a program that says when it is ready.
stands_between() {
	end_between
	"$@" >"$dir/middle.log" 2>&1 3>&- &
	middle_pid=$!
	echo $middle_pid >"$dir/middle.pid"
	until_true 10 middle_is_ready
	alive $middle_pid || die "$(cat "$dir/middle.log")"
}

# Its end ends all connections.
end_between() {
	[ -n "$middle_pid" ] || return 0
	kill "$middle_pid"
	exit_status "$middle_pid" 10
	middle_pid=''
}

# Mounts reach the server by the man in the middle.
by_the_middle() {
	mount_options() {
		echo "transport=tcp,port=$proxy${key_file:+,key=$key_file}"
	}
}
