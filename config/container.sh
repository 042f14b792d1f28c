#!/bin/bash
# container.sh - the first process of a container with a client or a server, in the images of
# config/Containerfile; config/kubernetes/README.md describes it:
#
#     rmemfs-container client    mounts SOURCE at MOUNTPOINT with OPTIONS, and the key in KEY
#     rmemfs-container server    serves by CONFIG (/etc/rmemfs/server.conf), with the keys in the folder KEYS
#     rmemfs-container reload    the server reads CONFIG and the keys in KEYS anew
#     rmemfs-container ready     whether the mount, or the server, is well: exit status 0
#
# The program takes this process's place: it gets the signals of the container, and its exit status is the
# container's.
set -euo pipefail

config=${CONFIG:-/etc/rmemfs/server.conf}

die() {
	echo "rmemfs-container: $*" >&2
	exit 1
}

# Memory that is registered for RDMA is locked. A container that may not raise the limit can use tcp.
lift_limits() {
	ulimit -l unlimited 2>/dev/null ||
		echo "rmemfs-container: the limit on locked memory is $(ulimit -l) KiB; verbs needs CAP_SYS_RESOURCE, or no limit" >&2
}

# ---- client --------------------------------------------------------------------------------------

# key_file FILE: a path of the key at which the mount takes it. A Secret's file is a link, and a key is none: the
# folder ..data has the file itself, and follows when the Secret changes. A file that others may read, as
# podman's secrets are, is copied; the copy stays as it is.
key_file() {
	local file said copy=/run/rmemfs-key/key
	for file in "$1" "${1%/*}/..data/${1##*/}"; do
		if rmemfsctl keycheck "$file" >/dev/null 2>&1; then
			echo "$file"
			return
		fi
	done
	install -D -m 0400 "$1" "$copy"
	said=$(rmemfsctl keycheck "$copy" 2>&1) || die "the key in $1: $said"
	echo "$copy"
}

# A mount of a container that was killed is still at its place, without its daemon: the new one replaces it.
client() {
	local key options=exit_when_lost,connect_timeout=600
	[ -n "${SOURCE:-}" ] || die "SOURCE is not set: the server and the export, HOST:/EXPORT"
	[ -n "${MOUNTPOINT:-}" ] || die "MOUNTPOINT is not set: the folder for the mount"
	if [ -n "${KEY:-}" ]; then
		[ -f "$KEY" ] || die "KEY is $KEY, and there is no such file"
		key=$(key_file "$KEY")
		options=$options,key=$key
	fi
	mkdir -p "$MOUNTPOINT" 2>/dev/null || true
	lift_limits
	exec rmemfs -f -o "$options" -o "${OPTIONS:-defaults}" "$SOURCE" "$MOUNTPOINT"
}

# ---- server --------------------------------------------------------------------------------------

# The server's group may read keys, and no other user.
take_keys() {
	local key
	[ -n "${KEYS:-}" ] || return 0
	[ -d "$KEYS" ] || die "KEYS is $KEYS, and there is no such folder"
	for key in "$KEYS"/*; do
		[ -f "$key" ] || die "$KEYS has no key"
		install -o root -g rmemfs -m 0640 "$key" "/etc/rmemfs/keys/${key##*/}"
	done
}

# memory_dir: as the configuration names it.
memory_dir() {
	local dir
	dir=$(sed -nE 's/^[[:space:]]*memory_dir[[:space:]]*[=:][[:space:]]*"([^"]*)".*/\1/p' "$config")
	echo "${dir:-/dev/shm/rmemfs}"
}

server() {
	[ -f "$config" ] || die "CONFIG is $config, and there is no such file"
	install -d -o root -g rmemfs -m 0750 /etc/rmemfs/keys
	take_keys
	install -d -o rmemfs -g rmemfs -m 0755 /run/rmemfs
	install -d -o rmemfs -g rmemfs -m 0700 "$(memory_dir)"
	lift_limits
	exec setpriv --reuid=rmemfs --regid=rmemfs --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs \
		rmemfs-server -c "$config"
}

reload() {
	take_keys
	exec rmemfsctl reload
}

# ---- both ----------------------------------------------------------------------------------------

# A warning is well enough: it is no reason to keep programs from the files.
ready() {
	local status=0
	if [ -n "${MOUNTPOINT:-}" ]; then
		rmemfsctl health "$MOUNTPOINT" || status=$?
	else
		rmemfsctl health /run/rmemfs/server.sock || status=$?
	fi
	[ "$status" -le 1 ]
}

case ${1:-} in
client | server | reload | ready) "$1" ;;
*) die "usage: rmemfs-container client | server | reload | ready" ;;
esac
