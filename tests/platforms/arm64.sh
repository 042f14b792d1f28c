#!/bin/bash
# arm64.sh RELEASE - builds for arm64 in a clean root of this Debian release (bookworm, trixie), and runs the unit tests
# by QEMU's user-mode emulation; TAP on standard output. Another back end of the compiler, and other atomic
# instructions see what is lock-free. Nothing is left on this machine.
set -euo pipefail

# The kernel's table of interpreters is mounted for this script alone.
[ "${1:-}" = --inside ] || exec unshare --mount --propagation private -- "$0" --inside "$@"
shift
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tap.bash
. "$here/../tap.bash"
release=${1:?bookworm or trixie}
root=$("$here/root.sh" "$release" arm64)
work=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-arm64.XXXXXX")
table=/proc/sys/fs/binfmt_misc
entry=rmemfs-arm64-$$

cleanup() {
	[ ! -e "$table/$entry" ] || echo -1 >"$table/$entry"
	rm -rf "$work"
}
trap cleanup EXIT

inside() {
	"$here/enter.sh" "$root" "$work" "$@"
}

# From here on the kernel starts programs of arm64, also those that tests start. With F it keeps the emulator open, so
# that its path counts in no other root (Linux, Documentation/admin-guide/binfmt-misc.rst).
registers() {
	local magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
	local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
	[ -e "$table/register" ] || mount -t binfmt_misc none "$table" || return
	printf '%s' ":$entry:M::$magic:$mask:$root/usr/bin/qemu-aarch64:F" >"$table/register"
}

builds() {
	inside cmake --preset dev -B /build/dev --toolchain /src/tests/platforms/arm64.cmake &&
		inside cmake --build /build/dev
} >"$work/log" 2>&1

built_silently() {
	if builds && ! grep -qiE '\bwarning\b' "$work/log"; then return 0; fi
	grep -iE -A 8 '\b(warning|error|failed)\b' "$work/log" || tail -n 40 "$work/log"
	return 1
}

check "$release: the kernel runs programs of arm64" registers
[ "$failed" -eq 0 ] || check_end
check "$release: arm64 builds without a warning" built_silently
[ "$failed" -eq 0 ] || check_end
# The tests that skip_if_emulated() of tests/unit/emulated.h leaves out, and one for threads of the kernel.
left_out='state__of_a_kernel_thread|state__of_one_that_proc_hides|state__where_proc_is_another_pid_namespaces'
left_out+='|(owners|no_ids)__of_a_user_namespace|syscall_filter__(server|mount_may_unmount|holds_for_threads_that_run)'
left_out+='|secrets__are_in_no_core_dump|auth_memory__keys_at_work_are_not_dumped|nodump_map__is_not_dumped|malloc__is_dumped'
left_out+='|nodump_exclude__private_mapping|nodump_alloc__no_size_is_dumped|start__kernel_without_huge_pages_is_no_obstacle'
left_out+='|restart__who_waits_for_pages_is_not_late|attach__clients_of_one_address_with_their_channels'
left_out+='|map_populate__gets_the_pages_that_the_range_touches|outdated__when_its_file_is_gone'
left_out+='|record__behind_each_instruction__has_what_was_answered|record__is_whole_behind_each_instruction'
left_out+='|restart__unresumed_session_gives_way_to_its_owner_after_the_lease'
inside env RMEMFS_BUILD=/build RMEMFS_TEST_EMULATED=1 tests/run.sh unit |
	sed -E "s/# SKIP ($left_out)\$/# SKIP (not here) \\1/" || failed=1
check_end
