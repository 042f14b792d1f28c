#!/usr/bin/env bats
# scale.bats - many files in one directory, and files of many extents. The tests print how fast that is.
# They check only the use of the store and that nobody is held up.

load helpers

setup() {
	# shellcheck disable=SC2034 # for setup_rmem
	test_seconds=2400
	setup_rmem
	few=5000 many=25000 reserve=160MiB size=768MiB
	if at_full_size; then
		many=1000000 reserve=1GiB size=4352MiB
	fi
	if small; then
		few=1000 many=10000 size=160MiB
	fi
	server_conf=$dir/server.conf
	cat >"$server_conf" <<-END
		metadata_reserve = "$reserve";
		exports = ( { name = "default"; size = "$size"; } );
	END
	start_server
	mount_rmem
}

teardown() {
	teardown_rmem
}

note() {
	echo "# $*" >&3
}

# begin_churn FOLDER: starts a process that makes and removes directories there until end_churn. Then
# $made tells how many.
begin_churn() {
	mkfifo "$dir/go"
	scale churn "$1" <"$dir/go" >"$dir/made" 3>&- &
	churn=$!
	exec 5>"$dir/go"
	until_true 20 grep -q begun "$dir/made"
}

end_churn() {
	exec 5>&-
	wait "$churn"
	rm "$dir/go"
	made=$(sed 1d "$dir/made")
}

# make_files FOLDER COUNT
make_files() {
	mkdir "$1"
	scale create "$1" "$2"
}

# bats test_tags=nightly
@test "many files are made, listed, found and removed" {
	make_files "$mnt/few" "$few"
	remount
	before=$(status_of .store.used)
	make_files "$mnt/many" "$many"
	remount
	used=$(($(status_of .store.used) - before))
	note "$many files: $((used / many)) bytes of the store each"
	[ "$used" -le $((600 * many)) ]

	[ "$(scale list "$mnt/many" "$many")" = "$many names" ]
	# A directory position stays valid while names come and go.
	begin_churn "$mnt/many"
	[ "$(scale seek "$mnt/many" "$many")" = "$many positions" ]
	end_churn
	note "$made directories were made and removed among them"
	[ "$made" -gt 0 ]
	remount
	for _ in 1 2 3; do
		a=$(scale look-up "$mnt/few" "$few" 1000)
		b=$(scale look-up "$mnt/many" "$many" 1000)
		note "a lookup among $few takes $a ns, among $many $b ns"
		remount
	done

	mkdir "$mnt/other"
	begin_churn "$mnt/other"
	rm -r "$mnt/many"
	end_churn
	note "$made directories were made and removed while they were removed"
	[ "$made" -ge 100 ]
	[ "$(ls "$mnt")" = $'few\nother' ]
	[ "$(scale list "$mnt/few" "$few")" = "$few names" ]
}

free_bytes() {
	status_of '.exports[0].free + .exports[0].granted'
}

transactions() {
	status_of .store.transactions
}

# make_pieces: makes $mnt/a of $extents extents; $free bytes are free again after its removal.
make_pieces() {
	extents=100000
	! small || extents=10000
	free=$(($(free_bytes) - (8 << 20)))
	scale pieces "$mnt/a" $extents
	[ "$(stat -c %b "$mnt/a")" -eq $((extents * 8)) ]
}

remove_pieces() {
	rm "$mnt/a"
	until [ "$(free_bytes)" -ge "$free" ]; do
		:
	done
}

@test "a file of many extents is freed in small steps" {
	make_pieces
	before=$(transactions)
	remove_pieces
	made=$(($(transactions) - before))
	note "$extents extents were freed in $made transactions"
	[ "$made" -ge $((extents / 200)) ]
}

@test "freeing a file of many extents stalls nobody" {
	mkdir "$mnt/other"
	make_pieces
	begin_churn "$mnt/other"
	remove_pieces
	end_churn
	note "$made directories were made and removed meanwhile"
	[ "$made" -ge 10 ]
	echo "still here" >"$mnt/b"
	[ "$(cat "$mnt/b")" = "still here" ]
}
