#!/usr/bin/env bats
# exports.bats - exports come, grow and go, under load of others, without a restart.

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
	# Also those who look for refused requests alone find the reason.
	grep -F "request 'reload' is refused: $1: " "$dir/server.log" | grep -qF -- "$2"
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

# changes_of_log: the lines of the log that tell of changes by a reload, from line $1 on.
changes_of_log() {
	tail -n "+$1" "$dir/server.log" | sed -n -E "s/.* notice: (reloaded the clients|export ')/\1/p"
}

@test "a reload answers with what has changed, as the log has it; a signal with nothing" {
	local before
	[ -z "$key_file" ] || nkeys=1
	start_server
	for step in 'inodes = 100;' 'inodes = 200;' ''; do
		before=$(($(wc -l <"$dir/server.log") + 1))
		add_file second 32 "$step"
		[ -z "$step" ] || add_file third 32
		reload >"$dir/answer"
		cat "$dir/answer"
		diff "$dir/answer" <(changes_of_log "$before")
		mv "$dir/answer" "$dir/answer.$((++n))"
	done
	grep -x "reloaded the clients of the exports, with ${nkeys:-0} keys\?; 0 channels closed" "$dir/answer.1"
	grep -x "export 'second' is added, with 32MiB" "$dir/answer.1"
	grep -x "export 'third' is added, with 32MiB" "$dir/answer.1"
	[ "$(sed 1d "$dir/answer.2")" = "export 'second': inodes: 100 -> 200" ]
	[ "$(sed 1d "$dir/answer.3")" = "export 'second': inodes: 200 -> no limit" ]
	# Nothing has changed.
	reload >"$dir/answer"
	[ "$(wc -l <"$dir/answer")" = 1 ]
	add_file second 32 'inodes = 100;'
	rmemfsctl reload "$socket" --json >"$dir/json"
	[ "$(jq -c '[.unlisted, .changes[1]]' "$dir/json")" = \
		"[0,{\"export\":\"second\",\"text\":\"export 'second': inodes: no limit -> 100\"}]" ]
	# In the journal the server's own lines stand already.
	: >"$dir/journal"
	stream=$(stat -L -c %d:%i "$dir/journal")
	JOURNAL_STREAM=$stream rmemfsctl reload "$socket" >"$dir/journal" 2>&1
	[ ! -s "$dir/journal" ]
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
	add_file a 16
	refused "export 'a' has 32MiB and is configured with 16MiB"
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
	[[ $output == "rmemfsctl: $socket: export 'third' is not added: $exports_stay: the memory of 1 export (and 63.9GiB for metadata, 1.1TiB in all): needed 1TiB, free "*"; make the exports smaller or the memory larger" ]]
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
	[ "$output" = "rmemfsctl: export 'second' of 48MiB has 52 files and directories with $(size_used second) of data, lost for good if it is removed: if that is meant, repeat this with --yes" ]
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
		grep -q "session lost: export 'second' was removed, and another one has its name; every operation fails now, unmount and mount again" "$dir/more.log"
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
	[ "$(grep -c "export 'third' is removed, with 1 file or directory and " "$dir/server.log")" -eq 3 ]
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
	twice() { [ "$(grep -c " error: .*no configuration has it any more: put it back: it is in use" "$dir/server.log")" -eq 2 ]; }
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
	grep -F "export 'second' is removed, with 1 file or directory and " "$dir/server.log"
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

# ---- an export grows -----------------------------------------------------------------------------

# resized EXPORT SIZE
resized() {
	keyed_conf >/dev/null
	export_command resize "$@"
}

bytes_are() {
	[ "$(status_of ".exports[] | select(.name == \"$1\") | .bytes")" -eq $(($2 << 20)) ]
}

small_regions() {
	echo 'region_size = "16MiB";' >>"$server_conf"
}

# write_stubbornly MIB: writes $dir/new to $more/new, and tries a MiB without room again and again.
write_stubbornly() {
	for ((i = 0; i < $1; i++)); do
		until dd if="$dir/new" of="$more/new" bs=1M skip=$i seek=$i count=1 conv=notrunc,fsync 2>"$dir/dd.log"; do
			grep -q 'No space left' "$dir/dd.log" || return
			touch "$dir/full"
			[ ! -e "$dir/enough" ] || return
		done
	done
}

holds_new() {
	cmp "$dir/new" "$more/new"
}

@test "an export grows under a writer that had no more space, and the writer goes on" {
	small_regions
	start_server
	add second 32MiB
	sed -i 's/^exports/# Of the team.\nexports/' "$dir/exports.d/second.conf"
	mount_more second
	random_file "$dir/new" 56
	write_stubbornly 56 3>&- &
	writer=$!
	until_true 20 test -e "$dir/full"
	mode=$(stat -c '%a %u %g' "$dir/exports.d/second.conf")
	[ -z "$(resized second 64MiB)" ]
	exit_status $writer 60
	holds_new
	grep -F "export 'second' has grown by 32MiB, to 64MiB" "$dir/server.log"
	[ "$(df --output=size -B1M "$more" | tail -1)" -eq 64 ]
	[ "$(grep -c 'connection.*lost' "$dir/more.log")" -eq 0 ]
	# The file has the size, and all that it had before.
	grep -q '^# Of the team.$' "$dir/exports.d/second.conf"
	grep -q 'size = "64MiB"' "$dir/exports.d/second.conf"
	[ "$(stat -c '%a %u %g' "$dir/exports.d/second.conf")" = "$mode" ]
	[ "$(ls -A "$dir/exports.d")" = second.conf ]
	# Nothing is left to do.
	[ -z "$(resized second 64MiB)" ]
	if nightly; then
		crash_server
		holds_new
	fi
	stop_server
	check_memory
	start_server
	bytes_are second 64
	holds_new
	# Pages that are freed in new regions come back.
	rm "$more/new"
	cp "$dir/new" "$more/new"
	holds_new
	leave_more
}

@test "a reload makes an export as large as its file says, or nothing has changed" {
	add_file big 128
	start_server
	small_regions
	add_file a 32
	reload
	mount_more a
	random_file "$dir/new" 24
	cp "$dir/new" "$more/new"
	sync -f "$more/new"
	add_file a 16
	refused "export 'a' has 32MiB and is configured with 16MiB: it can't be made smaller while it is served, since clients reach all of its memory: add a smaller export and copy, or set 32MiB again; "
	add_file a 40
	refused "export 'a' has 32MiB and is configured with 40MiB: it can have 32MiB or 48MiB, by whole regions of 16MiB"
	add_file a $((1 << 15))
	refused "export 'a' is configured with 32GiB and has regions of 16MiB: clients reach 1024 of them, so it can have 16GiB"
	add_file a 32
	add_file big $((128 << 10))
	refused "the memory of 1 export (and 8134MiB for metadata, 135.8GiB in all): needed 127.9GiB, free "
	add_file big 128
	bytes_are big 128
	bytes_are a 32
	[ "$(find "$memory/regions" -name 'a.*' | wc -l)" -eq 2 ]
	holds_new
	add_file a 48
	# A server that was killed while it took back a growth has left a file.
	truncate -s 3M "$memory/regions/a.0002"
	add_file b 16
	kill -HUP "$server_pid"
	has_b() { exports_are "default big a b"; }
	until_true 20 has_b
	bytes_are a 48
	cp "$dir/new" "$more/more" || [ "$(stat -c %s "$more/more")" -gt $((14 << 20)) ]
	holds_new
	stop_server
	check_memory
	start_server
	bytes_are a 48
	holds_new
	leave_more
	# With its last region smaller than the others it can't.
	add_file c 40
	reload
	add_file c 64
	refused "export 'c' has 40MiB and is configured with 64MiB: it can have 32MiB or 40MiB, and not grow, since its last region is smaller than the others (16MiB)"
}

file_is_as_before() {
	cmp "$dir/second.conf" "$dir/exports.d/second.conf"
	[ "$(ls -A "$dir/exports.d")" = second.conf ]
}

# bats test_tags=once
@test "rmemfsctl puts the file back if the server refuses the size, and changes no other file" {
	small_regions
	start_server
	add second 32MiB
	cp -p "$dir/exports.d/second.conf" "$dir/second.conf"
	run resized second 512GiB
	[ "$status" -eq 1 ]
	[[ $output == "rmemfsctl: $socket: export 'second' is not resized: $exports_stay: export 'second' is configured with 512GiB and has regions of 16MiB: "* ]]
	file_is_as_before
	run resized second 16MiB
	[[ $output == "rmemfsctl: $socket: export 'second' is not resized: $exports_stay: export 'second' has 32MiB and is configured with 16MiB: it can't be made smaller while it is served, "* ]]
	run resized second much
	[ "$status" -eq 1 ]
	[ "$output" = "rmemfsctl: 'much': must be a size like 64GiB" ]
	run resized third 64MiB
	[ "$status" -eq 1 ]
	[ "$output" = "rmemfsctl: $socket: the server has no export 'third': see 'rmemfsctl export list'" ]
	run resized default 128MiB
	[ "$status" -eq 1 ]
	[[ $output == "rmemfsctl: export 'default' stands in $dir/"*".conf, and not in $dir/exports.d/default.conf: change its size there, and run 'rmemfsctl reload'" ]]
	file_is_as_before
	# Two at once: the second one waits.
	exec {lock}<"$dir/exports.d"
	flock "$lock"
	resized second 48MiB >"$dir/resize.log" 2>&1 3>&- {lock}<&- &
	resizer=$!
	until_true 10 grep -q "waiting for another rmemfsctl, which has $dir/exports.d" "$dir/resize.log"
	file_is_as_before
	exec {lock}<&-
	exit_status "$resizer" 20
	bytes_are second 48
	# Where another program writes the file, the link stays.
	mv "$dir/exports.d/second.conf" "$dir/second.conf"
	ln -s "$dir/second.conf" "$dir/exports.d/second.conf"
	run resized second 64MiB
	[ "$output" = "rmemfsctl: $dir/exports.d/second.conf is a link: change the size of export 'second' in the file that it names, and run 'rmemfsctl reload'" ]
	sed -i 's/48MiB/64MiB/' "$dir/second.conf"
	reload
	bytes_are second 64
	stop_server
	run resized second 80MiB
	[[ $output == "rmemfsctl: $socket: "* ]]
	server_conf='' start_server
	run rmemfsctl export resize default 128MiB --config "$dir/server.conf" --host "$socket"
	[ "$output" = "rmemfsctl: $socket: export 'default' is of the server's command line, or the built-in one: change its size there, and restart the server" ]
}

# mount_at PLACE EXPORT [OPTION]...
mount_at() {
	mkdir -p "$1"
	rmemfs -c /dev/null -o "$(mount_options)" "${@:3}" "$(mount_source "$2")" "$1" >>"$dir/more.log" 2>&1 3>&-
}

# bats test_tags=nightly
@test "mounts that share an export reach what others write to its new memory" {
	small_regions
	start_server
	add second 32MiB
	mount_at "$more" second -o share
	mount_at "$dir/other" second -o share
	mount_at "$dir/reader" second -o ro,share
	random_file "$dir/new" 56
	echo first >"$dir/other/first"
	[ "$(cat "$dir/reader/first")" = first ]
	write_stubbornly 56 3>&- &
	writer=$!
	until_true 20 test -e "$dir/full"
	# One does not run when it grows, and knows nothing of it.
	daemon=$(pgrep -f -- "rmemfs .*$dir/other\$")
	suspend "$daemon"
	resized second 64MiB
	exit_status $writer 60
	cmp "$dir/new" "$dir/reader/new"
	kill -CONT "$daemon"
	cmp "$dir/new" "$dir/other/new"
	random_file "$dir/changed" 56
	cp "$dir/changed" "$dir/other/new"
	cmp "$dir/changed" "$more/new"
	cmp "$dir/changed" "$dir/reader/new"
	umount "$dir/other" "$dir/reader"
	leave_more
	stop_server
	check_memory
	start_server
}

# bats test_tags=nightly
@test "a client of the release before goes on when its export grows, and so does one that moves" {
	small_regions
	next=$(($(rmemfs --version | grep -oE 'protocol [0-9]+' | grep -oE '[0-9]+') + 1))
	RMEMFS_WIRE=$next start_server
	add second 32MiB
	mount_more second
	random_file "$dir/new" 56
	write_stubbornly 56 3>&- &
	writer=$!
	until_true 20 test -e "$dir/full"
	resized second 64MiB
	exit_status $writer 60
	# The new daemon has the keys from its start.
	rmemfsctl upgrade "$more"
	holds_new
	resized second 80MiB
	random_file "$dir/end" 20
	cp "$dir/end" "$more/end"
	cmp "$dir/end" "$more/end"
	leave_more
	stop_server
	start_server
}

snapshot_is() {
	[ "$(status_of '.exports[] | select(.name == "second") | .snapshot.state // "none"')" = "$1" ]
}

# bats test_tags=nightly
@test "a grown export is in its snapshots, and comes back from them" {
	small_regions
	start_server
	add second 32MiB
	mount_more second
	random_file "$dir/new" 24
	cp "$dir/new" "$more/old"
	sync -f "$more/old"
	# None grows while it is written.
	daemon=$(pgrep -f -- "rmemfs .*$more\$")
	suspend "$daemon"
	rmemfsctl snapshot second "$dir/image" "$socket" 3>&- &
	taking=$!
	until_true 20 snapshot_is freezing
	run resized second 64MiB
	echo "$output"
	kill -CONT "$daemon"
	[ "$status" -eq 1 ]
	[[ $output == *": export 'second' can't grow while a snapshot of it is written: repeat this after its end" ]]
	exit_status $taking 30
	resized second 64MiB
	cp "$dir/new" "$more/new"
	sync -f "$more/new"
	rm -r "$dir/image"
	rmemfsctl snapshot second "$dir/image" "$socket"
	# Bytes of the new regions change after it.
	random_file "$dir/later" 24
	cp "$dir/later" "$more/new"
	leave_more
	stop_server
	rm -rf "${memory:?}"/*
	start_server --restore "$dir/image"
	bytes_are second 64
	mount_more second
	holds_new
	cmp "$dir/new" "$more/old"
	leave_more
}

prepare_growth() {
	add second 32MiB
	mount_more second
	random_file "$dir/new" 24
	cp "$dir/new" "$more/new"
	leave_more
}

# bats test_tags=once,nightly
@test "a server that is killed while an export grows has it larger after its next start" {
	# The start allocates six regions.
	local points=(region.allocated:8 exports.registered store.growing store.added reload.stored)
	small_regions
	start_server
	for point in "${points[@]}"; do
		echo "killed at $point"
		prepare_growth
		stop_server
		RMEMFS_CRASH_AT='' spawn_armed "$point"
		until_true 20 server_answers
		echo 'metadata_reserve = "80MiB";' >>"$server_conf"
		run resized second 64MiB
		echo "$output"
		[ "$status" -eq 1 ]
		[[ $output == *": whether export 'second' has the new size is not known, and $dir/exports.d/second.conf has it: see 'rmemfsctl export list', and repeat this" ]]
		expect_death "$point"
		[ "$(ls -A "$dir/exports.d")" = second.conf ]
		start_server
		bytes_are second 64
		mount_more second
		holds_new
		random_file "$dir/end" 32
		cp "$dir/end" "$more/end"
		cmp "$dir/end" "$more/end"
		leave_more
		removed second
		stop_server
		check_memory
		rm -r "$memory"
		sed -i /metadata_reserve/d "$server_conf"
		start_server
	done
}

# The file may also be put back, while the server is down.
# bats test_tags=once,nightly
@test "a growth that a killed server has not begun leaves nothing, if its file has the former size" {
	small_regions
	start_server
	prepare_growth
	stop_server
	RMEMFS_CRASH_AT='' spawn_armed exports.registered
	until_true 20 server_answers
	run resized second 64MiB
	expect_death exports.registered
	[ "$(find "$memory/regions" -name 'second.*' | wc -l)" -eq 4 ]
	sed -i 's/64MiB/32MiB/' "$dir/exports.d/second.conf"
	start_server
	bytes_are second 32
	[ "$(find "$memory/regions" -name 'second.*' | wc -l)" -eq 2 ]
	mount_more second
	holds_new
	leave_more
}

# bats test_tags=once,nightly
@test "rmemfsctl that is killed while an export grows leaves its file with the new size" {
	local points=(resize.written resize.told)
	small_regions
	start_server
	for point in "${points[@]}"; do
		echo "killed at $point"
		prepare_growth
		RMEMFS_CRASH_AT=$point run resized second 64MiB
		[ "$status" -eq 137 ]
		grep -q 64MiB "$dir/exports.d/second.conf"
		[ "$point" = resize.told ] || bytes_are second 32
		reload
		bytes_are second 64
		mount_more second
		holds_new
		leave_more
		# The next command takes away what is left.
		resized second 80MiB
		bytes_are second 80
		[ "$(ls -A "$dir/exports.d")" = second.conf ]
		removed second
	done
}

# ---- how long it takes, and wrong usage ----------------------------------------------------------

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
	[[ $output == "rmemfsctl: ACTION 'grow': must be list, add, remove or resize "* ]]
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
	run rmemfsctl export resize a
	[[ $output == "rmemfsctl: SIZE is missing "* ]]
	run rmemfsctl export resize a 1MiB --yes
	[[ $output == "rmemfsctl: option '--yes': has no meaning for resize "* ]]
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
