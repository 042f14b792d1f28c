# shellcheck shell=sh
# name_files.sh - what packages say when the server is removed. cmake/packages.cmake puts it, without these lines,
# in the place of @NAME_FILES@ in their scripts.

name_files() {
	for folder in /dev/shm/rmemfs /var/lib/rmemfs; do
		[ -d "$folder" ] || continue
		rmdir --ignore-fail-on-non-empty "$folder"
		[ ! -d "$folder" ] ||
			echo "rmemfs-server: files of exports are still in $folder. To remove them: rm -r $folder"
	done
}
