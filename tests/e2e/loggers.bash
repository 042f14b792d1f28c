# shellcheck shell=bash disable=SC2154 # what helpers set
# loggers.bash - programs that write down, outside of the mount, each operation that was answered: acklog.c. Each has
# a folder of the mount. RMEMFS_TEST_SEED=N repeats their operations.

loggers=2

# seed_loggers: sets the seed, which the test prints.
seed_loggers() {
	seed=${RMEMFS_TEST_SEED:-$RANDOM}
	echo "RMEMFS_TEST_SEED=$seed"
}

# run_loggers [NAME=VALUE...]: starts them, with these in their environment. They go on with the files of before.
run_loggers() {
	local n
	for ((n = 0; n < loggers; n++)); do
		rm -f "$dir/ack.$n.stop"
		# Each log is replayed from its beginning, so a long one is started anew.
		[ "$(wc -l 2>/dev/null <"$dir/ack.$n" || echo 0)" -lt 10000 ] ||
			rm -r "$mnt/ack.$n" "$dir/ack.$n"
		env "$@" acklog run "$mnt/ack.$n" "$dir/ack.$n" $((seed + n)) >>"$dir/load.log" 2>&1 3>&- &
		logger_pids[n]=$!
	done
}

stop_loggers() {
	local n
	for ((n = 0; n < loggers; n++)); do
		touch "$dir/ack.$n.stop"
	done
	for ((n = 0; n < loggers; n++)); do
		exit_status "${logger_pids[n]}" 60 || die "an operation was answered wrongly: $(tail "$dir/load.log")"
	done
}

verify_loggers() {
	local n
	for ((n = 0; n < loggers; n++)); do
		acklog verify "$mnt/ack.$n" "$dir/ack.$n"
	done
}

acknowledged() {
	cat "$dir"/ack.? 2>/dev/null | grep -c '^done' || true
}

has_acknowledged() {
	[ "$(acknowledged)" -ge "$1" ]
}

# Waits until 200 more operations have been answered.
go_on() {
	until_true 60 has_acknowledged $(($(acknowledged) + 200)) || die "nothing goes on: $(tail "$dir/load.log")"
}
