#!/bin/bash
# image.sh RELEASE PACKAGES FOLDER - makes a disk with a machine of this Debian release (bookworm, trixie): its own
# kernel, systemd, Soft-RoCE, and the packages from the folder PACKAGES. FOLDER gets disk, and kernel/boot/vmlinuz-*
# and initramfs.gz as vm.bash boots them. Needs root.
#
# The same disk serves for every machine: the kernel's command line gives the name, and the network card's address
# gives the network's. /packages/next has the same packages as a later version, for an upgrade.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
platforms=$here/../../platforms
release=${1:?bookworm or trixie} packages=${2:?the folder of the packages} folder=${3:?a folder}
base=$("$platforms/root.sh" "$release" guest)

# The root that is made again only each month stays as it is: the changes are in memory.
if [ "${4:-}" != inside ]; then
	exec unshare --mount --propagation private -- "$0" "$release" "$packages" "$folder" inside
fi
mount -t tmpfs -o mode=755 none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
root=/mnt/root
mount -t overlay -o "lowerdir=$base,upperdir=/mnt/upper,workdir=/mnt/work" none "$root"

inside() {
	chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

# ---- packages --------------------------------------------------------------------------------------

mkdir -p "$root/packages/now" "$root/packages/next"
cp "$packages"/rmemfs_*.deb "$packages"/rmemfs-server_*.deb "$root/packages/now/"
"$platforms/next_version.sh" "$root/packages/now" "$root/packages/next"
mount -t proc proc "$root/proc"
inside apt-get -q update
inside sh -c 'apt-get -q -y --no-install-recommends install /packages/now/*.deb'
umount "$root/proc"

# ---- the machine -----------------------------------------------------------------------------------

# in_file PATH: writes standard input there.
in_file() {
	mkdir -p "$(dirname "$root$1")"
	cat >"$root$1"
}

: >"$root/etc/machine-id" # each machine makes its own
rm -f "$root/etc/hostname" "$root/var/lib/dbus/machine-id"
printf '%s\n' '127.0.0.1 localhost' '10.9.0.1 server' '10.9.0.2 client' | in_file /etc/hosts
echo '/dev/vda / ext4 defaults 0 1' | in_file /etc/fstab
mkdir -p "$root/var/log/journal"
for n in 1 2; do
	printf '[Match]\nMACAddress=52:54:00:09:00:0%d\n[Link]\nMTUBytes=9000\n[Network]\nAddress=10.9.0.%d/24\nLinkLocalAddressing=no\n' \
		$n $n | in_file /etc/systemd/network/$n.network
done
# As an administrator makes Soft-RoCE permanent. crc32 first, or rxe fails to load.
in_file /etc/systemd/system/rxe0.service <<-'END'
	[Unit]
	Description=Soft-RoCE on eth0
	Wants=network.target
	After=network.target sys-subsystem-net-devices-eth0.device
	Requires=sys-subsystem-net-devices-eth0.device
	Before=remote-fs-pre.target rmemfs-server.service rmemfs@data.service
	[Service]
	Type=oneshot
	RemainAfterExit=yes
	ExecStart=/sbin/modprobe -a crc32_generic rdma_rxe rdma_ucm
	ExecStart=/usr/bin/rdma link add rxe0 type rxe netdev eth0
	[Install]
	WantedBy=multi-user.target
END
install -m 755 "$here/agent" "$root/usr/local/sbin/test-agent"
in_file /etc/systemd/system/test-agent.service <<-'END'
	[Unit]
	Description=Commands of the tests
	[Service]
	ExecStart=/usr/local/sbin/test-agent
	KillMode=mixed
	[Install]
	WantedBy=multi-user.target
END
inside systemctl -q enable systemd-networkd systemd-networkd-wait-online rxe0 test-agent
inside systemctl -q mask apt-daily.timer apt-daily-upgrade.timer serial-getty@ttyS0.service getty@tty1.service

# ---- the disk --------------------------------------------------------------------------------------

mkdir -p "$folder/kernel/boot"
cp "$root"/boot/vmlinuz-* "$folder/kernel/boot/"
cp "$root"/boot/initrd.img-* "$folder/initramfs.gz"
rm -f "$folder/disk"
mke2fs -q -t ext4 -d "$root" "$folder/disk" 4G
