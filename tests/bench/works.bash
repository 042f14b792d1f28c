# shellcheck shell=bash disable=SC2034,SC2154,SC2178
# works.bash - the works by which places are compared. work_NAME PLACE prepares, measures, records
# and then checks that the bytes really moved and the files are really there.
#
# run.sh sets the sizes: $file_mib of files that are read and written at random or in parallel,
# $copy_mib of those that are copied, $slow_mib where that takes minutes. It also sets the number
# $files of small files, and the time $run_ms of a fio run.

pattern_number=0 build_sum='' cpu_used=''

# Drops a file from the kernel's cache.
uncache() {
	sync "$1"
	dd if="$1" iflag=nocache count=0 status=none
}

opens_direct() {
	dd if="$1" of=/dev/null bs=4k count=1 iflag=direct status=none 2>/dev/null
}

# same PLACE FILE EXPECTED [BYTES]: the file's bytes, fetched anew, are the first BYTES (all) of the
# other file's. Where nothing is kept, only their number is compared.
same() {
	local direct=() bytes=${4:-$(stat -c %s "$3")}
	[ "$(stat -c %s "$2")" -eq "$bytes" ] || bench_die "$2 on $1 has the wrong size"
	keeps_data "$1" || return 0
	! opens_direct "$2" || direct=(iflag=direct)
	dd if="$2" bs=1M "${direct[@]}" status=none | cmp -n "$bytes" - "$3" ||
		bench_die "$2 on $1 differs from what was written"
}

make_source() {
	dd if=/dev/urandom of="$memory/source" bs=1M count="$copy_mib" status=none
	dd if="$memory/source" of="$memory/data" bs=1M count="$file_mib" status=none
}

# Makes the file that fio works on, once for each place.
lay_data() {
	local file=${folder[$1]}/data
	[ -e "$file" ] || dd if="$memory/data" of="$file" bs=1M status=none
	same "$1" "$file" "$memory/data"
}

# ---- fio -----------------------------------------------------------------------------------------

# Prints fio's errors, then its warnings.
fio_said() {
	grep -a '^fio: \|error=' "$work/fio.log" | head -n 3
	cat "$work"/*.log | grep -a ' warning: \| error: ' | tail -n 3 || true
}

take_fio_json() {
	sed -n '/^{/,$p' "$work/fio.log" >"$work/fio.json"
}

# run_fio PLACE FILE RW BS DEPTH JOBS [OPTION]...: the result as JSON in $work/fio.json. Direct if
# the place supports that; all jobs work on the one file.
run_fio() {
	local file=$2 rw=$3 bs=$4 depth=$5 jobs=$6 engine=psync past_cache=0
	[ "$depth" -eq 1 ] || engine=libaio
	! opens_direct "$file" || past_cache=1
	shift 6
	fio --name=bench --filename="$file" --size="${file_mib}M" --rw="$rw" --bs="$bs" --direct=$past_cache \
		--ioengine=$engine --iodepth="$depth" --numjobs="$jobs" --group_reporting --overwrite=1 \
		--time_based --runtime="${run_ms}ms" --output-format=json "$@" \
		>"$work/fio.log" 2>&1 || bench_die "fio failed on $file: $(fio_said)"
	take_fio_json
}

fio_value() {
	jq -r ".jobs[0].$1" "$work/fio.json"
}

# Each run writes a pattern of its own: as many bytes as fio reports must have it.
check_pattern() {
	local place=$1 file=$2 pattern=$3 written expected found
	keeps_data "$place" || return 0
	written=$(fio_value write.io_bytes)
	expected=$((file_mib << 20))
	[ "$written" -ge "$expected" ] || expected=$written
	found=$("$bin/pages" "$file" "$pattern")
	[ "$found" -eq "$expected" ] || bench_die "$file on $place: fio wrote $expected bytes, and $found are there"
}

# Bytes per second for sequential I/O, operations per second for random I/O.
record_fio() {
	local name=$1 place=$2 rw=$3 bs=$4 depth=$5 jobs=$6 direction=read p
	[[ $rw != *write ]] || direction="write"
	if [[ $rw != rand* ]]; then
		record "$name" "$place" "$(fio_value $direction.bw_bytes)" B/s
		return
	fi
	record "$name" "$place" "$(fio_value $direction.iops)" op/s
	[ "$depth" -ne 1 ] || record "threads-$rw-$bs" "$place" "$(fio_value $direction.iops)" op/s "$jobs"
	[ "$jobs" -eq 1 ] || return 0
	for p in 50 99 99.9; do
		record "$rw-$bs-p$p" "$place" \
			"$(jq "[.jobs[0].$direction.clat_ns.percentile | to_entries[] | select((.key | tonumber) == $p)][0].value / 1000" \
				"$work/fio.json")" us "$depth"
	done
}

# Records the daemon's CPU time for the bytes that fio has moved.
record_cpu() {
	local bytes
	bytes=$(jq '.jobs[0] | .read.io_bytes + .write.io_bytes' "$work/fio.json")
	record "cpu-$1" "$2" "$(awk -v s="$cpu_used" -v n="$bytes" 'BEGIN { printf "%.6g", s * 2^30 / n }')" s/GiB
}

# fio_at PLACE RW BS DEPTH JOBS: on the place's own file, which is compared before a read and after
# a write. $cpu_used is the CPU time of the place's daemon; empty where there is none.
fio_at() {
	local place=$1 rw=$2 file=${folder[$1]}/data options=() before pattern=''
	if [[ $rw == *write ]]; then
		file=${folder[$place]}/written
		[ -e "$file" ] || dd if="$memory/data" of="$file" bs=1M status=none
		pattern_number=$((pattern_number + 1))
		pattern=$(printf '%08x' $((0x5eed0000 + pattern_number)))
		options=(--buffer_pattern="0x$pattern")
	else
		lay_data "$place"
	fi
	cpu_used=''
	[ -z "${daemon[$place]:-}" ] || before=$(cpu_seconds "$place")
	run_fio "$place" "$file" "${@:2}" "${options[@]}"
	[ -z "${daemon[$place]:-}" ] || cpu_used=$(awk -v b="$before" -v e="$(cpu_seconds "$place")" 'BEGIN { print e - b }')
	[ -z "$pattern" ] || check_pattern "$place" "$file" "$pattern"
}

# work_fio PLACE RW BS DEPTH [JOBS]: named RW-BS-dDEPTH[-jJOBS]. Reads and writes of 1 MiB also
# record the daemon's CPU time per GiB.
work_fio() {
	local place=$1 rw=$2 bs=$3 depth=$4 jobs=${5:-1} name=$2-$3-d$4
	[ "$jobs" -eq 1 ] || name+=-j$jobs
	case $place in
	socket)
		work_stream "$name"
		return
		;;
	wire)
		work_perftest "$name" "$rw" "$bs" "$depth"
		return
		;;
	esac
	fio_at "$place" "$rw" "$bs" "$depth" "$jobs"
	record_fio "$name" "$place" "$rw" "$bs" "$depth" "$jobs"
	[ -z "$cpu_used" ] || [ "$bs" != 1M ] || record_cpu "$name" "$place"
}

# One bare socket stream that copies the same bytes.
work_stream() {
	record "$1" socket "$("$bin/stream" "$stream_mib")" B/s
}

# ---- copies --------------------------------------------------------------------------------------

record_copy() {
	record "$1" "$2" "$(ratio $(($3 << 20)) "$seconds")" B/s
}

# copy_in NAME PLACE MIB COMMAND...: the command makes ${folder[PLACE]}/copy of the source's first
# MIB.
copy_in() {
	local name=$1 place=$2 mib=$3 file=${folder[$2]}/copy
	shift 3
	rm -f "$file"
	timed "$@"
	record_copy "$name" "$place" "$mib"
	uncache "$file"
	same "$place" "$file" "$memory/source" $((mib << 20))
	[ "$mib" -eq "$copy_mib" ] || rm "$file"
}

# copy_out NAME PLACE MIB COMMAND...: the other way. Cold: nothing of the file is in the page cache.
# A null server's bytes are its own.
copy_out() {
	local name=$1 place=$2 mib=$3 file=${folder[$2]}/copy
	shift 3
	[ -e "$file" ] || cp "$memory/source" "$file"
	uncache "$file"
	rm -f "$memory/sink"
	timed "$@"
	record_copy "$name" "$place" "$mib"
	[ ! -e "$memory/sink" ] || ! keeps_data "$place" || cmp -n $((mib << 20)) "$memory/sink" "$memory/source" ||
		bench_die "what was copied from $place differs"
	rm -f "$memory/sink"
}

# dd_in NAME PLACE BS [MIB], and dd_out: all of the source, or its first MIB where that takes
# minutes.
dd_in() {
	local mib=${4:-$copy_mib}
	copy_in "$1" "$2" "$mib" dd if="$memory/source" of="${folder[$2]}/copy" bs="$3" count="${mib}M" iflag=count_bytes status=none
}

dd_out() {
	local mib=${4:-$copy_mib}
	copy_out "$1" "$2" "$mib" dd if="${folder[$2]}/copy" of="$memory/sink" bs="$3" count="${mib}M" iflag=count_bytes status=none
}

work_cp_in() { copy_in cp-in "$1" "$copy_mib" cp "$memory/source" "${folder[$1]}/copy"; }
work_cp_out() { copy_out cp-out "$1" "$copy_mib" cp "${folder[$1]}/copy" "$memory/sink"; }
work_dd_4k_in() { dd_in dd-4k-in "$1" 4k "${2:-}"; }
work_dd_4k_out() { dd_out dd-4k-out "$1" 4k "${2:-}"; }
work_dd_1M_in() { dd_in dd-1M-in "$1" 1M; }
work_dd_1M_out() { dd_out dd-1M-out "$1" 1M; }

# ---- small files ---------------------------------------------------------------------------------

# mdbench checks names, sizes and contents itself.
work_small_files() {
	local place=$1 at=${folder[$1]}/small n=$files phase s
	local -A took
	mkdir "$at"
	while read -r phase _ s; do
		took[$phase]=$s
	done < <("$bin/mdbench" "$at" "$files" 4096)
	[ ${#took[@]} -eq 7 ] || bench_die "mdbench failed on $place"
	rmdir "$at"
	record create-unlink "$place" "$(awk -v n="$n" -v a="${took[create]}" -v b="${took[remove]}" \
		'BEGIN { printf "%.6g", n / (a + b) }')" op/s
	record create-write-close "$place" "$(ratio "$n" "${took[write]}")" op/s
	record stat-first "$place" "$(ratio "$n" "${took[first]}")" op/s
	record stat-warm "$place" "$(ratio "$n" "${took[stat]}")" op/s
	record open-read-close "$place" "$(ratio "$n" "${took[read]}")" op/s
	record unlink "$place" "$(ratio "$n" "${took[unlink]}")" op/s
}

# Files of 8 KiB, one after the other.
work_files_8k() {
	local at=${folder[$1]}/small phase _ s written=''
	mkdir "$at"
	while read -r phase _ s; do
		[ "$phase" != write ] || written=$s
	done < <("$bin/mdbench" "$at" "$files_8k" 8192)
	[ -n "$written" ] || bench_die "mdbench failed on $1"
	rmdir "$at"
	record write-close-8k "$1" "$(ratio "$files_8k" "$written")" op/s
}

# A tree of many small files and a few large ones, with owners, modes, times and symbolic links.
make_headers() {
	cp -a /usr/include "$memory/headers"
	headers=$(find "$memory/headers" | wc -l)
}

listed() {
	(cd "$1" && find . -printf '%p %y %m %U:%G %T@ %l\n' | sort)
}

work_cp_a() {
	local at=${folder[$1]}/headers
	timed cp -a "$memory/headers" "$at"
	record cp-a "$1" "$(ratio "$headers" "$seconds")" file/s
	diff -r --no-dereference "$memory/headers" "$at" && cmp <(listed "$memory/headers") <(listed "$at") ||
		bench_die "the tree on $1 differs from the one that was copied"
	rm -r "$at"
}

# An archive of small files: 200 bytes to 8 KiB.
make_archive() {
	local i
	mkdir "$work/tree"
	for ((i = 0; i < untar_files; i++)); do
		[ $((i % 100)) -ne 0 ] || mkdir "$work/tree/$((i / 100))"
		head -c $((200 + i * 7919 % 8000)) "$memory/source" >"$work/tree/$((i / 100))/$i"
	done
	tar -C "$work/tree" -cf "$memory/tree.tar" .
	rm -r "$work/tree"
}

work_untar() {
	local at=${folder[$1]}/tree
	mkdir "$at"
	timed tar -C "$at" -xf "$memory/tree.tar"
	record untar "$1" "$(ratio "$untar_files" "$seconds")" file/s
	tar -C "$at" -df "$memory/tree.tar" || bench_die "the tree on $1 differs from its archive"
	rm -r "$at"
}

# ---- a C build -----------------------------------------------------------------------------------

build_here() (
	local source
	cd "$1" || exit
	for source in $build_sources; do
		gcc -O2 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DRMEMFS_VERSION='"0"' -DRMEMFS_SYSCONFDIR='"/etc"' \
			-I. -c "$source" -o "${source%.c}.o" || exit
	done
	find common -name '*.o' | LC_ALL=C sort | xargs ar rcsD libcommon.a
)

# The resulting library is the same everywhere.
work_build() {
	local at=${folder[$1]}/build sum
	mkdir "$at"
	cp -r "$bench_root/common" "$at/"
	timed build_here "$at"
	record build "$1" "$(ratio 60 "$seconds")" /min
	sum=$(sha256sum <"$at/libcommon.a")
	[ "${build_sum:=$sum}" = "$sum" ] || bench_die "the library built on $1 differs"
	rm -r "$at"
}

# ---- series --------------------------------------------------------------------------------------

# work_clients N TRANSPORT: one fio for each of N mounts, all at the same time.
work_clients() {
	local n=$1 transport=$2 i jobs=() place
	for ((i = 0; i < n; i++)); do
		place=client$i
		rmem_mount "$place" "$transport" "$place"
		dd if="$memory/data" of="${folder[$place]}/data" bs=1M count="$client_mib" status=none
		jobs+=(--name="$place" --filename="${folder[$place]}/data")
	done
	fio --size="${client_mib}M" --rw=randread --bs=4k --direct=1 --ioengine=psync --group_reporting \
		--time_based --runtime="${run_ms}ms" --output-format=json "${jobs[@]}" \
		>"$work/fio.log" 2>&1 || bench_die "fio failed on $n clients: $(fio_said)"
	take_fio_json
	record clients-randread-4k "$transport" "$(jq '[.jobs[].read.iops] | add' "$work/fio.json")" op/s "$n"
	for ((i = 0; i < n; i++)); do
		cmp -n $((client_mib << 20)) "${folder[client$i]}/data" "$memory/data" || bench_die "client $i reads other bytes"
		rmem_umount "client$i"
	done
}

# work_shared N TRANSPORT: N mounts write one export. All read one file, and overwrite it; as many
# processes read it by one mount alone. Each mount works through small files, in a folder of its
# own, and then in one shared folder. With two mounts it also measures how long a file takes to
# change hands.
work_shared() {
	local n=$1 transport=$2 i at
	for ((i = 0; i < n; i++)); do
		rmem_mount "shared$i" "$transport" shared share
	done
	at=${folder[shared0]}
	dd if="$memory/data" of="$at/data" bs=1M count="$client_mib" status=none
	cp "$at/data" "$at/scribble"
	shared_fio "$n" "$n" "$transport" read 1M data
	[ "$n" -eq 1 ] || shared_fio 1 "$n" "$transport-alone" read 1M data
	shared_fio "$n" "$n" "$transport" read 128k data
	shared_fio "$n" "$n" "$transport" randread 4k data
	shared_fio "$n" "$n" "$transport" randwrite 4k scribble
	rm -f "$at/scribble"
	for ((i = 0; i < n; i++)); do
		mkdir "$at/small$i"
	done
	shared_files "$n" "$transport" shared-files $((files / 4)) small
	shared_files "$n" "$transport" shared-folder $((files / 40 + 1))
	[ "$n" -ne 2 ] || work_handover "$transport"
	for ((i = n - 1; i >= 0; i--)); do
		rmdir "${folder[shared$i]:?}/small$i"
		cmp -n $((client_mib << 20)) "${folder[shared$i]}/data" "$memory/data" || bench_die "mount $i reads other bytes"
		[ "$i" -ne 0 ] || rm -f "$at/data" "$at/turns"
		rmem_umount "shared$i"
	done
}

# work_several N TRANSPORT: each of N mounts of one export works in a folder of its own: on small
# files, and on large blocks of a file that four processes share. One mount is alone, so it needs no
# lease.
work_several() {
	local n=$1 transport=$2 i at
	for ((i = 0; i < n; i++)); do
		rmem_mount "shared$i" "$transport" several
		mkdir "${folder[shared$i]}/own$i"
	done
	for ((i = 0; i < n; i++)); do
		at=${folder[shared$i]}/own$i
		dd if="$memory/data" of="$at/data" bs=1M count="$client_mib" status=none
		cp "$at/data" "$at/scribble"
	done
	shared_fio "$n" "$n" "$transport" read 1M own%/data several
	shared_fio "$n" "$n" "$transport" write 1M own%/scribble several
	shared_files "$n" "$transport" several-files $((files / 4)) own
	for ((i = 0; i < n; i++)); do
		at=${folder[shared$i]}/own$i
		cmp -n $((client_mib << 20)) "$at/data" "$memory/data" || bench_die "mount $i reads other bytes"
		rm -r "$at"
	done
	for ((i = n - 1; i >= 0; i--)); do
		rmem_umount "shared$i"
	done
}

# shared_cpu N: nanoseconds of CPU that the daemons of N mounts and the server have taken so far.
shared_cpu() {
	local i
	for ((i = 0; i < $1; i++)); do
		cat "/proc/${daemon[shared$i]}/task"/*/schedstat
	done | cat - "/proc/$server/task"/*/schedstat | awk '{ ns += $1 } END { printf "%.0f\n", ns }'
}

# record_shared_cpu WORK PLACE N BEFORE OPERATIONS
record_shared_cpu() {
	local ns=$(($(shared_cpu "$3") - $4))
	record "cpu-$1" "$2" "$(ratio "$ns" $((1000 * $5)))" us/op "$3"
}

# shared_fio MOUNTS N PLACE RW BS FILE [NAME]: four processes for each of N mounts, so that one alone does
# its best, on the first MOUNTS of them. % in FILE stands for the mount's number. NAME is that of the work,
# instead of shared.
shared_fio() {
	local n=$2 rw=$4 i jobs=() before name=${7:-shared}-$4-$5
	for ((i = 0; i < $1; i++)); do
		jobs+=(--name="shared$i" --filename="${folder[shared$i]}/${6//%/$i}")
	done
	before=$(shared_cpu "$n")
	fio --size="${client_mib}M" --rw="$rw" --bs="$5" --direct=1 --ioengine=psync --numjobs=$((4 * n / $1)) \
		--group_reporting --time_based --runtime="${run_ms}ms" --output-format=json "${jobs[@]}" \
		>"$work/fio.log" 2>&1 || bench_die "fio failed on $1 of $n mounts: $(fio_said)"
	take_fio_json
	record "$name" "$3" "$(jq "[.jobs[].${rw#rand}.iops] | add" "$work/fio.json")" op/s "$n"
	record_shared_cpu "$name" "$3" "$n" "$before" "$(jq "[.jobs[].${rw#rand}.total_ios] | add" "$work/fio.json")"
}

# shared_files N TRANSPORT WORK FILES [FOLDER]: each mount works through FILES files, in FOLDER with
# its own number appended, or, without FOLDER, all in one folder.
shared_files() {
	local n=$1 i pids=() began before
	before=$(shared_cpu "$n")
	began=$(date +%s.%N)
	for ((i = 0; i < n; i++)); do
		"$bin/mdbench" "${folder[shared$i]}/${5:+$5$i}" "$4" 4096 "$(printf 'm%03d.' "$i")" >"$work/mdbench.$i" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || bench_die "mdbench failed on one of $n mounts"
	done
	record "$3" "$2" "$(awk -v b="$began" -v e="$(date +%s.%N)" -v n=$((n * $4)) \
		'BEGIN { printf "%.6g", n / (e - b) }')" file/s "$n"
	record_shared_cpu "$3" "$2" "$n" "$before" $((n * $4))
}

# Two mounts take turns: each sees the other's changes. Overwriting existing bytes needs no message.
# Before a file grows the other mount gives back its lease. A name that changes all the time is
# looked up at the server.
work_handover() {
	local way _ turns s p50 p99 before asked
	for way in overwrite grow name; do
		before=$(recalls_so_far)
		read -r _ turns s p50 p99 < <("$bin/handover" $way "${folder[shared0]}/turns" "${folder[shared1]}/turns" "$files")
		[ -n "$p99" ] || bench_die "handover failed: $way"
		asked=$(($(recalls_so_far) - before))
		case $way in
		overwrite) [ "$asked" -lt $((turns / 2)) ] || bench_die "overwriting took $asked recalls" ;;
		grow) [ "$asked" -ge "$turns" ] || bench_die "$turns turns took $asked recalls only" ;;
		esac
		record "handover-$way-p50" "$1" "$p50" us
		record "handover-$way-p99" "$1" "$p99" us
	done
}

recalls_so_far() {
	"$bin/rmemfsctl" status --json "$work/socket" | jq '[.exports[].leases.recalled] | add'
}

# work_option VALUE TRANSPORT OPTION RW BS DEPTH: measures a mount option's effect, on a mount of
# its own. Named OPTION-RW-BS-dDEPTH, with the value as x.
work_option() {
	local value=$1 transport=$2 option=$3 rw=$4 name=$3-$4-$5-d$6
	rmem_mount option "$transport" option "$option=$value"
	fio_at option "$rw" "$5" "$6" 1
	rmem_umount option
	if [[ $rw == rand* ]]; then
		record "$name" "$transport" "$(fio_value "${rw#rand}.iops")" op/s "$value"
	else
		record "$name" "$transport" "$(fio_value "$rw.bw_bytes")" B/s "$value"
	fi
}

# work_fragments PLACE EXTENTS: a file of that many extents of one page each, and a file of one
# extent, as long as the longest. Only existing pages are read.
work_fragments() {
	local place=$1 n=$2 file=${folder[$1]}/pieces.$2 align=8k size=$((8 * $2))
	if [ "$n" -eq 1 ]; then
		align=4k size=$((4 * extents_most))
	fi
	if [ ! -e "$file" ]; then
		if [ "$n" -eq 1 ]; then
			dd if=/dev/zero of="$file" bs=4k count="$extents_most" status=none
		else
			"$bin/scale" pieces "$file" "$n"
			[ "$(stat -c %b "$file")" -eq $((n * 8)) ] || bench_die "$file has other extents"
		fi
	fi
	run_fio "$place" "$file" randread 4k 1 1 --size="${size}k" --blockalign=$align
	record fragments-randread-4k "$place" "$(fio_value read.iops)" op/s "$n"
}

# work_lookup PLACE TRANSPORT EXPORT COUNT: looks up names that the kernel has not seen.
work_lookup() {
	local place=$1 n=$4 ns
	rmem_umount "$place"
	rmem_mount "$place" "$2" "$3"
	ns=$("$bin/scale" look-up "${folder[$place]}/many.$n" "$n" "$((n < 1000 ? n : 1000))") || bench_die "a name among $n is missing"
	record lookup "$place" "$(ratio 1e9 "$ns")" op/s "$n"
}

make_many() {
	mkdir "${folder[$1]}/many.$2"
	"$bin/scale" create "${folder[$1]}/many.$2" "$2"
}

# ---- what the daemon takes -----------------------------------------------------------------------

# The daemon's own memory, besides its data buffers (16 of 1 MiB for each I/O thread, unless set
# otherwise) and 64 MiB. Over shm the regions are mapped, too, but belong to the server.
work_memory() {
	local place=$1 kib threads
	kib=$(awk '$1 == "RssAnon:" { print $2 }' "/proc/${daemon[$place]}/status")
	threads=$(cat "/proc/${daemon[$place]}/task"/*/comm | grep -c '^rmemfs-io/')
	record daemon-memory "$place" $((kib << 10)) B
	record daemon-memory bound $(((threads * 16 + 64) << 20)) B
}
