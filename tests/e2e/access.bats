#!/usr/bin/env bats
# access.bats - clients of exports: which mount gets in, what it is told otherwise, and what changes while
# the server runs. driver_auth.c has the messages; options.bats has the configuration.
#
# bats file_tags=keyed

# shellcheck disable=SC2034,SC2154 # what helpers take and set
bats_require_minimum_version 1.5.0
load helpers
load mounts

setup() {
	setup_rmem
	mounts=()
	own=127.0.0.1
	[ "$transport" = tcp ] || own=$verbs_address
}

teardown() {
	end_mounts
}

# make_keys NAME...: NAME's key is in the server's file $dir/NAME.server and the mount's $dir/NAME.key.
make_keys() {
	local name
	for name in "$@"; do
		rmemfsctl keygen "$name" "$dir/$name.key" 2>/dev/null
		cp -p "$dir/$name.key" "$dir/$name.server"
	done
}

key_id() {
	cut -d : -f 2 "$dir/$1.key"
}

# client NAME [SETTINGS]: prints an entry of clients.
client() {
	echo "{ name = \"$1\"; keys = \"$dir/$1.server\"; ${2:-} }"
}

# configure EXPORT CLIENTS...: an export of that name, with these entries of clients.
configure() {
	local name=$1 entries=
	shift
	entries=$(printf '%s, ' "$@")
	echo "{ name = \"$name\"; size = \"64MiB\"; clients = ( ${entries%, } ); }"
}

# write_conf EXPORT...
write_conf() {
	local exports
	exports=$(printf '%s,\n' "$@")
	server_conf=$dir/server.conf
	printf 'exports = (\n%s );\n' "${exports%,}" >"$server_conf"
}

reload() {
	rmemfsctl reload "$socket"
}

# mount_with_key: export a has the client web, and is mounted with its key.
mount_with_key() {
	make_keys web
	write_conf "$(configure a "$(client web)")"
	start_server
	key_file=$dir/web.key
	mount_source() { echo "$own:/a"; }
	mount_rmem
}

# refused TEXT EXPORT OPTIONS: this mount fails in one line that has TEXT.
refused() {
	run timeout 30 rmemfs -c /dev/null -o "$(mount_options),connect_timeout=5$3" \
		"$(mount_source "$2")" "$mnt" 3>&-
	echo "$output"
	output=$(without_waiting <<<"$output" | grep -v ' info: the kernel has no TLS for sockets, ')
	[ "$status" -ne 0 ]
	[ "$status" -lt 124 ]
	[ "$(wc -l <<<"$output")" -eq 1 ]
	[[ $output == *"$1"* ]]
	if mountpoint -q "$mnt"; then return 1; fi
}

log_has() {
	grep -qF "$1" "$dir/server.log"
}

log_has_times() {
	[ "$(grep -cF "$1" "$dir/server.log")" -ge "$2" ]
}

# Prints what a session's channels have, at the export: peers, for example.
channels_have() {
	status_of ".sessions[] | select(.export == \"$1\") | .channels | sort_by(.index) | .[] | .$2"
}

# all_use EXPORT KEY: the export has sessions with channels, and all of these have proven this key.
all_use() {
	[ "$(channels_have "$1" key | sort -u)" = "$2" ] &&
		[ "$(status_of ".sessions[] | select(.export == \"$1\") | .channels | length")" -ge 2 ]
}

# Over shm a channel that was closed is still listed, since its process has the memory mapped.
no_channel() {
	! channels_have "$1" state | grep -q open
}

# twin_key NAME: $dir/NAME.twin has the id of NAME's key, and other bytes.
twin_key() {
	local id sum
	id=$(key_id "$1")
	head -c 32 /dev/urandom >"$dir/secret"
	sum=$({
		printf %s "$id"
		cat "$dir/secret"
	} | sha256sum)
	# shellcheck disable=SC2059 # bytes
	printf "\\x${sum:0:2}\\x${sum:2:2}\\x${sum:4:2}\\x${sum:6:2}" >>"$dir/secret"
	(
		umask 077
		echo "RMEMFS-KEY-1:$id:$(base64 -w 0 "$dir/secret"):" >"$dir/$1.twin"
	)
}

# ---- refusals ------------------------------------------------------------------------------------

# Two exports: web writes a, reader reads it, far may come from elsewhere; other has b.
two_exports() {
	make_keys web reader far other
	write_conf "$(configure a "$(client web)" "$(client reader 'access = "read-only";')" \
		"$(client far 'hosts = [ "192.0.2.0/24", "2001:db8::/32" ];')")" \
		"$(configure b "$(client other)")"
	start_server
}

@test "a mount without a key is refused, with the remedy" {
	two_exports
	without_key
	refused ": nobody gets export 'a' here without a key: have one made on the server (rmemfsctl keygen) and mount with key=FILE, or have a client made insecure there" a
	log_has "refused: it has no key, and export 'a' lets nobody in without one: mount it with a client's key (key=FILE)"
}

@test "an unknown key and one of other bytes: one answer for both, and the log tells them apart" {
	two_exports
	rmemfsctl keygen web "$dir/unknown.key" 2>/dev/null
	twin_key web
	key_file=$dir/unknown.key
	refused " does not accept key $(key_id unknown) (fingerprint $(rmemfsctl keycheck "$key_file" | sed 's/.* //')): its log says why" a
	log_has "refused: no key $(key_id unknown) here"
	first=${output//$(key_id unknown)/ID}
	key_file=$dir/web.twin
	refused " does not accept key $(key_id web) (fingerprint $(rmemfsctl keycheck "$key_file" | sed 's/.* //')): its log says why" a
	log_has "refused: its key $(key_id web) has other bytes than ours"
	second=${output//$(key_id web)/ID}
	[ "${first/fingerprint ????????/}" = "${second/fingerprint ????????/}" ]
	[ "$(status_of '[.refused_keys[] | "\(.key) \(.known)"] | sort | join(", ")')" = \
		"$(printf '%s\n' "$(key_id unknown) false" "$(key_id web) true" | LC_ALL=C sort | paste -sd, | sed 's/,/, /')" ]
	# The log has a line of each, and no word of cryptography.
	[ "$(grep -c "refused: no key $(key_id unknown) here" "$dir/server.log")" = 1 ]
	run ! grep -i binder "$dir/server.log"
	run -1 rmemfsctl health "$socket"
	[[ $output == *"warning: server: key $(key_id web), from tcp "*"; cause: its key $(key_id web) has other bytes than ours"*"copy the server's file over the client's"* ]]
	key_file=$dir/web.key
	mount_source() { echo "$own:/a"; }
	mount_rmem
}

@test "a key of another export, a key from another address, an export that is not there: one answer" {
	two_exports
	key_file=$dir/other.key
	refused ": key $(key_id other) has no export 'a' here" a
	log_has "refused: key $(key_id other) is not for export 'a': no client of it has a file with this key"
	key_file=$dir/far.key
	refused ": key $(key_id far) has no export 'a' here" a
	log_has "refused: key $(key_id far) is not for export 'a' from this address: it is not in hosts of client far"
	refused ": key $(key_id far) has no export 'none' here" none
	log_has "refused: there is no export 'none'"
}

@test "a key that may only read mounts with ro alone" {
	two_exports
	key_file=$dir/reader.key
	refused ": key $(key_id reader) may only read export 'a': mount it with ro" a
	mount_source() { echo "$own:/a"; }
	mount_rmem -o ro
	# The mount stays what it is: the server asks the key again.
	run rmemfs -c /dev/null -o "remount,rw" "$(mount_source)" "$mnt" 3>&-
	echo "$output"
	[ "$status" -ne 0 ]
	[[ $output == *"cannot remount $mnt: its key may only read, or "* ]]
	grep -F "the session stays read-only: key $(key_id reader) may only read export 'a'" "$dir/daemon.log"
	run touch "$mnt/a"
	[ "$status" -ne 0 ]
	ls "$mnt"
	[ "$(status_of '.sessions[0].read_only')" = true ]
}

@test "hosts: a key may come from the addresses named, and an insecure client, too" {
	make_keys web
	write_conf "$(configure a "$(client web "hosts = [ \"${own%.*}.0/24\" ];")")" \
		"$(configure b "{ name = \"near\"; insecure = true; hosts = [ \"$own\" ]; }")" \
		"$(configure c '{ name = "far"; insecure = true; hosts = [ "192.0.2.1" ]; }')"
	start_server
	key_file=$dir/web.key
	source_of[1]="$own:/a"
	mount_number 1 ''
	without_key
	source_of[2]="$own:/b"
	mount_number 2 ''
	echo data >"$dir/2/a"
	[ "$(status_of '[.sessions[].holder] | sort | join(" ")')" = "near web" ]
	refused ": nobody gets export 'c' here without a key: " c
	log_has "refused: it has no key, and its address is not in hosts of client far, which export 'c' lets in without one"
}

@test "an export without clients is for root over shm, and both remedies are named" {
	server_conf=$dir/server.conf
	echo 'exports = ( { name = "default"; size = "64MiB"; } ); # no clients' >"$server_conf"
	start_server
	log_has "export 'default' has no clients: nobody can mount it over tcp and verbs. Make a key (rmemfsctl keygen) and name its file in clients, or say insecure there"
	refused " does not accept key $(cut -d : -f 2 "$key_file") " default
	without_key
	refused "have one made on the server (rmemfsctl keygen) and mount with key=FILE, or have a client made insecure there" default
	log_has "refused: export 'default' has no clients: make a key (rmemfsctl keygen) and name its file in clients, or make a client insecure"
	transport=shm
	mount_rmem
	echo data >"$mnt/a"
	[ "$(status_of '.sessions[0].holder')" = local ]
}

# bats test_tags=once
@test "local_access: over shm root may read, or nothing, and asks for the state all the same" {
	transport=shm
	server_conf=$dir/server.conf
	printf 'local_access = "%s"; exports = ( { name = "default"; size = "64MiB"; } );\n' read-only >"$server_conf"
	start_server
	refused ": export 'default' may only be read over shm (local_access): mount it with ro" default
	mount_rmem -o ro
	run touch "$mnt/a"
	[ "$status" -ne 0 ]
	sed -i s/read-only/none/ "$server_conf"
	reload
	log_has "export 'default' can't be mounted over shm: local_access is \"none\""
	until_true 10 no_channel default
	sed -i s/none/read-write/ "$server_conf"
	reload
	ls "$mnt"
	umount_rmem
	sed -i s/read-write/none/ "$server_conf"
	reload
	refused ": export 'default' can't be mounted over shm: local_access is \"none\"" default
	refused ": export 'default' can't be mounted over shm: local_access is \"none\"" default ,ro
}

@test "sessions: a client has so many mounts, and the next one is refused until one ends" {
	make_keys web lab
	write_conf "$(configure a "$(client web 'sessions = 2;')" "$(client lab)")"
	start_server
	source_of=('' "$own:/a" "$own:/a" "$own:/a" "$own:/a")
	key_file=$dir/web.key
	share 1 2
	refused ": client web may have 2 mounts of export 'a', and has them: unmount one" a ,share
	# The places are the client's own.
	key_file=$dir/lab.key
	share 3
	end_mount 2
	key_file=$dir/web.key
	share 4
	echo data >"$dir/4/a"
	[ "$(cat "$dir/1/a")" = data ]
}

# ---- peers that are no mounts --------------------------------------------------------------------

# bats test_tags=only:tcp
@test "a stranger's ATTACH, by another user of this machine, gets neither names nor bytes" {
	make_keys web reader
	write_conf "$(configure a "$(client web)" "$(client reader 'access = "read-only";')")"
	start_server
	address=$(listen_address)
	for mode in "name $address a stranger" "greedy $address a" "session $address a 8 1"; do
		# shellcheck disable=SC2086 # words
		run "${nobody[@]}" env -u RMEMFS_TEST_KEY badpeer $mode
		echo "$output"
		[ "$output" = "badpeer: not attached" ]
	done
	log_has_times "refused: it has no key, and export 'a' lets nobody in without one" 3
	for command in "who a /" "snapshot a $dir/none" "leases" "reload"; do
		# shellcheck disable=SC2086 # words
		run "${nobody[@]}" rmemfsctl $command "$address"
		echo "$output"
		[ "$status" -eq 1 ]
		[ "${#lines[@]}" -eq 1 ]
	done
	[ ! -e "$dir/none" ]
	# A key that reads gives no writing, whatever program has it.
	RMEMFS_TEST_KEY=$dir/reader.key run badpeer name "$address" a reader
	[ "$output" = "badpeer: not attached" ]
	log_has "refused: key $(key_id reader) may only read export 'a'"
	[ "$(status_of '.sessions | length')" -eq 0 ]
	# The same peer with a key that may: it was heard before.
	RMEMFS_TEST_KEY=$dir/web.key badpeer session "$address" a 8 1
	grep -E "session 1 of web .* begins over tcp" "$dir/server.log"
}

# seen KEY FILTER: what the filter finds in the status that the key gets over the network.
seen() {
	rmemfsctl status --json --key "$dir/$1.key" "$(listen_address)" | jq -r "$2"
}

@test "status by key: a key sees its exports and its own mounts, and one of access = status all of them" {
	[ "$transport" != shm ] || return 0
	make_keys web lab watch all
	write_conf "$(configure a "$(client web)" "$(client lab)" "$(client watch 'access = "status";')" \
		"$(client all 'access = "status";')")" \
		"$(configure b "$(client all 'access = "status";')")"
	start_server
	source_of=('' "$own:/a" "$own:/a")
	key_file=$dir/web.key
	share 1
	key_file=$dir/lab.key
	share 2
	[ "$(seen web '.sessions[].holder')" = web ]
	[ "$(seen lab '.sessions[].holder')" = lab ]
	[ "$(seen watch '[.sessions[].holder] | sort | join(" ")')" = "lab web" ]
	[ "$(seen web '[.exports[].name] | join(" ")')" = a ]
	[ "$(seen watch '[.exports[].name] | join(" ")')" = a ]
	[ "$(seen all '[.exports[].name] | join(" ")')" = "a b" ]
	# Each member that one of them may not see.
	[ "$(seen web 'keys | join(" ")')" = "cpu exports key lease_ms sessions uptime_ms version wire_version" ]
	[ "$(seen watch 'keys | join(" ")')" = "cpu exports key lease_ms sessions uptime_ms version wire_version" ]
	[ "$(seen web '.exports[0] | keys | join(" ")')" = "bytes dirty files free granted lost_regions max_inodes metadata name protection regions used" ]
	[ "$(seen watch '.exports[0] | keys')" = "$(status_of '.exports[0] | del(.config_file) | keys')" ]
	[ "$(seen all keys)" = "$(status_of keys)" ]
	# The tables.
	run rmemfsctl status --key "$dir/web.key" "$(listen_address)"
	echo "$output"
	[[ $output == *$'\n'"what is to be seen with key $(key_id web):"$'\n'* ]]
	[[ $output == *"SESSION "*" of web: "* ]]
	[[ $output != *" of lab: "* ]]
	rmemfsctl leases --key "$dir/watch.key" "$(listen_address)" >"$dir/out"
	cat "$dir/out"
	[ "$(grep -c '^a ' "$dir/out")" -eq 2 ]
	for command in leases quota; do
		run rmemfsctl $command --key "$dir/web.key" "$(listen_address)"
		echo "$output"
		[ "$status" -eq 1 ]
		[ "$output" = "rmemfsctl: $(listen_address): this key sees its own mounts alone: run 'rmemfsctl $command' on the server's machine, or with --key FILE of a client whose access is \"status\"" ]
	done
	rmemfsctl quota --key "$dir/all.key" "$(listen_address)"
	# A question by a key gives nothing else.
	key_file=$dir/watch.key
	refused ": key $(key_id watch) may only ask for the state of export 'a'" a
}

@test "status by key: a wrong key and one that was taken away see nothing, the next key of the file is tried" {
	[ "$transport" != shm ] || return 0
	make_keys web other
	write_conf "$(configure a "$(client web)")"
	start_server
	run rmemfsctl status --key "$dir/other.key" "$(listen_address)"
	echo "$output"
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *": the server does not accept key $(key_id other) (fingerprint "*"): its log says why" ]]
	log_has "refused: no key $(key_id other) here"
	cat "$dir/other.key" "$dir/web.key" >"$dir/two.key"
	chmod 600 "$dir/two.key"
	[ "$(seen two .key)" = "$(key_id web)" ]
	run rmemfsctl status --key "$dir/none.key" "$(listen_address)"
	[ "$status" -eq 1 ]
	[[ $output == *"$dir/none.key"* ]]
	write_conf "$(configure a "$(client other)")"
	reload
	[ "$(seen two .key)" = "$(key_id other)" ]
	run rmemfsctl status --key "$dir/web.key" "$(listen_address)"
	[ "$status" -eq 1 ]
	run rmemfsctl reload --key "$dir/web.key" "$(listen_address)"
	[ "$status" -eq 1 ]
	[[ $output == "rmemfsctl: option '--key': has no meaning for reload "* ]]
}

@test "status without a key: of an export that is insecure for it, from its hosts" {
	[ "$transport" != shm ] || return 0
	make_keys web
	write_conf "$(configure a "$(client web)" "{ name = \"lan\"; insecure = true; hosts = \"$own\"; access = \"status\"; }")" \
		"$(configure b '{ name = "far"; insecure = true; hosts = "192.0.2.1"; access = "status"; }')"
	start_server
	rmemfsctl status "$(listen_address)" >"$dir/out"
	cat "$dir/out"
	grep -qxF "what is to be seen without a key:" "$dir/out"
	grep -q '^a ' "$dir/out"
	if grep -q '^b ' "$dir/out"; then return 1; fi
}

# attached N KEY: a peer, always of one owner and process, shares the export with this key and stays.
attached() {
	RMEMFS_TEST_KEY=$dir/$2.key badpeer greedy "$(listen_address)" a >"$dir/peer.$1" 2>&1 3>&- &
	peer=$!
	echo $peer >"$dir/peer.$1.pid"
	until_true 20 grep -q ready "$dir/peer.$1"
	suspend $peer
}

# bats test_tags=only:tcp
@test "another holder that names a mount's owner and process does not end its session" {
	make_keys web lab
	write_conf "$(configure a "$(client web)" "$(client lab)")"
	start_server
	attached 1 web
	attached 2 lab
	[ "$(status_of '[.sessions[] | select(.state == "active") | .holder] | sort | join(" ")')" = "lab web" ]
	# The same holder ends its own.
	attached 3 lab
	grep -E "session 2 of .* at export 'a' has ended: its mount begins another one" "$dir/server.log"
	[ "$(status_of '[.sessions[] | select(.state == "active") | .holder] | sort | join(" ")')" = "lab web" ]
}

# ---- key files -----------------------------------------------------------------------------------

@test "a key file that others may read: the server does not start, the mount fails, and chmod is named" {
	make_keys web
	write_conf "$(configure a "$(client web)")"
	chmod 644 "$dir/web.server"
	run rmemfs-server -c "$server_conf" --memory-dir "$memory/none" --listen "shm:$socket" 3>&-
	echo "$output"
	[ "$status" -eq 78 ]
	[[ $output == *"$server_conf:2: keys: key file $dir/web.server has mode 0644, and other users may read it: chmod "* ]]
	[ ! -e "$memory/none" ]
	chmod 600 "$dir/web.server"
	start_server
	key_file=$dir/web.key
	chmod 660 "$key_file"
	refused "key file $key_file has mode 0660, and other users may change it: chmod g-w,o-rw $key_file" a
	chown 1234 "$key_file"
	chmod 600 "$key_file"
	refused "key file $key_file belongs to user 1234" a
	rm "$key_file"
	refused "key file $key_file: No such file or directory" a
}

@test "a mount reads its key for each connection: it waits while it has none, and names the file" {
	mount_with_key
	echo data >"$mnt/a"
	mv "$key_file" "$dir/away"
	crash_server
	until_true 20 grep -qF "key file $key_file: No such file or directory" "$dir/daemon.log"
	touch "$mnt/b" 3>&- &
	waiting=$!
	mv "$dir/away" "$key_file"
	exit_status $waiting 20
	[ "$(cat "$mnt/a")" = data ]
}

# ---- rotation, revocation ------------------------------------------------------------------------

# works_on: runs fio in rounds on the mount, and writes the number of each round that went well.
works_on() {
	local n=0
	while [ ! -e "$dir/enough" ]; do
		fio --name=v --filename="$mnt/v" --rw=randrw --bs=16k --size=2M --direct=1 --verify=crc32c \
			--verify_fatal=1 --verify_state_save=0 >"$dir/fio.log" 2>&1 || return 1
		n=$((n + 1))
		echo $n >"$dir/rounds"
	done
}

# one_more_round: a round of fio has begun and ended since.
one_more_round() {
	local n
	n=$(cat "$dir/rounds" 2>/dev/null || echo 0)
	has_gone_on() {
		! alive "$worker" || [ "$(cat "$dir/rounds" 2>/dev/null || echo 0)" -ge "$1" ]
	}
	until_true 60 has_gone_on $((n + 2))
	alive "$worker"
}

@test "rotation under load: channels come back by the new key, and nothing fails" {
	mount_with_key
	old=$(key_id web) session=$(status_of '.sessions[0].id')
	works_on 3>&- &
	worker=$!
	one_more_round
	before=$(channels_have a peer)
	all_use a "$old"
	# Both files get the new key.
	rmemfsctl keygen web >>"$dir/web.server" 2>/dev/null
	reload
	log_has "reloaded the clients of the exports, with 2 keys; 0 channels closed"
	tail -n 1 "$dir/web.server" | cat - "$dir/web.key" >"$dir/new"
	chmod 600 "$dir/new"
	mv "$dir/new" "$dir/web.key"
	new=$(key_id web | head -n 1)
	one_more_round
	[ "$(channels_have a peer)" = "$before" ]
	# The old one goes.
	sed -i 1d "$dir/web.server"
	reload
	log_has "closed: key $old is no longer here, or has other bytes now"
	log_has "reloaded the clients of the exports, with 1 key; 2 channels closed"
	until_true 20 all_use a "$new"
	sed -i 2d "$dir/web.key"
	one_more_round
	touch "$dir/enough"
	exit_status $worker 60
	[ "$(status_of '.sessions[0].id')" = "$session" ]
	if grep -E 'session lost|does not accept' "$dir/daemon.log"; then return 1; fi
}

# was_refused KEY-ID N: so many times. The log has one line for many refusals.
was_refused() {
	[ "$(status_of ".refused_keys[] | select(.key == \"$1\") | .count")" -ge "$2" ]
}

# used KEY-ID: "NAME CHANNELS COUNT", where NAME tells how the key is used in the table for people.
used() {
	rmemfsctl status "$socket" | awk -v id="$1" '
		/^KEY / { on = 1 }
		on && $1 == id { print $2, $NF }' | sed 's/,//'
	status_of ".keys[] | select(.key == \"$1\") | \"\(.channels) \(.count) \(.unused_ms <= .known_ms)\""
}

@test "the status tells which keys are used, were used, and never were" {
	make_keys web lab
	write_conf "$(configure a "$(client web)" "$(client lab)")"
	start_server
	[ "$(used "$(key_id web)")" = "never $dir/web.server"$'\n'"0 0 true" ]
	key_file=$dir/web.key
	mount_source() { echo "$own:/a"; }
	mount_rmem
	status=$(used "$(key_id web)")
	[[ $status == "now $dir/web.server"$'\n'[1-9]*" true" ]]
	[ "$(used "$(key_id lab)")" = "never $dir/lab.server"$'\n'"0 0 true" ]
	# A reload keeps what is known of a key that stays. One that comes anew begins anew.
	count=$(status_of '.keys[] | select(.channels > 0) | .count')
	rm "$dir/lab.key" "$dir/lab.server"
	make_keys lab
	reload
	[ "$(status_of '.keys[] | select(.channels > 0) | .count')" = "$count" ]
	[ "$(status_of '.keys | length')" = 2 ]
	[ "$(used "$(key_id lab)")" = "never $dir/lab.server"$'\n'"0 0 true" ]
	umount_rmem
	is_unused() { [ "$(status_of '[.keys[].channels] | add')" = 0 ]; }
	until_true 10 is_unused
	status=$(used "$(key_id web)")
	[[ $status == *[0-9]" $dir/web.server"$'\n'"0 $count true" ]]
	# A client is told no file.
	if [ "$transport" = tcp ]; then
		rmemfsctl status "$own:$port" --key "$dir/lab.key" >"$dir/told"
		run ! grep -F "$dir/lab.server" "$dir/told"
		[ "$(status_of ".keys[] | select(.key == \"$(key_id lab)\") | .count")" = 1 ]
	fi
	rmemfs-metrics --server "$socket" --once --listen 127.0.0.1:0 --details >"$dir/metrics"
	grep -x 'rmemfs_server_keys 2' "$dir/metrics"
	grep -x 'rmemfs_server_keys_unused 0' "$dir/metrics"
	grep -E "^rmemfs_server_key_unused_seconds\{key=\"$(key_id web)\"\} [0-9.]+$" "$dir/metrics"
}

@test "revocation: the key's channels are closed at once, its mount waits, and no other one notices" {
	make_keys web lab
	write_conf "$(configure a "$(client web)")" "$(configure b "$(client lab)")"
	start_server
	source_of=('' "$own:/a" "$own:/b")
	key_file=$dir/web.key
	mount_number 1 ''
	key_file=$dir/lab.key
	mount_number 2 ''
	echo data >"$dir/2/a"
	until_true 10 all_use a "$(key_id web)"
	peers=$(channels_have a peer)
	make_keys new
	mv "$dir/lab.server" "$dir/lab.old"
	mv "$dir/new.server" "$dir/lab.server"
	reload
	log_has "at export 'b' closed: key $(key_id lab) is no longer here, or has other bytes now"
	no_channel b
	touch "$dir/2/b" 3>&- &
	waiting=$!
	until_true 20 was_refused "$(key_id lab)" 3
	log_has "refused: no key $(key_id lab) here"
	alive $waiting
	grep -F "does not accept key $(key_id lab) " "$dir/mount.2.log"
	echo data >"$dir/1/a"
	[ "$(channels_have a peer)" = "$peers" ]
	if grep -F "connection lost" "$dir/mount.1.log"; then return 1; fi
	mv "$dir/lab.old" "$dir/lab.server"
	reload
	exit_status $waiting 20
	[ "$(cat "$dir/2/a")" = data ]
}

@test "a key loses the right to write: its writer waits, loses nothing, and readers go on" {
	make_keys web lab
	write_conf "$(configure a "$(client web)")" "$(configure b "$(client lab)")"
	start_server
	source_of=('' "$own:/a" "$own:/b")
	key_file=$dir/web.key
	mount_number 1 ''
	key_file=$dir/lab.key
	mount_number 2 ,ro
	echo data >"$dir/1/a"
	until_true 10 all_use b "$(key_id lab)"
	peers=$(channels_have b peer)
	write_conf "$(configure a "$(client web 'access = "read-only";')")" \
		"$(configure b "$(client lab 'access = "read-only";')")"
	reload
	log_has "at export 'a' closed: key $(key_id web) may only read export 'a': mount it with ro"
	log_has "reloaded the clients of the exports, with 2 keys; 2 channels closed"
	[ "$(channels_have b peer)" = "$peers" ]
	touch "$dir/1/b" 3>&- &
	waiting=$!
	until_true 20 grep -qF "still not connected: refused: key $(key_id web) may only read export 'a'" "$dir/mount.1.log"
	write_conf "$(configure a "$(client web)")" "$(configure b "$(client lab)")"
	reload
	exit_status $waiting 20
	fsop uncache "$dir/1"
	[ "$(cat "$dir/1/a")" = data ]
}

@test "a reload with a broken file changes nothing, and names file and line" {
	make_keys web lab
	write_conf "$(configure a "$(client web)" "$(client lab)")"
	start_server
	key_file=$dir/web.key
	mount_source() { echo "$own:/a"; }
	mount_rmem
	until_true 10 all_use a "$(key_id web)"
	peers=$(channels_have a peer)
	# says TEXT: the reload fails, and both sides say so.
	says() {
		run reload
		echo "$output"
		[ "$status" -eq 1 ]
		[ "${#lines[@]}" -eq 1 ]
		[[ $output == *"$1"* ]]
		grep -F "nothing is reloaded: " "$dir/server.log" | grep -qF "$1"
		[ "$(channels_have a peer)" = "$peers" ]
	}
	# The first file is good, and has lost the mount's key.
	rmemfsctl keygen web "$dir/web.new" 2>/dev/null
	cp "$dir/web.server" "$dir/web.old"
	cat "$dir/web.new" >"$dir/web.server"
	sed -i 's/....:$/:/' "$dir/lab.server"
	says "$server_conf:2: keys: $dir/lab.server:1: the key was cut"
	rm "$dir/lab.server"
	says "$server_conf:2: keys: key file $dir/lab.server: No such file or directory"
	cp -p "$dir/lab.key" "$dir/lab.server"
	chmod 604 "$dir/lab.server"
	says "key file $dir/lab.server has mode 0604, and other users may read it: chmod "
	chmod 600 "$dir/lab.server"
	echo 'speed = 1;' >>"$server_conf"
	says "$server_conf:3: speed: unknown key"
	sed -i 3d "$server_conf"
	twin_key web
	cat "$dir/web.twin" >"$dir/lab.server"
	cat "$dir/web.old" >"$dir/web.server"
	says "key $(key_id web) is in "
	cp -p "$dir/lab.key" "$dir/lab.server"
	reload
	[ "$(channels_have a peer)" = "$peers" ]
	touch "$mnt/a"
}

@test "SIGHUP reloads, and the server goes on when the configuration is broken" {
	make_keys web lab
	write_conf "$(configure a "$(client web)")"
	start_server
	key_file=$dir/web.key
	mount_source() { echo "$own:/a"; }
	mount_rmem
	cp "$server_conf" "$dir/good"
	echo nonsense >"$server_conf"
	kill -HUP "$server_pid"
	until_true 10 log_has "nothing is reloaded: $server_conf:2: "
	touch "$mnt/a"
	write_conf "$(configure a "$(client lab)")"
	kill -HUP "$server_pid"
	until_true 10 no_channel a
	cp "$dir/good" "$server_conf"
	kill -HUP "$server_pid"
	touch "$mnt/b"
}

@test "rmemfsctl reload is for root and the server's user, by the socket" {
	start_server
	run "${nobody[@]}" rmemfsctl reload "$socket"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == "rmemfsctl: $socket: nothing is reloaded: Permission denied: the socket is for root "* ]]
	run rmemfsctl reload "$(listen_address)"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *": a reload is for root and the server's user, by the socket on the server's machine" ]]
	if log_has reloaded; then return 1; fi
	[ "$(reload)" = "reloaded the clients of the exports, with 1 key; 0 channels closed" ]
	log_has "reloaded the clients of the exports, with 1 key; 0 channels closed"
}

# ---- restarts ------------------------------------------------------------------------------------

@test "a restart of the server: the mount proves its key again, and its session goes on" {
	mount_with_key
	session=$(status_of '.sessions[0].id')
	exec 9>"$mnt/a"
	echo one >&9
	crash_server
	echo two >&9
	exec 9>&-
	[ "$(cat "$mnt/a")" = $'one\ntwo' ]
	[ "$(status_of '.sessions[0].id')" = "$session" ]
	[ "$(status_of '.sessions[0].holder')" = web ]
	all_use a "$(key_id web)"
	grep -E "session $session of web .* resumed over $transport .*, key $(key_id web)" "$dir/server.log"
	if grep -F "session lost" "$dir/daemon.log"; then return 1; fi
}

attempt_is() {
	[[ $(rmemfsctl status "$mnt" --json | jq -r .session.last_attempt) == *"$1"* ]]
}

is_connected() {
	[ "$(rmemfsctl status "$mnt" --json | jq -r .state)" = connected ]
}

@test "a key that was replaced on the server alone: the mount's status has the refusal, and the server's too" {
	local old
	mount_with_key
	old=$(key_id web)
	rmemfsctl keygen web 2>/dev/null >"$dir/web.server"
	reload
	until_true 20 attempt_is "does not accept key $old"
	[[ $(rmemfsctl status "$mnt") == *"the last attempt to connect: "*"does not accept key $old"* ]]
	run rmemfsctl mounts
	[[ $output =~ $mnt" ".*"does not accept key $old" ]]
	run -1 rmemfsctl health "$socket"
	[[ $output == *"warning: server: key $old, from "*" is refused: "*"copy the server's file over the client's"* ]]
	# One line for many.
	[ "$(grep -c "refused: no key $old here" "$dir/server.log")" -le 2 ]
	(umask 077 && cp "$dir/web.server" "$dir/web.key")
	until_true 60 is_connected
	attempt_is null
}
