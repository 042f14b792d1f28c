#!/usr/bin/env bats
# guide.bats - the commands and files that the README and docs/GUIDE.md show, run as they are written from the
# beginning of each document to its end, with the installed programs, under a systemd of the test's own.
#
# Server and client are one machine, with both addresses. Sizes in GiB are MiB here, and there is no RDMA
# device. The commands in shown_elsewhere (tests/shown.bash) are left out.
bats_require_minimum_version 1.5.0

# The limits of the units keep a sanitizer from tracing its own process.
# bats file_tags=once,unsanitized

# shellcheck disable=SC2154 # what helpers set
load helpers
load manager
# shellcheck source=tests/shown.bash
. "$repository/tests/shown.bash"

setup() {
	setup_rmem
	root=$dir/root
	chmod 711 "$dir"
	DESTDIR=$root cmake --install "${bin%/bin}" >"$dir/install.log"
	# Mounts would take shm, since the server is here.
	echo 'transport = "tcp";' >>"$root/etc/rmemfs/client.conf"
	# shellcheck disable=SC2034 # start_manager and managed read it
	manager_spaces=(--net)
	start_manager "$root"
	managed ip link set lo up
	managed ip addr add 10.0.0.1/24 dev lo
	managed mount -t tmpfs none /mnt
	managed mount --bind /run/units /etc/systemd/system
}

teardown() {
	[ -n "${BATS_TEST_COMPLETED:-}" ] || managed journalctl --no-pager -o short -n 60 || true
	stop_manager
	teardown_rmem
}

# here: text of a document as it fits this machine. An export has at least two regions.
here() {
	sed -E 's/([0-9])GiB/\1MiB/g; s/"verbs:[^"]*", //; s/count=1024/count=16/; s/^exports = /region_size = "2MiB";\n&/'
}

# put_file BLOCK: its first line names the file. A part of a file is added to what is there.
put_file() {
	local path
	path=$(sed -nE '1s/^# ([^ :;,]+).*/\1/p' "$1")
	here <"$1" >"$dir/shown"
	managed mkdir -p "${path%/*}"
	[ "$path" != /etc/rmemfs/client.conf ] || echo 'transport = "tcp";' >>"$dir/shown"
	if [ "${path##*/}" = fstab ] || { [ "${path##*/}" = server.conf ] && ! grep -q '^exports' "$1"; }; then
		managed sh -c 'cat >>"$1"' sh "$path" <"$dir/shown"
	else
		managed sh -c 'cat >"$1"' sh "$path" <"$dir/shown"
	fi
}

# run_command COMMAND: in a shell of its own. doctor may warn, and the journal may have nothing.
run_command() {
	local status=0
	! shown_is_elsewhere "$1" || return 0
	echo "$1" >>"$dir/ran"
	managed env -i PATH=/usr/sbin:/usr/bin HOME=/root bash -c "cd /; set -e; $(here <<<"$1")" \
		>"$dir/said" 2>&1 </dev/null || status=$?
	case $1 in
	*doctor* | "journalctl "*--grep*) [ $status -le 1 ] && return ;;
	esac
	[ $status -eq 0 ] || die "$1: status $status: $(cat "$dir/said")"
}

# before COMMAND, after COMMAND: what a reader has by then, and what has to hold.
before() { :; }
after() { :; }

# run_document FILE
run_document() {
	local block command
	shown_blocks "$1" "$dir/block"
	for block in "$dir"/block.*; do
		if [[ $block != *.sh ]]; then
			grep -q '^# /' "$block" || continue
			put_file "$block"
			continue
		fi
		shown_commands "$block" >"$block.lines"
		while read -r command <&4; do
			before "$command"
			run_command "$command"
			after "$command"
		done 4<"$block.lines"
	done
}

app_is() {
	[ "$(managed systemctl is-active app)" = "$1" ]
}

# is_used: the mount is there and takes a file.
is_used() {
	managed mountpoint -q /mnt/rmem && managed touch /mnt/rmem/used
}

has_file() {
	[ "$(managed cat "/mnt/rmem/$1" 2>/dev/null)" = "$1" ]
}

# The file of the example has to be there.
make_inbox() {
	managed sh -c 'mkdir -p /mnt/rmem/mail && touch /mnt/rmem/mail/inbox'
}

# Mount options of the guide that systemd reads, beside those of its line.
fstab_unit() {
	local option
	for option in x-systemd.after=rmemfs-server.service x-systemd.mount-timeout; do
		grep -qF "\`$option\`" "$repository/docs/GUIDE.md"
	done
	managed sh -euc '
		mkdir /run/fstab.d
		sed "s/_netdev/_netdev,x-systemd.after=rmemfs-server.service,x-systemd.mount-timeout=200/" /etc/fstab >/run/fstab
		SYSTEMD_FSTAB=/run/fstab /lib/systemd/system-generators/systemd-fstab-generator /run/fstab.d /run/fstab.d /run/fstab.d
		cat /run/fstab.d/mnt-rmem.mount
		cp /run/fstab.d/mnt-rmem.mount /run/units/' >"$dir/unit"
	grep -x After=rmemfs-server.service "$dir/unit"
	grep -x 'TimeoutSec=3min 20s' "$dir/unit"
	managed test -e /run/fstab.d/remote-fs.target.wants/mnt-rmem.mount
	managed sh -euc '
		systemctl stop rmemfs@data
		mount /mnt/rmem
		umount /mnt/rmem
		systemctl daemon-reload
		systemd-run -q --service-type oneshot -p RequiresMountsFor=/mnt/rmem mountpoint -q /mnt/rmem
		umount /mnt/rmem
		rm /run/units/mnt-rmem.mount
		systemctl daemon-reload
		systemctl start rmemfs@data'
}

# The same line as an automount. Without the server an access fails, and so does the start of a program that needs
# the mount; the next access after the server has come mounts. Nothing gets below the mount point.
automount_unit() {
	grep -qF '`x-systemd.automount`' "$repository/docs/GUIDE.md"
	managed sh -euc '
		systemctl stop rmemfs@data rmemfs-server
		mkdir /run/fstab.a
		sed "s/_netdev/_netdev,x-systemd.automount/; s/connect_timeout=80/connect_timeout=1/" /etc/fstab >/run/fstab
		SYSTEMD_FSTAB=/run/fstab /lib/systemd/system-generators/systemd-fstab-generator /run/fstab.a /run/fstab.a /run/fstab.a
		cp /run/fstab.a/mnt-rmem.mount /run/fstab.a/mnt-rmem.automount /run/units/
		systemctl daemon-reload
		systemctl start mnt-rmem.automount'
	run ! managed touch /mnt/rmem/below
	run ! managed systemd-run -q --wait --service-type oneshot -p RequiresMountsFor=/mnt/rmem touch /mnt/rmem/below
	managed systemctl start rmemfs-server
	managed touch /mnt/rmem/above
	managed systemctl is-active mnt-rmem.mount
	managed systemctl stop mnt-rmem.automount
	run ! managed mountpoint -q /mnt/rmem
	[ -z "$(managed ls /mnt/rmem)" ]
	managed sh -euc '
		rm /run/units/mnt-rmem.mount /run/units/mnt-rmem.automount
		systemctl daemon-reload
		systemctl start rmemfs@data
		rm /mnt/rmem/above'
}

# A program that depends on the mount comes and goes with it, also if the server comes late. RequiresMountsFor=
# does not wait for a service.
program_follows() {
	app_is active
	managed systemctl stop rmemfs@data
	app_is inactive
	managed systemctl start rmemfs@data
	until_true 10 app_is active
	managed systemctl stop rmemfs@data rmemfs-server
	managed systemctl start app
	app_is inactive
	run ! managed systemctl start rmemfs@data
	app_is inactive
	managed systemd-run -q --service-type oneshot -p RequiresMountsFor=/mnt/rmem true
	managed systemctl start rmemfs-server
	until_true 20 app_is active
}

# refused_mount: the server refuses a mount with another key.
refused_mount() {
	managed rmemfsctl keygen other /run/other.key 2>/dev/null
	run ! managed mount -t rmemfs -o key=/run/other.key 10.0.0.1:/data /media
}

before_in_guide() {
	case $1 in
	"journalctl -u rmemfs-server RMEMFS_EVENT=refuse") refused_mount ;;
	"df -h /dev/shm")
		fstab_unit
		automount_unit
		;;
	"rmemfsctl who "*) make_inbox ;;
	"systemctl daemon-reload")
		printf '[Service]\nExecStart=/bin/sleep infinity\n' |
			managed sh -c 'cat >/etc/systemd/system/app.service'
		;;
	"rmemfsctl snapshot "*) managed sh -c 'echo saved >/mnt/rmem/saved' ;;
	"systemctl stop rmemfs-server") managed sh -c 'echo later >/mnt/rmem/later' ;;
	esac
}

after_in_guide() {
	case $1 in
	"rmemfsctl mounts") grep -E '/mnt/rmem .* tcp .*connected' "$dir/said" ;;
	"journalctl -u rmemfs-server RMEMFS_EVENT=refuse") grep -E 'no key other-' "$dir/said" ;;
	"systemctl start app") program_follows ;;
	"sed -i 1d "*) [ "$(managed grep -c . /etc/rmemfs/keys/web.key)" -eq 1 ] ;;
	"systemctl reload rmemfs-server" | "systemctl restart rmemfs-server") is_used ;;
	"rmemfsctl export list")
		grep -E "^scratch +${grown:-32MiB} .* /etc/rmemfs/exports.d/scratch.conf$" "$dir/said"
		;;
	"rmemfsctl export resize "*) grown=64MiB ;;
	"sed -i "*) scratch=32MiB ;;
	"rmemfsctl status") [ -z "${scratch:-}" ] || grep -E "^scratch +$scratch" "$dir/said" ;;
	"rmemfsctl export remove "*)
		scratch=''
		managed test ! -e /etc/rmemfs/exports.d/scratch.conf
		! managed rmemfsctl export list | grep -q scratch || return 1
		;;
	# After the restore: the mount and the program have come back by themselves.
	"systemctl start rmemfs-server")
		until_true 20 has_file saved
		until_true 10 app_is active
		managed test ! -e /mnt/rmem/later
		;;
	"systemctl disable --now rmemfs@data") until_true 10 app_is inactive ;;
	esac
}

# bats test_tags=long
@test "each command of the guide, as it is written" {
	before() { before_in_guide "$1"; }
	after() { after_in_guide "$1"; }
	run_document "$repository/docs/GUIDE.md"
	run ! managed mountpoint -q /mnt/rmem
	managed test ! -e /dev/shm/rmemfs
	[ "$(grep -c . "$dir/ran")" -gt 50 ]
}

# shows TEXT COMMAND...: a command of the guide, whatever its exit status.
shows() {
	managed "${@:2}" 2>&1 </dev/null | grep -E -e "$1"
}

# Two mounts of one machine that both write.
begin_shared() {
	sed '/^## At three/,$d' "$repository/docs/GUIDE.md" >"$dir/setting-up.md"
	run_document "$dir/setting-up.md"
	managed sh -euc '
		mkdir /mnt/other
		sed -i "s/^OPTIONS=/&share,/" /etc/rmemfs/mounts/data.env
		sed "s|/mnt/rmem|/mnt/other|" /etc/rmemfs/mounts/data.env >/etc/rmemfs/mounts/other.env
		systemctl restart rmemfs@data
		systemctl start rmemfs@other'
}

stopped_client() {
	local writer
	managed sh -euc '
		mkdir /mnt/other/mail
		echo one >/mnt/other/mail/inbox
		systemctl kill -s STOP --kill-whom=main rmemfs@other'
	managed sh -c 'echo two >>/mnt/rmem/mail/inbox' &
	writer=$!
	until_true 8 shows 'another mount that has the file' rmemfsctl status /mnt/rmem
	until_true 8 shows 'has not been answered for .* it waits for' journalctl -t rmemfs -n 50
	shows '/mnt/other .*asked' rmemfsctl who data /mail/inbox
	shows '^data +[0-9]+ .* [1-9][0-9]* +.*:/mnt/other ' rmemfsctl leases
	until_true 8 shows '/mnt/other .*has not given back' journalctl -u rmemfs-server --grep 'has not given back'
	managed systemctl kill -s CONT --kill-whom=main rmemfs@other
	exit_status $writer 20
	[ "$(managed cat /mnt/other/mail/inbox)" = $'one\ntwo' ]
}

stopped_server() {
	managed systemctl kill -s STOP rmemfs-server
	until_true 15 shows '/mnt/rmem .*(silent|reconnecting)' rmemfsctl mounts
	shows 'nobody answers' rmemfsctl doctor tcp:10.0.0.1
	managed systemctl kill -s CONT rmemfs-server
	until_true 10 shows '/mnt/rmem .*connected' rmemfsctl mounts
}

full_export() {
	run ! managed dd if=/dev/zero of=/mnt/rmem/fill bs=1M count=64 status=none
	until_true 5 shows '^data +64MiB +6[0-9]MiB' rmemfsctl status
	shows ' (9[0-9]|100)% ' df -h /mnt/rmem
	until_true 5 shows '95 % of its memory are used' journalctl -u rmemfs-server RMEMFS_EVENT=fullness
	managed rm /mnt/rmem/fill
}

revoked_key() {
	managed sh -euc '
		rmemfsctl keygen new /etc/rmemfs/keys/new.key
		chgrp rmemfs /etc/rmemfs/keys/new.key
		chmod 640 /etc/rmemfs/keys/new.key
		sed -i "s|keys/web.key|keys/new.key|" /etc/rmemfs/server.conf
		rmemfsctl reload' 2>/dev/null
	until_true 10 shows '/mnt/rmem .*reconnecting' rmemfsctl mounts
	until_true 10 shows 'does not accept key web-' journalctl -t rmemfs -n 50
	shows 'no key web-' journalctl -u rmemfs-server RMEMFS_EVENT=refuse
	shows 'does not accept key web-' rmemfsctl doctor 10.0.0.1 --key /etc/rmemfs/keys/web.key
	managed sh -euc '
		sed -i "s|keys/new.key|keys/web.key|" /etc/rmemfs/server.conf
		rmemfsctl reload'
	until_true 10 shows '/mnt/rmem .* connected' rmemfsctl mounts
}

unlocked_server() {
	managed sh -euc '
		mkdir -p /etc/systemd/system/rmemfs-server.service.d
		printf "[Service]\nLimitMEMLOCK=1M\n" >/etc/systemd/system/rmemfs-server.service.d/limit.conf
		systemctl daemon-reload
		systemctl restart rmemfs-server'
	shows 'not locked in memory' journalctl -u rmemfs-server -n 50
	shows '^LimitMEMLOCK=1048576$' systemctl show -p LimitMEMLOCK rmemfs-server
	shows '^VmLck:[[:space:]]+[0-9]{1,4} kB' sh -c 'grep VmLck /proc/$(pidof rmemfs-server)/status'
}

# bats test_tags=long
@test "the commands of 'At three in the morning' show the faults" {
	begin_shared
	stopped_client
	stopped_server
	full_export
	revoked_key
	unlocked_server
}

before_in_readme() {
	case $1 in
	"dd if=/dev/zero"*) make_inbox ;;
	esac
}

after_in_readme() {
	case $1 in
	"rmemfsctl mounts") grep -E '/mnt/rmem .* tcp .*connected' "$dir/said" ;;
	"dd if=/mnt/rmem/test "*) [ "$(managed stat -c %s /mnt/rmem/test)" -eq $((16 << 20)) ] ;;
	esac
}

# At the end the files are in place by which a machine mounts at boot, and by which the server writes snapshots.
@test "each command of the README, as it is written" {
	before() { before_in_readme "$1"; }
	after() { after_in_readme "$1"; }
	run_document "$repository/README.md"
	[ "$(grep -c . "$dir/ran")" -gt 15 ]
	managed systemctl restart rmemfs-server
	managed mount /mnt/rmem
	managed sh -c 'echo saved >/mnt/rmem/saved; umount /mnt/rmem'
	managed sh -euc '
		systemctl stop rmemfs-server
		rm -r /dev/shm/rmemfs
		systemd-tmpfiles --create rmemfs.conf
		systemctl start rmemfs-server rmemfs@data'
	has_file saved
}
