#!/bin/bash
# leftovers.sh - lists what a run of tests has left on this machine, one per line, sorted: processes
# that carry the run's mark (RMEMFS_TEST_RUN in their environment, guests too), mounts, memory,
# sockets, folders of temporary files. The caller compares the lists from before and after a run.
# TMPDIR and RMEMFS_TEST_SHM, its folders on disk and in memory, must be the run's own, or the list
# has the files of other runs, too.
set -euo pipefail

mark=${RMEMFS_TEST_RUN:?what marks the processes of this run}
places=("${RMEMFS_TEST_SHM:-/dev/shm}" "${TMPDIR:-/tmp}")

# descends PID ANCESTOR
descends() {
	local pid=$1
	while [ "$pid" -gt 1 ]; do
		[ "$pid" -ne "$2" ] || return 0
		pid=$(awk '$1 == "PPid:" { print $2 }' "/proc/$pid/status") || return 1
	done
	return 1
}

# We, and the processes that wait for us, are not left over.
is_ours() {
	descends "$1" $$ || descends $$ "$1"
}

processes() {
	local pid command
	{ grep -lzsxF "RMEMFS_TEST_RUN=$mark" /proc/[0-9]*/environ || true; } | cut -d/ -f3 | while read -r pid; do
		command=$(tr '\0' ' ' <"/proc/$pid/cmdline") || continue
		# A zombie has no command line.
		[ -z "$command" ] || is_ours "$pid" || echo "process $pid $command"
	done 2>/dev/null
}

mounts() {
	local place
	for place in "${places[@]}"; do
		place=$(realpath "$place")/ awk '$3 == "fuse.rmemfs" && index($2, ENVIRON["place"]) == 1 {
			print "mount", $2
		}' /proc/mounts
	done
}

{
	processes
	mounts
	find "${places[@]}" /var/tmp -maxdepth 1 -name '*rmemfs*' ! -name rmemfs-vm ! -name rmemfs-platforms -printf 'file %p\n'
	find /run/rmemfs -mindepth 1 -printf 'file %p\n' 2>/dev/null || true
} | sort
