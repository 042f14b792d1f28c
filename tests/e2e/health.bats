#!/usr/bin/env bats
# health.bats - rmemfsctl health, report and top: what they say of mounts and servers that are well, and of those
# that are not. Other tests run at the same time, and their mounts are found, too: so most tests name their own.

# bats file_tags=once
bats_require_minimum_version 1.5.0
load helpers

setup() {
	setup_rmem
}

teardown() {
	[ -z "$server_pid" ] || kill -CONT "$server_pid"
	[ -z "$daemon_pid" ] || kill -CONT "$daemon_pid"
	teardown_rmem
}

# answers STATUS WORD ARGUMENT...: the exit status and the JSON agree, and each finding has cause and remedy.
answers() {
	local status=$1 word=$2
	shift 2
	run "-$status" rmemfsctl health "$@" --json
	jq -e --arg word "$word" '.status == $word and all(.findings[]; .found and .cause and .remedy)' <<<"$output"
	run "-$status" rmemfsctl health "$@"
	[[ $output == "$word: "* ]]
}

says() {
	rmemfsctl health "$@" >/dev/null
}

is_silent() {
	rmemfsctl health "$mnt" --json | jq -e '.findings[0] | .check == "connection" and .verdict == "warning"'
}

@test "a mount and a server that are well, and a place where nothing is mounted" {
	start_server
	mount_rmem
	answers 0 ok "$mnt"
	[ "$output" = "ok: 1 mount is well" ]
	answers 0 ok "$socket"
	[ "$output" = "ok: 1 export is well" ]
	# By an address a key decides.
	run -3 rmemfsctl health "127.0.0.1:$port"
	[[ $output == "unknown: server 127.0.0.1:$port: it answers, and tells strangers no more"* ]]
	run -3 rmemfsctl health "127.0.0.1:$port" --key "$dir/none"
	[[ $output == "unknown: server 127.0.0.1:$port: it can't be asked; cause: "*"$dir/none"* ]]
	run -0 rmemfsctl health "127.0.0.1:$port" --key "$key_file"
	[[ $output == "ok: "*$'\n'"note: server: this key sees its own mounts alone"* ]]
	rmemfsctl health --json >"$dir/all" || true
	jq -e '.mounts >= 1 and .where == null' "$dir/all"
	umount_rmem
	answers 2 critical "$mnt"
	[[ $output == "critical: $mnt: no rmemfs is mounted there; cause: "*"; remedy: mount $mnt"* ]]
	run -3 rmemfsctl health one two
	run -3 rmemfsctl health --snapshot 0
	[[ $output == *"option '--snapshot': must be a number of hours, 1 to 87600"* ]]
}

@test "a mount and a server whose programs were replaced since they began" {
	mkdir "$dir/bin"
	cp "$bin"/{rmemfs,rmemfs-server} "$dir/bin"
	PATH=$dir/bin:$PATH start_server
	PATH=$dir/bin:$PATH mount_rmem
	answers 0 ok "$mnt"
	[[ $output != *"from before an upgrade"* ]]
	rm "$dir/bin"/*
	run -0 rmemfsctl health "$mnt"
	[[ $output == *"note: $mnt: its daemon runs the program from before an upgrade; cause: "*"remedy: rmemfsctl upgrade $mnt"* ]]
	run -0 rmemfsctl health "$socket"
	[[ $output == *"note: server: it runs the program from before an upgrade; cause: "* ]]
}

@test "an export that is filled over 90 % is a warning, over 95 % critical" {
	start_server
	mount_rmem
	fallocate -l 174MiB "$mnt/file"
	sync -f "$mnt"
	answers 1 warning "$socket"
	[[ $output == "warning: export default: 9"[01]" % of its 192MiB of memory are in use; cause: files have it"* ]]
	answers 0 ok "$mnt"
	run ! fallocate -l 1GiB "$mnt/more"
	answers 1 warning "$mnt"
	[[ $output == "warning: $mnt: a program was told ENOSPC "*" ago; cause: the export has no memory"* ]]
	rm "$mnt/more"
	fallocate -l 184MiB "$mnt/file"
	sync -f "$mnt"
	answers 2 critical "$socket"
	rm "$mnt/file"
	until_true 10 says "$socket"
}

@test "inodes and quotas near their limits, and snapshots that are too old" {
	server_conf=$dir/server.conf
	cat >"$server_conf" <<-END
		exports = ({ name = "default"; size = "$export_size"; inodes = 20;
			quotas = ( { user = 1234; inodes = 10; } ); });
	END
	start_server
	mount_rmem
	touch "$mnt"/{1..9}
	chown 1234 "$mnt"/{1..9}
	answers 1 warning "$socket"
	[ "$output" = "$(grep -F 'user 1234 has 90 % of its quota' <<<"$output")" ]
	touch "$mnt"/{10..19}
	answers 2 critical "$socket"
	[[ $output == *"export default: 100 % of its 20 inodes are in use"*"inodes in server.conf: rmemfsctl reload"* ]]
	# The remedy is true, and told.
	sed -i 's/inodes = 20;/inodes = 40;/' "$server_conf"
	keyed_conf
	rmemfsctl reload "$socket"
	grep -F "export 'default': inodes: 20 -> 40" "$dir/server.log"
	run rmemfsctl health "$socket"
	[[ $output != *"inodes are in use"* ]]
	rm "$mnt"/*
	until_true 10 says "$socket"
	answers 1 warning "$socket" --snapshot 1
	[[ $output == "warning: export default: this run of the server has made no snapshot of it"* ]]
	rmemfsctl snapshot default "$dir/snapshot" "$socket"
	answers 0 ok "$socket" --snapshot 1
}

@test "a server that is stopped, and one that is gone, are found from both sides" {
	start_server
	mount_rmem -o peer_timeout=60
	suspend "$server_pid"
	run -2 rmemfsctl health "$socket"
	[[ $output == "critical: server $socket: no answer; cause: the server does not answer"* ]]
	until_true 20 is_silent
	kill -CONT "$server_pid"
	until_true 20 says "$mnt"
	kill_server
	answers 2 critical "$socket"
	run -1 rmemfsctl health "$mnt"
	[[ $output == "warning: $mnt: no connection to its server for "* ]]
	start_server
	until_true 20 says "$mnt"
}

# Under SCHED_IDLE, on a CPU that another program has.
@test "a server without CPU says so, and so do status and health, and nobody else is blamed" {
	local hog
	start_server
	mount_rmem
	taskset -a -c -p 0 "$server_pid"
	chrt --idle --all-tasks --pid 0 "$server_pid"
	taskset -c 0 bash -c 'while :; do :; done' 3>&- &
	hog=$!
	until_true 60 lacks_cpu || { kill "$hog"; false; }
	until_true 30 grep -q 'warning: this process waited [0-9]* % of the last [0-9]* s for a CPU' "$dir/server.log" ||
		{ kill "$hog"; false; }
	kill "$hog"
	jq -e '[.findings[] | select(.verdict != "note")] | length == 1' "$dir/health"
	rmemfsctl status "$socket" | grep -E '^cpu: it waited [0-9]+ % of the last [0-9]+ s for a CPU'
	chrt --other --all-tasks --pid 0 "$server_pid"
	until_true 60 has_cpu
}

has_cpu() {
	[ "$(status_of .cpu.starved)" = false ] && says "$socket"
}

lacks_cpu() {
	rmemfsctl health "$socket" --json >"$dir/health"
	[ "$(status_of .cpu.starved)" = true ] && jq -e '.findings[0] | .check == "cpu" and .verdict == "warning"' "$dir/health"
}

@test "a daemon that stands still is critical, and a user without rights is told nothing" {
	start_server
	mount_rmem
	suspend "$daemon_pid"
	run -2 rmemfsctl health "$mnt"
	[[ $output == "critical: $mnt: no answer from its daemon; cause: its daemon does not answer in time"* ]]
	kill -CONT "$daemon_pid"
	until_true 20 says "$mnt"
	answers_nobody() {
		run -3 "${nobody[@]}" "$bin/rmemfsctl" health "$1"
		[[ $output == "unknown: $2; cause: "* ]]
	}
	answers_nobody "$mnt" "$mnt: this user may not ask its daemon"
	answers_nobody "$socket" "server $socket: it can't be asked"
}

# A key stands where none belongs, and one section hangs: a folder of PATH has a program that sleeps.
@test "a report has all sections and no key, and a section that fails says so" {
	start_server
	mount_rmem
	mkdir "$dir/path"
	rmemfsctl keygen web "$dir/web.key" 2>/dev/null
	secret=$(cut -d : -f 3 "$dir/web.key")
	printf '#!/bin/bash\necho "route %s"; cat %s; exit 7\n' "$secret" "$dir/web.key" >"$dir/path/ip"
	printf '#!/bin/bash\nyes long\n' >"$dir/path/rdma"
	chmod +x "$dir/path"/*
	PATH=$dir/path:$PATH run -0 rmemfsctl report "$dir/report"
	[ "$output" = "$dir/report is written: read it before you send it to anybody" ]
	[ "$(stat -c %a "$dir/report")" = 600 ]
	run ! grep -F -e "$secret" "$dir/report"
	grep -c '^RMEMFS-KEY-x*$' "$dir/report"
	grep -qx -- '---- ended with status 7' "$dir/report"
	grep -qx -- '---- longer than 256 KiB: the rest is missing' "$dir/report"
	grep -qx "rmemfs-server $(rmemfsctl --version | cut -d ' ' -f 2-)" "$dir/report"
	grep -q "^$mnt  " "$dir/report"
	grep -q '^failure\|^warning\|^ok  ' "$dir/report"
	[ "$(tail -n 1 "$dir/report")" = "==== end" ]
	run -1 rmemfsctl report "$dir/report"
	[[ $output == *"$dir/report is there already, and stays as it is: name a new file" ]]
	run -1 rmemfsctl report "$mnt/report"
	[[ $output == *"$mnt/report is on a mount of rmemfs, and the report must not wait for that"* ]]
}

# Its second is the time between two samples.
@test "top shows the operations of a second" {
	start_server
	mount_rmem -o cache=none,ack=remote
	touch "$mnt/file"
	until [ -e "$dir/end" ]; do
		dd if=/dev/zero of="$mnt/file" bs=64K count=1 conv=notrunc oflag=direct status=none
	done 3>&- &
	local writer=$!
	rmemfsctl top >"$dir/table" 3>&- &
	local table=$!
	rmemfsctl top --json >"$dir/top"
	wait "$table"
	[ "$(wc -l <"$dir/top")" -eq 1 ]
	jq -e --arg mnt "$mnt" '.interval_ms >= 1000 and any(.mounts[]; .mountpoint == $mnt and
		.operations > 0 and .write_bytes >= 65536 and .p50_ns > 0 and .p50_ns <= .p99_ns)' "$dir/top"
	touch "$dir/end"
	wait "$writer"
	grep -E '^mount +state +oldest +ops/s +read/s +write/s +p50 +p99$' "$dir/table"
	run ! grep -q $'\e' "$dir/table"
	grep -q "^$mnt " "$dir/table"
	# A terminal of 80 columns has the end of the place.
	script -qec "stty rows 40 cols 80; rmemfsctl top --once" /dev/null </dev/null >"$dir/screen"
	grep -qF -e "..${mnt: -10} " "$dir/screen"
}
