#!/usr/bin/env bats
# prometheus.bats - Debian's Prometheus asks rmemfs-metrics, with the files of config/monitoring/.
#
# bats file_tags=once,unsanitized

bats_require_minimum_version 1.5.0
load helpers

metrics_pid='' prometheus_pid=''

setup() {
	# shellcheck disable=SC2034 # the helpers take it
	export_size=32MiB
	setup_rmem
	start_server
	mount_rmem
}

teardown() {
	local pid
	for pid in $prometheus_pid $metrics_pid; do
		kill -TERM "$pid"
		exit_status "$pid" 20
	done
	teardown_rmem
}

listens() {
	curl -s -o /dev/null "$1"
}

start_metrics() {
	metrics_port=$(free_port)
	rmemfs-metrics --listen "127.0.0.1:$metrics_port" --server "$socket" 2>"$dir/metrics.log" 3>&- &
	metrics_pid=$!
	until_true 10 listens "http://127.0.0.1:$metrics_port/metrics"
}

# The example with this test's addresses and four scrapes a second, and the rules without their waiting times.
start_prometheus() {
	mkdir "$dir/prometheus"
	sed -E "s/127.0.0.1:9470/127.0.0.1:$metrics_port/; s/_interval: .*/_interval: 250ms/" \
		"$repository/config/monitoring/prometheus.yml" >"$dir/prometheus/prometheus.yml"
	sed -E 's/^( +for:) .*/\1 0s/' "$repository/config/monitoring/rmemfs.rules.yml" >"$dir/prometheus/rmemfs.rules.yml"
	api=127.0.0.1:$(free_port)
	prometheus --config.file="$dir/prometheus/prometheus.yml" --storage.tsdb.path="$dir/prometheus/data" \
		--web.listen-address="$api" 2>"$dir/prometheus.log" 3>&- &
	prometheus_pid=$!
	api=http://$api/api/v1
	until_true 30 listens "$api/status/buildinfo"
}

ask() {
	curl -s "$api/$1"
}

# alerts: lines of "ALERT SEVERITY EXPORT" of those that fire.
alerts() {
	ask alerts | jq -r '.data.alerts[] | select(.state == "firing") | .labels | "\(.alertname) \(.severity) \(.export)"' | sort
}

fires() {
	alerts | grep -qx "$1"
}

fires_not() {
	ask alerts | jq -e '.status == "success"' && ! fires "$1"
}

metrics_there() {
	ask 'label/__name__/values' | jq -r '.data[]' | sort >"$dir/there"
	grep -oE 'rmemfs_[a-z_]+' "$repository/config/monitoring/rmemfs.rules.yml" | sort -u | comm -23 - "$dir/there" >"$dir/missing"
	[ ! -s "$dir/missing" ]
}

@test "Prometheus has all metrics that the rules ask for, and alerts while an export is nearly full" {
	start_metrics
	start_prometheus
	until_true 20 metrics_there || die "not there: $(cat "$dir/missing")"
	[ "$(ask targets | jq -r '.data.activeTargets[] | .labels.job + " " + .health')" = "rmemfs up" ]
	[ "$(ask rules | jq '[.data.groups[].rules[] | select(.health != "ok")] | length')" = 0 ]
	[ "$(alerts)" = "" ]
	dd if=/dev/zero of="$mnt/filler" bs=1M count=27 conv=fsync status=none
	until_true 20 fires "RmemfsMemoryFilling info default"
	[ "$(alerts)" = "RmemfsMemoryFilling info default" ]
	ask alerts | jq -r '.data.alerts[0].annotations.summary' | grep -x 'export default at this-machine: 84.[0-9]*% of its memory is used'
	ask alerts | jq -r '.data.alerts[0].annotations.runbook' | grep -F '`rmemfsctl status`'
	rm "$mnt/filler"
	until_true 20 fires_not "RmemfsMemoryFilling .*"
}
