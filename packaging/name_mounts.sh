# shellcheck shell=sh
# name_mounts.sh - what packages say of mounts that outlive their removal. cmake/packages.cmake puts it, without these
# lines, in the place of @NAME_MOUNTS@ in their scripts.

# Mounts of this machine whose daemons go on without the package.
name_mounts() {
	[ -r /proc/self/mountinfo ] || return 0
	places=$(sed -n 's/^\([^ ]* \)\{4\}\([^ ]*\) .* - fuse\.rmemfs .*/\2/p' /proc/self/mountinfo)
	[ -n "$places" ] || return 0
	echo "rmemfs: these mounts stay, and rmemfsctl, which looks at them, goes. To end them: umount"
	printf '%s\n' "$places"
}

# Mounts of a server that is about to end, from the server itself.
name_clients() {
	clients=$(timeout 10 rmemfsctl status --json 2>/dev/null | grep -o '"client": *"[^"]*"' | cut -d '"' -f 4 | sort -u) || true
	[ -n "$clients" ] || return 0
	echo "rmemfs-server: these mounts lose their server. Programs wait for it, until they are unmounted there:"
	printf '%s\n' "$clients"
}
