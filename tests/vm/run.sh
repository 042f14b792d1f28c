#!/bin/bash
# run.sh [--timeout SECONDS] [--cpus N] [--mem SIZE] [--job FOLDER] -- COMMAND... - runs COMMAND as
# root in a guest that has a real RDMA stack (Soft-RoCE, rxe0 at 10.9.0.1), streams its output and
# ends with its exit status; 124 after the timeout (600 s), 125 if the guest itself failed.
#
# The guest sees the host's files under the same paths: what it writes there stays in its memory and
# is lost. FOLDER (a temporary one if not given) is /run/job in it, and written for real. COMMAND
# starts in the current folder, with this environment's RMEMFS_* variables. Reading the host's files
# is slow: copy what is read often to $TMPDIR, a tmpfs.
#
# Runs under software emulation; under KVM only on machines where a probe showed that it boots.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
timeout=600 cpus=2 mem=4G job=
qemu="qemu-system-x86_64"

die() {
	echo "run.sh: $*" >&2
	exit 125
}

usage() {
	die "usage: run.sh [--timeout SECONDS] [--cpus N] [--mem SIZE] [--job FOLDER] -- COMMAND..."
}

while [ $# -gt 0 ]; do
	case $1 in
	--timeout) timeout=${2:?} ;;
	--cpus) cpus=${2:?} ;;
	--mem) mem=${2:?} ;;
	--job) job=${2:?} ;;
	--)
		shift
		break
		;;
	*) usage ;;
	esac
	shift 2
done
[ $# -gt 0 ] || usage
command -v $qemu >/dev/null || die "$qemu is missing: apt-get install qemu-system-x86"
command -v rdma >/dev/null || [ -x /usr/sbin/rdma ] || die "rdma is missing: apt-get install iproute2"
[ -e /usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so ] ||
	[ -n "$(find /usr/lib -name 'librxe-rdmav*.so' -print -quit)" ] ||
	die "the Soft-RoCE provider is missing: apt-get install ibverbs-providers"

temp=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-vm.XXXXXX")
vm='' reader=''
# shellcheck disable=SC2317 # called by the trap
cleanup() {
	if [ -n "$vm" ]; then
		kill "$vm" 2>/dev/null || true
		wait "$vm" 2>/dev/null || true
	fi
	[ -z "$reader" ] || kill "$reader" 2>/dev/null || true
	rm -rf "$temp"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# boot ACCELERATOR TIMEOUT CONSOLE KERNEL-ARGUMENTS [QEMU ARGUMENTS...]: in the background, as $vm.
boot() {
	local accel=$1 limit=$2 console=$3 append=$4
	shift 4
	timeout "$limit" $qemu -machine q35 -accel "$accel" -cpu max -smp "$cpus" -m "$mem" \
		-display none -no-reboot -nodefaults -no-user-config -serial "file:$console" \
		-kernel "$cache"/kernel/boot/vmlinuz-* -initrd "$cache/initramfs.gz" \
		-append "console=ttyS0 panic=-1 quiet mitigations=off $append" "$@" </dev/null &
	vm=$!
}

# Sets $status.
await() {
	status=0
	wait "$vm" || status=$?
	vm=
}

# The answer is kept with the kernel it holds for: a probe that fails takes its whole time limit.
choose_accel() {
	local key answer=tcg
	accel=tcg,thread=multi
	[ -w /dev/kvm ] || return 0
	key="$(uname -r) $(ls "$cache/kernel/lib/modules")"
	if [ "$(head -n 1 "$cache/kvm-probe" 2>/dev/null)" != "$key" ]; then
		boot kvm 20 "$temp/probe" rmemfs.probe 2>/dev/null
		await 2>/dev/null
		! grep -q "rmemfs guest is up" "$temp/probe" 2>/dev/null || answer=kvm
		printf '%s\n' "$key" $answer >"$temp/kvm-probe"
		mv "$temp/kvm-probe" "$cache/kvm-probe"
	fi
	[ "$(tail -n 1 "$cache/kvm-probe")" != kvm ] || accel=kvm
}

write_job() {
	mkdir -p "$job"
	rm -f "$job/status" "$job/dmesg"
	cp "$here/guest-init" "$job/init"
	{
		declare -px | grep -E '^declare -x RMEMFS_[A-Z0-9_]*=' || true
		printf 'cd %q || exit 125\n' "$PWD"
		printf '%q ' "$@"
		echo
	} >"$job/command"
}

cache=$("$here/guest.sh")
job=${job:-$temp/job}
write_job "$@"
choose_accel
mkfifo "$temp/output"
cat "$temp/output" &
reader=$!
boot "$accel" "$timeout" "$temp/console" "" \
	-virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
	-virtfs "local,path=$cache/kernel/lib/modules,mount_tag=modules,security_model=none,readonly=on" \
	-virtfs "local,path=$job,mount_tag=job,security_model=none" \
	-chardev "file,id=output,path=$temp/output" -device virtio-serial-pci \
	-device virtserialport,chardev=output,name=rmemfs.output
await
# A guest that never got as far as opening its output must not leave cat waiting for a writer.
: 1<>"$temp/output"
wait "$reader"
reader=''
if [ -e "$job/dmesg" ] && grep -qE 'BUG:|WARNING:|Oops|hung task' "$job/dmesg"; then
	echo "run.sh: the guest's kernel complained:" >&2
	grep -E -A 12 'BUG:|WARNING:|Oops|hung task' "$job/dmesg" | head -n 60 >&2
fi
if [ "$status" -eq 124 ]; then
	echo "run.sh: not done within $timeout s; the guest's console ended:" >&2
	tail -n 20 "$temp/console" >&2
	exit 124
fi
if [ ! -s "$job/status" ]; then
	echo "run.sh: the guest failed; its console ended:" >&2
	tail -n 40 "$temp/console" >&2
	exit 125
fi
exit "$(cat "$job/status")"
