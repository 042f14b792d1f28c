# shellcheck shell=bash
# machine.bash - a machine of a clean Debian release, as an administrator has it: its own systemd is PID 1 of
# namespaces of its own, in a root that root.sh has made. Its writes are in memory, and gone at the end. It has this
# machine's kernel and network.

# shellcheck disable=SC2016 # the inner shell's
machine_inside='
	lower=$1 folder=$2
	mount -t tmpfs -o mode=755 none "$folder/layer"
	mkdir "$folder/layer/upper" "$folder/layer/work" "$folder/layer/root"
	root=$folder/layer/root
	mount -t overlay -o "lowerdir=$lower,upperdir=$folder/layer/upper,workdir=$folder/layer/work" none "$root"
	mkdir "$root/host" "$root/packages"
	mount --bind "$folder/packages" "$root/packages"
	mount -t proc proc "$root/proc"
	# systemd raises limits of the kernel at its start.
	mount --bind "$root/proc/sys" "$root/proc/sys"
	mount -o remount,bind,ro "$root/proc/sys"
	mount --rbind /sys "$root/sys"
	mount -o remount,bind,ro "$root/sys"
	umount -l "$root/sys/fs/cgroup" 2>/dev/null || true
	mount -t cgroup2 none "$root/sys/fs/cgroup"
	mount -t tmpfs -o mode=755 none "$root/dev"
	for node in null zero full random urandom tty fuse; do
		touch "$root/dev/$node"
		mount --bind "/dev/$node" "$root/dev/$node"
	done
	mkdir "$root/dev/shm" "$root/dev/pts"
	mount -t devpts -o newinstance,ptmxmode=0666 none "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
	touch "$root/dev/console"
	touch "$folder/layer/console"
	mount --bind "$folder/layer/console" "$root/dev/console"
	mount -t tmpfs -o mode=1777 none "$root/dev/shm"
	mount -t tmpfs -o mode=755 none "$root/run"
	mount -t tmpfs -o mode=1777 none "$root/tmp"
	printf "127.0.0.1\tlocalhost machine\n" >"$root/etc/hosts"
	: >"$root/etc/machine-id"
	ln -sf ../proc/self/mounts "$root/etc/mtab"
	cd "$root"
	pivot_root . host
	umount -l /host
	rmdir /host
	exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		/lib/systemd/systemd --show-status=no --log-target=journal multi-user.target'

# machine_start ROOT FOLDER: FOLDER/packages is /packages there.
machine_start() {
	machine_folder=$2
	mkdir -p "$2/layer" "$2/packages" "$2/groups"
	machine_group=$2/groups/rmemfs-machine.$$
	# shellcheck disable=SC2016 # the inner shells'
	unshare --mount --propagation private -- bash -euc '
		mount -t cgroup2 none "$1/groups"
		mkdir "$2"
		echo $$ >"$2/cgroup.procs"
		umount "$1/groups"
		shift 2
		exec unshare "$@"' bash "$2" "$machine_group" \
		--mount --propagation private --uts --ipc --cgroup --pid --fork --kill-child=KILL --mount-proc -- \
		bash -euc "$machine_inside" bash "$1" "$2" >"$2/machine.log" 2>&1 </dev/null &
	machine_outer=$!
	until_true 90 machine_runs || {
		cat "$2/machine.log"
		return 1
	}
}

machine_runs() {
	machine_pid=$(ps -o pid= --ppid "$machine_outer" | tr -d ' ')
	[ -n "$machine_pid" ] || return 1
	[[ $(machine systemctl is-system-running 2>/dev/null) == @(running|degraded) ]]
}

# machine COMMAND...: runs it there as root, as in a login shell.
machine() {
	nsenter --target "$machine_pid" --mount --pid --uts --ipc --cgroup -- \
		env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

machine_group_is_gone() {
	# shellcheck disable=SC2016 # the inner shell's
	unshare --mount --propagation private -- bash -c '
		mount -t cgroup2 none "$1/groups"
		[ ! -d "$2" ] || find "$2" -depth -type d -exec rmdir {} \;
		[ ! -d "$2" ]' bash "$machine_folder" "$machine_group" 2>/dev/null
}

# The namespaces end with PID 1, and all that is in them.
machine_stop() {
	[ -n "${machine_outer:-}" ] || return 0
	[ -z "${machine_pid:-}" ] || kill -KILL "$machine_pid" 2>/dev/null || true
	wait "$machine_outer" 2>/dev/null || true
	until_true 10 machine_group_is_gone
	machine_outer=''
}
