#!/usr/bin/env bats
# damage.bats - the server refuses a memory directory that was damaged while it was down, and names
# the damage.

# bats file_tags=once

load helpers

setup() {
	setup_rmem
	export_size=16MiB
	start_server
	mount_rmem
	make_some_files
	umount_rmem
	stop_server
}

teardown() {
	teardown_rmem
}

make_some_files() {
	local name
	for name in {1..200}; do
		echo "content of $name" >"$mnt/a file of some length $name"
	done
	random_file "$mnt/random" 4
	sha256sum <"$mnt/random" >"$dir/random.sum"
}

# Prints a checksum of all files; except the lock, since a start writes its number into it.
fingerprint() {
	(
		cd "$memory" || return
		find . -printf '%p %y %m %s\n' | grep -v '^./lock ' | sort
		find . -type f ! -name lock -exec sha256sum {} + | sort
	)
}

# refused TEXT [REMEDY]: a start ends with status 78 and this text, changes nothing and keeps no
# lock.
refused() {
	fingerprint >"$dir/before"
	run timeout 20 rmemfs-server -c /dev/null --memory-dir "$memory" \
		--export "default:$export_size" --listen "shm:$socket" --check-config
	echo "$output"
	[ "$status" -eq 78 ]
	[[ $output == *"$1"* ]]
	fingerprint | diff "$dir/before" -
	run timeout 20 rmemfs-server -c /dev/null --memory-dir "$memory" \
		--export "default:$export_size" --listen "shm:$socket"
	echo "$output"
	[ "$status" -eq 78 ]
	[[ $output == *"$1"* ]]
	[[ $output == *"${2-rm -r $memory}"* ]]
	[ ! -e "$socket" ]
	fingerprint | diff "$dir/before" -
	flock -n "$memory/lock" true
}

serves_what_was_there() {
	start_server
	mount_rmem
	sha256sum <"$mnt/random" | diff "$dir/random.sum" -
	[ "$(find "$mnt" -name 'a file*' | wc -l)" -eq 200 ]
	[ "$(cat "$mnt/a file of some length 77")" = "content of 77" ]
}

# overwrite FILE PAGE PAGES
overwrite() {
	dd if=/dev/urandom of="$1" bs=4096 seek="$2" count="$3" conv=notrunc status=none
}

# Overwrites the record of one name in every copy that the store has.
change_name() {
	local store=$memory/store/store.mdb offset
	while IFS=: read -r offset _; do
		printf 'A' | dd of="$store" bs=1 seek="$offset" conv=notrunc status=none
	done < <(grep -abo 'a file of some length 77' "$store")
}

@test "a store with overwritten pages is refused" {
	local store=$memory/store/store.mdb
	cp "$store" "$dir/store"
	overwrite "$store" 0 1
	refused "the store $store is damaged: meta page 0"
	cp "$dir/store" "$store"
	overwrite "$store" 2 30
	refused "the store $store is damaged: page "
	cp "$dir/store" "$store"
	serves_what_was_there
}

@test "a store with one changed byte in a record is refused" {
	change_name
	refused "of table dirent was overwritten"
}

@test "a store that was cut short is refused" {
	local store=$memory/store/store.mdb
	truncate -s -4096 "$store"
	refused "the store $store is damaged: it was cut short"
	truncate -s 5000 "$store"
	refused "the store $store is damaged: it was cut short"
	truncate -s 0 "$store"
	refused "the store in $memory/store is missing or empty"
	rm "$store"
	refused "the store in $memory/store is missing or empty"
}

@test "another directory's store is refused" {
	local store=$memory/store/store.mdb first=$memory
	memory=$(mktemp -d "${first%/*}/rmemfs-test.XXXXXX")
	start_server
	stop_server
	cp "$memory/store/store.mdb" "$store"
	rm -rf "$memory"
	memory=$first
	refused "the regions belong to store"
}

@test "an export without one of its regions is refused" {
	local region=$memory/regions/default.0000
	mv "$region" "$dir/region"
	refused "export default: its region $region was missing or empty"
	cp "$dir/region" "$region"
	truncate -s -4096 "$region"
	refused "a region's file has lost or gained bytes"
	cp "$dir/region" "$region"
	serves_what_was_there
}

@test "a boot id that can't be read is refused, and not taken for another boot" {
	cp "$memory/boot_id" "$dir/boot_id"
	overwrite "$memory/boot_id" 0 1
	refused "$memory/boot_id is missing or damaged"
	rm "$memory/boot_id"
	refused "$memory/boot_id is missing or damaged"
	cp "$dir/boot_id" "$memory/boot_id"
	serves_what_was_there
}

@test "what stands in the lock file does not matter" {
	overwrite "$memory/lock" 0 1
	serves_what_was_there
}

@test "a record that is overwritten under a running server is an EIO, and the others are served" {
	start_server
	mount_rmem
	change_name
	run stat "$mnt/a file of some length 77"
	[ "$status" -eq 1 ]
	[[ $output == *"Input/output error"* ]]
	[ "$(cat "$mnt/a file of some length 78")" = "content of 78" ]
	# Some of these names would stand before the damaged one.
	run stat "$mnt"/absent.{1..2000}
	[ "$(grep -c "No such file or directory" <<<"$output")" -eq 2000 ]
	echo new >"$mnt/new"
	[ "$(cat "$mnt/new")" = new ]
	sha256sum <"$mnt/random" | diff "$dir/random.sum" -
	run grep -c "damaged record .* in table dirent" "$dir/server.log"
	[ "$output" = 1 ]
}

@test "the remedy that is named works" {
	overwrite "$memory/store/store.mdb" 0 40
	refused "is damaged"
	rm -r "$memory"
	start_server
	mount_rmem
	[ -z "$(ls -A "$mnt")" ]
}
