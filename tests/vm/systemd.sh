#!/bin/bash
# systemd.sh RELEASE PACKAGES [BATS-ARGUMENT]... - the tests of two machines of this Debian release (bookworm, trixie)
# with its kernel, systemd and the packages in the folder PACKAGES (systemd/systemd.bats); TAP on standard output.
#
# The machines are two guests (vm.bash), "server" at 10.9.0.1 and "client" at 10.9.0.2, with a disk each, and with
# Soft-RoCE on a wire between them. They end with this script, however the tests end. Needs root.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/vm/vm.bash
. "$here/vm.bash"
# shellcheck source=tests/vm/guests.bash
. "$here/guests.bash"
release=${1:?bookworm or trixie} packages=${2:?the folder of the packages}
shift 2
guests_begin rmemfs-systemd
"$here/systemd/image.sh" "$release" "$packages" "$VM_WORK/image" >"$VM_WORK/image.log" 2>&1 || {
	cat "$VM_WORK/image.log" >&2
	vm_die "the disk could not be made"
}
guests_test "$here/systemd/systemd.bats" "$@"
