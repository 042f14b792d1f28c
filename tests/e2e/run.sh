#!/bin/bash
# run.sh [-f PATTERN] [AREA]... - the end-to-end tests (all areas if none is named; only those whose
# names match the pattern) over $RMEMFS_TEST_TRANSPORT, with the programs in $RMEMFS_BIN; TAP on
# standard output.
#
# The tests run in a mount namespace of their own, which ends with its last process. A namespace that
# anything else on the machine makes meanwhile, for a container or a service, has a copy of every mount
# it sees, and a mount with a copy outlives umount(8). Mounts and unmounts of the machine arrive here;
# none goes out. This takes CAP_SYS_ADMIN.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
: "${RMEMFS_TEST_TRANSPORT:?shm, tcp or verbs}" "${RMEMFS_BIN:?the folder of the programs}"
export RMEMFS_TEST_TRANSPORT RMEMFS_BIN

filter=()
if [ "${1:-}" = -f ]; then
	filter=(--filter "$2")
	shift 2
fi
files=()
for area in "$@"; do
	files+=("$here/$area.bats")
done
[ $# -gt 0 ] || files=("$here"/*.bats)

# A test that can only be made on one transport carries its tag, and is no test of the others.
tags=
for transport in shm tcp verbs; do
	[ $transport = "$RMEMFS_TEST_TRANSPORT" ] || tags+="${tags:+,}!only:$transport"
done
# Over shm nobody is fenced before his process ends.
[ "$RMEMFS_TEST_TRANSPORT" != shm ] || tags+=',!fenced'
# What has nothing to do with the transport is tested once.
[ "$RMEMFS_TEST_TRANSPORT" = tcp ] || tags+=',!once'
# Raw sockets make no peers over verbs, and in the guest all takes its time.
[ "$RMEMFS_TEST_TRANSPORT" != verbs ] || tags+="${tags:+,}!sockets"
# In the guest some are made at night only.
[ "$RMEMFS_TEST_TRANSPORT${RMEMFS_TEST_NIGHTLY:-0}" != verbs0 ] || tags+=',!nightly:verbs'
# Counting allocations replaces the allocator, which is a sanitizer's own.
[ "${RMEMFS_TEST_SANITIZED:-0}" = 0 ] || tags+="${tags:+,}!unsanitized"
# What takes a minute or more is made nightly, and where nothing slows it down.
[ "${RMEMFS_TEST_NIGHTLY:-0}${RMEMFS_TEST_SANITIZED:-0}${RMEMFS_TEST_SMALL:-0}" = 100 ] ||
	tags+="${tags:+,}!long"
own_mounts=(unshare --mount --propagation slave --)
if "${own_mounts[@]}" true 2>/dev/null; then
	# The machine's own mounts of rmemfs are not to be kept up by our copies.
	# shellcheck disable=SC2016 # the inner shell's
	own_mounts+=(sh -c 'umount -c -l -a -t fuse.rmemfs; exec "$@"' sh)
else
	echo "# no mount namespace for the tests alone: a copy of a mount elsewhere makes them fail"
	own_mounts=()
fi
exec "${own_mounts[@]}" bats --formatter tap --timing --filter-tags "$tags" "${filter[@]}" "${files[@]}"
