#!/usr/bin/env bats
# units.bats - the installed units, run by a systemd with all the limits that they set.
bats_require_minimum_version 1.5.0

# The limits keep a sanitizer from tracing its own process.
# bats file_tags=once,unsanitized

# shellcheck disable=SC2154 # what helpers set
load helpers
load manager

setup() {
	setup_rmem
	root=$dir/root
	chmod 711 "$dir"
	DESTDIR=$root cmake --install "${bin%/bin}" >"$dir/install.log"
	configure
	start_manager "$root"
}

teardown() {
	release
	[ -n "${BATS_TEST_COMPLETED:-}" ] || managed journalctl --no-pager -o short -n 100 || true
	stop_manager
	teardown_rmem
}

# The server has the default socket, and an export over tcp for those that have the key.
configure() {
	local etc=$root/etc/rmemfs
	install -m 640 "$key_file" "$etc/keys/web.key"
	cat >"$etc/server.conf" <<-END
		exports = ( { name = "data"; size = "64MiB";
			clients = ( { name = "web"; keys = "/etc/rmemfs/keys/web.key"; } ); } );
		listen = [ "shm:/run/rmemfs/server.sock", "tcp:127.0.0.1:$port" ];
	END
	cat >"$etc/mounts/tcp.env" <<-END
		SOURCE=127.0.0.1:/data
		MOUNTPOINT=/run/mounted
		OPTIONS=port=$port,share,key=/etc/rmemfs/keys/web.key
	END
	cat >"$etc/mounts/shm.env" <<-END
		SOURCE=/run/rmemfs/server.sock:/data
		MOUNTPOINT=/run/beside
		OPTIONS=share,low_latency
	END
}

# start UNIT...: and their mount points.
start() {
	managed mkdir -p /run/mounted /run/beside
	managed chgrp rmemfs /etc/rmemfs/keys/web.key
	managed systemctl start "$@"
}

# main_pid UNIT: its process, as this namespace counts.
main_pid() {
	local inner status process
	inner=$(managed systemctl show -P MainPID "$1")
	grep -lsP "^NSpid:.*\t$inner\$" /proc/[0-9]*/status | while read -r status; do
		process=${status%/status}
		[ ! "$process/ns/pid" -ef "/proc/$manager/ns/pid" ] || echo "${process#/proc/}"
	done
}

# status_line PID NAME
status_line() {
	awk -v name="$2:" '$1 == name { print $2 }' "/proc/$1/status"
}

# none_failed: no unit of ours failed, and none was restarted.
none_failed() {
	managed systemctl list-units --all --no-legend --plain --state=failed 'rmemfs*' >"$dir/failed.log"
	[ ! -s "$dir/failed.log" ]
	[ "$(managed systemctl show -P NRestarts rmemfs-server)" = 0 ]
}

@test "server and mounts work under their units' limits, over tcp and shm" {
	local pid
	start rmemfs-server rmemfs@tcp rmemfs@shm
	# shellcheck disable=SC2016 # the inner shell's
	managed sh -euc '
		mountpoint -q /run/mounted
		mountpoint -q /run/beside
		cd /run/mounted
		dd if=/dev/urandom of=a bs=1M count=8 conv=fsync status=none
		cmp a /run/beside/a
		mkdir b && ln -s a b/c && mv b d && chown 5:5 d && chmod 1777 d && chmod 4755 a && mkfifo d/e
		[ "$(stat -c "%a %u" d /run/beside/a | tr "\n" " ")" = "1777 5 4755 0 " ]
		flock a true
		systemctl reload rmemfs-server
		rmemfsctl status --json >/dev/null
		rmemfsctl snapshot data /var/lib/rmemfs/snapshot >/dev/null
		cd /
		umount /run/beside'
	until_true 5 managed sh -c '! systemctl is-active -q rmemfs@shm'
	pid=$(main_pid rmemfs-server)
	[ "$(status_line "$pid" CapBnd)" = 0000000000000000 ]
	[ "$(status_line "$pid" NoNewPrivs)" = 1 ]
	[ "$(status_line "$pid" Seccomp)" = 2 ]
	pid=$(main_pid rmemfs@tcp)
	[ "$(status_line "$pid" NoNewPrivs)" = 1 ]
	[ "$(status_line "$pid" Seccomp)" = 2 ]
	# The mount is everybody's: the service has no mount namespace of its own.
	[ "/proc/$pid/ns/mnt" -ef "/proc/$manager/ns/mnt" ]
	managed systemctl stop rmemfs@tcp
	run ! managed mountpoint -q /run/mounted
	# The programs' own limits can be set under those of the units.
	run ! managed journalctl -q --grep 'this kernel does not limit'
	none_failed
}

# entry EVENT FIELD...: prints these fields of the newest entry of the event.
entry() {
	local filter
	filter=$(printf '.%s, ' "${@:2}")
	managed journalctl -q -o json "RMEMFS_EVENT=$1" | tail -n 1 | jq -r "${filter%, }" | paste -sd ' '
}

@test "the journal's entries of the server's events have fields" {
	local id
	id=$(cut -d: -f2 "$key_file")
	start rmemfs-server rmemfs@tcp
	until_true 5 managed journalctl -q --grep 'session 1 of web .* begins over tcp' RMEMFS_EVENT=attach
	[ "$(entry attach RMEMFS_EXPORT RMEMFS_HOLDER RMEMFS_KEY RMEMFS_SESSION PRIORITY SYSLOG_IDENTIFIER _SYSTEMD_UNIT)" = \
		"data web $id 1 6 rmemfs-server rmemfs-server.service" ]
	[[ $(entry attach RMEMFS_PEER) == "tcp 127.0.0.1:"* ]]
	run managed rmemfs -f -c /dev/null -o "port=$port,key=/etc/rmemfs/keys/web.key" 127.0.0.1:/other /run/beside
	[ "$status" -ne 0 ]
	[ "$(entry refuse RMEMFS_EXPORT RMEMFS_KEY RMEMFS_HOLDER PRIORITY)" = "other $id null 4" ]
	[[ $(entry refuse RMEMFS_REASON) == *"other"* ]]
	managed systemctl reload rmemfs-server
	[[ $(entry reload MESSAGE) == "reloaded the clients of the exports, with 1 key"* ]]
	managed systemctl stop rmemfs@tcp
	until_true 5 managed journalctl -q --grep 'has ended: it was unmounted' RMEMFS_EVENT=end
	[ "$(entry end RMEMFS_EXPORT RMEMFS_HOLDER RMEMFS_SESSION RMEMFS_REASON)" = "data web 1 it was unmounted" ]
}

# A process does not end while one of its threads is held.
release() {
	[ -n "${holder:-}" ] || return 0
	kill -KILL "$holder" 2>/dev/null || true
	wait "$holder" || true
	holder=
}

# watchdog UNIT SECONDS
watchdog() {
	managed sh -euc '
		mkdir -p "/run/units/$1.d"
		printf "[Service]\nWatchdogSec=%s\n" "$2" >"/run/units/$1.d/watchdog.conf"
		systemctl daemon-reload' sh "$1" "$2"
}

# timed_out UNIT: systemd has had no sign of life from it for too long.
timed_out() {
	managed journalctl -q -u "$1" --grep 'Watchdog timeout' >/dev/null
}

# restarted UNIT: it was started again, and is active.
restarted() {
	managed sh -c '[ "$(systemctl show -P NRestarts "$1")" -ge 1 ] && systemctl is-active -q "$1"' sh "$1"
}

@test "a server that stands still is started again, and so is a daemon with a thread that does" {
	local pid
	watchdog rmemfs-server.service 3
	watchdog rmemfs@.service 10
	start rmemfs-server rmemfs@tcp
	managed touch /run/mounted/a
	pid=$(main_pid rmemfs@tcp)
	hold "$pid" rmemfs-io/0 >"$dir/held" 3>&- &
	holder=$!
	until_true 10 grep -q held "$dir/held"
	kill -STOP "$(main_pid rmemfs-server)"
	until_true 20 timed_out rmemfs-server
	until_true 20 restarted rmemfs-server
	until_true 20 timed_out rmemfs@tcp
	release
	until_true 20 restarted rmemfs@tcp
	until_true 10 managed journalctl -q -u rmemfs@tcp --grep 'thread 0 stands still'
	managed test -e /run/mounted/a
	managed systemctl stop rmemfs@tcp
}

# kill_unit UNIT: its main process, as a crash does. systemd has started it again.
kill_unit() {
	local before
	before=$(managed systemctl show -P NRestarts "$1")
	managed systemctl kill -s KILL --kill-whom=main "$1"
	until_true 20 managed sh -c '[ "$(systemctl show -P NRestarts "$1")" -gt "$2" ] && systemctl is-active -q "$1"' \
		sh "$1" "$before"
}

# The guards are stopped, so systemd certainly finds them when the daemon has ended, and when it starts.
@test "stops, restarts and crashes leave no warning in the journal of processes that remain" {
	start rmemfs-server rmemfs@tcp
	managed systemctl restart rmemfs-server rmemfs@tcp
	managed sh -c 'ps -e -o args | grep -x "(rmemfs-guard) of process [0-9]*"'
	managed pkill -STOP -x '\(rmemfs-guard\)'
	kill_unit rmemfs@tcp
	managed pkill -CONT -x '\(rmemfs-guard\)'
	kill_unit rmemfs-server
	managed touch /run/mounted/a
	managed systemctl stop rmemfs@tcp rmemfs-server
	managed journalctl -q --no-pager -p warning -o short >"$dir/journal.log"
	cat "$dir/journal.log"
	run ! managed journalctl -q --grep 'remains running|left-over'
}

# lives_since TIME: it has given a sign of life since.
lives_since() {
	later() { [ "$(managed systemctl show -P WatchdogTimestampMonotonic rmemfs@tcp)" -gt "$1" ]; }
	until_true 10 later "$1"
}

# bats test_tags=long
@test "a reload of a mount's unit moves the mount to another process of the unit" {
	local before after
	managed sh -c 'sed -i s/share,// /etc/rmemfs/mounts/tcp.env'
	# The new process has to give signs of life, too.
	watchdog rmemfs@.service 3
	start rmemfs-server rmemfs@tcp
	before=$(managed systemctl show -P MainPID rmemfs@tcp)
	managed sh -euc 'exec 5>/run/mounted/open; rm /run/mounted/open; systemctl reload rmemfs@tcp
		echo data >&5; [ "$(cat /proc/self/fd/5)" = data ]'
	after=$(managed systemctl show -P MainPID rmemfs@tcp)
	[ "$before" != "$after" ]
	run ! managed kill -0 "$before"
	[ "$(managed systemctl show -P NRestarts rmemfs@tcp)" = 0 ]
	# By hand it would leave the unit.
	run ! managed rmemfsctl upgrade /run/mounted
	[[ $output == *"run systemctl reload rmemfs@tcp.service"* ]]
	until_true 10 managed sh -c 'systemctl show -P StatusText rmemfs@tcp | grep -q "^mounted on "'
	lives_since "$(managed systemctl show -P WatchdogTimestampMonotonic rmemfs@tcp)"
	managed systemctl reload rmemfs@tcp
	run ! managed journalctl -q --grep 'reception only permitted|left-over|does not belong'
	managed systemctl stop rmemfs@tcp
	run ! managed mountpoint -q /run/mounted
	none_failed
}

@test "a mount whose daemon is killed goes on with its open files" {
	managed sh -c 'sed -i s/share,// /etc/rmemfs/mounts/tcp.env'
	start rmemfs-server rmemfs@tcp
	! managed journalctl -q --grep 'this kernel does not send requests again' || skip "needs Linux 6.9: FUSE_HAS_RESEND"
	# The write waits for the next daemon.
	managed sh -euc 'exec 5>/run/mounted/open; rm /run/mounted/open
		systemctl kill -s KILL --kill-whom=main rmemfs@tcp
		echo data >&5; [ "$(cat /proc/self/fd/5)" = data ]'
	[ "$(managed systemctl show -P NRestarts rmemfs@tcp)" = 1 ]
	managed systemctl stop rmemfs@tcp
	run ! managed mountpoint -q /run/mounted
	none_failed
}

# mounted_anew: the mount is of a later start of its unit, and its file of before is gone.
mounted_anew() {
	managed sh -c 'systemctl is-active -q rmemfs@tcp && mountpoint -q /run/mounted && [ ! -e /run/mounted/a ]'
}

@test "after the server's memory was lost the mount comes back by itself" {
	start rmemfs-server rmemfs@tcp
	managed touch /run/mounted/a
	managed sh -euc '
		systemctl stop rmemfs-server
		rm -rf /dev/shm/rmemfs/*
		systemctl start rmemfs-server'
	until_true 20 mounted_anew
	[ "$(managed systemctl show -P NRestarts rmemfs@tcp)" = 1 ]
	managed journalctl -q -u rmemfs@tcp --grep 'session lost: .*memory.*; the mount ends, as exit_when_lost says'
	managed touch /run/mounted/b
	managed systemctl stop rmemfs@tcp
	none_failed
}

@test "files survive a restart of the server's unit, and a stop and a start" {
	local sum
	start rmemfs-server rmemfs@tcp
	managed mountpoint -q /run/mounted
	managed dd if=/dev/urandom of=/run/mounted/a bs=1M count=8 status=none
	sum=$(managed sha256sum /run/mounted/a)
	managed systemctl restart rmemfs-server
	managed fsop uncache /run/mounted
	[ "$(managed sha256sum /run/mounted/a)" = "$sum" ]
	managed systemctl stop rmemfs-server
	managed systemctl start rmemfs-server
	managed fsop uncache /run/mounted
	[ "$(managed sha256sum /run/mounted/a)" = "$sum" ]
	managed systemctl stop rmemfs@tcp
	none_failed
}

@test "the metrics' unit asks root's mounts, and with the server's package the server, under its limits" {
	start rmemfs-server rmemfs@tcp
	# It looks when it starts; /metrics may have what it saw then.
	managed systemctl start rmemfs-metrics
	managed curl -s http://127.0.0.1:9470/metrics >"$dir/metrics"
	grep '^rmemfs_mount_up{mount="[0-9]*"} 1$' "$dir/metrics"
	grep -x 'rmemfs_server_up 1' "$dir/metrics"
	grep -x 'rmemfs_export_sessions{export="data"} 1' "$dir/metrics"
	[ "$(managed stat -c '%a %G' /run/rmemfs-mounts)" = "2750 rmemfs-monitor" ]
	none_failed
	managed systemctl stop rmemfs-metrics
	# Without the server's package.
	managed rm /run/units/rmemfs-metrics.service.d/server.conf
	managed systemctl daemon-reload
	managed systemctl start rmemfs-metrics
	managed curl -s http://127.0.0.1:9470/metrics >"$dir/metrics"
	grep '^rmemfs_mount_up{mount="[0-9]*"} 1$' "$dir/metrics"
	[ "$(managed systemctl show -P User rmemfs-metrics)" = rmemfs-metrics ]
}
