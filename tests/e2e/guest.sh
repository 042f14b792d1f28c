#!/bin/bash
# guest.sh [programs] [AREA]... - the tests over verbs in the guest (see ../vm). programs: records against the TLS
# of the guest's kernel, the transport contract, and at night the RPC driver. Then come these areas of the end-to-end
# tests. It first copies files that are read often from the host's slow file system.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
: "${RMEMFS_BIN:?the folder of the programs}"
status=0
tmp=$(mktemp -d)
mkdir "$tmp/bin"
for program in "$RMEMFS_BIN"/*; do
	case ${program##*/} in
	test_common_auth_record_kernel | test_common_transport_contract | test_driver_rpc) ;;
	test_*) continue ;;
	esac
	cp "$program" "$tmp/bin/" || status=1
done

# traced PROGRAM [ARGUMENT]...: shows where it crashes, if gdb is there. cmocka only says that it did, and goes on.
traced() {
	command -v gdb >/dev/null || {
		"$@"
		return
	}
	printf '%s\n' 'handle all nostop noprint pass' 'catch signal SIGSEGV' \
		commands 'silent' 'thread apply all backtrace' continue end run >"$tmp/gdb"
	gdb -batch -return-child-result -x "$tmp/gdb" --args "$@"
}

export RMEMFS_BIN=$tmp/bin RMEMFS_TEST_TRANSPORT=verbs RMEMFS_TEST_SMALL=1
export CMOCKA_MESSAGE_OUTPUT=TAP
if [ "${1:-}" = programs ]; then
	shift
	"$tmp/bin/test_common_auth_record_kernel" || status=1
	"$tmp/bin/test_common_transport_contract" verbs || status=1
	"$tmp/bin/test_common_transport_contract" tcp || status=1 # its kernel has TLS for sockets
	if [ "${RMEMFS_TEST_NIGHTLY:-0}" = 1 ]; then
		RMEMFS_VERBS_WINDOWS=off "$tmp/bin/test_common_transport_contract" verbs || status=1
		traced "$tmp/bin/test_driver_rpc" verbs || status=1
	fi
fi
[ $# -eq 0 ] || "$here/run.sh" "$@" || status=1
exit $status
