#!/bin/bash
# next_version.sh NOW NEXT - makes in the folder NEXT the same packages as those in NOW, as a later version.
set -euo pipefail

now=${1:?a folder with packages} next=${2:?a folder}
version=$(dpkg-deb -f "$(echo "$now"/rmemfs-server_*.deb)" Version)
tree=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-next.XXXXXX")
trap 'rm -rf "$tree"' EXIT
for deb in "$now"/*.deb; do
	dpkg-deb -R "$deb" "$tree/it"
	sed -i -E "/^(Version|Depends):/ s/$version/$version.1/g" "$tree/it/DEBIAN/control"
	dpkg-deb -b --root-owner-group "$tree/it" "$next" >/dev/null
	rm -r "$tree/it"
done
