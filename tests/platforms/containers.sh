#!/bin/bash
# containers.sh RELEASE - has podman make the images of config/Containerfile for this Debian release (bookworm, trixie),
# and run them as config/kubernetes/ does: a server, a mount for the host, and a pod that uses it. TAP on standard
# output. The images of Debian are roots of root.sh. Nothing is left on this machine.
set -euo pipefail

# Mounts of containers for the host come to a host of the test's own. Podman's files are in a layer over this
# machine's.
[ "${1:-}" = --inside ] || exec unshare --mount --propagation private -- "$0" --inside "$@"
shift
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$here/../.." && pwd)
# shellcheck source=tests/tap.bash
. "$here/../tap.bash"
# shellcheck source=tests/wait.bash
. "$here/../wait.bash"
release=${1:?bookworm or trixie}
work=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-containers.XXXXXX")
host=$work/host
port=$(free_port)

podman=(podman --root "$work/store" --runroot "$work/run" --tmpdir "$work/tmp" --storage-driver overlay
	--cgroup-manager cgroupfs --events-backend file)
# This machine may allow neither cgroups nor higher limits. Without cgroups podman gives no container the PID
# namespace of the host.
runs=(--network=host --privileged --cgroups=disabled --pull=never --ulimit "nofile=$(ulimit -Hn)" --ulimit nproc=4096)

pod() {
	"${podman[@]}" "$@"
}

cleanup() {
	pod rm -af -t 0 >/dev/null 2>&1 || true
	umount -R "$host" "$work/store/overlay" "$work/layers" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT

complain() {
	echo "$*"
	return 1
}

# manifest FILE KIND FIELD...
manifest() {
	"$tree/tests/manifests.py" --get "${@:2}" "$tree/config/kubernetes/$1.yaml"
}

# ---- the machine that the containers run on ------------------------------------------------------

over_this_machine() {
	local folder layer
	mkdir "$work/layers"
	mount -t tmpfs -o mode=755 none "$work/layers"
	for folder in /run /var/lib; do
		layer=$work/layers/${folder//\//.}
		mkdir -p "$layer"/{upper,work}
		mount -t overlay -o "lowerdir=$folder,upperdir=$layer/upper,workdir=$layer/work" none "$folder"
	done
	mount -t tmpfs -o mode=1777 none /dev/shm
	# A machine may have both versions of cgroups, which crun refuses.
	umount -l /sys/fs/cgroup 2>/dev/null || true
	mount -t cgroup2 none /sys/fs/cgroup
}

# server.conf is that of the manifest, with less memory and another port.
make_host() {
	over_this_machine
	mkdir "$host"
	mount -t tmpfs -o mode=755 none "$host"
	mount --make-shared "$host"
	mkdir "$host"/{mounts,mounts/data,memory,config,sockets,secrets}
	manifest server ConfigMap data server.conf | sed "s/8GiB/64MiB/; s/tcp:0.0.0.0/tcp:127.0.0.1:$port/" \
		>"$host/config/server.conf"
}

# make_secret NAME MODE KEY: as kubelet makes it: the file is a link, and its folder is replaced as a whole.
make_secret() {
	local folder=$host/secrets/$1
	mkdir -p "$folder/..1"
	install -m "$2" "$3" "$folder/..1/nodes.key"
	ln -sfn ..1 "$folder/..data"
	ln -sfn ..data/nodes.key "$folder/nodes.key"
}

make_keys() {
	pod run --rm "${runs[@]}" -v "$host/secrets:/secrets" --entrypoint rmemfsctl rmemfs-client keygen nodes /secrets/nodes.key || return
	make_secret server 0644 "$host/secrets/nodes.key"
	make_secret client 0400 "$host/secrets/nodes.key"
	make_secret open 0444 "$host/secrets/nodes.key"
}

# ---- images --------------------------------------------------------------------------------------

# base KIND NAME: a root of root.sh as an image.
base() {
	tar -C "$("$here/root.sh" "$release" "$1")" -c . | pod import - "$2"
}

# The builder has the packages of the build already: that saves ten minutes.
has_bases() {
	base build localhost/rmemfs-builder && base container "docker.io/library/debian:$release-slim"
}

builds() {
	pod build --pull=never --network=host --isolation=chroot --build-arg "DEBIAN=$release" \
		--build-arg BUILDER=localhost/rmemfs-builder -f "$tree/config/Containerfile" --target "$1" -t "rmemfs-$1" "$tree"
}

# ---- containers ----------------------------------------------------------------------------------

# start NAME IMAGE OPTION... -- WORD...
start() {
	local name=$1 image=$2 options=()
	shift 2
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	pod rm -f "$name" >/dev/null 2>&1 || true
	pod run -d --name "$name" "${runs[@]}" "${options[@]}" "$image" "${@:2}"
}

# ended NAME STATUS: it has ended, or does so soon, with this status.
ended() {
	local status
	status=$(timeout 30 "${podman[@]}" wait "$1") || complain "$1 does not end" || return
	[ "$status" -eq "$2" ] || complain "$1 ended with status $status: $(pod logs "$1" 2>&1)"
}

# stops_well NAME: as Kubernetes stops it.
stops_well() {
	pod stop -t 20 "$1" && ended "$1" 0
}

start_server() {
	start server rmemfs-server -v "$host/config:/config:ro" -v "$host/secrets/server:/keys:ro" \
		-v "$host/memory:/memory:rslave" -e CONFIG=/config/server.conf -e KEYS=/keys -- server
}

# start_client SECRET
start_client() {
	start client rmemfs-client -v "$host/mounts:/mounts:rshared" -v "$host/secrets/$1:/keys:ro" \
		-v "$host/sockets:/run/rmemfs-mounts" -e SOURCE=127.0.0.1:/data -e MOUNTPOINT=/mounts/data \
		-e KEY=/keys/nodes.key -e "OPTIONS=share,port=$port" -- client
}

# is_ready NAME KIND [OPTION]...: the readiness probe of the manifest.
is_ready() {
	local words
	mapfile -t words < <(manifest "$1" "$2" spec template spec containers 0 readinessProbe exec command)
	pod exec "${@:3}" "$1" "${words[@]}"
}

becomes_ready() {
	until_true 30 is_ready "$@" || complain "$(pod logs "$1" 2>&1)"
}

process_of() {
	pod inspect -f '{{.State.Pid}}' "$1"
}

serves() {
	local user
	start_server && becomes_ready server StatefulSet || return
	! is_ready server StatefulSet -e MOUNTPOINT=/memory || complain "ready without a mount" || return
	user=$(awk '$1 == "Uid:" { print $2 }' "/proc/$(process_of server)/status")
	[ "$user" = 947 ] || complain "the server's user is $user" || return
	[ "$(stat -c '%u %a' "$host/memory")" = "947 700" ] || complain "memory: $(stat "$host/memory")"
}

# A pod that begins before the mount is there: it waits as volume.yaml has it.
waits_for_the_mount() {
	local words
	mapfile -t words < <(manifest volume Pod spec initContainers 0 command)
	start pod rmemfs-client -v "$host/mounts/data:/data:rslave" --entrypoint "${words[0]}" -- -c \
		"${words[2]}; for file in greeting enough; do until [ -s /data/\$file ]; do sleep 0.1; done; cat /data/\$file; done"
}

pod_has_read() {
	pod logs pod | grep -q "$1"
}

mounts_for_the_host() {
	start_client client && becomes_ready client DaemonSet || return
	mountpoint -q "$host/mounts/data" || complain "the host does not see the mount" || return
	grep -q 'key=/keys/\.\.data/nodes.key' "/proc/$(process_of client)/cmdline" || complain "the Secret was copied" || return
	echo hello >"$host/mounts/data/greeting" || return
	until_true 10 pod_has_read hello || complain "the pod does not see the mount: $(pod logs pod 2>&1)"
}

unmounts() {
	head -c 3000000 /dev/urandom >"$work/file"
	cp "$work/file" "$host/mounts/data/file" && stops_well client || return
	! mountpoint -q "$host/mounts/data" || complain "still mounted"
}

# The key of a Secret that others may read is copied. The pod goes on with the new mount.
mounts_again() {
	start_client open && becomes_ready client DaemonSet && cmp "$work/file" "$host/mounts/data/file" || return
	echo bye >"$host/mounts/data/enough" && ended pod 0 || return
	pod_has_read bye || complain "the pod has the old mount: $(pod logs pod 2>&1)"
}

# A mount without its daemon stays on the host until the next start.
replaces_a_dead_mount() {
	pod kill -s KILL client && ended client 137 || return
	! ls "$host/mounts/data" >/dev/null 2>&1 || complain "the mount of a killed daemon works" || return
	start_client client && becomes_ready client DaemonSet && cmp "$work/file" "$host/mounts/data/file"
}

# The server's files are on the host.
restarts_the_server() {
	stops_well server && start_server && becomes_ready server StatefulSet && cmp "$work/file" "$host/mounts/data/file"
}

reloads() {
	pod exec server rmemfs-container reload
}

# The exit status is the daemon's or the script's, and the reason is in the log.
refuses() {
	stops_well client || return
	start client rmemfs-client -v "$host/mounts:/mounts:rshared" -e SOURCE=127.0.0.1:/none -e MOUNTPOINT=/mounts/data \
		-e "OPTIONS=port=$port" -- client && ended client 32 || return
	pod logs client 2>&1 | grep -q none || complain "the log: $(pod logs client 2>&1)" || return
	start client rmemfs-client -e MOUNTPOINT=/mounts/data -- client && ended client 1 || return
	pod logs client 2>&1 | grep -q 'SOURCE is not set' || complain "the log: $(pod logs client 2>&1)"
}

make_host
check "$release: images to begin with" has_bases
check "$release: the image of a client" builds client
check "$release: the image of a server" builds server
[ "$failed" -eq 0 ] || check_end
check "$release: keys" make_keys
check "$release: the server runs as its user, and is ready" serves
check "$release: a pod waits for the mount" waits_for_the_mount
check "$release: the client mounts for the host, and for the pod" mounts_for_the_host
check "$release: SIGTERM unmounts on the host, with status 0" unmounts
check "$release: the next client's mount reaches the pod" mounts_again
check "$release: a killed client's mount is replaced" replaces_a_dead_mount
check "$release: the server's files outlive its container" restarts_the_server
check "$release: reload" reloads
check "$release: a refused client ends with its status" refuses
check "$release: SIGTERM ends the server with status 0" stops_well server
check_end
