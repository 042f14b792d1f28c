# shellcheck shell=bash disable=SC2154
# manager.bash - a systemd of the test's own, which runs the installed units as they are. It is PID 1 of
# its own namespaces, and knows only the units in units_of_manager. The files of `cmake --install` lie over
# /usr and /etc there. Nothing of it reaches the machine, except its control group.

# The units beside ours: the least that ours and journald depend on.
units_of_manager=(basic.target sysinit.target sockets.target shutdown.target umount.target network-online.target
	remote-fs.target remote-fs-pre.target multi-user.target system.slice -.slice
	systemd-journald.service systemd-journald.socket)

# More options for unshare(1) and nsenter(1): --net gives it a network of its own.
manager_spaces=()

# shellcheck disable=SC2016 # the inner shell's
manager_inside='
	cd /
	mount --bind /proc/sys /proc/sys
	mount -o remount,bind,ro /proc/sys
	mount -o remount,bind,ro /sys
	mount -t cgroup2 none /sys/fs/cgroup
	mount -t tmpfs -o mode=755 none /run
	mount -t tmpfs -o mode=1777 none /dev/shm
	mount -t tmpfs none /var/lib
	mount -t tmpfs -o mode=1777 none /var/tmp
	mkdir /run/units /run/generators /run/over /run/test
	mount --bind "$2" /run/test
	mount -t overlay -o "lowerdir=$1/usr:/usr" none /usr
	mount -t tmpfs none /run/over
	mkdir /run/over/upper /run/over/work
	mount -t overlay -o "lowerdir=$1/etc:/etc,upperdir=/run/over/upper,workdir=/run/over/work" none /etc
	mount -t tmpfs -o mode=1777 none /tmp
	touch /run/console
	mount --bind /run/console /dev/console
	systemd-sysusers rmemfs.conf rmemfs-mounts.conf
	systemd-tmpfiles --create rmemfs.conf rmemfs-mounts.conf
	mkdir -p /etc/systemd/journald.conf.d
	printf "[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\nRateLimitBurst=0\n" >/etc/systemd/journald.conf.d/test.conf
	for unit in $3 rmemfs-server.service rmemfs@.service rmemfs-metrics.service; do
		cp /usr/lib/systemd/system/$unit /run/units/ 2>/dev/null || printf "[Unit]\n" >/run/units/$unit
	done
	cp -r /usr/lib/systemd/system/rmemfs-metrics.service.d /run/units/
	printf "[Unit]\nDefaultDependencies=no\nWants=systemd-journald.socket basic.target\n" >/run/units/default.target
	exec env -i container=test PATH=/usr/sbin:/usr/bin SYSTEMD_UNIT_PATH=/run/units \
		SYSTEMD_GENERATOR_PATH=/run/generators SYSTEMD_ENVIRONMENT_GENERATOR_PATH=/run/generators \
		/lib/systemd/systemd --show-status=no --log-target=journal'

# start_manager ROOT: a manager with the files that were installed to ROOT.
start_manager() {
	mkdir "$dir/groups"
	# shellcheck disable=SC2016 # the inner shells'
	unshare --mount --propagation private -- bash -euc '
		mount -t cgroup2 none "$1/groups"
		mkdir "$2"
		echo $$ >"$2/cgroup.procs"
		umount "$1/groups"
		shift 2
		exec unshare "$@"' bash "$dir" "$(manager_group)" \
		"${manager_spaces[@]}" --mount --propagation private --uts --ipc --cgroup --pid --fork --kill-child=KILL --mount-proc -- \
		bash -euc "$manager_inside" bash "$1" "$dir" "${units_of_manager[*]}" >"$dir/manager.log" 2>&1 3>&- &
	manager_outer=$!
	until_true 20 manager_runs || die "systemd does not run"
}

manager_runs() {
	manager=$(ps -o pid= --ppid "$manager_outer" | tr -d ' ')
	[ -n "$manager" ] || return 1
	[[ $(managed systemctl is-system-running 2>/dev/null) == @(running|degraded) ]]
}

# managed COMMAND...: runs it beside the manager.
managed() {
	nsenter --target "$manager" --mount --pid --uts --ipc --cgroup "${manager_spaces[@]}" -- "$@" 3>&-
}

manager_group() {
	echo "$dir/groups/rmemfs-test.$port"
}

manager_group_is_gone() {
	# shellcheck disable=SC2016 # the inner shell's
	unshare --mount --propagation private -- bash -c '
		mount -t cgroup2 none "$1/groups"
		[ ! -d "$2" ] || find "$2" -depth -type d -exec rmdir {} \;
		[ ! -d "$2" ]' bash "$dir" "$(manager_group)" 2>/dev/null
}

# The namespaces end with PID 1, and all that is in them.
stop_manager() {
	[ -n "${manager_outer:-}" ] || return 0
	[ -z "$manager" ] || kill -KILL "$manager"
	wait "$manager_outer" 2>/dev/null || true
	until_true 10 manager_group_is_gone
}
