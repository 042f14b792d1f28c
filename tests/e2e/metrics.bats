#!/usr/bin/env bats
# metrics.bats - rmemfs-metrics: what it serves, to whom, and when a mount or the server is away.

bats_require_minimum_version 1.5.0
load helpers
load mounts

metrics_pid=''

# shellcheck disable=SC2034 # what mounts.bash takes
setup() {
	setup_rmem
	mounts=()
}

teardown() {
	[ -z "$server_pid" ] || kill -CONT "$server_pid"
	[ -z "$daemon_pid" ] || kill -CONT "$daemon_pid"
	end_mounts
}

scrape() {
	rmemfs-metrics --once --server "$socket" "$@"
}

this_mount() {
	mountpoint -d "$mnt" | cut -d : -f 2
}

# value METRIC [LABELS]: of this mount's sample, or of one without a mount.
value() {
	awk -v want="$1{mount=\"$(this_mount)\"${2:+,$2}}" '$1 == want { print $2 }' "$dir/metrics"
}

# The rules of OpenMetrics that this text could break: each family once, with all of its samples behind it,
# counters that end in _total, cumulative buckets up to +Inf, and the end.
well_formed() {
	awk '
		function bad(why) { print FILENAME ":" NR ": " why ": " $0; failed = 1 }
		ended { bad("behind # EOF") }
		/^# TYPE / { if (seen[$3]++) bad("a family twice"); family = $3; type = $4; next }
		/^# HELP / { if ($3 != family) bad("help of another family"); if (NF < 4) bad("no help"); next }
		/^# EOF$/ { ended = 1; next }
		!/^[a-z_]+(\{([a-z_]+="([^"\\]|\\.)*",?)*\})? [-+0-9.e]+$/ { bad("no sample"); next }
		{
			sample = substr($0, 1, length($0) - length($NF) - 1) # labels may have blanks
			name = sample; sub(/\{.*/, "", name)
			suffix = substr(name, length(family) + 1)
			if (substr(name, 1, length(family)) != family) bad("a sample of another family")
			if (type == "counter" && suffix != "_total") bad("a counter without _total")
			if (type == "gauge" && suffix != "") bad("a gauge with a suffix")
			if (type == "histogram" && suffix == "_bucket") {
				key = sample; sub(/,le=.*/, "", key)
				if (key == last && $NF < below) bad("a bucket smaller than the one before")
				last = key; below = $NF
				if (sample ~ /le="\+Inf"/) inf[key] = $NF
			}
			if (type == "histogram" && suffix == "_count") {
				key = sample; sub(/_count/, "_bucket", key); sub(/}$/, "", key)
				if (inf[key] != $NF) bad("a count that is not the last bucket")
			}
		}
		END { if (!ended) { print "no # EOF"; failed = 1 } exit failed }' "$1"
}

@test "metrics are well-formed, and say what rmemfsctl says" {
	start_server
	mount_rmem -o cache=none,ack=remote
	dd if=/dev/zero of="$mnt/a" bs=4096 count=10 oflag=direct status=none
	run ! mkdir "$mnt/a" 2>/dev/null
	scrape >"$dir/metrics"
	well_formed "$dir/metrics"
	[ "$(value rmemfs_mount_up)" = 1 ]
	[ "$(value rmemfs_mount_state 'rmemfs_mount_state="connected"')" = 1 ]
	[ "$(value rmemfs_mount_state 'rmemfs_mount_state="silent"')" = 0 ]
	[ "$(value rmemfs_mount_operation_bytes_total 'operation="write"')" = 40960 ]
	[ "$(value rmemfs_mount_operation_seconds_count 'operation="write"')" = 10 ]
	for name in create getattr lookup; do
		rmemfsctl status "$mnt" --json | jq -e ".operations.$name == null or .operations.$name.count == $(value rmemfs_mount_operations_total "operation=\"$name\"" | grep . || echo null)"
	done
	grep -qx 'rmemfs_server_up 1' "$dir/metrics"
	grep -qx "rmemfs_export_bytes{export=\"default\"} $(status_of '.exports[0].bytes')" "$dir/metrics"
	grep -qx 'rmemfs_export_sessions{export="default"} 1' "$dir/metrics"
	grep -qx 'rmemfs_mounts_hidden 0' "$dir/metrics"
	grep -qx "rmemfs_export_metadata_left_bytes{export=\"default\"} $(status_of '.exports[0].metadata.left')" "$dir/metrics"
}

@test "names of places, clients and keys are told with --details alone" {
	start_server
	mnt="$dir/a \"strange\" \\place" mount_rmem
	scrape >"$dir/metrics"
	run ! grep -F -e "$dir" -e "$(mount_source)" -e "${key_file:-no key}" -e test- "$dir/metrics"
	scrape --details >"$dir/metrics"
	well_formed "$dir/metrics"
	grep -F 'mountpoint="'"$dir"'/a \"strange\" \\place",source="'"$(mount_source)"'"' "$dir/metrics"
	umount "$dir/a \"strange\" \\place"
	exit_status "$daemon_pid" 10
	daemon_pid=''
	run -1 rmemfs-metrics --details
	[[ $output == *"option '--details': tells where mounts are: name the address or a unix:/PATH by --listen" ]]
}

@test "a place as long as there can be, a bind mount of it, and other users' mounts" {
	local long=$dir part
	start_server
	part=$(printf '\\%.0s' {1..200})
	until [ ${#long} -gt 3600 ]; do long+=/$part; done
	mkdir -p "$long" "$dir/bound"
	mnt=$long mount_rmem
	mount --bind "$long" "$dir/bound"
	scrape --details >"$dir/metrics"
	well_formed "$dir/metrics"
	[ "$(grep -c '^rmemfs_mount_up{.*} 1$' "$dir/metrics")" -ge 1 ]
	[ "$(cut -d ' ' -f 1 "$dir/metrics" | grep -v '^#' | sort | uniq -d | wc -l)" -eq 0 ]
	umount "$dir/bound"
	umount "$long"
	exit_status "$daemon_pid" 10
	daemon_pid=''
}

@test "a daemon that stands still and a server that is gone are down, and the rest is told" {
	start_server
	mount_rmem
	suspend "$daemon_pid"
	scrape >"$dir/metrics"
	well_formed "$dir/metrics"
	[ "$(value rmemfs_mount_up)" = 0 ]
	[ -z "$(value rmemfs_mount_seconds)" ]
	grep -qx 'rmemfs_server_up 1' "$dir/metrics"
	kill -CONT "$daemon_pid"
	kill_server
	scrape >"$dir/metrics"
	well_formed "$dir/metrics"
	[ "$(value rmemfs_mount_up)" = 1 ]
	grep -qx 'rmemfs_server_up 0' "$dir/metrics"
	run ! grep rmemfs_export_ "$dir/metrics"
	start_server
}

listens() {
	curl -s "$@" >/dev/null
}

@test "it answers over HTTP, to GET of /metrics alone, and at a Unix socket for its user" {
	start_server
	mount_rmem
	local http
	http=$(free_port)
	rmemfs-metrics --listen "127.0.0.1:$http" --server "$socket" 2>"$dir/http.log" 3>&- &
	metrics_pid=$!
	until_true 10 listens "http://127.0.0.1:$http/"
	curl -s -D "$dir/head" "http://127.0.0.1:$http/metrics" >"$dir/metrics"
	well_formed "$dir/metrics"
	grep -qi '^Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8' "$dir/head"
	[ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$http/other")" = 404 ]
	[ "$(curl -s -o /dev/null -w '%{http_code}' -X POST -d x "http://127.0.0.1:$http/metrics")" = 405 ]
	run -1 rmemfs-metrics --listen "127.0.0.1:$http"
	[[ $output == *"127.0.0.1:$http: Address already in use: name a free port of an address of this machine" ]]
	kill -TERM "$metrics_pid"
	exit_status "$metrics_pid" 10
	rmemfs-metrics --listen "unix:$dir/web" --server "$socket" 2>"$dir/unix.log" 3>&- &
	metrics_pid=$!
	until_true 10 listens --unix-socket "$dir/web" http://here/
	[ "$(stat -c %a "$dir/web")" = 600 ]
	curl -s --unix-socket "$dir/web" http://here/metrics >"$dir/metrics"
	well_formed "$dir/metrics"
	kill -TERM "$metrics_pid"
	exit_status "$metrics_pid" 10
	[ ! -e "$dir/web" ]
	run -1 rmemfs-metrics --listen unix:web
	[[ $output == *"unix:web: must be a path from /, of 107 bytes at most" ]]
	run -1 rmemfs-metrics --listen nowhere
	[[ $output == *"nowhere: must be HOST:PORT, [ADDRESS]:PORT or unix:/PATH" ]]
	run -1 rmemfs-metrics --once too
	[[ $output == *"too: there are no operands; see --help" ]]
}

# Mounts that the user may not ask about are left out: they are not down.
@test "a user without rights sees no mount of root's, and no server" {
	start_server
	mount_rmem
	"${nobody[@]}" "$bin/rmemfs-metrics" --once --server "$socket" >"$dir/metrics"
	well_formed "$dir/metrics"
	[ -z "$(value rmemfs_mount_up)" ]
	grep -qE '^rmemfs_mounts_hidden [1-9]' "$dir/metrics"
	grep -qx 'rmemfs_server_up 0' "$dir/metrics"
}

# shares_so SHARES BEGUN ENDED: what is told of mount 1, by the metrics and for people.
shares_so() {
	scrape >"$dir/metrics"
	well_formed "$dir/metrics"
	rmemfsctl status "$dir/1" >"$dir/status"
	echo "sharing: $(mnt=$dir/1 value rmemfs_mount_sharing)"
	grep -A 2 ^others "$dir/status"
	[ "$(mnt=$dir/1 value rmemfs_mount_sharing)" = "$1" ]
	[ "$(mnt=$dir/1 value rmemfs_mount_sharing_begun_total)" = "$2" ]
	[ "$(mnt=$dir/1 value rmemfs_mount_sharing_ended_total)" = "$3" ]
	[ "$(mnt=$dir/1 value rmemfs_mount_keep_out_files)" = 0 ]
	if [ "$2" -gt 0 ]; then
		grep -qx " *it has begun to share $2 times, and ended $3 times" "$dir/status"
	else
		run ! grep 'begun to share' "$dir/status"
	fi
}

# sharers_of_export N SHARING
sharers_of_export() {
	grep -qx "rmemfs_export_sessions{export=\"default\"} $1" "$dir/metrics"
	grep -qx "rmemfs_export_sharing_sessions{export=\"default\"} $2" "$dir/metrics"
	grep -qx 'rmemfs_export_keep_out_sessions{export="default"} 0' "$dir/metrics"
}

@test "whether a mount shares its export is told while another one comes and goes, and how often it began and ended" {
	local n
	use_lease 1
	start_server
	come 1
	shares_so 0 0 0
	grep -qx 'others      no other mount writes: it is alone' "$dir/status"
	sharers_of_export 1 0
	for n in 1 2; do
		come 2
		shares_so 1 "$n" $((n - 1))
		grep -q '^others      other mounts share the export' "$dir/status"
		[ "$(mnt=$dir/2 value rmemfs_mount_sharing)" = 1 ]
		[ "$(mnt=$dir/2 value rmemfs_mount_sharing_begun_total)" = 0 ]
		sharers_of_export 2 2
		end_mount 2
		until_true 30 is_alone 1
		shares_so 0 "$n" "$n"
		sharers_of_export 1 0
	done
	nobody_was_late
}
