#!/bin/bash
# run.sh [AREA]... - the end-to-end tests (all areas if none is named) over $RMEMFS_TEST_TRANSPORT,
# with the programs in $RMEMFS_BIN; TAP on standard output.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
: "${RMEMFS_TEST_TRANSPORT:?shm, tcp or verbs}" "${RMEMFS_BIN:?the folder of the programs}"
export RMEMFS_TEST_TRANSPORT RMEMFS_BIN

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
exec bats --formatter tap --timing --filter-tags "$tags" "${files[@]}"
