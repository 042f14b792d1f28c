#!/usr/bin/env bats
# install.bats - the files of `cmake --install`, used in their places: laid over this machine's /usr and
# /etc, in a mount namespace of the test's own.
bats_require_minimum_version 1.5.0

# bats file_tags=once

# shellcheck disable=SC2154 # what helpers set
load helpers

setup() {
	# shellcheck disable=SC2034 # the helpers take it
	transport=shm
	setup_rmem
	root=$dir/root
	chmod 711 "$dir"
	install_to "$root"
}

teardown() {
	teardown_rmem
}

install_to() {
	DESTDIR=$1 cmake --install "${bin%/bin}" >"$dir/install.log"
}

# installed SCRIPT [ARGUMENT]...: runs SCRIPT by bash with the files in place; /etc is writable.
installed() {
	local script=$1
	shift
	# shellcheck disable=SC2016 # the inner shell's
	unshare --mount --propagation private -- bash -euc '
		umount -a -t fuse.rmemfs # the copies of other tests
		mount -t overlay -o "lowerdir=$1/usr:/usr" none /usr
		mkdir "$2/over"
		mount -t tmpfs none "$2/over"
		mkdir "$2/over/upper" "$2/over/work"
		mount -t overlay -o "lowerdir=$1/etc:/etc,upperdir=$2/over/upper,workdir=$2/over/work" none /etc
		export PATH=/usr/sbin:/usr/bin
		script=$3
		shift 3
		eval "$script"' bash "$root" "$dir" "$script" "$@"
}

@test "exactly this is installed" {
	(cd "$root" && find . ! -type d -printf '%M %P %l\n' -o -empty -printf '%M %P\n') |
		sed 's/ *$//' | LC_ALL=C sort >"$dir/found"
	(cd "$repository" && find common daemon server -name README.md \
		-printf '-rw-r--r-- usr/share/doc/rmemfs/%p\n') >"$dir/pages"
	LC_ALL=C sort - "$dir/pages" >"$dir/expected" <<-END
		-rw-r--r-- etc/rmemfs/client.conf
		-rw-r--r-- etc/rmemfs/server.conf
		drwxr-x--- etc/rmemfs/keys
		drwxr-xr-x etc/rmemfs/exports.d
		drwxr-xr-x etc/rmemfs/mounts
		-rwxr-xr-x usr/bin/rmemfs-metrics
		-rwxr-xr-x usr/bin/rmemfsctl
		-rw-r--r-- usr/lib/modules-load.d/rmemfs.conf
		-rw-r--r-- usr/lib/systemd/system/rmemfs-metrics.service
		-rw-r--r-- usr/lib/systemd/system/rmemfs-metrics.service.d/server.conf
		-rw-r--r-- usr/lib/systemd/system/rmemfs-server.service
		-rw-r--r-- usr/lib/systemd/system/rmemfs@.service
		-rw-r--r-- usr/lib/sysusers.d/rmemfs-mounts.conf
		-rw-r--r-- usr/lib/sysusers.d/rmemfs.conf
		-rw-r--r-- usr/lib/tmpfiles.d/rmemfs-mounts.conf
		-rw-r--r-- usr/lib/tmpfiles.d/rmemfs.conf
		lrwxrwxrwx usr/sbin/mount.fuse.rmemfs rmemfs
		lrwxrwxrwx usr/sbin/mount.rmemfs rmemfs
		lrwxrwxrwx usr/share/bash-completion/completions/rmemfs-server rmemfs
		lrwxrwxrwx usr/share/bash-completion/completions/rmemfsctl rmemfs
		lrwxrwxrwx usr/share/man/man8/mount.fuse.rmemfs.8 rmemfs.8
		lrwxrwxrwx usr/share/man/man8/mount.rmemfs.8 rmemfs.8
		-rwxr-xr-x usr/sbin/rmemfs
		-rwxr-xr-x usr/sbin/rmemfs-server
		-rw-r--r-- usr/share/bash-completion/completions/rmemfs
		-rw-r--r-- usr/share/doc/rmemfs/ARCHITECTURE.md
		-rw-r--r-- usr/share/doc/rmemfs/CHANGELOG.md
		-rw-r--r-- usr/share/doc/rmemfs/CONTRIBUTING.md
		-rw-r--r-- usr/share/doc/rmemfs/LICENSE
		-rw-r--r-- usr/share/doc/rmemfs/PERFORMANCE.md
		-rw-r--r-- usr/share/doc/rmemfs/README.md
		-rw-r--r-- usr/share/doc/rmemfs/config/Containerfile
		-rw-r--r-- usr/share/doc/rmemfs/config/client.conf
		-rw-r--r-- usr/share/doc/rmemfs/config/container.sh
		-rw-r--r-- usr/share/doc/rmemfs/config/kubernetes/README.md
		-rw-r--r-- usr/share/doc/rmemfs/config/kubernetes/client.yaml
		-rw-r--r-- usr/share/doc/rmemfs/config/kubernetes/server.yaml
		-rw-r--r-- usr/share/doc/rmemfs/config/kubernetes/volume.yaml
		-rw-r--r-- usr/share/doc/rmemfs/config/monitoring/README.md
		-rw-r--r-- usr/share/doc/rmemfs/config/monitoring/prometheus.yml
		-rw-r--r-- usr/share/doc/rmemfs/config/monitoring/rmemfs.dashboard.json
		-rw-r--r-- usr/share/doc/rmemfs/config/monitoring/rmemfs.rules.yml
		-rw-r--r-- usr/share/doc/rmemfs/config/server.conf
		-rw-r--r-- usr/share/doc/rmemfs/config/tracing/README.md
		-rw-r--r-- usr/share/doc/rmemfs/config/tracing/recalls.bt
		-rw-r--r-- usr/share/doc/rmemfs/config/tracing/requests.bt
		-rw-r--r-- usr/share/doc/rmemfs/config/tracing/server.bt
		-rw-r--r-- usr/share/doc/rmemfs/config/tracing/slow.bt
		-rw-r--r-- usr/share/doc/rmemfs/docs/GUIDE.md
		-rw-r--r-- usr/share/doc/rmemfs/example.env
		-rw-r--r-- usr/share/doc/rmemfs/tests/bench/README.md
		-rw-r--r-- usr/share/doc/rmemfs/tests/bench/plots/README.csv
		-rw-r--r-- usr/share/doc/rmemfs/tests/bench/plots/README.svg
		-rw-r--r-- usr/share/doc/rmemfs/tests/bench/plots/guest-names.csv
		-rw-r--r-- usr/share/doc/rmemfs/tests/bench/plots/guest-names.svg
		-rw-r--r-- usr/share/doc/rmemfs/tests/bench/plots/native-blocks.csv
		-rw-r--r-- usr/share/doc/rmemfs/tests/bench/plots/native-blocks.svg
		-rw-r--r-- usr/share/doc/rmemfs/tests/bench/plots/native-names.csv
		-rw-r--r-- usr/share/doc/rmemfs/tests/bench/plots/native-names.svg
		-rw-r--r-- usr/share/man/man5/rmemfs.conf.5
		-rw-r--r-- usr/share/man/man7/rmemfs-guide.7
		-rw-r--r-- usr/share/man/man8/rmemfs-server.8
		-rw-r--r-- usr/share/man/man8/rmemfs-metrics.8
		-rw-r--r-- usr/share/man/man8/rmemfs.8
		-rw-r--r-- usr/share/man/man8/rmemfsctl.8
		-rw-r--r-- usr/share/zsh/vendor-completions/_rmemfs
	END
	diff "$dir/expected" "$dir/found"
	for page in daemon/rmemfs.8 server/rmemfs-server.8 daemon/rmemfsctl.8 config/rmemfs.conf.5 docs/rmemfs-guide.7; do
		cmp "$repository/$page" "$root/usr/share/man/man${page##*.}/${page##*/}"
	done
}

@test "what the installed documents link to is installed" {
	local page link links=0
	while read -r page; do
		for link in $(grep -oE '\]\([^)#:]+[)#]' "$page" | tr -d '()#]'); do
			links=$((links + 1))
			[ -e "${page%/*}/$link" ] || die "$page: no $link"
		done
	done < <(find "$root/usr/share/doc" -name '*.md')
	[ $links -ge 10 ]
}

@test "the installed programs run, with the installed configuration" {
	# shellcheck disable=SC2016 # the inner shell's
	installed '
		for program in rmemfs rmemfs-server rmemfsctl; do
			[[ $($program --version) == "$program "[0-9]* ]]
			$program --help
			ldd "$(command -v $program)"
		done
		rmemfs-server --check-config --export a:64MiB
		mount -f -t rmemfs host:/default "$1"
	' "$mnt" >"$dir/run.log" 2>&1 || {
		cat "$dir/run.log"
		false
	}
	run grep "not found" "$dir/run.log"
	[ "$status" -eq 1 ]
}

@test "the installed programs read the configuration of their prefix" {
	echo "nonsense = 1" >>"$root/etc/rmemfs/server.conf"
	echo "nonsense = 1" >>"$root/etc/rmemfs/client.conf"
	run installed 'rmemfs-server --check-config'
	echo "$output"
	[ "$status" -eq 78 ]
	[[ $output == *"/etc/rmemfs/server.conf:"*"nonsense"* ]]
	rm -r "$dir/over"
	# shellcheck disable=SC2016
	run installed 'mount -f -t rmemfs host:/default "$1"' "$mnt"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"/etc/rmemfs/client.conf:"*"nonsense"* ]]
}

@test "an edited configuration is kept, a missing one comes back" {
	echo '# ours' >"$root/etc/rmemfs/server.conf"
	rm "$root/etc/rmemfs/client.conf"
	echo damaged >"$root/usr/share/doc/rmemfs/README.md"
	install_to "$root"
	[ "$(cat "$root/etc/rmemfs/server.conf")" = '# ours' ]
	grep -qxF -- "-- Kept: $root/etc/rmemfs/server.conf" "$dir/install.log"
	cmp "$repository/config/client.conf" "$root/etc/rmemfs/client.conf"
	cmp "$repository/README.md" "$root/usr/share/doc/rmemfs/README.md"
}

@test "the units are sound and hardened" {
	for unit in rmemfs-server.service rmemfs@data.service; do
		# shellcheck disable=SC2016
		run installed 'systemd-analyze verify --man=no "$1"' $unit
		echo "$output"
		[ "$status" -eq 0 ]
		[ -z "$output" ]
		rm -r "$dir/over"
	done
	# This shows that verify reports a mistake.
	sed -i 's/^ProtectSystem=/ProtectSystems=/' "$root/usr/lib/systemd/system/rmemfs-server.service"
	run installed 'systemd-analyze verify --man=no rmemfs-server.service'
	[[ $output == *"Unknown key 'ProtectSystems'"* ]]
	rm -r "$dir/over"
	install_to "$root"
	installed '
		systemd-analyze security --offline=true --threshold=18 rmemfs-server.service
		systemd-analyze security --offline=true --threshold=45 rmemfs@.service' >"$dir/security.log"
}

# They would give the service a mount namespace of its own.
@test "the mounts' unit has nothing that hides the mount" {
	local unit=$root/usr/lib/systemd/system/rmemfs@.service
	run ! grep -E '^((Private|Protect)|[A-Za-z]*Paths|Root(Directory|Image)|TemporaryFileSystem|Bind|Mount|DynamicUser)' \
		<(grep -vE '^(ProtectClock|ProtectHostname)=' "$unit")
}

# A comment in the unit says what each key would cost.
@test "the server's unit has nothing that takes its files, or the sight of its clients" {
	local key unit=$root/usr/lib/systemd/system/rmemfs-server.service
	for key in RemoveIPC DynamicUser ProtectProc ProcSubset PrivateUsers; do
		grep -q "^#   $key=" "$unit"
		run ! grep "^$key=" "$unit"
	done
}

@test "the server's user is made" {
	systemd-sysusers --root="$root" rmemfs.conf
	grep '^rmemfs:.*:/usr/sbin/nologin$' "$root/etc/passwd"
}

@test "the sockets of root's mounts are for a group, whose members may look" {
	# shellcheck disable=SC2016 # the inner shell's
	installed '
		mount -t tmpfs none /run
		systemd-sysusers rmemfs-mounts.conf
		systemd-tmpfiles --create rmemfs-mounts.conf
		id -nG rmemfs-metrics | grep -qw rmemfs-monitor
		[ "$(stat -c "%a %U %G" /run/rmemfs-mounts)" = "2750 root rmemfs-monitor" ]' >"$dir/run.log" 2>&1 3>&- || {
		cat "$dir/run.log"
		false
	}
}

@test "the memory directory is the server's before anybody can make it, and is not cleaned up" {
	# shellcheck disable=SC2016 # the inner shell's
	installed '
		mount -t tmpfs -o mode=1777 none /dev/shm
		systemd-sysusers rmemfs.conf rmemfs-mounts.conf
		systemd-tmpfiles --create rmemfs.conf
		[ "$(stat -c "%a %U %G" /dev/shm/rmemfs)" = "700 rmemfs rmemfs" ]
		user="setpriv --reuid=65534 --regid=65534 --clear-groups"
		if $user mkdir /dev/shm/rmemfs; then exit 1; fi
		if $user mv /dev/shm/rmemfs /dev/shm/other; then exit 1; fi
		serves() {
			setpriv --reuid=rmemfs --regid=rmemfs --clear-groups rmemfs-server -c /dev/null --export data:64MiB --listen "shm:/dev/shm/rmemfs/socket" &
			until rmemfsctl status /dev/shm/rmemfs/socket >/dev/null 2>&1; do
				kill -0 $!
				sleep 0.02
			done
			kill -TERM $!
			wait $!
		}
		serves
		find /dev/shm/rmemfs -exec touch -h -d 2001-01-01 {} +
		find /dev/shm/rmemfs | sort >"$1/before"
		systemd-tmpfiles --clean
		systemd-tmpfiles --create rmemfs.conf
		find /dev/shm/rmemfs | sort | diff "$1/before" -
		rmemfsctl check /dev/shm/rmemfs
		serves' "$dir" >"$dir/run.log" 2>&1 3>&- || {
		cat "$dir/run.log"
		false
	}
	[ "$(grep -c "systemd-tmpfiles --create rmemfs.conf" "$repository/README.md")" -eq 1 ]
}

@test "the server's user reads keys that lie in their folder, and no other user does" {
	# shellcheck disable=SC2016 # the inner shell's
	installed '
		systemd-sysusers rmemfs.conf
		mount -t tmpfs -o mode=1777 none /dev/shm
		systemd-tmpfiles --create rmemfs.conf
		[ "$(stat -c "%a %U %G" /etc/rmemfs/keys)" = "750 root rmemfs" ]
		rmemfsctl keygen web /etc/rmemfs/keys/web.key
		chgrp rmemfs /etc/rmemfs/keys/web.key
		chmod 640 /etc/rmemfs/keys/web.key
		setpriv --reuid=rmemfs --regid=rmemfs --init-groups rmemfsctl keycheck /etc/rmemfs/keys/web.key
		user="setpriv --reuid=65534 --regid=65534 --clear-groups"
		if $user rmemfsctl keycheck /etc/rmemfs/keys/web.key; then exit 1; fi' >"$dir/run.log" 2>&1 3>&- || {
		cat "$dir/run.log"
		false
	}
}

# exec_start UNIT [KEY]: prints its command as systemd runs it: ${X} is one word.
exec_start() {
	sed -n "s/^${2:-ExecStart}=//p" "$root/usr/lib/systemd/system/$1" | sed 's/\${[A-Z]*}/"&"/g'
}

@test "the units' commands serve and mount by what is configured" {
	cat >"$root/etc/rmemfs/server.conf" <<-END
		memory_dir = "$memory/server";
		exports = ( { name = "data"; size = "64MiB"; } );
		listen = [ "shm:$socket" ];
	END
	sed -e "s|^SOURCE=.*|SOURCE=$socket:/data|" -e "s|^MOUNTPOINT=.*|MOUNTPOINT=$mnt|" \
		"$root/usr/share/doc/rmemfs/example.env" >"$root/etc/rmemfs/mounts/data.env"
	# shellcheck disable=SC2016 # the inner shell's
	installed '
		export OPTIONS=defaults
		set -a
		. /etc/rmemfs/mounts/data.env
		set +a
		eval "exec 3>&-; $1 &"
		server=$!
		until rmemfsctl status "$3" >/dev/null 2>&1; do
			kill -0 $server || exit 1
			sleep 0.05
		done
		eval "$2 &"
		daemon=$!
		until mountpoint -q "$MOUNTPOINT"; do
			kill -0 $daemon || exit 1
			sleep 0.05
		done
		findmnt -n -o SOURCE,FSTYPE,OPTIONS "$MOUNTPOINT"
		echo kept >"$MOUNTPOINT/a"
		eval "$4 $3"
		[ "$(cat "$MOUNTPOINT/a")" = kept ]
		kill -TERM $daemon
		wait $daemon
		if mountpoint -q "$MOUNTPOINT"; then exit 1; fi
		kill -TERM $server
		wait $server
	' "$(exec_start rmemfs-server.service)" "$(exec_start rmemfs@.service)" "$socket" \
		"$(exec_start rmemfs-server.service ExecReload)" \
		>"$dir/run.log" 2>&1 || {
		cat "$dir/run.log"
		false
	}
	grep -q "^$socket:/data *fuse.rmemfs *rw,nosuid,nodev,.*allow_other" "$dir/run.log"
	grep -q "reloaded the clients of the exports, with 0 keys; 0 channels closed" "$dir/run.log"
}

@test "another prefix is configured, not chosen while installing" {
	run cmake --install "${bin%/bin}" --prefix "$dir/elsewhere"
	[ "$status" -ne 0 ]
	[[ $output == *"-DCMAKE_INSTALL_PREFIX=$dir/elsewhere"* ]]
	[ ! -e "$dir/elsewhere" ]
	cmake -S "$repository" -B "$dir/build" -G Ninja -DCMAKE_INSTALL_PREFIX=/usr/local \
		-DRMEMFS_TESTS=OFF >"$dir/configure.log"
	cd "$dir/build"
	grep -qxF 'ExecStart=/usr/local/sbin/rmemfs-server -c /usr/local/etc/rmemfs/server.conf' \
		installed/rmemfs-server.service
	grep -qxF 'ExecReload=/usr/local/bin/rmemfsctl reload' installed/rmemfs-server.service
	grep -qxF 'd /usr/local/etc/rmemfs/keys 0750 root rmemfs -' installed/rmemfs.tmpfiles.conf
	grep -qxF 'EnvironmentFile=/usr/local/etc/rmemfs/mounts/%i.env' installed/rmemfs@.service
	grep -qx KillMode=process installed/rmemfs@.service
	# systemd retries for ever while there is no server, but not after an error that time does not
	# mend.
	grep -qx StartLimitIntervalSec=0 installed/rmemfs@.service
	grep -qx 'RestartPreventExitStatus=1 32' installed/rmemfs@.service
	grep -qF '/usr/local/etc/rmemfs/client.conf' installed/rmemfs.8
	grep -qF 'RMEMFS_SYSCONFDIR=\"/usr/local/etc/rmemfs\"' build.ninja
	# No file names another prefix.
	run grep -rE '(^|[^l])/etc/rmemfs|/usr/(s?bin|share)|@[A-Z_]+@' installed --exclude='mount.*'
	echo "$output"
	[ "$status" -eq 1 ]
}
