# shellcheck shell=bash disable=SC2034
# machines.bash - as ../two/machines.bash, but each guest has a disk, and Debian's systemd as PID 1. A machine that
# reboots ends its emulator; power_on starts it again, with its disk.

systemd_here=$BATS_TEST_DIRNAME
# shellcheck source=tests/vm/two/machines.bash
. "$systemd_here/../two/machines.bash"
guest_seconds=3000 boot_seconds=300
vm_cache=$VM_WORK/image

boot() {
	local folder=$2
	[ -e "$folder/disk" ] || cp --sparse=always "$VM_WORK/image/disk" "$folder/disk"
	vm_start "$vm_accel" $guest_seconds "$folder" \
		"root=/dev/vda rw net.ifnames=0 systemd.hostname=$1 systemd.show_status=0" \
		-drive "file=$folder/disk,if=virtio,format=raw,cache=unsafe" \
		-virtfs "local,path=$folder/job,mount_tag=job,security_model=none" -device virtio-serial-pci "${@:3}"
}

guest_functions() {
	# The machine does not see this folder.
	cat "$systemd_here/../../wait.bash" "$systemd_here/admin.bash"
}

is_off() {
	! guest_runs "$1"
}

# switch_off GUEST: in order, as its administrator does; it takes at most a minute and a half.
switch_off() {
	begin "$1" systemctl poweroff
	until_true 90 is_off "$1" || fail "$1 does not end: $(tail -n 20 "$VM_WORK/$1/console")"
	rm -f "$VM_WORK/$1/pid"
}

setup_pair() {
	for guest in server client; do
		guest_runs $guest || power_on $guest
	done
}

show_pair() {
	for guest in client server; do
		echo "--- $guest's console"
		tail -n 20 "$VM_WORK/$guest/console" || true
		! guest_runs "$guest" || {
			echo "--- $guest's journal"
			on "$guest" journalctl --no-pager -o short-precise -n 60 || true
		}
	done
}
