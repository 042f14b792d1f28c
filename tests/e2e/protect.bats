#!/usr/bin/env bats
# protect.bats - channels that a key protects, under load.

load helpers

setup() {
	setup_rmem
}

teardown() {
	teardown_rmem
}

resumed() {
	[ "$(grep -c "resumed over" "$dir/server.log")" -ge "$1" ]
}

@test "keys that are worn are replaced under load, and no operation notices" {
	start_server
	# Over verbs only messages wear a key, and they are few.
	if [ "$transport" = tcp ]; then
		export RMEMFS_WORN_BLOCKS=500000
	else
		export RMEMFS_WORN_BLOCKS=2000
	fi
	mount_rmem
	unset RMEMFS_WORN_BLOCKS
	until_resumed=3
	[ "$transport" != shm ] || until_resumed=0 # nothing is encrypted there
	for ((i = 0; i < 1000; i++)); do
		! { [ "$i" -gt 0 ] && resumed $until_resumed; } || break
		fio --name="verify" --directory="$mnt" --size=16m --rw=randrw --bs=64k --direct=1 \
			--verify=crc32c --verify_state_save=0 --numjobs=2 --minimal >"$dir/fio.log"
	done
	[ "$i" -lt 1000 ]
	[ "$(grep -c "connection lost" "$dir/daemon.log")" -eq 0 ]
}

warned() {
	[ "$(grep -c "come from a server which proves no key" "$dir/daemon.log")" -eq "$1" ]
}

@test "set-user-id programs of a server that proves no key are warned of" {
	start_server
	mount_rmem -o suid
	warned 0
	umount_rmem
	stop_server
	without_key
	start_server
	mount_rmem
	warned 0
	umount_rmem
	mount_rmem -o suid
	if [ "$transport" = shm ]; then warned 0; else warned 1; fi
}

# ---- protection=all ------------------------------------------------------------------------------

# demand WHAT: the export's word, from the next start or reload on.
demand() {
	server_conf=$dir/server.conf
	echo "exports = ( { name = \"default\"; size = \"$export_size\"; protection = \"$1\"; } );" >"$server_conf"
	keyed_conf >/dev/null
}

# refused TEXT OPTIONS: the mount fails at once, with one line that has TEXT.
refused() {
	run timeout 30 rmemfs -c /dev/null -o "$2" "$(mount_source)" "$mnt" 3>&-
	echo "$output"
	[ "$status" -eq 32 ]
	[[ $(grep -v ' info: the kernel has no TLS for sockets, ' <<<"$output") == *"$1"* ]]
	if mountpoint -q "$mnt"; then return 1; fi
}

holds_data() {
	echo "$1" >"$mnt/file"
	[ "$(cat "$mnt/file")" = "$1" ]
}

protections() {
	status_of '[.sessions[].channels[].protection] | unique | join(" ")'
}

# bats test_tags=only:tcp
@test "a mount that demands all gets it over tcp, and needs a key" {
	mkdir -p "$mnt"
	start_server
	refused "protection=all: without a key nothing is encrypted over tcp: mount with key=FILE" \
		"transport=tcp,port=$port,protection=all"
	if grep -E "(info|warning): tcp " "$dir/server.log"; then false; fi
	mount_rmem -o protection=all
	holds_data all
	[ "$(protections)" = all ]
	# Another demand of the export changes nothing here.
	umount_rmem
	stop_server
	demand all
	start_server
	[ "$(status_of '.exports[0].protection')" = all ]
	rmemfsctl status "$socket" | grep -x 'protection of default: all'
	mount_rmem
	holds_data both
	demand best
	rmemfsctl reload "$socket"
	[ "$(status_of '.exports[0].protection')" = best ]
	demand all
	rmemfsctl reload "$socket"
	holds_data reloaded
	[ "$(grep -c "reloaded .*; 0 channels closed" "$dir/server.log")" -eq 2 ]
}

# bats test_tags=once
@test "an export that demands all has no insecure client, and is mounted over shm without a key" {
	transport=shm
	demand all
	start_server
	mount_rmem -o protection=all
	holds_data local
	[ "$(protections)" = local ]
	sed 's/size/clients = ( { name = "any"; insecure = true; } ); size/' "$server_conf" >"$dir/insecure.conf"
	run rmemfs-server -c "$dir/insecure.conf" --memory-dir "$memory" --check-config 3>&-
	[ "$status" -ne 0 ]
	[[ $output == *"insecure.conf:1: clients: 'any': is insecure, and export 'default' has protection = \"all\", which needs keys"* ]]
}

# bats test_tags=only:verbs
@test "a mount that demands all takes no verbs, and auto takes tcp without a try" {
	mkdir -p "$mnt"
	start_server --listen "tcp:$verbs_address:$port"
	refused "protection=all: verbs does not encrypt the bytes of files: mount with transport=tcp, or transport=auto" \
		"transport=verbs,port=$port,key=$key_file,protection=all"
	mount_options() { echo "port=$port,key=$key_file,protection=all"; }
	mount_rmem
	holds_data tcp
	[ "$(protections)" = all ]
	if grep -E '(info|warning): .*verbs [0-9.]+:' "$dir/server.log"; then false; fi
}

# bats test_tags=only:verbs
@test "an export that demands all refuses verbs, and auto takes tcp then" {
	mkdir -p "$mnt"
	demand all
	start_server --listen "tcp:$verbs_address:$port"
	refused "export 'default' has protection = \"all\", and verbs protects messages alone: mount it with transport=tcp, or with transport=auto, which takes tcp then" \
		"transport=verbs,port=$port,key=$key_file"
	grep "warning: .*verbs .*refused: export 'default' has protection" "$dir/server.log"
	mount_options() { echo "port=$port,key=$key_file"; }
	mount_rmem
	holds_data tcp
	[ "$(protections)" = all ]
	grep "notice: .*: transport=auto takes tcp" "$dir/daemon.log"
}

# bats test_tags=only:verbs
@test "a reload to all ends connections over verbs, and a reload back lets them in again" {
	demand best
	start_server --listen "tcp:$verbs_address:$port"
	mount_rmem
	holds_data before
	demand all
	rmemfsctl reload "$socket"
	grep "warning: .*channel of session .* closed: export 'default' has protection = \"all\"" "$dir/server.log"
	until_true 20 grep -q "refused: .*protection = \"all\"" "$dir/daemon.log"
	demand best
	rmemfsctl reload "$socket"
	[ "$(cat "$mnt/file")" = before ]
	holds_data after
}

# ---- protection=messages -------------------------------------------------------------------------

# mount_and_see WISH PROTECTION: a mount with this wish gets this protection, and works.
mount_and_see() {
	mount_rmem -o protection="$1"
	holds_data "$1"
	[ "$(protections)" = "$2" ]
	umount_rmem
}

# bats test_tags=only:tcp
@test "messages alone are protected over tcp if the export and the mount say so, and else all" {
	mkdir -p "$mnt"
	demand messages
	start_server
	refused "protection=messages: without a key nothing is encrypted over tcp: mount with key=FILE" \
		"transport=tcp,port=$port,protection=messages"
	mount_and_see best all
	mount_and_see all all
	mount_and_see messages messages
	mount_rmem -o protection=messages
	fio --name=verify --directory="$mnt" --size=8m --rw=randrw --bs=64k --direct=1 --verify=crc32c \
		--verify_state_save=0 --minimal >"$dir/fio.log"
	grep ", messages protected, file bytes plain" "$dir/daemon.log"
	# The connection ends that the export no longer allows, and the mount goes on with more.
	demand best
	rmemfsctl reload "$socket"
	holds_data after
	[ "$(protections)" = all ]
	umount_rmem
	mount_and_see messages all
	[ "$(grep -c "the export has not protection = \"messages\"" "$dir/daemon.log")" -eq 2 ]
}
