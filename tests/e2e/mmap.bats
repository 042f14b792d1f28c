#!/usr/bin/env bats
# mmap.bats - mapped files: what mappings, read(2) and write(2) see of each other in every cache mode;
# programs that run from the mount; databases that map.

load helpers

setup() {
	setup_rmem
	start_server
}

teardown() {
	teardown_rmem
}

# Before Linux 6.9 a FUSE file that bypasses the cache can't be mapped shared.
can_map_direct() {
	if [ -z "${maps_direct:-}" ]; then
		maps_direct=no
		! mapping written-is-mapped "$mnt/probe" 2>/dev/null || maps_direct=yes
	fi
	[ "$maps_direct" = yes ]
}

# in_each_mode COMMAND...: runs it for each cache mode, in an empty folder of a new mount.
in_each_mode() {
	for cache_mode in none shared exclusive; do
		echo "cache=$cache_mode"
		mount_rmem
		mkdir "$mnt/$cache_mode"
		cd "$mnt/$cache_mode"
		"$@"
		cd /
		umount_rmem
	done
}

# maps CHECK: runs the check in each mode that can map files.
maps() {
	in_each_mode maps_here "$1"
}

maps_here() {
	if [ "$cache_mode" = none ] && ! can_map_direct; then
		[[ $(mapping "$1" a 2>&1) == *ENODEV* ]]
	else
		mapping "$1" a
	fi
}

@test "what is written is in a mapping at once" {
	maps written-is-mapped
}

@test "what is stored into a mapping is read, with msync and without" {
	maps stored-is-read
}

@test "a store and a write of the same page both last" {
	maps store-and-write-share-a-page
}

@test "a file is mapped for writing beside one that only writes" {
	maps mapped-beside-a-writer
}

@test "a file is mapped for reading beside one that only writes" {
	maps mapped-for-reading-beside-a-writer
}

@test "a file is mapped beside one that writes direct" {
	maps mapped-beside-a-direct-writer
}

@test "direct and buffered handles read what each other wrote" {
	in_each_mode mapping direct-and-buffered a
}

@test "a file is read beside one that writes it direct, asynchronously" {
	in_each_mode mapping async-beside-readers a
}

@test "a file is mapped beside one that writes it direct, asynchronously" {
	maps async-beside-a-mapping
}

# cached_readers_and_direct_writers FILE: runs both at once while an open handle keeps the file in the
# cache.
cached_readers_and_direct_writers() {
	local readers=()
	exec 5<"$1"
	for _ in 1 2; do
		(until [ -e "$dir/enough" ]; do cat "$1" || exit 1; done) >/dev/null 3>&- 5>&- &
		readers+=($!)
	done
	timeout 60 fio --name=writers --filename="$1" --size="$(mib 16 4)M" --rw=randwrite --bs=64k \
		--ioengine=libaio --iodepth=16 --direct=1 --time_based --runtime=2 --output="$dir/fio.log"
	touch "$dir/enough"
	wait "${readers[@]}"
	rm "$dir/enough"
	cat <&5 >"$dir/seen"
	exec 5<&-
}

@test "many direct writes at once leave nothing older in the cache" {
	for cache_mode in shared exclusive; do
		mount_rmem
		random_file "$mnt/$cache_mode" "$(mib 16 4)"
		cached_readers_and_direct_writers "$mnt/$cache_mode"
		remount
		cmp "$dir/seen" "$mnt/$cache_mode"
		umount_rmem
	done
}

@test "a mapping shows what another handle appends" {
	maps appended-is-mapped
}

@test "a truncated file: SIGBUS behind its end, zeros when it grows again" {
	maps truncated-under-a-mapping
}

@test "stores into a private mapping are nobody else's" {
	in_each_mode mapping private-is-nobody-elses a
}

@test "stores last over msync and kill -9 of the server, and over the mount's end" {
	for cache_mode in shared exclusive; do
		mount_rmem
		fsop map-shared "$mnt/$cache_mode"
		head -c 12305 /dev/zero | tr '\0' m >"$dir/expected"
		holds_everywhere cmp "$dir/expected" "$mnt/$cache_mode"
		umount_rmem
	done
}

@test "a store makes the file newer" {
	store() {
		fsop map-shared a
		touch -d 2001-01-01 a
		fsop map-store a 0
		[ "$(stat -c %Y a)" -gt "$(date -d 2020-01-01 +%s)" ]
	}
	for cache_mode in shared exclusive; do
		mount_rmem
		(cd "$mnt" && store)
		umount_rmem
	done
}

@test "stores that there is no memory for are told by msync, and not lost in silence" {
	for cache_mode in shared exclusive; do
		mount_rmem
		! dd if=/dev/zero of="$mnt/full" bs=1M count=600 conv=fsync status=none || return 1
		truncate -s -40k "$mnt/full"
		run mapping stored-into-holes "$mnt/holes"
		[ "$status" -eq 1 ]
		[[ $output == *ENOSPC* ]]
		rm "$mnt"/*
		umount_rmem
	done
}

@test "programs run from the mount" {
	runs() {
		cp "$(command -v fsop)" .
		./fsop unlinked b
	}
	in_each_mode runs
}

# runs PID PROGRAM: the shell's child has executed PROGRAM.
runs() {
	[ "$(readlink "/proc/$1/exe")" = "$PWD/$2" ]
}

@test "a program that runs is not written to, and can be replaced" {
	busy() {
		cp "$(command -v sleep)" program
		./program 60 3>&- &
		until_true 10 runs $! program
		[[ $( (echo x >program) 2>&1) == *"Text file busy"* ]]
		cp /bin/true new
		mv new program
		./program
		kill -KILL $!
		wait $! || true
	}
	in_each_mode busy
}

# inserts NAME: prints 200 transactions with NAME's rows.
inserts() {
	for i in {1..200}; do
		echo "INSERT INTO t VALUES ('$1', $i);"
	done | sqlite3 -cmd '.timeout 60000' db
}

@test "SQLite, write-ahead log, two processes" {
	database() {
		[ "$(sqlite3 db 'PRAGMA journal_mode=WAL; CREATE TABLE t(who, n);')" = wal ]
		inserts one 3>&- &
		inserts two
		wait $!
		[ "$(sqlite3 db 'PRAGMA integrity_check;')" = ok ]
		[ "$(sqlite3 db 'SELECT count(*), count(DISTINCT who || n) FROM t;')" = '400|400' ]
	}
	for cache_mode in shared exclusive; do
		mount_rmem
		mkdir "$mnt/$cache_mode"
		(cd "$mnt/$cache_mode" && database)
		umount_rmem
	done
}
