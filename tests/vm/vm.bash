# shellcheck shell=bash
# vm.bash - boots guests: for run.sh, which has one, and for two.sh and its tests.
#
# A guest has the host's root under its own, read-only, and a folder on the host:
#   FOLDER/job      the guest's /run/job, the only place that both can write; the guest runs
#                   job/command (guest-init)
#   FOLDER/console  its kernel's output, warnings and worse
#   FOLDER/output   the command's output: the caller makes it, a file or a fifo
#   FOLDER/pid      the emulator's process
#
# Runs under software emulation; under KVM only on machines where a probe showed that it boots.

vm_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
vm_cpus=2 vm_mem=4G
vm_qemu=qemu-system-x86_64
export vm_cache vm_accel # found by vm_prepare

vm_die() {
	echo "${0##*/}: $*" >&2
	exit 125
}

# vm_start ACCELERATOR SECONDS FOLDER KERNEL-ARGUMENTS [QEMU-ARGUMENT]...: starts it in the
# background, as $vm, and ends it after the seconds.
vm_start() {
	local accel=$1 limit=$2 folder=$3 append=$4
	shift 4
	timeout "$limit" $vm_qemu -machine q35 -accel "$accel" -cpu max -smp "$vm_cpus" -m "$vm_mem" \
		-display none -no-reboot -nodefaults -no-user-config -pidfile "$folder/pid" \
		-chardev "file,id=console,path=$folder/console,append=on" -serial chardev:console \
		-kernel "$vm_cache"/kernel/boot/vmlinuz-* -initrd "$vm_cache/initramfs.gz" \
		-append "console=ttyS0 panic=-1 loglevel=5 mitigations=off $append" "$@" </dev/null &
	vm=$!
}

# vm_boot SECONDS FOLDER KERNEL-ARGUMENTS [QEMU-ARGUMENT]...: boots a guest, as $vm, that runs the
# command in the folder.
vm_boot() {
	local limit=$1 folder=$2 append=$3
	shift 3
	rm -f "$folder/job/status"
	cp "$vm_here/guest-init" "$folder/job/init"
	vm_start "$vm_accel" "$limit" "$folder" "$append" \
		-virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
		-virtfs "local,path=$vm_cache/kernel/lib/modules,mount_tag=modules,security_model=none,readonly=on" \
		-virtfs "local,path=$folder/job,mount_tag=job,security_model=none" \
		-chardev "file,id=output,path=$folder/output" -device virtio-serial-pci \
		-device virtserialport,chardev=output,name=rmemfs.output "$@"
}

# The answer is kept for this pair of kernels, the host's and the guest's: a failing probe takes its
# whole time limit.
vm_choose_accel() {
	local temp=$1 key answer=tcg
	vm_accel=tcg,thread=multi
	[ -w /dev/kvm ] || return 0
	key="$(uname -r) $(ls "$vm_cache/kernel/lib/modules")"
	if [ "$(head -n 1 "$vm_cache/kvm-probe" 2>/dev/null)" != "$key" ]; then
		mkdir "$temp/probe"
		vm_start kvm 20 "$temp/probe" rmemfs.probe 2>/dev/null
		wait "$vm" 2>/dev/null || true
		! grep -q "rmemfs guest is up" "$temp/probe/console" 2>/dev/null || answer=kvm
		printf '%s\n' "$key" $answer >"$temp/kvm-probe"
		mv "$temp/kvm-probe" "$vm_cache/kvm-probe"
	fi
	[ "$(tail -n 1 "$vm_cache/kvm-probe")" != kvm ] || vm_accel=kvm
}

# vm_prepare FOLDER: makes sure that a guest can run, or ends us; the folder is for temporary files.
vm_prepare() {
	command -v $vm_qemu >/dev/null || vm_die "$vm_qemu is missing: apt-get install qemu-system-x86"
	command -v rdma >/dev/null || [ -x /usr/sbin/rdma ] ||
		vm_die "rdma is missing: apt-get install iproute2"
	[ -n "$(find /usr/lib -name 'librxe-rdmav*.so' -print -quit)" ] ||
		vm_die "the Soft-RoCE provider is missing: apt-get install ibverbs-providers"
	vm_cache=$("$vm_here/guest.sh") || exit 125
	vm_choose_accel "$1"
}

# vm_complaints CONSOLE...: prints a kernel's complaints; false if there are none.
vm_complaints() {
	grep -hE -A 12 'BUG:|WARNING:|Oops|hung task|blocked for more than' "$@" /dev/null | head -n 60 |
		grep .
}
