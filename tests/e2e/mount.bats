#!/usr/bin/env bats
# mount.bats - mount(8), fstab, umount(8), and mounts by ordinary users.
#
# mount(8) finds its helpers in /sbin and its table in /etc. In the test's own mount namespace both are
# laid over this machine's. Outside nothing of it is seen or stays. The transport makes no difference, so
# each test runs over one.

# shellcheck disable=SC2154 # what helpers set
load helpers

setup() {
	setup_rmem
	chmod 711 "$dir"
	place=$dir/place
	mkdir "$place"
	own_mounts
	[ -z "$key_file" ] || { chgrp 65534 "$key_file" && chmod 640 "$key_file"; }
	start_server
}

teardown() {
	local failed=0
	end_own_mounts || failed=1
	teardown_rmem || failed=1
	return $failed
}

# ---- a mount namespace ---------------------------------------------------------------------------

inside() {
	nsenter --mount="/proc/$holder/ns/mnt" -- "$@"
}

# separated PID: the process has left our mount namespace.
separated() {
	[ "$(readlink "/proc/$1/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ]
}

# over FOLDER: files in $place/up/FOLDER appear there.
over() {
	inside mkdir -p "$place/up/$1" "$place/work/$1"
	inside mount -t overlay -o "lowerdir=/$1,upperdir=$place/up/$1,workdir=$place/work/$1" none "/$1"
}

# Our copies must not keep the mounts of other tests alive.
drop_mounts() {
	inside findmnt -n -r -t fuse.rmemfs -o TARGET | while read -r target; do
		inside umount -l "$target"
	done
}

own_mounts() {
	unshare --mount --propagation private sleep infinity 3>&- &
	holder=$!
	echo $holder >"$dir/holder.pid"
	until_true 5 separated $holder
	drop_mounts
	inside mount -t tmpfs -o mode=755 none "$place"
	over usr/sbin
	over etc
	inside ln -s "$bin/rmemfs" /usr/sbin/rmemfs
	inside ln -s rmemfs /usr/sbin/mount.rmemfs
	inside ln -s rmemfs /usr/sbin/mount.fuse.rmemfs
	inside mkdir -p /etc/rmemfs
	inside cp /dev/null /etc/rmemfs/client.conf
	inside cp /dev/null /etc/fuse.conf
	# As udev makes it: all users may ask fusermount3 for a mount.
	inside mknod -m 666 "$place/fuse" c 10 229
	inside mount --bind "$place/fuse" /dev/fuse
}

# Prints the daemons, without the guards beside them.
daemons_inside() {
	local process
	# There are many: nothing is forked for one.
	for process in /proc/[0-9]*; do
		[ ! "$process/exe" -ef "$bin/rmemfs" ] ||
			[ ! "$process/ns/mnt" -ef "/proc/$holder/ns/mnt" ] ||
			grep -qsx "(rmemfs-guard)" "$process/comm" ||
			echo "${process#/proc/}"
	done
}

no_daemon_inside() {
	[ -z "$(daemons_inside)" ]
}

# Each daemon must end by itself.
end_own_mounts() {
	local failed=0 pid
	[ -n "${holder:-}" ] || return 0
	drop_mounts
	until_true 20 no_daemon_inside || {
		failed=1
		for pid in $(daemons_inside); do
			echo "daemon $pid did not end"
			kill -KILL "$pid"
		done
	}
	kill -KILL "$holder"
	wait "$holder" 2>/dev/null || true
	holder=
	return $failed
}

# options [MORE]: prints -o and the options to reach the test's server.
options() {
	echo "-o$(mount_options)${1:+,$1}"
}

shown() {
	inside findmnt -n -r -o "$1" "${2:-$mnt}"
}

# has_flags LIST, lacks_flags LIST: test the kernel's flags of the mount at $mnt.
has_flags() {
	local flag
	for flag in ${1//,/ }; do
		[[ ,$(shown VFS-OPTIONS), == *,$flag,* ]] || die "$flag is not in $(shown VFS-OPTIONS)"
	done
}

lacks_flags() {
	local flag
	for flag in ${1//,/ }; do
		[[ ,$(shown VFS-OPTIONS), != *,$flag,* ]] || die "$flag is in $(shown VFS-OPTIONS)"
	done
}

# Waits until the last mount's daemon is gone, and its session with it.
unmount() {
	inside umount "$mnt"
	until_true 20 no_daemon_inside
}

# fails STATUS TEXT COMMAND...: the command, run inside, fails with one line that has TEXT.
fails() {
	local expected=$1 text=$2
	shift 2
	run inside "$@" 3>&-
	echo "$output"
	output=$(without_waiting <<<"$output")
	[ "$status" -eq "$expected" ]
	[ "$(wc -l <<<"$output")" -eq 1 ]
	[[ $output == *"$text"* ]]
}

# ---- root ----------------------------------------------------------------------------------------

# bats test_tags=only:shm
@test "mount -t rmemfs and -t fuse.rmemfs mount for all users" {
	for type in rmemfs fuse.rmemfs; do
		inside mount -t $type "$(options)" "$(mount_source)" "$mnt"
		[ "$(shown SOURCE,FSTYPE)" = "$(mount_source) fuse.rmemfs" ]
		has_flags rw,nosuid,nodev
		lacks_flags noexec
		inside sh -c "echo $type >$mnt/a && cat $mnt/a"
		run as_user cat "$mnt/a"
		[ "$output" = $type ]
		unmount
	done
}

# bats test_tags=only:shm
@test "the options of mount(8) hold" {
	inside mount -t rmemfs "$(options nosuid,nodev,noexec,noatime)" -r "$(mount_source)" "$mnt"
	has_flags ro,nosuid,nodev,noexec,noatime
	run inside touch "$mnt/a"
	[[ $output == *"Read-only file system"* ]]
}

# fstab [OPTION,...]: writes a table with one line, for the test's mount.
fstab() {
	inside tee /etc/fstab <<<"$(mount_source) $mnt rmemfs ${1:+$1,}$(mount_options) 0 0"
}

# mounts HAS LACKS COMMAND...: the mount has the flags HAS and none of LACKS.
mounts() {
	local has=$1 lacks=$2
	shift 2
	echo "$*"
	inside "$@"
	has_flags "$has"
	lacks_flags "$lacks"
	unmount
}

# bats test_tags=only:shm
@test "nosuid,nodev hold unless suid, dev are said, however it is mounted; defaults does not say so" {
	local by_type=(mount -t rmemfs "$(mount_source)" "$mnt")
	mounts nosuid,nodev noexec rmemfs "$(options)" "$(mount_source)" "$mnt"
	mounts nosuid,nodev noexec rmemfs "$(options defaults)" "$(mount_source)" "$mnt"
	mounts rw suid,nosuid,nodev rmemfs "$(options suid,dev)" "$(mount_source)" "$mnt"
	mounts nosuid,nodev noexec mount.rmemfs "$(mount_source)" "$mnt" "$(options rw)"
	mounts nodev nosuid mount.fuse.rmemfs "$(mount_source)" "$mnt" "$(options rw,suid)"
	mounts nosuid,nodev noexec "${by_type[@]}" "$(options defaults)"
	mounts nosuid nodev "${by_type[@]}" "$(options allow_dev)"
	mounts rw nosuid,nodev "${by_type[@]}" "$(options defaults,allow_suid,allow_dev)"
	fstab defaults
	mounts nosuid,nodev noexec mount "$mnt"
	fstab defaults,allow_suid
	mounts nodev nosuid mount -a
	# The kernel gets this flag in the mount call, not only through libfuse.
	mounts nosuid,nodev,nosymfollow noexec "${by_type[@]}" "$(options nosymfollow)"
	mounts nosymfollow nosuid,nodev "${by_type[@]}" "$(options nosymfollow,allow_suid,allow_dev)"
}

# change OPTIONS: remounts with OPTIONS by mount(8), then with rw.
change() {
	inside mount -o "remount,$1" "$mnt"
	inside mount -o remount,rw "$mnt"
}

# bats test_tags=only:shm
@test "a remount keeps nosuid,nodev, or suid and dev, unless it says otherwise" {
	inside mount -t rmemfs "$(options)" "$(mount_source)" "$mnt"
	change ro
	has_flags nosuid,nodev
	change suid
	has_flags nodev
	lacks_flags nosuid
	change ro
	has_flags nodev
	lacks_flags nosuid
	change nosuid,dev
	has_flags nosuid
	lacks_flags nodev
	# A line of fstab without the flags neither sets nor clears them.
	fstab defaults
	change ro
	has_flags nosuid
	lacks_flags nodev
	change allow_suid,nodev
	has_flags nodev
	lacks_flags nosuid
	unmount
	inside mount "$mnt"
	change ro
	has_flags nosuid,nodev
	fstab allow_suid
	inside mount -o remount "$mnt"
	has_flags nodev
	lacks_flags nosuid
}

# bats test_tags=only:shm
@test "what the server calls root's set-user-id program runs without privilege, and no device opens" {
	inside mount -t rmemfs "$(options)" "$(mount_source)" "$mnt"
	inside cp /usr/bin/id "$mnt/id"
	inside chmod 4755 "$mnt/id"
	inside mknod -m 666 "$mnt/null" c 1 3
	[ "$(as_user "$mnt/id" -u)" -eq 65534 ]
	fails 1 "Permission denied" cat "$mnt/null"
	inside mount -o remount,suid,dev "$mnt"
	[ "$(as_user "$mnt/id" -u)" -eq 0 ]
	inside cat "$mnt/null"
	inside mount -o remount,nosuid,nodev "$mnt"
	[ "$(as_user "$mnt/id" -u)" -eq 65534 ]
	fails 1 "Permission denied" cat "$mnt/null"
}

# bats test_tags=only:shm
@test "nosymfollow holds, and a remount lifts it" {
	inside mount -t rmemfs "$(options nosymfollow,silent,iversion,acl,user_xattr)" "$(mount_source)" "$mnt"
	has_flags rw,nosymfollow,nosuid,nodev
	inside sh -c "echo there >$mnt/a && ln -s a $mnt/link"
	[ "$(inside readlink "$mnt/link")" = a ]
	run inside cat "$mnt/link"
	[[ $output == *"Too many levels of symbolic links"* ]]
	inside mount -o remount,symfollow "$mnt"
	lacks_flags nosymfollow
	has_flags nosuid,nodev
	[ "$(inside cat "$mnt/link")" = there ]
	inside mount -o remount,ro,nosymfollow "$mnt"
	has_flags ro,nosymfollow
}

# bats test_tags=only:shm
@test "a line of fstab is mounted by mount -a, by its mount point and by its source" {
	inside tee /etc/fstab >/dev/null <<-END
		$(mount_source) $mnt rmemfs _netdev,nofail,x-systemd.automount,comment=ours,nosuid,$(mount_options) 0 0
	END
	for argument in -a "$mnt" "$(mount_source)"; do
		inside mount "$argument"
		[ "$(shown SOURCE,FSTYPE)" = "$(mount_source) fuse.rmemfs" ]
		has_flags rw,nosuid
		# mount -a does not mount it twice.
		inside mount -a
		[ "$(inside grep -c " $mnt " /proc/self/mountinfo)" -eq 1 ]
		unmount
	done
	inside sed -i 's/ rmemfs / fuse.rmemfs noauto,/' /etc/fstab
	inside mount -a
	no_daemon_inside
	inside mount "$mnt"
	has_flags rw,nosuid
}

# bats test_tags=only:shm
@test "what mount(8) was called with as standard error is nobody's when it has ended" {
	inside mount -t rmemfs "$(options)" "$(mount_source)" "$mnt" >"$dir/said" 2>&1
	local pid
	pid=$(daemons_inside)
	[ -n "$pid" ]
	[ "$(readlink "/proc/$pid/fd/2")" != "$dir/said" ]
	unmount
	[ ! -s "$dir/said" ]
}

# bats test_tags=only:shm
@test "mount.fuse3 mounts it where there is no helper of ours" {
	inside rm /usr/sbin/mount.fuse.rmemfs
	inside mount -t fuse.rmemfs "$(options)" "$(mount_source)" "$mnt"
	[ "$(shown SOURCE,FSTYPE)" = "$(mount_source) fuse.rmemfs" ]
	has_flags nosuid,nodev
	inside mount -o remount,ro "$mnt"
	has_flags ro,nosuid,nodev
	unmount
	inside mount -t fuse.rmemfs "$(options allow_suid)" "$(mount_source)" "$mnt"
	has_flags nodev
	lacks_flags nosuid
	inside mount -o remount,ro "$mnt"
	has_flags ro,nodev
	lacks_flags nosuid
}

# bats test_tags=only:shm
@test "umount -l lets go of the name, and of the mount with the last open file" {
	inside mount -t rmemfs "$(options)" "$(mount_source)" "$mnt"
	mkfifo "$dir/release"
	inside sh -c "exec 3>$mnt/a; read -r x <$dir/release; echo still here >&3" 3>&- &
	user=$!
	until_true 5 inside test -e "$mnt/a"
	run inside umount "$mnt"
	[[ $output == *busy* ]]
	inside umount -l "$mnt"
	run inside mountpoint -q "$mnt"
	[ "$status" -ne 0 ]
	[ -n "$(daemons_inside)" ]
	echo >"$dir/release"
	exit_status $user 5
	until_true 20 no_daemon_inside
	inside mount -t rmemfs "$(options)" "$(mount_source)" "$mnt"
	[ "$(inside cat "$mnt/a")" = "still here" ]
}

# bats test_tags=only:shm
@test "remount changes ro, rw, nosuid and so on, and nothing else" {
	inside mount -t rmemfs "$(options)" "$(mount_source)" "$mnt"
	inside mount -o remount,ro "$mnt"
	has_flags ro
	run inside touch "$mnt/a"
	[[ $output == *"Read-only file system"* ]]
	inside mount -o remount,rw,dev,noexec "$mnt"
	has_flags rw,nosuid,noexec
	lacks_flags nodev
	inside touch "$mnt/a"
	[ "$(inside grep -c " $mnt " /proc/self/mountinfo)" -eq 1 ]
	unmount
	inside mount -t rmemfs "$(options ro,noexec,strictatime)" "$(mount_source)" "$mnt"
	has_flags ro,noexec
	lacks_flags relatime
	inside mount -o remount,rw "$mnt"
	has_flags rw,noexec
	lacks_flags relatime
	inside sh -c "echo more >$mnt/a"
	inside mount -o remount,ro "$mnt"
	run inside touch "$mnt/a"
	[[ $output == *"Read-only file system"* ]]
}

# bats test_tags=only:shm
@test "remount tells what it can't do" {
	inside mount -t rmemfs "$(options)" "$(mount_source)" "$mnt"
	mkfifo "$dir/release"
	inside sh -c "exec 3>$mnt/a; read -r x <$dir/release" 3>&- &
	user=$!
	until_true 5 inside test -e "$mnt/a"
	fails 32 "cannot remount $mnt: files are open for writing" mount -o remount,ro "$mnt"
	echo >"$dir/release"
	exit_status $user 5
	unmount
	fails 32 "cannot remount $mnt: no rmemfs is mounted there" \
		mount.rmemfs "$(mount_source)" "$mnt" -o remount,ro
	users_folder
	chmod 666 "$socket"
	as_user rmemfs "$(options)" "$(mount_source)" "$mnt"
	fails 32 "cannot remount $mnt: only the user of that mount can reach it" mount -o remount,ro "$mnt"
	has_flags rw
}

# bats test_tags=only:shm
@test "mount -f does all but mounting" {
	inside mount -f -v -t rmemfs "$(options)" "$(mount_source)" "$mnt"
	no_daemon_inside
	fails 32 "no such directory" mount -f -t rmemfs "$(options)" "$(mount_source)" "$dir/missing"
	fails 1 "nosuch" mount -f -t rmemfs -o nosuch "$(mount_source)" "$mnt"
}

# bats test_tags=only:shm
@test "exit statuses are those of a mount helper, and the reason is said once" {
	fails 1 "option 'nosuch': unknown" mount -t rmemfs "$(options nosuch)" "$(mount_source)" "$mnt"
	fails 1 "source 'here'" mount -t rmemfs here "$mnt"
	fails 1 "option 'port': shm has no ports" mount -t rmemfs -o transport=shm,port=7 here:/e "$mnt"
	fails 1 "a socket's path, which transport=tcp can't use" \
		mount -t rmemfs -o transport=tcp /nowhere.sock:/e "$mnt"
	fails 32 "no server at shm /nowhere.sock: No such file or directory" \
		mount -t rmemfs -o connect_timeout=1 /nowhere.sock:/e "$mnt"
	fails 32 "no such directory" mount -t rmemfs "$(options)" "$(mount_source)" "$dir/missing"
	fails 32 "no export 'nosuch'" mount -t rmemfs "$(options)" "$(mount_source nosuch)" "$mnt"
	inside mount -t rmemfs "$(options)" "$(mount_source)" "$mnt"
	fails 32 "is mounted there already" mount -t rmemfs "$(options)" "$(mount_source)" "$mnt"
}

# bats test_tags=only:shm
@test "mount -s passes over options that nobody knows" {
	inside mount -s -t rmemfs "$(options nosuch,vers=3)" "$(mount_source)" "$mnt"
	inside touch "$mnt/a"
}

# bats test_tags=only:shm
@test "mount -N mounts in another mount namespace" {
	unshare --mount --propagation private sleep infinity 3>&- &
	other=$!
	echo $other >"$dir/other.pid"
	until_true 5 separated $other
	inside mount -N $other -t rmemfs "$(options)" "$(mount_source)" "$mnt"
	run inside mountpoint -q "$mnt"
	[ "$status" -ne 0 ]
	run mountpoint -q "$mnt"
	[ "$status" -ne 0 ]
	nsenter -t $other -m findmnt -n -t fuse.rmemfs "$mnt"
	nsenter -t $other -m touch "$mnt/a"
	nsenter -t $other -m umount "$mnt"
	kill -KILL $other
	fails 32 "mount namespace /nowhere: No such file or directory" \
		mount.rmemfs "$(mount_source)" "$mnt" -N /nowhere
}

# The daemon's process may be gone before its last thread has closed the device. stat(1) may get its
# answer from the kernel's cache, without a daemon; stat -f does not.
has_no_daemon() {
	[[ $(inside stat -f "$mnt" 2>&1) == *"Transport endpoint is not connected"* ]]
}

# bats test_tags=only:shm
@test "a mount that has lost its daemon is replaced" {
	inside mount -t rmemfs "$(options)" "$(mount_source)" "$mnt"
	kill -KILL "$(daemons_inside)"
	until_true 20 has_no_daemon
	run inside mount -f -t rmemfs "$(options)" "$(mount_source)" "$mnt"
	[[ $output == *"a mount without its daemon is there"* ]]
	inside mount -t rmemfs "$(options connect_timeout=60)" "$(mount_source)" "$mnt" 2>"$dir/mount.log"
	grep -qF "$mnt: took a mount away that had lost its daemon" "$dir/mount.log"
	inside touch "$mnt/a"
	[ "$(inside grep -c " $mnt " /proc/self/mountinfo)" -eq 1 ]
}

# bats test_tags=only:shm
@test "a mount in use that has lost its daemon, and whose root the kernel remembers, is replaced" {
	# Alone for good, so that the kernel remembers for long.
	inside mount -t rmemfs "$(options exclusive)" "$(mount_source)" "$mnt"
	inside sh -c "echo data >$mnt/a; sync $mnt/a"
	mkfifo "$dir/release"
	inside sh -c "exec 3<$mnt/a 4<$mnt && cd $mnt && echo >$dir/opened; read -r x <$dir/release" 3>&- &
	user=$!
	until_true 5 test -e "$dir/opened"
	pid=$(daemons_inside)
	inside ls -l "$mnt"
	inside stat "$mnt"
	kill -KILL "$pid"
	until_true 20 has_no_daemon
	# The root's attributes are in the kernel's cache, so stat succeeds without a daemon.
	inside stat "$mnt"
	run inside mount -f -t rmemfs "$(options)" "$(mount_source)" "$mnt"
	echo "$output"
	[[ $output == *"a mount without its daemon is there"* ]]
	inside mount -t rmemfs "$(options connect_timeout=60)" "$(mount_source)" "$mnt" 2>"$dir/mount.log"
	grep -qF "$mnt: took a mount away that had lost its daemon" "$dir/mount.log"
	[ "$(inside cat "$mnt/a")" = data ]
	[ "$(inside grep -c " $mnt " /proc/self/mountinfo)" -eq 1 ]
	echo >"$dir/release"
	exit_status $user 5
}

# ---- a server that is not there yet --------------------------------------------------------------

# alone COMMAND...: runs it in the background with a loopback network of its own. Output: $dir/alone.log.
alone() {
	# shellcheck disable=SC2016 # the inner shell's
	nsenter --mount="/proc/$holder/ns/mnt" -- unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$@" \
		>"$dir/alone.log" 2>&1 3>&- &
	alone=$!
	echo $alone >"$dir/alone.pid"
}

# waits_for TEXT: the mount reports this cause and that it waits.
waits_for() {
	until_true 20 grep -q "$1; trying for 600 s$" "$dir/alone.log"
}

# bats test_tags=only:shm
@test "with auto a mount that waits for this machine's server takes the socket when it comes" {
	inside mount -t tmpfs none /run
	inside mkdir /run/rmemfs
	alone rmemfs -f -o connect_timeout=600 localhost:/default "$mnt"
	waits_for "no server at tcp 127.0.0.1:7470: Connection refused (nor at /run/rmemfs/server.sock): start rmemfs-server there, or check the address, the port and firewalls"
	stop_server
	nsenter --mount="/proc/$holder/ns/mnt" rmemfs-server -c /dev/null --memory-dir "$memory/here" \
		--export default:64MiB --listen shm:/run/rmemfs/server.sock >>"$dir/server.log" 2>&1 3>&- &
	server_pid=$!
	echo $server_pid >"$dir/server.pid"
	until_true 30 grep -qF "localhost:/default is mounted on $mnt over shm /run/rmemfs/server.sock" "$dir/alone.log"
	unmount
	exit_status $alone 10
}

# bats test_tags=only:shm
@test "a name that can't be resolved yet is waited for, one that there is not ends the mount" {
	inside tee /etc/nsswitch.conf <<<"hosts: files"
	fails 32 "no such host: server.test" timeout 30 mount -t rmemfs -o connect_timeout=3600 server.test:/default "$mnt"
	inside tee /etc/nsswitch.conf <<<"hosts: files dns"
	inside tee /etc/resolv.conf <<<"nameserver 127.0.0.1"
	alone rmemfs -f -o transport=tcp,connect_timeout=600 server.test:/nosuch "$mnt"
	waits_for "can't resolve server.test: .*"
	inside tee -a /etc/hosts <<<"127.0.0.1 server.test"
	# The mount waits for the next missing thing.
	until_true 20 grep -q "no server at tcp 127.0.0.1:7470" "$dir/alone.log"
	kill -TERM $alone
	exit_status $alone 10 || [ $? -eq 143 ]
}

# ---- ordinary users ------------------------------------------------------------------------------

# Runs a command as a user, who may lock little memory.
as_user() {
	prlimit --memlock=65536:65536 nsenter --mount="/proc/$holder/ns/mnt" -- \
		setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

users_folder() {
	mnt=$place/home
	inside mkdir "$mnt"
	inside chown 65534:65534 "$mnt"
}

# bats test_tags=only:tcp
@test "a user mounts a folder of their own, without suid and dev whatever they ask for" {
	users_folder
	as_user rmemfs "$(options suid,dev)" "$(mount_source)" "$mnt" 2>"$dir/mount.log"
	has_flags nosuid,nodev
	[ "$(shown SOURCE,FSTYPE)" = "$(mount_source) fuse.rmemfs" ]
	[[ ,$(shown FS-OPTIONS), == *,user_id=65534,* ]]
	as_user stat "$mnt"
	# Root has no access either, until the user allows it.
	run inside ls "$mnt"
	[ "$status" -ne 0 ]
	as_user fusermount3 -u "$mnt"
	until_true 20 no_daemon_inside
	as_user rmemfs "$(options)" "$(mount_source)" "$mnt"
	as_user umount "$mnt"
}

# bats test_tags=only:tcp
@test "a user's mount does without low_latency, and says so" {
	users_folder
	as_user rmemfs "$(options low_latency)" "$(mount_source)" "$mnt" 2>"$dir/mount.log"
	grep 'warning: low_latency: /dev/cpu_dma_latency: .*: the CPUs may sleep' "$dir/mount.log"
	as_user stat "$mnt"
	as_user fusermount3 -u "$mnt"
}

# bats test_tags=only:tcp
@test "fstab's user, users and owner let users mount, nosuid and nodev, and noexec for the first two" {
	users_folder
	for word in user users owner user,exec; do
		inside tee /etc/fstab >/dev/null <<-END
			$(mount_source) $mnt rmemfs noauto,$word,$(mount_options) 0 0
		END
		# "owner" means the source's owner, and the source is no device.
		if [ $word != owner ]; then
			as_user mount "$mnt"
			has_flags nosuid,nodev
			case $word in
			user | users) has_flags noexec ;;
			*) lacks_flags noexec ;;
			esac
			as_user umount "$mnt"
			until_true 20 no_daemon_inside
		fi
		inside mount "$mnt"
		has_flags nosuid,nodev
		unmount
	done
}

# bats test_tags=only:tcp
@test "a user's mount that is refused says why once, and leaves the export free" {
	users_folder
	run as_user rmemfs "$(options allow_other)" "$(mount_source)" "$mnt"
	echo "$output"
	[ "$status" -eq 32 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == "rmemfs: $mnt: cannot mount: fusermount3: option allow_other only allowed if 'user_allow_other' is set in /etc/fuse.conf" ]]
	inside mkdir "$place/roots"
	run as_user rmemfs "$(options connect_timeout=5)" "$(mount_source)" "$place/roots"
	echo "$output"
	[ "$status" -eq 32 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *"user has no write access to mountpoint $place/roots" ]]
	echo user_allow_other | inside tee /etc/fuse.conf
	as_user rmemfs "$(options allow_other,connect_timeout=5)" "$(mount_source)" "$mnt"
	inside ls "$mnt"
}

# bats test_tags=only:tcp
@test "root remounts a user's mount that is everybody's, whose daemon may look at little of root's" {
	users_folder
	echo user_allow_other | inside tee /etc/fuse.conf
	as_user rmemfs "$(options allow_other)" "$(mount_source)" "$mnt"
	inside mount -t rmemfs -o remount,ro "$(mount_source)" "$mnt"
	has_flags ro
	run inside touch "$mnt/a"
	[ "$status" -ne 0 ]
	inside mount -t rmemfs -o remount,rw "$(mount_source)" "$mnt"
	inside touch "$mnt/a"
}

# bats test_tags=only:shm
@test "over a socket a user needs the right to connect" {
	users_folder
	chmod 600 "$socket"
	# A longer timeout would not help.
	run as_user timeout 30 rmemfs "$(options connect_timeout=3600)" "$(mount_source)" "$mnt"
	echo "$output"
	[ "$status" -eq 32 ]
	[[ $output == *"$socket"*"Permission denied"* ]]
	chmod 666 "$socket"
	as_user rmemfs "$(options)" "$(mount_source)" "$mnt"
	as_user stat "$mnt"
}
