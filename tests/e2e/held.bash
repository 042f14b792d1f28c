# shellcheck shell=bash disable=SC2154,SC2034 # what helpers set, and tests take
# held.bash - a directory whose lock in the kernel waits for an answer of the daemon, while the daemon tells the kernel
# of a name in it: neither goes on.

# killed PID...: kills the processes; each must end, whatever it waited for.
killed() {
	local pid
	kill -KILL "$@"
	for pid in "$@"; do
		exit_status "$pid" 10 || [ $? -eq 137 ] || die "process $pid does not end"
	done
}

# tells_of_name PID: one of the daemon's threads waits in the kernel, in the notification of a name.
tells_of_name() {
	grep -qs fuse_reverse_inval_entry "/proc/$1"/task/*/stack
}

# hold_directory PID ERRORS: has that daemon of $mnt wait so. The mount has one I/O thread, and its server dies. maker is
# the program whose create locks the directory; ERRORS gets its complaints.
hold_directory() {
	local remover
	mkdir "$mnt/dir"
	touch "$mnt/dir/gone"
	suspend "$server_pid"
	rm -f "$mnt/dir/gone" 3>&- &
	remover=$!
	until_true 10 calling "$remover" unlink
	sync "$mnt" # returns after it was sent
	kill_server
	killed "$remover"
	(: >"$mnt/dir/made") 3>&- 2>"$2" &
	maker=$!
	until_true 10 calling "$maker" create
	# The server completes the request on its way, then dies at the one that locks the directory.
	spawn_armed name.changed:2
	until_true 20 tells_of_name "$1"
	expect_death name.changed:2
}
