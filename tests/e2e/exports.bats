#!/usr/bin/env bats
# exports.bats - exports come, under load of others, without a restart.

load helpers

setup() {
	setup_rmem
	server_conf=$dir/server.conf
	cat >"$server_conf" <<-EOF
		exports = ( { name = "default"; size = "64MiB"; } );
		lease_time = 1;
	EOF
	mkdir "$dir/exports.d"
	more=$dir/more
}

teardown() {
	! mountpoint -q "$more" || umount -l "$more"
	teardown_rmem
}

nightly() {
	[ "${RMEMFS_TEST_NIGHTLY:-0}" = 1 ]
}

# add_file NAME MIB [SETTING] [EXPORT]: NAME.conf of exports.d.
add_file() {
	local client=''
	[ -z "$key_file" ] || client="clients = ( { name = \"test\"; keys = \"$key_file\"; } );"
	echo "exports = ( { name = \"${4:-$1}\"; size = \"$2MiB\"; $client ${3:-} } );" >"$dir/exports.d/$1.conf"
}

reload() {
	keyed_conf >/dev/null
	rmemfsctl reload "$socket"
}

# reload_fails LEFT TEXT: both sides say what is left as it was, and why.
reload_fails() {
	run reload
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == "rmemfsctl: $socket: $1: "*"$2"* ]]
	grep -F "error: $1: " "$dir/server.log" | grep -qF -- "$2"
}

# unread TEXT: something is wrong in the files.
unread() {
	reload_fails "nothing is reloaded" "$1"
}

# refused TEXT: the exports can't be so.
exports_stay='the clients and keys are reloaded, the exports are not'
refused() {
	reload_fails "$exports_stay" "$1"
}

exports_are() {
	[ "$(status_of '[.exports[].name] | join(" ")')" = "$1" ]
}

# mount_more EXPORT
mount_more() {
	mkdir -p "$more"
	rmemfs -c /dev/null -o "$(mount_options)" "$(mount_source "$1")" "$more" >>"$dir/more.log" 2>&1 3>&-
}

sessions_are() {
	[ "$(status_of '.sessions | length')" -eq "$1" ]
}

leave_more() {
	local before
	before=$(status_of '.sessions | length')
	umount "$more"
	until_true 20 sessions_are $((before - 1))
}

# Writes to the mount until $dir/enough is there, and counts its rounds.
write_on() {
	local round=0
	while [ ! -e "$dir/enough" ]; do
		cp "$dir/data" "$mnt/data" && cmp "$dir/data" "$mnt/data" || return
		# Nobody reads a file that is empty for a moment.
		echo $((round += 1)) >"$dir/round" && mv "$dir/round" "$dir/rounds"
	done
}

@test "an export is added while another one is written, is mounted, and is there after a restart" {
	start_server
	mount_rmem
	random_file "$dir/data" 4
	write_on 3>&- &
	writer=$!
	until_true 10 test -s "$dir/rounds"
	add_file second 32
	# A server that was killed while it took back an export has left the second of its files.
	truncate -s 3M "$memory/regions/second.0001"
	reload
	[ ! -e "$memory/regions/second.0001" ]
	exports_are "default second"
	before=$(cat "$dir/rounds")
	more_rounds() { [ "$(cat "$dir/rounds")" -gt "$before" ]; }
	until_true 10 more_rounds
	mount_more second
	[ "$(df --output=size -B1M "$more" | tail -1)" -eq 32 ]
	random_file "$dir/new" 20
	cp "$dir/new" "$more/new"
	sync -f "$more/new"
	cmp "$dir/new" "$more/new"
	touch "$dir/enough"
	exit_status $writer 20
	grep -F "export 'second' is added, with 32MiB" "$dir/server.log"
	[ "$(grep -c 'connection.*lost' "$dir/daemon.log")" -eq 0 ]
	# A kill takes another second.
	if nightly; then
		crash_server
		exports_are "default second"
		cmp "$dir/new" "$more/new"
		cmp "$dir/data" "$mnt/data"
	fi
	stop_server
	check_memory
	start_server
	cmp "$dir/new" "$more/new"
	leave_more
}

# bats test_tags=nightly
@test "limits of exports count from the reload on" {
	add_file first 32 'inodes = 1000;'
	start_server
	mount_more first
	touch "$more/one" "$more/two"
	add_file first 32 'inodes = 4;'
	reload
	touch "$more/three"
	run touch "$more/four"
	[ "$status" -eq 1 ]
	[[ $output == *"No space left"* ]]
	add_file first 32 'inodes = 5;'
	reload
	touch "$more/four"
	add_file first 32 'quotas = ( { user = "*"; size = "1MiB"; } );'
	refused "export 'first': its first quotas take a restart of the server"
	leave_more
}

@test "a reload that can't add an export changes nothing" {
	start_server
	mount_rmem
	echo one >"$mnt/file"
	add_file a 32
	echo 'exports = ( { name = "b"; size = 1; } );' >"$dir/exports.d/b.conf"
	unread "$dir/exports.d/b.conf:1: size: '1': must be at least 4KiB"
	add_file b 32 '' a
	unread "$dir/exports.d/b.conf:1: exports: 'a': there is another export of this name in $dir/exports.d/a.conf, line 1"
	add_file b $((1 << 40))
	unread "make region_size"
	add_file b $((1 << 20))
	refused "make the exports smaller or the memory larger"
	exports_are default
	[ "$(find "$memory/regions" -type f | wc -l)" -eq 1 ]
	rm "$dir/exports.d/b.conf"
	reload
	exports_are "default a"
	rm "$dir/exports.d/a.conf"
	refused "export 'a' is served, and no configuration has it any more: put it back, or run 'rmemfsctl export remove a --yes'"
	add_file a 64
	refused "export 'a' has 32MiB and is configured with 64MiB"
	exports_are "default a"
	[ "$(cat "$mnt/file")" = one ]
}

export_command() {
	rmemfsctl export "$@" --config "$server_conf" --host "$socket"
}

# add EXPORT SIZE: with the mounts' key.
add() {
	keyed_conf >/dev/null
	export_command add "$@" ${key_file:+--key "$key_file"}
}

@test "rmemfsctl adds an export, lists it, and takes back what the server refuses" {
	start_server
	[ -z "$(umask 077 && add second 48MiB)" ]
	[ "$(stat -c %a "$dir/exports.d/second.conf")" = 640 ]
	exports_are "default second"
	mount_more second
	echo two >"$more/file"
	run export_command list
	echo "$output"
	[[ ${lines[0]} == "EXPORT "*"SIZE "*"USED "*"MOUNTS "*FILE ]]
	[[ ${lines[1]} =~ ^default\ +64MiB\ +0B\ +0\ +-$ ]]
	[[ ${lines[2]} =~ ^second\ +48MiB\ +.*\ +1\ +$dir/exports.d/second.conf$ ]]
	run add second 48MiB
	[ "$status" -eq 1 ]
	[[ $output == *"/exports.d/second.conf is there already: edit it and run 'rmemfsctl reload'"* ]]
	run add third 1TiB
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == "rmemfsctl: $socket: export 'third' is not added: $exports_stay: the memory of 1 export: needed 1TiB, free "*"; make the exports smaller or the memory larger" ]]
	run add default 48MiB
	[ "$status" -eq 1 ]
	[[ $output == *": export 'default' is not added: nothing is reloaded: $dir/exports.d/default.conf:2: exports: 'default': there is another export of this name in "* ]]
	run add ../x 48MiB
	[ "$status" -eq 1 ]
	run add third much
	[ "$status" -eq 1 ]
	[[ $output == "rmemfsctl: 'much': must be a size like 64GiB" ]]
	[ "$(find "$dir/exports.d" -type f)" = "$dir/exports.d/second.conf" ]
	stop_server
	run add third 48MiB
	[ "$status" -eq 1 ]
	[[ $output == *"export 'third' is not added: no server listens there"* ]]
	[ "$(find "$dir/exports.d" -type f)" = "$dir/exports.d/second.conf" ]
	start_server
	[ "$(cat "$more/file")" = two ]
	leave_more
	# Another one is at work. One that was killed has left its draft.
	touch "$dir/exports.d/.third.conf"
	exec {lock}<"$dir/exports.d"
	flock "$lock"
	add third 32MiB >"$dir/add.log" 2>&1 3>&- {lock}<&- &
	adder=$!
	until_true 10 grep -q "waiting for another rmemfsctl, which has $dir/exports.d" "$dir/add.log"
	[ ! -e "$dir/exports.d/third.conf" ]
	exec {lock}<&-
	exit_status "$adder" 20
	exports_are "default second third"
	[ "$(ls -A "$dir/exports.d")" = $'second.conf\nthird.conf' ]
}

# bats test_tags=once,nightly
@test "rmemfsctl adds no export that the server would not read" {
	local conf=$server_conf
	server_conf=''
	start_server
	for conf in "$conf" "$dir/other/server.conf"; do
		mkdir -p "${conf%/*}/exports.d"
		run rmemfsctl export add second 48MiB --config "$conf" --host "$socket"
		echo "$output"
		[ "$status" -eq 1 ]
		[[ $output == "rmemfsctl: $socket: export 'second' is not added: the server does not read ${conf%/*}/exports.d/second.conf: "* ]]
		[ -z "$(ls "${conf%/*}/exports.d")" ]
	done
	exports_are default
}

# bats test_tags=once,nightly
@test "the built-in export stays until it is written down" {
	echo 'lease_time = 1;' >"$server_conf"
	start_server
	run export_command add second 48MiB
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *": export 'default' is the built-in one "*": write it down first ('rmemfsctl export add default 1GiB'), or restart the server without it" ]]
	exports_are default
	[ -z "$(export_command add default 1GiB)" ]
	[ -z "$(export_command add second 48MiB)" ]
	exports_are "default second"
}

# bats test_tags=keyed
@test "keys and clients change at once, also where the exports can't be reloaded" {
	cp -p "$key_file" "$dir/server.key"
	local clients="clients = ( { name = \"test\"; keys = \"$dir/server.key\"; } );"
	echo "exports = ( { name = \"default\"; size = \"64MiB\"; $clients } );" >"$server_conf"
	write_a() {
		echo "exports = ( { name = \"a\"; size = \"32MiB\"; $clients } );" >"$dir/exports.d/a.conf"
	}
	write_a
	start_server
	mount_rmem
	mount_more a
	rm "$dir/exports.d/a.conf"
	refused "export 'a' is served, and no configuration has it any more"
	grep -q "reloaded the clients of the exports, with 1 key; 0 channels closed" "$dir/server.log"
	echo kept >"$more/file"
	# The export that no file has any more loses the key, too.
	rmemfsctl keygen other 2>/dev/null >"$dir/server.key"
	refused "export 'a' is served"
	no_channels() { [ "$(status_of '[.sessions[].channels | length] | add')" -eq 0 ]; }
	until_true 10 no_channels
	cp -p "$key_file" "$dir/server.key"
	write_a
	reload
	[ "$(cat "$more/file")" = kept ]
	touch "$mnt/file"
	leave_more
}

# removed EXPORT [OPTION]...
removed() {
	keyed_conf >/dev/null
	export_command remove "$@" --yes
}

# The file, the memory and the mark.
nothing_left() {
	[ "$(find "$memory/regions" -name "$1.*" | wc -l)" -eq 0 ]
	[ -z "$(find "$dir/exports.d" -name "*$1*")" ]
}

size_used() {
	export_command list | awk -v name="$1" '$1 == name { print $3 }'
}

fill_more() {
	random_file "$dir/new" 8
	cp "$dir/new" "$more/new"
	mkdir "$more/dir"
	for i in {1..50}; do echo "$i" >"$more/dir/$i"; done
	sync -f "$more/new"
}

@test "rmemfsctl removes an export, and one of its name is new and empty" {
	start_server
	mount_rmem
	echo kept >"$mnt/file"
	add second 48MiB
	mount_more second
	fill_more
	run export_command remove second
	echo "$output"
	[ "$status" -eq 1 ]
	[ "$output" = "rmemfsctl: export 'second' of 48MiB has 52 files and directories with $(size_used second) of data, which are lost for good if it is removed: if that is meant, repeat this with --yes" ]
	# It is in use: by a mount, by one that lost its connection.
	run removed second
	echo "$output"
	[ "$status" -eq 1 ]
	session=$(status_of '.sessions[] | select(.export == "second") | .id')
	[[ $output == "rmemfsctl: $socket: export 'second' is not removed: $exports_stay: export 'second' is in use by session $session of "*"$more"*" (active): unmount it there; 'rmemfsctl evict' "* ]]
	cmp "$dir/new" "$more/new"
	echo more >"$more/dir/more"
	[ "$(ls -A "$dir/exports.d")" = second.conf ]
	leave_more
	[ -z "$(removed second)" ]
	grep -F "export 'second' is removed, with 53 files and directories and " "$dir/server.log"
	nothing_left second
	exports_are default
	[ "$(cat "$mnt/file")" = kept ]
	run mount_more second
	[ "$status" -ne 0 ]
	run removed second
	[ "$status" -eq 1 ]
	[ "$output" = "rmemfsctl: $socket: the server has no export 'second': see 'rmemfsctl export list'" ]
	# It has another size, and nothing of the former one.
	add second 32MiB
	mount_more second
	[ -z "$(ls -A "$more")" ]
	[ "$(df --output=size -B1M "$more" | tail -1)" -eq 32 ]
	cp "$dir/new" "$more/new"
	holds_more() { cmp "$dir/new" "$more/new"; }
	holds_more
	crash_server
	holds_more
	leave_more
	stop_server
	check_memory
	start_server
	exports_are "default second"
	removed second
	stop_server
	check_memory
	start_server
	exports_are default
}

is_stale() {
	[[ $(ls "$1" 2>&1) == *"Stale file handle" ]]
}

# A client that does not come back holds an export until an administrator ends its session. One that
# comes back afterwards waits, as for a server that is away, or is told that its session has gone.
@test "an export whose client is lost is removed after its session was ended" {
	start_server
	add second 48MiB
	mount_more second
	fill_more
	daemon=$(pgrep -f -- "rmemfs .*$more\$")
	kill -STOP "$daemon"
	run removed second
	[ "$status" -eq 1 ]
	[[ $output =~ in\ use\ by\ session\ ([0-9]+)\ of ]]
	rmemfsctl evict "${BASH_REMATCH[1]}" "$socket"
	if [ "$transport" = shm ]; then
		# Its process may reach the memory as long as it lives.
		run removed second
		[[ $output == *" in use by session "*" (ending): "* ]]
		kill -KILL "$daemon"
		until_true 20 removed second
		umount -l "$more"
	else
		until_true 20 removed second
		nothing_left second
		kill -CONT "$daemon"
		refused_there() { grep -q "request 'attach' is refused: there is no export 'second'" "$dir/server.log"; }
		until_true 20 refused_there
		# It does not take the new export of that name for the old one.
		add second 32MiB
		until_true 20 is_stale "$more"
		[[ $(tail -1 "$dir/more.log") == *"session lost: session "*" has ended; every operation fails now, unmount and mount again" ]]
		umount "$more"
		mount_more second
		[ -z "$(ls -A "$more")" ]
		leave_more
		removed second
	fi
	exports_are default
	nothing_left second
}

# bats test_tags=nightly
@test "an export is removed while another one is written, and a third one is added" {
	start_server
	mount_rmem
	random_file "$dir/data" 4
	write_on 3>&- &
	writer=$!
	until_true 10 test -s "$dir/rounds"
	for round in 1 2 3; do
		add second 48MiB
		mount_more second
		fill_more
		rm "$more/new"
		leave_more
		add third 32MiB
		removed second
		exports_are "default third"
		before=$(cat "$dir/rounds")
		more_rounds() { [ "$(cat "$dir/rounds")" -gt "$before" ]; }
		until_true 10 more_rounds
		removed third
	done
	touch "$dir/enough"
	exit_status $writer 20
	[ "$(grep -c 'connection.*lost' "$dir/daemon.log")" -eq 0 ]
	exports_are default
	stop_server
	check_memory
	start_server
}

@test "a file of exports.d that is lost removes nothing" {
	start_server
	add second 48MiB
	mount_more second
	echo two >"$more/file"
	mv "$dir/exports.d/second.conf" "$dir/lost"
	refused "export 'second' is served, and no configuration has it any more: put it back: it is in use by session "
	kill -HUP "$server_pid"
	twice() { [ "$(grep -c "no configuration has it any more: put it back: it is in use" "$dir/server.log")" -eq 2 ]; }
	until_true 10 twice
	[[ $(export_command list) == *"second "*" 1  $dir/exports.d/second.conf (gone)"* ]]
	[ "$(cat "$more/file")" = two ]
	leave_more
	refused "export 'second' is served, and no configuration has it any more: put it back, or run 'rmemfsctl export remove second --yes'"
	mount_more second
	[ "$(cat "$more/file")" = two ]
	leave_more
	# A mark whose command is gone counts for nothing.
	mv "$dir/lost" "$dir/exports.d/second.conf"
	touch "$dir/exports.d/.second.remove"
	reload
	grep -F "export 'second' is not removed: nobody waits for that any more" "$dir/server.log"
	exports_are "default second"
	rm "$dir/exports.d/second.conf"
	removed second
	nothing_left second
	exports_are default
}

# bats test_tags=once
@test "an export is removed only from a file of its own, and never the last one" {
	echo "exports = ( { name = \"one\"; size = \"32MiB\"; }, { name = \"two\"; size = \"32MiB\"; } );" >"$dir/exports.d/one.conf"
	start_server
	run removed default
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *": export 'default' stands in $dir/"*".conf, line 1: take it out there, and remove it then" ]]
	run removed one
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *": export 'one' stands in $dir/exports.d/one.conf, line 1, beside export 'two': take it out there, and remove it then" ]]
	run removed two
	[ "$status" -eq 1 ]
	exports_are "default one two"
	[ "$(ls -A "$dir/exports.d")" = one.conf ]
	sed -i 's/, { name = .two.*} );/ );/' "$dir/exports.d/one.conf"
	removed two
	removed one
	sed -i 's/^exports.*//' "$server_conf"
	add default 64MiB
	run removed default
	echo "$output"
	[[ $output == *": export 'default' is the last one, and a configuration without exports has a built-in one: add another first" ]]
	exports_are default
}

# whole_or_gone: what a start finds, and that the next command completes it.
whole_or_gone() {
	if [[ $(status_of '[.exports[].name] | join(" ")') == *second* ]]; then
		outcome+=whole
		mount_more second
		cmp "$dir/new" "$more/new"
		[ "$(cat "$more/dir/50")" = 50 ]
		leave_more
		reload
		exports_are "default second"
		removed second
	else
		outcome+=gone
		[ "$(find "$memory/regions" -name "second.*" | wc -l)" -eq 0 ]
		reload
		exports_are default
		removed second || [ ! -e "$dir/exports.d/.second.remove" ]
	fi
	outcome+=' '
	exports_are default
	nothing_left second
}

prepare_second() {
	add second 48MiB
	mount_more second
	fill_more
	leave_more
}

# bats test_tags=once,nightly
@test "a server that is killed while it removes an export has it whole, or not at all" {
	local points=(exports.registered store.added reload.stored region.removed:2 removal.step)
	outcome=''
	echo 'region_size = "16MiB";' >>"$server_conf"
	start_server
	for point in "${points[@]}"; do
		echo "killed at $point"
		prepare_second
		stop_server
		RMEMFS_CRASH_AT='' spawn_armed "$point"
		until_true 20 server_answers
		run removed second
		echo "$output"
		[ "$status" -eq 1 ] || [ "$point" = removal.step ]
		expect_death "$point"
		start_server
		whole_or_gone
	done
	echo "$outcome"
	[ "$outcome" = "whole whole gone gone gone " ]
	stop_server
	check_memory
	start_server
}

# bats test_tags=once,nightly
@test "rmemfsctl that is killed while it removes an export leaves it whole, or gone" {
	local points=(remove.marked remove.told remove.unlinked)
	outcome=''
	start_server
	for point in "${points[@]}"; do
		echo "killed at $point"
		prepare_second
		RMEMFS_CRASH_AT=$point run removed second
		[ "$status" -eq 137 ]
		[ -e "$dir/exports.d/.second.remove" ]
		stop_server
		start_server
		whole_or_gone
	done
	[ "$outcome" = "whole gone gone " ]
	# Also what it has left is no obstacle to another one.
	prepare_second
	RMEMFS_CRASH_AT=remove.told run removed second
	add second 32MiB
	mount_more second
	[ -z "$(ls -A "$more")" ]
	leave_more
}

# slow_add POINT: a server that stands still at POINT, and the command, $adder, that waits for it.
slow_add() {
	grep -q region_size "$server_conf" || echo 'region_size = "2MiB";' >>"$server_conf"
	export RMEMFS_CRASH_BY=STOP
	spawn_armed "$1"
	unset RMEMFS_CRASH_BY
	until_true 20 server_answers
	keyed_conf >/dev/null
	rmemfsctl export add second 256MiB --config "$server_conf" --host "$socket" \
		${key_file:+--key "$key_file"} >"$dir/add.log" 2>&1 3>&- &
	adder=$!
	until_true 20 all_stand "$server_pid"
}

# stop_at POINT
stop_at() {
	local status=0
	slow_add "$1"
	kill -TERM "$server_pid"
	kill -CONT "$server_pid"
	exit_status "$adder" 20 || status=$?
	cat "$dir/add.log"
	[ $status -eq 1 ]
	grep -qF "export 'second' is not added: $exports_stay: the server is stopping" "$dir/add.log"
	status=0
	exit_status "$server_pid" 20 || status=$?
	server_pid=''
	[ $status -eq 0 ]
	[ -z "$(ls "$dir/exports.d")" ]
	[ "$(find "$memory/regions" -type f | wc -l)" -eq 32 ]
	check_memory
}

# The first 32 regions are of the export that is there.
# bats test_tags=nightly
@test "a server that is to stop while it adds an export answers, and leaves nothing of it" {
	stop_at region.allocated:35
	stop_at exports.registered
}

# bats test_tags=once,nightly
@test "an answer arrives, however long the reload takes" {
	slow_add region.allocated:35
	# Longer than a channel may be without a session.
	pause 11
	kill -CONT "$server_pid"
	exit_status "$adder" 20
	[ ! -s "$dir/add.log" ]
	exports_are "default second"
	[ "$(grep -c "has not attached in time" "$dir/server.log")" -eq 0 ]
}

# bats test_tags=once,nightly
@test "a signal ends the command, which says what stays, and the server goes on" {
	local status=0
	slow_add region.allocated:35
	kill -TERM "$adder"
	exit_status "$adder" 20 || status=$?
	[ $status -eq 1 ]
	[ "$(cat "$dir/add.log")" = "rmemfsctl: interrupted: whether the export was added is not known, and $dir/exports.d/second.conf stays: see 'rmemfsctl export list'" ]
	kill -CONT "$server_pid"
	until_true 20 exports_are "default second"
}

# bats test_tags=once
@test "wrong usage of rmemfsctl export is named" {
	run rmemfsctl export
	[[ $output == "rmemfsctl: ACTION is missing (usage: rmemfsctl export ACTION "* ]]
	run rmemfsctl export grow
	[[ $output == "rmemfsctl: ACTION 'grow': must be list, add or remove "* ]]
	run rmemfsctl export list a
	[[ $output == "rmemfsctl: 'a': one operand too many "* ]]
	run rmemfsctl export add a
	[[ $output == "rmemfsctl: SIZE is missing "* ]]
	run rmemfsctl export list --key /a
	[[ $output == "rmemfsctl: option '--key': has no meaning for list "* ]]
	run rmemfsctl export list --yes
	[[ $output == "rmemfsctl: option '--yes': has no meaning for list "* ]]
	run rmemfsctl export remove
	[[ $output == "rmemfsctl: EXPORT is missing "* ]]
	run rmemfsctl export remove a 1MiB --yes
	[[ $output == "rmemfsctl: '1MiB': one operand too many "* ]]
	run rmemfsctl reload --yes
	[[ $output == "rmemfsctl: option '--yes': has no meaning for reload "* ]]
	run rmemfsctl reload --config /a
	[[ $output == "rmemfsctl: option '--config': has no meaning for reload "* ]]
	run rmemfsctl export add a 1MiB --key a --config "$server_conf"
	[[ $output == "rmemfsctl: option '--key': FILE must be a path from / on"* ]]
	[ -z "$(ls "$dir/exports.d")" ]
}

# bats test_tags=once,nightly
@test "a server that is killed while it adds an export adds it at its next start, or has it" {
	local points=(region.allocated:2 exports.registered store.growing store.added reload.stored)
	for point in "${points[@]}"; do
		echo "killed at $point"
		spawn_armed "$point"
		until_true 20 server_answers
		alive "$server_pid"
		add_file more 32
		echo 'metadata_reserve = "80MiB";' >>"$server_conf"
		run reload
		[ "$status" -eq 1 ]
		expect_death "$point"
		start_server
		exports_are "default more"
		stop_server
		check_memory
		rm -r "$memory"
		rm "$dir/exports.d/more.conf"
		sed -i /metadata_reserve/d "$server_conf"
	done
}

# bats test_tags=once,nightly
@test "the check of the configuration tells which file has which export" {
	add_file second 32
	start_server
	run rmemfs-server -c "$server_conf" --check-config --memory-dir "$memory" --listen "shm:$socket"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"$server_conf:1: export 'default'"*"$dir/exports.d/second.conf:1: export 'second'"* ]]
}
