#!/bin/bash
# make_packages.sh RELEASE FOLDER - makes this Debian release's packages, in a clean root of it, in FOLDER/packages.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
release=${1:?bookworm or trixie} folder=${2:?a folder}
root=$("$here/root.sh" "$release")
mkdir -p "$folder"

inside() {
	"$here/enter.sh" "$root" "$folder/work" "$@"
}

inside cmake --preset release -D RMEMFS_TESTS=OFF -B /build/release
inside cmake --build /build/release
inside cpack -G DEB --config /build/release/CPackConfig.cmake -B /build/packages
mv "$folder/work/build/packages" "$folder/packages"
rm -rf "$folder/work"
