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
# shellcheck source=tests/vm/guests.bash
. "$here/guests.bash"
: "${RMEMFS_TEST_TRANSPORT:?tcp or verbs}" "${RMEMFS_BIN:?the folder of the programs}"
RMEMFS_BIN=$(cd "$RMEMFS_BIN" && pwd)
RMEMFS_TEST_KEY_LINE=$("$RMEMFS_BIN/rmemfsctl" keygen test 2>/dev/null)
export RMEMFS_TEST_TRANSPORT RMEMFS_BIN RMEMFS_TEST_KEY_LINE
guests_begin rmemfs-two
tags='!only:tcp'
[ "$RMEMFS_TEST_TRANSPORT" = verbs ] || tags='!only:verbs'
guests_test "$here/two/machines.bats" --filter-tags "$tags" "$@"
