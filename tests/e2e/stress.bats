#!/usr/bin/env bats
# stress.bats - many processes use the same files at once, while the server is killed again and again.

load helpers

setup() {
	setup_rmem
	start_server
	mount_rmem
}

teardown() {
	teardown_rmem
}

checksums() {
	(cd "$mnt" && sha256sum -- *)
}

@test "random operations of four processes against a model, while the server is killed" {
	fsx -t "$(mib 20 10)" -p 4 "$mnt" >"$dir/fsx.log" 2>&1 3>&- &
	local fsx=$!
	# Only a few times: after a restart the server does not reuse freed pages for a lease time.
	for _ in 1 2 3 4; do
		sleep 2
		crash_server
	done
	wait $fsx
	checksums >"$dir/sums"
	check() {
		checksums | diff "$dir/sums" -
	}
	holds_everywhere check
}

# bats test_tags=long
@test "random operations against a model, by each mode of the cache" {
	for mode in none shared exclusive; do
		remount -o cache=$mode
		local writes_back=()
		[ $mode != exclusive ] || writes_back=(-w)
		for seed in 1 2 3; do
			rm -f "$mnt"/*
			fsx "${writes_back[@]}" -s $seed -t 10 -p 4 "$mnt"
		done
	done
}

@test "many direct writes at once beside readers through the cache" {
	random_file "$mnt/a" "$(mib 64 8)"
	for reader in 1 2; do
		(until [ -e "$dir/enough" ]; do cat "$mnt/a" || exit 1; done) >/dev/null 3>&- &
		readers[reader]=$!
	done
	timeout 60 fio --name=writers --filename="$mnt/a" --size="$(mib 64 8)M" --rw=randwrite \
		--bs=64k --ioengine=libaio --iodepth=256 --direct=1 --numjobs=4 --group_reporting \
		--randrepeat=1 --time_based --runtime=4 --output="$dir/fio.log"
	touch "$dir/enough"
	wait "${readers[1]}"
	wait "${readers[2]}"
}
