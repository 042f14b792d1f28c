# shellcheck shell=bash
# admin.bash - functions that the tests run on a machine, as its administrator. (wait.bash is in front.)

set -euo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8

die() {
	echo "$*" >&2
	return 1
}

state_of() {
	systemctl show -P "$2" "$1"
}

is_active() {
	[ "$(state_of "$1" ActiveState)" = active ]
}

# ---- README's "Two machines" -----------------------------------------------------------------------

make_server() {
	rmemfsctl keygen web /etc/rmemfs/keys/web.key
	chgrp rmemfs /etc/rmemfs/keys/web.key
	chmod 640 /etc/rmemfs/keys/web.key
	cat >/etc/rmemfs/server.conf <<-'END'
		exports = ( { name = "data"; size = "192MiB"; clients = ( { name = "web"; keys = "/etc/rmemfs/keys/web.key"; } ); } );
		listen = [ "shm:/run/rmemfs/server.sock", "verbs:10.9.0.1", "tcp:10.9.0.1" ];
		snapshot_dir = "/var/lib/rmemfs"; snapshot_on_stop = true; restore_on_start = true;
	END
	systemctl enable --now rmemfs-server
}

# make_client KEY-LINE: a mount by unit, and one by fstab that comes at the first access.
make_client() {
	(umask 077 && echo "$1" >/etc/rmemfs/keys/web.key)
	printf '%s\n' SOURCE=10.9.0.1:/data MOUNTPOINT=/srv/data OPTIONS=share,key=/etc/rmemfs/keys/web.key \
		>/etc/rmemfs/mounts/data.env
	mkdir -p /srv/data /srv/auto
	echo '10.9.0.1:/data /srv/auto rmemfs _netdev,nofail,x-systemd.automount,share,key=/etc/rmemfs/keys/web.key 0 0' \
		>>/etc/fstab
	systemctl daemon-reload
	systemctl start remote-fs.target
	systemctl enable --now rmemfs@data
}

# A program that depends on the mount, as the guide says: it must never write below the empty mount point.
make_writer() {
	cat >/etc/systemd/system/writer.service <<-'END'
		[Unit]
		PartOf=rmemfs@data.service
		After=rmemfs@data.service
		ConditionPathIsMountPoint=/srv/data
		[Service]
		ExecStart=/bin/sh -c 'while :; do date >>/srv/data/written; sleep 1; done'
	END
	mkdir -p /etc/systemd/system/rmemfs@data.service.d
	printf '[Unit]\nUpholds=writer.service\n' >/etc/systemd/system/rmemfs@data.service.d/writer.conf
	systemctl daemon-reload
}

# ---- what is so ------------------------------------------------------------------------------------

has_booted() {
	[[ $(systemctl is-system-running 2>/dev/null) == @(running|degraded) ]]
}

# No unit of ours has failed, and the boot has ended.
booted_well() {
	local failed
	until_true 100 has_booted || die "the boot does not end: $(systemctl list-jobs)"
	failed=$(systemctl list-units --failed --plain --no-legend | grep -E 'rmemfs|srv-|writer|rxe0' || true)
	[ -z "$failed" ] || die "$failed"
}

is_mounted() {
	mountpoint -q "$1"
}

# mounts_within SECONDS PLACE
mounts_within() {
	until_true "$1" is_mounted "$2" || die "$2 is not mounted: $(systemctl status rmemfs@data --no-pager)"
}

# transport PLACE: verbs or tcp.
transport() {
	rmemfsctl mounts --json | jq -r --arg place "$1" '.[] | select(.mountpoint == $place) | .answer.transport'
}

# stop_ms UNIT: how long its stop took in the boot before this one.
stop_ms() {
	journalctl -b -1 -o json --output-fields=MESSAGE -u "$1" |
		jq -s '[.[] | select(.MESSAGE | type == "string")]
			| ([.[] | select(.MESSAGE | test("^Stopping "))] | last) as $from
			| ([.[] | select(.MESSAGE | test("^(Stopped|.*Deactivated|.*Failed)"))] | last) as $to
			| (($to.__REALTIME_TIMESTAMP | tonumber) - ($from.__REALTIME_TIMESTAMP | tonumber)) / 1000 | floor'
}

# is_calm [BOOT]: nothing of ours in the journal frightens for nothing. An emulator may stand still for seconds:
# the daemon says so, and a connection may be lost by that.
is_calm() {
	local lines paused='^thread [0-9]+ did not run for '
	lines=$(journalctl -b "${1:-0}" -p warning --no-pager -o cat -u 'rmemfs*')
	! grep -qE "$paused" <<<"$lines" || lines=$(grep -vE "$paused|: connection lost: " <<<"$lines" || true)
	[ -z "$lines" ] || die "$lines"
}

# ---- work ------------------------------------------------------------------------------------------

# begin_work PLACE: reads and writes there until end_work; its first error ends it.
begin_work() {
	rm -f /run/enough
	cat >/run/work.sh <<-'END'
		n=0
		while [ ! -e /run/enough ]; do
			n=$((n + 1))
			echo $n >"$1/count" && [ "$(cat "$1/count")" = $n ] || exit 1
			echo $n >/run/rounds
		done
	END
	systemd-run --quiet --unit=work sh /run/work.sh "$1"
	goes_on
}

rounds_are_over() {
	[ "$(cat /run/rounds 2>/dev/null || echo 0)" -gt "$1" ]
}

# It gets some rounds further.
goes_on() {
	until_true 90 rounds_are_over $(($(cat /run/rounds 2>/dev/null || echo 0) + 3)) ||
		die "the work does not go on: $(systemctl status work --no-pager)"
}

end_work() {
	goes_on
	touch /run/enough
	until_true 30 work_has_ended || die "the work does not end"
	[ "$(state_of work Result)" = success ] || die "the work failed: $(journalctl -u work --no-pager)"
}

work_has_ended() {
	! is_active work
}

main_pid_is_not() {
	local pid
	pid=$(state_of "$1" MainPID)
	[ "$pid" != 0 ] && [ "$pid" != "$2" ] && is_active "$1"
}

# restarts_after UNIT SECONDS COMMAND...: the command makes the service manager start the unit's program anew.
restarts_after() {
	local unit=$1 seconds=$2 pid
	shift 2
	pid=$(state_of "$unit" MainPID)
	"$@" "$pid"
	until_true "$seconds" main_pid_is_not "$unit" "$pid" || die "$unit was not started again"
}
