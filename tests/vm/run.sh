#!/bin/bash
# run.sh [--timeout SECONDS] [--cpus N] [--mem SIZE] [--job FOLDER] -- COMMAND... - runs COMMAND as
# root in a guest that has a real RDMA stack (Soft-RoCE, rxe0 at 10.9.0.1). Streams its output. Ends
# with its exit status, with 124 after the timeout (600 s), or with 125 if the guest itself failed.
#
# The guest sees the host's files under the same paths. Its writes to them stay in its memory and
# are lost. FOLDER (a temporary one if not given) is /run/job in the guest, and its files are really
# written. COMMAND starts in the current folder, with this environment's RMEMFS_* variables. Reading
# the host's files is slow: copy files that are read often to $TMPDIR, a tmpfs.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/vm/vm.bash
. "$here/vm.bash"
timeout=600 job=

usage() {
	vm_die "usage: run.sh [--timeout SECONDS] [--cpus N] [--mem SIZE] [--job FOLDER] -- COMMAND..."
}

while [ $# -gt 0 ]; do
	case $1 in
	--timeout) timeout=${2:?} ;;
	--cpus) vm_cpus=${2:?} ;;
	--mem) vm_mem=${2:?} ;;
	--job) job=${2:?} ;;
	--)
		shift
		break
		;;
	*) usage ;;
	esac
	shift 2
done
[ $# -gt 0 ] || usage

temp=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-vm.XXXXXX")
vm='' reader=''
# shellcheck disable=SC2317 # called by the trap
cleanup() {
	if [ -n "$vm" ]; then
		kill "$vm" 2>/dev/null || true
		wait "$vm" 2>/dev/null || true
	fi
	[ -z "$reader" ] || kill "$reader" 2>/dev/null || true
	rm -rf "$temp"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

write_job() {
	if [ -n "$job" ]; then
		mkdir -p "$job"
		ln -s "$(realpath "$job")" "$temp/job"
	else
		mkdir "$temp/job"
	fi
	{
		declare -px | grep -E '^declare -x RMEMFS_[A-Z0-9_]*=' || true
		printf 'cd %q || exit 125\n' "$PWD"
		printf '%q ' "$@"
		echo
	} >"$temp/job/command"
}

vm_prepare "$temp"
write_job "$@"
mkfifo "$temp/output"
cat "$temp/output" &
reader=$!
vm_boot "$timeout" "$temp" ""
status=0
wait "$vm" || status=$?
vm=
# If the guest fails before it opens its output, cat must not wait for a writer for ever.
: 1<>"$temp/output"
wait "$reader"
reader=''
if complaints=$(vm_complaints "$temp/console"); then
	printf "run.sh: the guest's kernel complained:\n%s\n" "$complaints" >&2
fi
if [ "$status" -eq 124 ]; then
	echo "run.sh: not done within $timeout s; the guest's console ended:" >&2
	tail -n 20 "$temp/console" >&2
	exit 124
fi
if [ ! -s "$temp/job/status" ]; then
	echo "run.sh: the guest failed; its console ended:" >&2
	tail -n 40 "$temp/console" >&2
	exit 125
fi
exit "$(cat "$temp/job/status")"
