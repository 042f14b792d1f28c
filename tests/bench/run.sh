#!/bin/bash
# run.sh - the benchmark: rmemfs beside other filesystems, in one run on one machine; see README.md.
# shellcheck disable=SC2034,SC2154 # what the files below share
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=config/packages.sh
. "$here/../../config/packages.sh"
# shellcheck source=tests/bench/bench.bash
. "$here/bench.bash"
# shellcheck source=tests/bench/works.bash
. "$here/works.bash"
# shellcheck source=tests/bench/counts.bash
. "$here/counts.bash"
# shellcheck source=tests/bench/peers.bash
. "$here/peers.bash"

usage() {
	cat <<-END
		usage: tests/bench/run.sh [native|vm] [--quick] [--parts NAME,...] [--out FOLDER] [--plots FOLDER]
		  native   on this machine, over shm and tcp, beside tmpfs, null FUSE servers, sshfs (the default)
		  vm       in a guest with Soft-RoCE, over verbs and tcp, beside NFS over RDMA and TCP
		  --quick  small and short: shows that all of it works, and nothing about speed
		  --parts  some only of: fio, series, copies, files, clients, sharing, tuning, growth; or brief, natively:
		           blocks and small files over shm and tcp, in six minutes; or counts: requests and
		           messages for what programs do, in the guest those of NFS; or several, natively: mounts that each have a folder
		  --out    where the results go (build/bench-native, build/bench-vm)
		  --plots  a folder for plots of the main ratios, each with its data beside it
		RMEMFS_BIN is the folder of the programs (build/release/bin), RMEMFS_BENCH_OPTIONS are mount options.
	END
}

# ---- how much ------------------------------------------------------------------------------------

settings_native() {
	repetitions=5 copies=8 series=3 run_ms=600
	sizes="4k 16k 64k 256k" depths="2 4 8 32" threads="4 8" clients="1 2 4" sharers="1 2 4 8 16"
	merges="1 8 32 256" channels="1 2 4 8" buffers="2 4 16 32"
	file_mib=128 copy_mib=512 slow_mib=8 client_mib=32 stream_mib=4096 export_size=1152MiB
	files=2000 files_8k=3000 untar_files=2000 build_sources='common/base/*.c common/conf/*.c'
	few=10000 many=1000000 extents_most=100000 grown_size=5632MiB metadata_reserve=1GiB
	counted_files=200 counted_tree=1000 several=8
	[ $quick -eq 0 ] || settings_quick
}

settings_quick() {
	repetitions=1 copies=1 series=1 run_ms=100
	sizes="64k" depths="4" threads="4" clients="1 2" sharers="1 2"
	merges="1 256" channels="1 8" buffers="2 16"
	file_mib=16 copy_mib=32 slow_mib=1 client_mib=8 stream_mib=64 export_size=160MiB
	files=100 files_8k=100 untar_files=200 build_sources='common/base/word.c'
	few=100 many=1000 extents_most=1000 grown_size=64MiB metadata_reserve=''
	counted_files=20 counted_tree=40 several=2
}

settings_guest() {
	repetitions=5 copies=5 series=3 run_ms=3000
	sizes="4k 16k 64k 256k" depths="2 4 8 32" threads="4 8" clients="1 2 4" sharers="1 2 4 8 16"
	merges="1 8 32 256" channels="1 2 4 8" buffers="2 4 16 32"
	file_mib=32 copy_mib=64 slow_mib=8 client_mib=8 stream_mib=256 export_size=256MiB
	files=300 untar_files=2000 build_sources='common/base/word.c common/conf/size.c'
	few=1000 many=10000 extents_most=10000 grown_size=192MiB metadata_reserve=''
	counted_files=100 counted_tree=200
	if [ $quick -eq 1 ]; then
		settings_quick
		files=20 untar_files=100 few=20 many=100 extents_most=100
	fi
}

# ---- the plan ------------------------------------------------------------------------------------

# visit PLACE WORK [ARGUMENT]...: mounts the place for this one work, if it exists for its own works
# only.
visit() {
	local place=$1 what=$2
	shift 2
	# shellcheck disable=SC2086 # arguments
	[ -z "${visits[$place]:-}" ] || rmem_mount "$place" ${visits[$place]}
	"$what" "$place" "$@"
	[ -z "${visits[$place]:-}" ] || rmem_umount "$place"
}

# compare REPETITIONS PLACES WORK [ARGUMENT]...: on each of the places in turn, so many times.
compare() {
	local n=$1 places=$2 what=$3 place
	shift 3
	for ((rep = 1; rep <= n; rep++)); do
		for place in $places; do
			visit "$place" "$what" "$@"
		done
	done
}

fio_works() {
	local places=$1 floors=$2 yardstick=$3 rw
	for rw in read write; do
		compare "$repetitions" "$places $floors" work_fio $rw 1M 1
		compare "$repetitions" "$places $floors $yardstick" work_fio $rw 1M 4
		compare "$repetitions" "$places $floors $wire" work_fio rand$rw 4k 1
	done
	for rw in read write; do
		compare "$repetitions" "$places $floors $wire" work_fio rand$rw 4k 16
	done
	compare "$repetitions" "$places $floors" work_fio randread 4k 1 2
}

fio_series() {
	local places=$1 size depth jobs rw
	for rw in read write; do
		for size in $sizes; do
			compare "$series" "$places" work_fio $rw "$size" 4
		done
	done
	for depth in $depths; do
		compare "$series" "$places" work_fio randread 4k "$depth"
	done
	for jobs in $threads; do
		compare "$series" "$places" work_fio randread 4k 1 "$jobs"
	done
}

# copy_works PLACES RARE [SLOW]: copies at rare and slow places are compared less often, and small
# blocks at slow places copy only a part of the file.
copy_works() {
	local what
	for what in work_cp_in work_cp_out; do
		compare "$copies" "$1" $what
		compare "$series" "$2 ${3:-}" $what
	done
	for what in work_dd_4k_in work_dd_4k_out; do
		compare "$series" "$1 $2" $what
		compare "$series" "${3:-}" $what "$slow_mib"
	done
}

file_works() {
	compare "$repetitions" "$1" work_small_files
	compare "$repetitions" "$1" work_untar
	compare "$series" "$1" work_build
}

tree_works() {
	compare "$repetitions" "$1" work_files_8k
	compare "$series" "$1" work_cp_a
}

# brief_works PLACES FLOOR: only the works in the plots. Small files take little time and spread
# widely.
brief_works() {
	local rw bs depth
	for bs in 4k:1 4k:16 1M:1 1M:4; do
		depth=${bs#*:} bs=${bs%:*}
		for rw in read write; do
			[ "$bs" != 4k ] || rw=rand$rw
			compare "$repetitions" "$1 $2" work_fio $rw "$bs" "$depth"
		done
	done
	compare $((4 * repetitions)) "$1" work_small_files
}

client_series() {
	local n
	for n in $clients; do
		compare "$series" "$n" work_clients "$1"
	done
}

# sharing_series TRANSPORT: mounts that write one export.
sharing_series() {
	local n
	for ((rep = 1; rep <= series; rep++)); do
		for n in $sharers; do
			work_shared "$n" "$1"
		done
	done
}

# option_series TRANSPORT: each I/O thread has a channel, over verbs a queue pair.
option_series() {
	local rw
	for rw in read write; do
		compare "$series" "$merges" work_option "$1" merge_pages $rw 1M 4
		compare "$series" "$channels" work_option "$1" io_threads $rw 1M 4
		compare "$series" "$buffers" work_option "$1" buffers $rw 1M 4
		compare "$series" "$channels" work_option "$1" io_threads rand$rw 4k 16
	done
}

# growth PLACE TRANSPORT ADDRESS: on a server of its own, since it takes much memory.
growth() {
	local place=$1 transport=$2 n
	server_start "$3" "grown:$grown_size"
	rmem_mount "$place" "$transport" grown
	for ((rep = 1; rep <= repetitions; rep++)); do
		work_fragments "$place" 1
		for ((n = 100; n <= extents_most; n *= 10)); do
			work_fragments "$place" $n
		done
	done
	rm -f "${folder[$place]}"/pieces.*
	for ((n = few; n <= many; n *= 10)); do
		make_many "$place" $n
	done
	for ((rep = 1; rep <= repetitions; rep++)); do
		for ((n = few; n <= many; n *= 10)); do
			work_lookup "$place" "$transport" grown $n
		done
	done
	bench_undo
}

# part NAME COMMAND...: runs it unless other parts were asked for.
part() {
	local name=$1
	shift
	[[ ,${parts:-$name}, != *,$name,* ]] || "$@"
}

# Unlike the other parts these are measured only if they were asked for.
brief() {
	[[ ,$parts, == *,brief,* ]]
}

# These have a server of their own, and need no other place.
only_counts() {
	[ "$parts" = counts ]
}

only_several() {
	[ "$parts" = several ]
}

# several: eight mounts beside one, in turn.
several() {
	local transport n
	rdma_device='' wire=''
	server_start 127.0.0.1 "several:$((client_mib * 16 + 256))MiB"
	make_source
	for transport in shm tcp; do
		for ((rep = 1; rep <= repetitions; rep++)); do
			for n in 1 $several; do
				work_several "$n" "$transport"
			done
		done
	done
	bench_undo
}

start_native() {
	rdma_device='' wire=''
	server_start 127.0.0.1 "shm:$export_size" "exclusive:$export_size" "tcp:$export_size" \
		"latency:$((file_mib * 3))MiB" "shared:$((client_mib * 2 + 64))MiB" "option:$((file_mib * 3))MiB" \
		names-{shm,tcp}:512MiB client{0..3}:$((client_mib * 2))MiB
	make_source
	make_archive
	make_headers
	tmpfs_place 2g
	rmem_mount shm shm shm
	rmem_mount exclusive shm exclusive cache=exclusive
	rmem_mount tcp tcp tcp
	rmem_mount names-shm shm names-shm names=local
	rmem_mount names-tcp tcp names-tcp names=local
	# Mounted for its own works only: else the memory and CPU that it holds would burden all
	# places.
	visits[latency]="shm latency low_latency"
	null_place null-own null_own
	null_place null-stock null_stock
	brief || sshfs_place
}

run_native() {
	if only_counts || only_several; then
		! only_counts || counts tcp
		! only_several || several
		return
	fi
	start_native
	! brief || brief_works "tmpfs shm tcp" null-stock
	part fio fio_works "tmpfs shm latency tcp sshfs" "null-own null-stock" socket
	part fio compare 1 shm work_memory
	part series fio_series "tmpfs shm tcp null-own null-stock"
	part copies copy_works "tmpfs shm tcp null-own" "exclusive null-stock" sshfs
	part files file_works "tmpfs shm names-shm exclusive tcp names-tcp sshfs"
	part files tree_works "tmpfs shm names-shm tcp names-tcp"
	part clients client_series shm
	part sharing sharing_series shm
	part sharing sharing_series tcp
	part tuning option_series tcp
	bench_undo
	part growth growth shm shm 127.0.0.1
}

start_guest() {
	rdma_device=rxe0 wire=wire
	server_start 10.9.0.1 "verbs:$export_size" "tcp:$export_size" \
		"option:$((file_mib * 3))MiB" "shared:$((client_mib * 2 + 64))MiB" names:64MiB client{0..3}:$((client_mib * 2))MiB
	make_source
	make_archive
	tmpfs_place 1g
	rmem_mount verbs verbs verbs
	rmem_mount tcp tcp tcp
	rmem_mount names verbs names names=local
	null_place null-own null_own
	null_place null-stock null_stock
	nfs_serve 1g
	nfs_place nfs-rdma rdma
	nfs_place nfs-tcp tcp
}

run_guest() {
	if only_counts; then
		server_address=10.9.0.1
		make_source
		nfs_serve 256m
		nfs_place nfs-rdma rdma
		nfs_counts nfs-rdma
		bench_undo
		return
	fi
	start_guest
	part fio fio_works "tmpfs verbs tcp nfs-rdma nfs-tcp" "null-own null-stock" wire
	part fio compare 1 verbs work_memory
	part copies copy_works "verbs nfs-rdma" "tmpfs tcp nfs-tcp"
	part files file_works "tmpfs verbs names tcp nfs-rdma nfs-tcp"
	part series fio_series "verbs nfs-rdma null-own"
	part clients client_series verbs
	part sharing sharing_series verbs
	part tuning option_series verbs
	bench_undo
	part growth growth verbs verbs 10.9.0.1
}

# ---- the run -------------------------------------------------------------------------------------

describe_machine() {
	echo "$(uname -sr), $(nproc) CPUs: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)."
	echo "Load before: $(cut -d' ' -f1-3 /proc/loadavg)."
	echo "rmemfs $("$bin/rmemfs" --version | cut -d' ' -f2), mount options: ${RMEMFS_BENCH_OPTIONS:-stock}."
	[ $quick -eq 0 ] || echo "A quick run: these figures say nothing."
}

# The machine, the day and the load, for the plots' captions.
describe_for_plots() {
	local machine=machine
	! grep -q '^flags.* hypervisor' /proc/cpuinfo || machine="virtual machine"
	echo "A $machine with $(nproc) CPUs, $(uname -sr | cut -d. -f1,2), $(date -u +%Y-%m-%d). Load before the run: $(cut -d' ' -f1 /proc/loadavg)."
}

# begin RESULTS: removes the results of an earlier run, which would be counted.
begin() {
	mkdir -p "$1"
	rm -f "$1"/{raw.csv,summary.csv,results.json,report.md,verdicts.txt,machine.txt,caption.txt} "$1"/*.{svg,png}
	bench_begin "$1"
	describe_machine >"$1/machine.txt"
	describe_for_plots >"$1/caption.txt"
}

native() {
	packages_install fio jq gnuplot-nox gcc fuse3 iproute2
	brief || only_counts || only_several || packages_install sshfs openssh-server
	! only_counts || packages_install git make
	settings_native
	(
		begin "$out"
		run_native
	)
	only_counts || "$here/report.sh" "$out" "$here/targets.native"
}

# Runs in the guest. Its programs are read often, and the host's files are slow, so they are copied.
guest() {
	settings_guest
	cp -r "$bin" "$TMPDIR/bin"
	bin=$TMPDIR/bin
	begin "$out"
	run_guest
}

vm() {
	local options=()
	packages_install fio jq gnuplot-nox gcc fuse3 iproute2 ibverbs-providers perftest nfs-kernel-server nfs-common \
		qemu-system-x86 cpio kmod
	[ $quick -eq 0 ] || options+=(--quick)
	[ -z "$parts" ] || options+=(--parts "$parts")
	rm -rf "$out/job"
	"$here/../vm/run.sh" --timeout 5400 --mem "${RMEMFS_BENCH_VM_MEM:-4G}" --job "$out/job" -- \
		"$here/run.sh" guest "${options[@]}" --out /run/job/results
	mv "$out"/job/results/* "$out/"
	rm -rf "$out/job"
	only_counts || "$here/report.sh" "$out" "$here/targets.vm"
}

mode=native quick=0 parts='' out='' plots=''
while [ $# -gt 0 ]; do
	case $1 in
	native | vm | guest) mode=$1 ;;
	--quick) quick=1 ;;
	--parts)
		parts=${2:?--parts needs names}
		shift
		;;
	--out)
		out=${2:?--out needs a folder}
		shift
		;;
	--plots)
		plots=${2:?--plots needs a folder}
		shift
		;;
	--help | -h)
		usage
		exit 0
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
	shift
done
out=$(realpath -m "${out:-$bench_root/build/bench-$mode}")
"$mode"
if [ -n "$plots" ]; then
	"$here/bars.sh" data "$out" "$plots"
	"$here/bars.sh" draw "$plots"
fi
if [ "$mode" != guest ]; then
	if only_counts; then echo "results: $out/counts.md"; else echo "results: $out/report.md"; fi
	[ $quick -eq 0 ] || echo "a quick run: its figures and verdicts say nothing about speed"
fi
