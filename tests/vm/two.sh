#!/bin/bash
# two.sh [BATS-ARGUMENT]... - the tests of two machines (two/machines.bats) over
# $RMEMFS_TEST_TRANSPORT with the programs in $RMEMFS_BIN; TAP on standard output.
#
# The machines are two guests (vm.bash), "server" at 10.9.0.1 and "client" at 10.9.0.2, each with an
# rxe0 on a wire between them. The tests boot, kill and cut them. The guests end with this script,
# however the tests end.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/vm/vm.bash
. "$here/vm.bash"
: "${RMEMFS_TEST_TRANSPORT:?tcp or verbs}" "${RMEMFS_BIN:?the folder of the programs}"
RMEMFS_BIN=$(cd "$RMEMFS_BIN" && pwd)
VM_WORK=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-two.XXXXXX")
RMEMFS_TEST_KEY_LINE=$("$RMEMFS_BIN/rmemfsctl" keygen test 2>/dev/null)
export RMEMFS_TEST_TRANSPORT RMEMFS_BIN RMEMFS_TEST_KEY_LINE VM_WORK

tests=
# shellcheck disable=SC2317 # called by the trap
cleanup() {
	local file pid
	[ -z "$tests" ] || kill -TERM "$tests" 2>/dev/null || true
	for file in "$VM_WORK"/*/pid; do
		pid=$(cat "$file" 2>/dev/null) || continue
		# The number may belong to another process by now.
		grep -qF "$VM_WORK" "/proc/$pid/cmdline" 2>/dev/null || continue
		kill -KILL "$pid" 2>/dev/null || true
		tail --pid="$pid" -s 0.02 -f /dev/null
	done
	[ -z "$tests" ] || wait "$tests" 2>/dev/null || true
	rm -rf "$VM_WORK"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

vm_prepare "$VM_WORK"
tags='!only:tcp'
[ "$RMEMFS_TEST_TRANSPORT" = verbs ] || tags='!only:verbs'
# In the background: else a signal would wait for the end of all tests.
TMPDIR=$VM_WORK bats --formatter tap --filter-tags "$tags" "$@" "$here/two/machines.bats" &
tests=$!
status=0
wait "$tests" || status=$?
tests=
exit "$status"
