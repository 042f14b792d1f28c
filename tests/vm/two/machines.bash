# shellcheck shell=bash disable=SC2034
# machines.bash - two guests and the wire between them, for the tests.
#
# "on client COMMAND" runs a function of guest.bash, or any command, in that guest. A killed guest
# sends nothing more, as a machine whose power fails. A cut wire loses all frames, and neither end's
# link goes down.
#
# A guest sends its frames to the path of the other's Unix socket. No connection ties the two
# together, so either may die and come back, and renaming a path cuts the wire.

: "${VM_WORK:?tests/vm/two.sh sets it}"
two_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/vm/vm.bash
. "$two_here/../vm.bash"
# shellcheck source=tests/wait.bash
. "$two_here/../../wait.bash"
vm_cpus=1 vm_mem=2G
guest_seconds=1400 boot_seconds=180
server_address=10.9.0.1 client_address=10.9.0.2

fail() {
	echo "$*" >&2
	return 1
}

# ---- power and wire ------------------------------------------------------------------------------

guest_runs() {
	kill -0 "$(cat "$VM_WORK/$1/pid" 2>/dev/null || echo none)" 2>/dev/null
}

other() {
	[ "$1" = server ] && echo client || echo server
}

# boot GUEST FOLDER QEMU-ARGUMENT...: begins it, as $vm, with the host's root.
boot() {
	local folder=$2 address=${1}_address
	{
		printf 'export RMEMFS_BIN=%q\n' "$RMEMFS_BIN"
		printf '. %q\n' "$two_here/agent"
	} >"$folder/job/command"
	vm_boot $guest_seconds "$folder" "rmemfs.name=$1 rmemfs.address=${!address}" "${@:3}"
}

# power_on GUEST: returns at once; the first command waits until the guest is up.
power_on() {
	local folder=$VM_WORK/$1 mac=52:54:00:09:00:01
	[ "$1" = server ] || mac=52:54:00:09:00:02
	mkdir -p "$folder/job" "$VM_WORK/wire"
	rm -f "$folder"/{commands,pid} "$folder/job/ready"
	mkfifo "$folder/commands"
	boot "$1" "$folder" \
		-chardev "pipe,id=commands,path=$folder/commands" \
		-device virtserialport,chardev=commands,name=rmemfs.commands \
		-netdev "dgram,id=wire,local.type=unix,local.path=$VM_WORK/wire/$1,remote.type=unix,remote.path=$VM_WORK/wire/$(other "$1")" \
		-device "virtio-net-pci,netdev=wire,mac=$mac,host_mtu=9000" \
		>>"$folder/qemu.log" 2>&1 3>&-
	disown "$vm"
	until_true 10 guest_runs "$1" || fail "$1: the emulator did not start: $(cat "$folder/qemu.log")"
}

power_off() {
	local pid
	pid=$(cat "$VM_WORK/$1/pid")
	kill -KILL "$pid"
	timeout 10 tail --pid="$pid" -s 0.02 -f /dev/null
	rm -f "$VM_WORK/$1/pid"
}

cut_wire() {
	mv "$VM_WORK/wire" "$VM_WORK/wire.cut"
}

heal_wire() {
	[ ! -e "$VM_WORK/wire.cut" ] || mv "$VM_WORK/wire.cut" "$VM_WORK/wire"
}

# ---- commands ------------------------------------------------------------------------------------

guest_is_up() {
	[ -e "$VM_WORK/$1/job/ready" ] || ! guest_runs "$1"
}

await_guest() {
	until_true $boot_seconds guest_is_up "$1" && guest_runs "$1" && return
	fail "$1 does not come up; its console ended: $(tail -n 20 "$VM_WORK/$1/console")"
}

# A guest's shell reads this first.
guest_functions() {
	printf '. %q\n' "$two_here/guest.bash"
}

# begin GUEST COMMAND...: runs the command in the background, as $begun.
begin() {
	local guest=$1 job=$VM_WORK/$1/job file
	shift
	await_guest "$guest"
	file=$(mktemp "$job/XXXXXX.sh")
	{
		declare -px | grep -E '^declare -x RMEMFS_TEST_[A-Z0-9_]*=' || true
		guest_functions
		printf '%q ' "$@"
		echo
	} >"$file"
	begun=$guest/job/$(basename "$file" .sh)
	basename "$file" .sh 1<>"$VM_WORK/$guest/commands"
}

has_ended() {
	[ -e "$VM_WORK/$1.status" ] || ! guest_runs "${1%%/*}"
}

# end COMMAND [SECONDS]: waits for a begun command, shows its output, returns its status; 124 after
# the seconds, 125 when its guest is gone.
end() {
	local file=$VM_WORK/$1
	until_true "${2:-120}" has_ended "$1" || {
		cat "$file.out"
		echo "$1 lasts longer than ${2:-120} s: $(tail -n 1 "$file.sh")" >&2
		return 124
	}
	cat "$file.out"
	[ -e "$file.status" ] || return 125
	return "$(cat "$file.status")"
}

# on GUEST COMMAND...
on() {
	begin "$@"
	end "${begun:?}"
}

# ---- for every test ------------------------------------------------------------------------------

setup_machines() {
	heal_wire
	for guest in server client; do
		guest_runs $guest || power_on $guest
	done
}

# Shows the complaints of a guest's kernel, once.
kernel_complained() {
	vm_complaints "$VM_WORK/$1/console" && : >"$VM_WORK/$1/console"
}

show_guest() {
	echo "--- $1"
	cat "$VM_WORK/$1/clean_up" 2>/dev/null || true
	echo "--- $1's console"
	tail -n 20 "$VM_WORK/$1/console" || true
}

# Ends all programs in the living guests, as helpers.bash's teardown does.
teardown_machines() {
	local failed=0
	heal_wire
	for guest in client server; do
		rm -f "$VM_WORK/$guest/clean_up"
		! kernel_complained $guest || failed=1
		guest_runs $guest || continue
		on $guest clean_up >"$VM_WORK/$guest/clean_up" 2>&1 || failed=1
	done
	if [ $failed -ne 0 ] || [ -z "${BATS_TEST_COMPLETED:-}" ]; then
		show_guest client
		show_guest server
	fi
	return $failed
}
