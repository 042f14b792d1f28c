#!/bin/bash
# packages.sh RELEASE PACKAGES - tries the packages in the folder PACKAGES on a clean machine of this Debian release
# (bookworm, trixie) with systemd; TAP on standard output. They are installed, used, upgraded while files and mounts
# are in use, removed, and purged.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tap.bash
. "$here/../tap.bash"
# shellcheck source=tests/wait.bash
. "$here/../wait.bash"
# shellcheck source=tests/platforms/machine.bash
. "$here/machine.bash"
release=${1:?bookworm or trixie}
packages=${2:?the folder of the packages}
root=$("$here/root.sh" "$release" machine)
work=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-packages.XXXXXX")
port=$(free_port)

cleanup() {
	machine_stop || true
	rm -rf "$work"
}
trap cleanup EXIT

complain() {
	echo "$*"
	return 1
}

# in_file PATH: writes standard input there, on the machine.
in_file() {
	# shellcheck disable=SC2016 # the inner shell's
	machine sh -c 'cat >"$1"' sh "$1"
}

state_of() {
	machine systemctl show -P "$2" "$1"
}

is_active() {
	[ "$(state_of "$1" ActiveState)" = active ]
}

boots() {
	cat "$work/boot.log"
	return "$booted"
}

# ---- a new machine -------------------------------------------------------------------------------

installs() {
	machine apt-get -q update && machine sh -c 'apt-get -q -y --no-install-recommends install /packages/now/*.deb'
}

# Nothing is started or enabled, and everything is where the manual says.
is_installed() {
	local unit
	for unit in rmemfs-server.service rmemfs-metrics.service; do
		[ "$(state_of "$unit" LoadState) $(state_of "$unit" ActiveState) $(state_of "$unit" UnitFileState)" = "loaded inactive disabled" ] ||
			complain "$unit: $(machine systemctl status "$unit")" || return
	done
	machine getent passwd rmemfs && machine getent group rmemfs-monitor || complain "no user or group" || return
	[ "$(machine stat -c '%a %U %G' /etc/rmemfs/keys)" = "750 root rmemfs" ] ||
		complain "keys: $(machine stat -c '%a %U %G' /etc/rmemfs/keys)" || return
	[ "$(machine stat -c '%U' /dev/shm/rmemfs)" = rmemfs ] || complain "the memory directory is not the user's" || return
	machine rmemfs --version && machine rmemfsctl --version && machine rmemfs-server --version
}

# The steps of README's "Two machines", on one.
is_used() {
	machine rmemfsctl keygen web /etc/rmemfs/keys/web.key || return
	machine chgrp rmemfs /etc/rmemfs/keys/web.key && machine chmod 640 /etc/rmemfs/keys/web.key || return
	in_file /etc/rmemfs/server.conf <<-END
		exports = ( { name = "data"; size = "64MiB";
			clients = ( { name = "web"; keys = "/etc/rmemfs/keys/web.key"; } ); } );
		listen = [ "shm:/run/rmemfs/server.sock", "tcp:127.0.0.1:$port" ];
	END
	machine systemctl enable --now rmemfs-server || return
	in_file /etc/rmemfs/mounts/data.env <<-END
		SOURCE=127.0.0.1:/data
		MOUNTPOINT=/srv/data
		OPTIONS=port=$port,share,key=/etc/rmemfs/keys/web.key
	END
	machine mkdir -p /srv/data /srv/second
	machine systemctl enable --now rmemfs@data || return
	in_file /etc/fstab <<-END
		/run/rmemfs/server.sock:/data /srv/second rmemfs share,_netdev 0 0
	END
	machine systemctl daemon-reload && machine mount /srv/second || return
	machine sh -c 'head -c 3000000 /dev/urandom >/srv/data/file && cmp /srv/data/file /srv/second/file' || return
	machine rmemfsctl mounts && machine systemctl start rmemfs-metrics && is_active rmemfs-metrics
}

# ---- upgrade -------------------------------------------------------------------------------------

# Something reads and writes both mounts all the time. Its first error is kept.
begin_work() {
	# shellcheck disable=SC2016 # the inner shell's
	machine sh -c '
		for place in data second; do
			(
				n=0
				while [ ! -e /run/enough ]; do
					n=$((n + 1))
					echo $n >/srv/$place/$place.count && [ "$(cat /srv/$place/$place.count)" = $n ] || {
						echo "$place: round $n failed"
						break
					}
				done
				echo "$place: $n rounds"
			) >/run/$place.said 2>&1 &
		done'
}

# Also what is open stays so.
end_work() {
	local place
	machine touch /run/enough
	for place in data second; do
		until_true 20 machine grep -q rounds "/run/$place.said" || complain "$place still waits" || return
		machine cat "/run/$place.said"
		[ "$(machine wc -l </dev/null "/run/$place.said" | cut -d ' ' -f 1)" -eq 1 ] || return
	done
}

upgrades() {
	local sum mount server metrics
	sum=$(machine sha256sum /srv/data/file)
	mount=$(state_of rmemfs@data MainPID)
	server=$(state_of rmemfs-server MainPID)
	metrics=$(state_of rmemfs-metrics MainPID)
	machine sh -c 'echo "# of the administrator" >>/etc/rmemfs/server.conf; echo "#" >>/etc/rmemfs/client.conf'
	begin_work
	machine sh -c 'apt-get -q -y --no-install-recommends install /packages/next/*.deb' || return
	# shellcheck disable=SC2016 # dpkg's
	[ "$(machine dpkg-query -W -f '${Version}' rmemfs-server)" = "$next" ] || complain "not upgraded" || return
	until_true 20 is_active rmemfs-server || return
	end_work || return
	[ "$(machine sha256sum /srv/data/file)" = "$sum" ] || complain "a file has changed" || return
	[ "$(state_of rmemfs@data MainPID)" = "$mount" ] || complain "the mount was ended" || return
	[ "$(state_of rmemfs-server MainPID)" != "$server" ] || complain "the old server goes on" || return
	is_active rmemfs-metrics && [ "$(state_of rmemfs-metrics MainPID)" != "$metrics" ] ||
		complain "the old rmemfs-metrics goes on" || return
	machine grep -q "of the administrator" /etc/rmemfs/server.conf || complain "the configuration is not kept" || return
	machine mountpoint -q /srv/second || complain "the mount of fstab is gone" || return
	# A mount that is made again uses the new program.
	machine systemctl restart rmemfs@data && [ "$(machine sha256sum /srv/data/file)" = "$sum" ]
}

# ---- the end -------------------------------------------------------------------------------------

running() {
	machine sh -c 'grep -l rmemfs /proc/[0-9]*/comm 2>/dev/null || true'
}

removes() {
	machine umount /srv/second || return
	machine apt-get -q -y remove rmemfs-server rmemfs >"$work/said" 2>&1 || complain "$(cat "$work/said")" || return
	cat "$work/said"
	grep -q "rm -r .*/dev/shm/rmemfs" "$work/said" || complain "files of exports are not named" || return
	[ -z "$(running)" ] || complain "still runs: $(running)" || return
	machine test -e /etc/rmemfs/server.conf && machine test -e /etc/rmemfs/keys/web.key || complain "a removal takes the configuration" || return
	machine test ! -e /usr/sbin/rmemfs-server || complain "the program is still there"
}

# An installation after a removal finds configuration and files as they were.
installs_again() {
	machine sh -c 'apt-get -q -y --no-install-recommends install /packages/next/rmemfs_*.deb /packages/next/rmemfs-server_*.deb' || return
	machine systemctl daemon-reload
	[ "$(state_of rmemfs-server UnitFileState)" = enabled ] || complain "not enabled any more" || return
	machine systemctl start rmemfs-server rmemfs@data && machine test -s /srv/data/file
}

purges() {
	machine apt-get -q -y purge rmemfs-server rmemfs rmemfs-doc || return
	machine sh -c '! dpkg -l "rmemfs*" | grep -E "^(ii|rc)"' || return
	machine find /etc /usr /var/lib /run -xdev -name '*rmemfs*' ! -path '/var/lib/dpkg/*' ! -path '/var/lib/systemd/*' \
		! -path '/run/systemd/*' ! -path '/etc/group*' >"$work/left" || true
	[ ! -s "$work/left" ] || complain "left: $(cat "$work/left")"
}

mkdir -p "$work/packages/now"
cp "$packages"/*.deb "$work/packages/now"
version=$(dpkg-deb -f "$(echo "$work"/packages/now/rmemfs-server_*.deb)" Version)
next=$version.1
mkdir "$work/packages/next"
check "$release: the packages as a later version" "$here/next_version.sh" "$work/packages/now" "$work/packages/next"
booted=0
machine_start "$root" "$work" >"$work/boot.log" 2>&1 || booted=1
check "$release: a machine boots" boots
[ "$failed" -eq 0 ] || check_end
check "$release: the packages are installed, with all that they depend on" installs
check "$release: nothing runs, and users, folders and rights are there" is_installed
check "$release: server, mounts by unit and by fstab, metrics" is_used
check "$release: upgrade: files, mounts and configuration stay, and work goes on" upgrades
check "$release: removal" removes
check "$release: installed again, with the files of before" installs_again
check "$release: purge" purges
[ "$failed" -eq 0 ] || machine journalctl --no-pager -n 80 | sed 's/^/# /'
check_end
