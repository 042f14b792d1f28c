#!/bin/bash
# run.sh [-f PATTERN] [AREA]... - runs the end-to-end tests over $RMEMFS_TEST_TRANSPORT, with the programs
# in $RMEMFS_BIN, and prints TAP. Without AREA it runs all areas; with -f only tests whose names match.
#
# The tests run in a mount namespace of their own, which ends with its last process. A container or a
# service may make another namespace meanwhile. That has a copy of every mount it sees, and a mount with a
# copy outlives umount(8). Mounts and unmounts of the machine propagate into ours; none propagates out.
# This takes CAP_SYS_ADMIN.
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

# A test that needs one transport has its tag, and does not run over the others.
tags=
for transport in shm tcp verbs; do
	[ $transport = "$RMEMFS_TEST_TRANSPORT" ] || tags+="${tags:+,}!only:$transport"
done
# Over shm the server can fence a client only when its process has ended.
[ "$RMEMFS_TEST_TRANSPORT" != shm ] || tags+=',!fenced'
# Over shm the user counts, and not the key.
[ "$RMEMFS_TEST_TRANSPORT" != shm ] || tags+=',!keyed'
# Tests that do not depend on the transport run once.
[ "$RMEMFS_TEST_TRANSPORT" = tcp ] || tags+=',!once'
# Raw sockets can't act as peers over verbs, and the guest is slow.
[ "$RMEMFS_TEST_TRANSPORT" != verbs ] || tags+="${tags:+,}!sockets"
# In the guest some tests run only at night.
[ "$RMEMFS_TEST_TRANSPORT${RMEMFS_TEST_NIGHTLY:-0}" != verbs0 ] || tags+=',!nightly:verbs'
# Others run at night only, whichever the transport: a faster test has their subject, too.
[ "${RMEMFS_TEST_NIGHTLY:-0}" = 1 ] || tags+="${tags:+,}!nightly"
# Counting allocations replaces the allocator, but a sanitizer needs its own.
[ "${RMEMFS_TEST_SANITIZED:-0}" = 0 ] || tags+="${tags:+,}!unsanitized"
# Tests that take a minute or more run nightly, without sanitizers, and not on small machines.
[ "${RMEMFS_TEST_NIGHTLY:-0}${RMEMFS_TEST_SANITIZED:-0}${RMEMFS_TEST_SMALL:-0}" = 100 ] ||
	tags+="${tags:+,}!long"
own_mounts=(unshare --mount --propagation slave --)
if "${own_mounts[@]}" true 2>/dev/null; then
	# Our copies must not keep the machine's own mounts of rmemfs alive.
	# shellcheck disable=SC2016 # the inner shell's
	own_mounts+=(sh -c 'umount -c -l -a -t fuse.rmemfs; exec "$@"' sh)
else
	echo "# no mount namespace for the tests alone: a copy of a mount elsewhere makes them fail"
	own_mounts=()
fi
exec "${own_mounts[@]}" bats --formatter tap --timing --filter-tags "$tags" "${filter[@]}" "${files[@]}"
