#!/bin/bash
# run.sh RELEASE - builds all presets, mounts, and runs the unit tests, in a clean root of this Debian
# release (bookworm, trixie). It tries the packages on a clean machine of it (packages.sh), the images of containers
# (containers.sh), and a build for arm64 (arm64.sh). TAP on standard output. The machine's own packages and build
# folders are not used.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tap.bash
. "$here/../tap.bash"
release=${1:?bookworm or trixie}
root=$("$here/root.sh" "$release")
work=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-platform.XXXXXX")
trap 'rm -rf "$work"' EXIT

inside() {
	"$here/enter.sh" "$root" "$work" "$@"
}

# builds PRESET: builds from nothing, without a warning of the compilers or of CMake.
builds() {
	inside cmake --preset "$1" -B "/build/$1" &&
		inside cmake --build "/build/$1"
} >"$work/log" 2>&1

built_silently() {
	if builds "$1" && ! grep -qiE '\bwarning\b' "$work/log"; then return 0; fi
	grep -iE -A 8 '\b(warning|error|failed)\b' "$work/log" || tail -n 40 "$work/log"
	return 1
}

makes_packages() {
	inside cpack --config /build/release/CPackConfig.cmake -B /build/packages
}

for preset in release fuzz asan tsan dev; do
	check "$release: preset $preset builds without a warning" built_silently "$preset"
	[ "$preset" != release ] || check "$release: packages are made" makes_packages
	# Only dev's programs are run.
	[ "$preset" = dev ] || rm -rf "$work/build/$preset"
done
check "$release: root's mount begins and ends" inside tests/platforms/mount.sh /build/dev/bin
# The root has a PID namespace, without threads of the kernel.
inside env RMEMFS_BUILD=/build tests/run.sh unit | sed 's/# SKIP \(state__of_a_kernel_thread\)$/# SKIP (not here) \1/' ||
	failed=1
"$here/packages.sh" "$release" "$work/build/packages" || failed=1
"$here/containers.sh" "$release" || failed=1
"$here/arm64.sh" "$release" || failed=1
check_end
