#!/usr/bin/env bats
# shares.bats - exports share the memory for metadata: the clients of one can't take the others' part.

# shellcheck disable=SC2034 # what helpers take
load helpers

setup() {
	setup_rmem
	server_conf=$dir/server.conf
	cat >"$server_conf" <<-END
		metadata_reserve = "8MiB";
		exports = ( { name = "default"; size = "32MiB"; }, { name = "other"; size = "32MiB"; } );
	END
	start_server
	mount_rmem
}

teardown() {
	[ ! -e "$dir/other" ] || umount_other
	teardown_rmem
}

mount_other() {
	mkdir "$dir/other"
	rmemfs -f -c /dev/null -o "$(mount_options)" "$(mount_source other)" "$dir/other" \
		>>"$dir/other.log" 2>&1 3>&- &
	other_pid=$!
	until_true 30 mountpoint -q "$dir/other"
}

umount_other() {
	umount "$dir/other"
	exit_status "$other_pid" 10
	rmdir "$dir/other"
}

free_inodes() {
	stat -f -c %d "$1"
}

@test "an export that is filled with names and attributes leaves the others their share" {
	local before value
	mount_other
	before=$(free_inodes "$dir/other")
	value=$(head -c 4000 /dev/zero | tr '\0' x)
	mkdir "$mnt/names"
	for n in {1..300}; do
		: >"$mnt/names/$n"
		setfattr -n user.value -v "$value" "$mnt/names/$n"
	done
	run scale names "$mnt/more"
	[ "$status" -eq 1 ]
	[[ $output == *"No space left on device" ]]
	[ "$(free_inodes "$mnt")" -lt $((before / 4)) ]
	[ "$(free_inodes "$dir/other")" -eq "$before" ]
	rmemfsctl status "$socket" | grep -E '^default has [0-9]+KiB of 4MiB of metadata$'
	[ "$(status_of '.exports[1].metadata.used')" -lt $((1 << 18)) ]

	cp -r "$repository/common" "$dir/other/common"
	diff -r "$repository/common" "$dir/other/common"
	rm -r "$mnt/more" "$mnt/names"
	until_true 10 touch "$mnt/again"
}

# The shares are the same after a kill, since they are counted anew.
@test "what exports have of the memory for metadata is the same after a kill" {
	local before
	mkdir "$mnt/names"
	for n in {1..2000}; do
		: >"$mnt/names/$n"
	done
	rm "$mnt"/names/1*
	before=$(status_of '.exports[0].metadata.used')
	[ "$before" -gt $((1 << 18)) ]
	crash_server
	[ "$(status_of '.exports[0].metadata.used')" -ge $((before - (1 << 16))) ]
	[ "$(status_of '.exports[0].metadata.used')" -le $((before + (1 << 16))) ]
	[ "$(status_of '.exports[0].metadata.bytes')" -eq $((4 << 20)) ]
}
