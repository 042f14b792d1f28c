#!/usr/bin/env bats
# systemd.bats - a server and a client as their administrators have them: Debian's systemd and kernel, our packages.
# The tests follow each other: each finds the machines as the one before has left them.

bats_require_minimum_version 1.5.0
load machines

# Reading the units anew takes systemd long in an emulator.
upgrade() {
	begin "$1" eval 'dpkg -i /packages/next/*.deb'
	end "${begun:?}" 300
}

teardown() {
	[ -n "${BATS_TEST_COMPLETED:-}" ] || show_pair
}

@test "packages, a key, two machines: a mount by unit and one by fstab" {
	setup_pair
	on server booted_well
	on server make_server
	on client booted_well
	on client make_client "$(on server cat /etc/rmemfs/keys/web.key)"
	on client mounts_within 60 /srv/data
	[ "$(on client transport /srv/data)" = verbs ]
	on client eval 'echo hello >/srv/data/file; cmp /srv/data/file /srv/auto/file'
	on client is_mounted /srv/auto
}

@test "the client reboots: both mounts come by themselves, and nothing is written below" {
	on client make_writer
	switch_off client
	power_on client
	on client booted_well
	on client mounts_within 60 /srv/data
	on client until_true 60 is_active writer
	on client eval 'grep -qx hello /srv/auto/file && cmp /srv/data/file /srv/auto/file'
	on client eval '[ "$(stop_ms rmemfs@data)" -lt 15000 ]'
	on client is_calm -1
	on client eval 'systemctl stop writer rmemfs@data; [ -z "$(ls -A /srv/data)" ]; systemctl start rmemfs@data'
}

@test "the server is restarted under load, then its program is killed" {
	on client mounts_within 60 /srv/data
	on client begin_work /srv/data
	on server systemctl restart rmemfs-server
	on client goes_on
	on server restarts_after rmemfs-server 60 kill -KILL
	on client end_work
}

# Its memory is new then: the unit mounts again, and the files are those of the snapshot.
@test "the server reboots: the mount comes back with the files of its last stop" {
	on client eval 'echo hello >/srv/data/file'
	switch_off server
	power_on server
	on server booted_well
	on client eval 'until_true 100 grep -qsx hello /srv/data/file'
	on client eval 'umount /srv/auto; grep -qx hello /srv/auto/file'
}

@test "the daemon crashes: the mount comes back" {
	on client restarts_after rmemfs@data 60 kill -KILL
	on client mounts_within 60 /srv/data
	on client grep -qx hello /srv/data/file
}

@test "a server that stands still is started again" {
	on server eval 'mkdir -p /etc/systemd/system/rmemfs-server.service.d
		printf "[Service]\nWatchdogSec=15\n" >/etc/systemd/system/rmemfs-server.service.d/watchdog.conf
		systemctl daemon-reload
		systemctl restart rmemfs-server'
	on client grep -qx hello /srv/data/file
	on server restarts_after rmemfs-server 90 kill -STOP
	on client grep -qx hello /srv/data/file
}

@test "both packages are upgraded under load, and files and mounts stay" {
	on client begin_work /srv/data
	upgrade server
	on client goes_on
	upgrade client
	on client end_work
	on client grep -qx hello /srv/data/file
}

@test "the server is gone: the client's shutdown does not wait for it" {
	power_off server
	switch_off client
	power_on client
	on client eval '[ "$(stop_ms rmemfs@data)" -lt 15000 ]'
}

@test "the client was first: the mount comes when the server does" {
	on client booted_well
	run ! on client is_mounted /srv/data
	power_on server
	on server booted_well
	on client mounts_within 180 /srv/data
	on client eval '[ -z "$(ls -A /srv/data)" ] || ls /srv/data'
}

@test "power fails on both: both come back" {
	on client eval 'echo again >/srv/data/file; sync'
	power_off server
	power_off client
	power_on client
	power_on server
	on server booted_well
	on client booted_well
	on client mounts_within 180 /srv/data
	on client eval 'echo new >/srv/data/new; grep -qx new /srv/auto/new'
}
