# shellcheck shell=bash disable=SC2034,SC2154
# peers.bash - the alternatives to rmemfs, each on a tmpfs and with its stock settings: sshfs on
# this machine; NFS from the kernel's server in the guest; perftest for the speed of the wire
# itself.

# ---- sshfs ---------------------------------------------------------------------------------------

make_ssh_keys() {
	mkdir -m 700 "$work/ssh"
	ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/host"
	ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/user"
	cat >"$work/ssh/sshd_config" <<-END
		Port $1
		ListenAddress 127.0.0.1
		HostKey $work/ssh/host
		AuthorizedKeysFile $work/ssh/user.pub
		StrictModes no
		PidFile none
		PermitRootLogin prohibit-password
		PasswordAuthentication no
		Subsystem sftp internal-sftp
	END
}

# The daemon needs its folder, which is missing if the service was never started.
start_sshd() {
	local port=$1
	if [ ! -d /run/sshd ]; then
		mkdir -m 755 /run/sshd
		later rmdir /run/sshd
	fi
	make_ssh_keys "$port"
	/usr/sbin/sshd -D -f "$work/ssh/sshd_config" -E "$work/sshd.log" &
	local pid=$!
	later stop_sshd "$pid"
	until ss -Hltn "sport = :$port" | grep -q .; do
		kill -0 "$pid" || bench_die "sshd did not start: $(tail -n 3 "$work/sshd.log")"
		sleep 0.02
	done
}

# sshd has an exit status of its own when it is told to end.
stop_sshd() {
	kill -TERM "$1"
	wait "$1" || [ $? -eq 255 ] || [ $? -eq 143 ]
}

sshfs_place() {
	local port
	port=$(free_port)
	start_sshd "$port"
	mkdir "$memory/sshfs" "$work/sshfs"
	sshfs -f -p "$port" -F /dev/null -o "IdentityFile=$work/ssh/user,StrictHostKeyChecking=no" \
		-o UserKnownHostsFile=/dev/null "root@127.0.0.1:$memory/sshfs" "$work/sshfs" >"$work/sshfs.log" 2>&1 &
	daemon[sshfs]=$!
	later leave "$work/sshfs" "$!"
	wait_mounted "$work/sshfs" "$!" sshfs
	folder[sshfs]=$work/sshfs
}

# ---- NFS, in the guest, whose end is the end of all that -----------------------------------------

nfs_serve() {
	local module
	for module in nfsd rpcrdma nfs nfsv4; do
		modprobe "$module" || bench_die "the kernel has no module $module"
	done
	mkdir -p "$work/nfs" /run/rpcbind /var/lib/nfs/v4recovery /run/sendsigs.omit.d
	mount -t tmpfs -o size="$1" nfs-bench "$work/nfs"
	later umount "$work/nfs"
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	mountpoint -q /var/lib/nfs/rpc_pipefs || mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs 2>/dev/null || :
	rpc.mountd -N 3
	exportfs -o rw,fsid=0,insecure,no_root_squash,no_subtree_check "*:$work/nfs"
	later exportfs -ua
	rpc.nfsd -N 3 8
	later rpc.nfsd 0
	echo "rdma 20049" >/proc/fs/nfsd/portlist
	# Do not wait for clients of an earlier server.
	echo Y >/proc/fs/nfsd/v4_end_grace
}

# nfs_place PLACE rdma|tcp
nfs_place() {
	local options=vers=4.2,proto=$2
	[ "$2" != rdma ] || options+=,port=20049
	mkdir "$work/$1"
	timeout 60 mount -t nfs -o "$options" "$server_address:/" "$work/$1" || bench_die "cannot mount NFS over $2"
	later umount "$work/$1"
	folder[$1]=$work/$1/$1
	mkdir "${folder[$1]}"
}

# ---- the wire ------------------------------------------------------------------------------------

# perftest TOOL OPTION...: runs a pair of them against each other on the one device; prints the
# client's table. The server is ready when it listens.
perftest() {
	local tool=$1 perftest_port pid
	shift
	perftest_port=$(free_port)
	"$tool" -d "$rdma_device" -p "$perftest_port" "$@" >"$work/perftest.log" 2>&1 &
	pid=$!
	until ss -Hltn "sport = :$perftest_port" | grep -q .; do
		kill -0 "$pid" || bench_die "$tool did not start: $(tail -n 3 "$work/perftest.log")"
		sleep 0.02
	done
	"$tool" -d "$rdma_device" -p "$perftest_port" "$@" "$server_address"
	wait "$pid"
}

# work_perftest NAME RW BS DEPTH: the same transfer without files. Columns: bandwidth's fourth is
# the average in MiB/s (2^20), latency's fifth the typical one in us.
work_perftest() {
	local name=$1 verb=write bytes=4096
	[[ $2 == *write ]] || verb="read"
	[[ $3 != 1M ]] || bytes=1048576
	if [ "$4" -eq 1 ] && [ "$bytes" -eq 4096 ]; then
		perftest "ib_${verb}_lat" -s "$bytes" -n 1000 >"$work/perftest.out"
		record "$name" wire "$(awk -v s="$bytes" '$1 == s { printf "%.6g", 1e6 / $5 }' "$work/perftest.out")" op/s
	elif [ "$bytes" -eq 4096 ]; then
		perftest "ib_${verb}_bw" -s "$bytes" -n 5000 -t "$4" >"$work/perftest.out"
		record "$name" wire "$(awk -v s="$bytes" '$1 == s { printf "%.6g", $4 * 2^20 / s }' "$work/perftest.out")" op/s
	else
		perftest "ib_${verb}_bw" -s "$bytes" -n 100 -t "$4" >"$work/perftest.out"
		record "$name" wire "$(awk -v s="$bytes" '$1 == s { printf "%.6g", $4 * 2^20 }' "$work/perftest.out")" B/s
	fi
}
