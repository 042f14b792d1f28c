# shellcheck shell=bash
# guests.bash - for scripts that run tests of two guests (two.sh, systemd.sh): a folder for the guests, $VM_WORK, and
# their end with the script.

guests_tests=

# shellcheck disable=SC2317 # called by the trap
guests_cleanup() {
	local file pid
	[ -z "$guests_tests" ] || kill -TERM "$guests_tests" 2>/dev/null || true
	for file in "$VM_WORK"/*/pid; do
		pid=$(cat "$file" 2>/dev/null) || continue
		# The number may belong to another process by now.
		grep -qF "$VM_WORK" "/proc/$pid/cmdline" 2>/dev/null || continue
		kill -KILL "$pid" 2>/dev/null || true
		tail --pid="$pid" -s 0.02 -f /dev/null
	done
	[ -z "$guests_tests" ] || wait "$guests_tests" 2>/dev/null || true
	rm -rf "$VM_WORK"
}

# guests_begin NAME: makes the folder, and sees that guests can run.
guests_begin() {
	VM_WORK=$(mktemp -d "${TMPDIR:-/tmp}/$1.XXXXXX")
	export VM_WORK
	trap guests_cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	vm_prepare "$VM_WORK"
}

# guests_test BATS-FILE [BATS-ARGUMENT]...: exits with its status. In the background: else a signal would wait for the
# end of all tests.
guests_test() {
	local file=$1 status=0
	shift
	TMPDIR=$VM_WORK bats --formatter tap "$@" "$file" &
	guests_tests=$!
	wait "$guests_tests" || status=$?
	guests_tests=
	exit "$status"
}
