#!/usr/bin/env bats
# fio.bats - random I/O of all sizes; each block has its own checksum.

load helpers

setup() {
	setup_rmem
	start_server
	mount_rmem
}

teardown() {
	teardown_rmem
}

# fio_verify DIRECT ENGINE DEPTH [OPTION]...: writes blocks of 512 bytes to 4 MiB at random, each with its
# crc32c inside, and reads them back.
fio_verify() {
	local direct=$1 engine=$2 depth=$3
	shift 3
	fio --name=verify --aux-path="$dir" --directory="$mnt" --size="$(mib 64 16)M" --rw=randwrite \
		--bsrange=512-4M --ioengine="$engine" --iodepth="$depth" --direct="$direct" \
		--verify=crc32c --verify_fatal=1 --randrepeat=1 --output="$dir/fio.log" "$@"
}

fio_everywhere() {
	fio_verify "$@" --do_verify=1
	check() {
		fio_verify "$@" --verify_only=1
	}
	holds_everywhere check "$@"
}

@test "fio, random blocks, buffered" {
	fio_everywhere 0 psync 1
}

@test "fio, random blocks, direct" {
	fio_everywhere 1 psync 1
}

@test "fio, random blocks, direct, 16 at once" {
	fio_everywhere 1 libaio 16
}

@test "fio, small random blocks over written ones, direct, 16 at once" {
	random_file "$mnt/verify.0.0" "$(mib 32 8)"
	fio --name=verify --aux-path="$dir" --directory="$mnt" --size="$(mib 32 8)M" --rw=randwrite --bs=4k \
		--ioengine=libaio --iodepth=16 --direct=1 --verify=crc32c --verify_fatal=1 \
		--do_verify=1 --output="$dir/fio.log"
}

@test "fio, two processes on a file each, mapped" {
	fio --name=verify --aux-path="$dir" --directory="$mnt" --numjobs=2 --size="$(mib 16 4)M" --rw=randwrite \
		--bs=4k --ioengine=mmap --verify=crc32c --verify_fatal=1 --do_verify=1 \
		--output="$dir/fio.log"
}
