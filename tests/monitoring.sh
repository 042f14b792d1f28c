#!/bin/bash
# shellcheck disable=SC2016,SC2013 # programs of sed and awk; options have no blanks
# monitoring.sh [BUILD] - checks what is in config/monitoring/: by promtool (package prometheus), and against the
# metrics that there are; TAP on standard output. BUILD is a build folder with the programs in it (build/dev).
set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=tests/tap.bash
. tests/tap.bash
bin=${1:-build/dev}/bin
folder=config/monitoring
rules=$folder/rmemfs.rules.yml
dashboard=$folder/rmemfs.dashboard.json
work=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-monitoring.XXXXXX")
trap 'rm -rf "$work"' EXIT

complain() {
	echo "$*"
	return 1
}

# ---- what is written where -----------------------------------------------------------------------

# The queries of the rules, one a line. In the file they may go on for several lines.
rule_queries() {
	awk '
		/^        [a-z]+:/ { if (on) print query; on = 0 }
		/^        expr:/ { on = 1; query = ""; sub(/^ *expr:( >-)?/, "") }
		on { sub(/^ +/, ""); query = query " " $0 }' "$rules"
}

# Those of the dashboard, with a time for what only Grafana knows.
dashboard_queries() {
	jq -r '(.panels[].targets[]?.expr), (.templating.list[].definition // empty)' "$dashboard" |
		sed -E 's/^label_values\((.*), [a-z]+\)$/\1/; s/\$__rate_interval/5m/g'
}

# Lines of "ALERT SEVERITY".
rule_alerts() {
	awk '/^      - alert: / { alert = $3 } /^          severity: / { print alert, $2 }' "$rules" | sort
}

# ---- the rules -----------------------------------------------------------------------------------

check_rules() {
	promtool check rules "$rules"
}

test_rules() {
	promtool test rules tests/monitoring/rmemfs.rules.test.yml
}

# By the YAML anchors, rules of one alert may share their annotations.
complete_rules() {
	awk '
		function end() {
			for (i in wanted) if (alert != "" && !(wanted[i] in has)) {
				print alert " has no " wanted[i]; failed = 1
			}
			delete has
		}
		BEGIN { split("expr severity summary description runbook", wanted) }
		/^      - alert: / { end(); alert = $3 }
		/^        annotations: \*/ { has["summary"] = has["description"] = has["runbook"] = substr($2, 2) in anchors }
		/^        annotations: &/ { anchors[substr($2, 2)] }
		/^        (  )?[a-z]+:/ { sub(/:.*/, "", $1); has[$1] }
		/^          severity:/ && $2 !~ /^(critical|warning|info)$/ { print alert " has severity " $2; failed = 1 }
		END { end(); exit failed }' "$rules"
}

tested_alerts() {
	grep -oE 'alertname="[A-Za-z]+",severity="[a-z]+"' tests/monitoring/rmemfs.rules.test.yml |
		sed -E 's/alertname="(.*)",severity="(.*)"/\1 \2/' | sort -u >"$work/tested"
	diff <(rule_alerts) "$work/tested"
}

# The table of README.md: one row for each alert and severity.
documented_alerts() {
	sed -nE 's/^\| `(Rmemfs[A-Za-z]+)` \| ([a-z]+) \|.*/\1 \2/p' "$folder/README.md" | sort >"$work/documented"
	diff <(rule_alerts) "$work/documented"
}

# Commands between backquotes in runbooks are commands of rmemfsctl, with options that they have.
commands_in_runbooks() {
	local command option status=0
	tr -s ' \n' ' ' <"$rules" | grep -oE '`rmemfsctl [^`]*`' | tr -d '`' | sort -u >"$work/commands"
	[ -s "$work/commands" ] || complain "no commands were found" || return
	while read -r _ command option; do
		"$bin/rmemfsctl" "$command" --help >"$work/help" 2>&1 && grep -q "^Usage: rmemfsctl $command" "$work/help" ||
			complain "there is no rmemfsctl $command" || status=1
		for option in $(grep -oE -- '--[a-z]+' <<<"$option"); do
			grep -qe "$option" "$work/help" || complain "rmemfsctl $command has no $option" || status=1
		done
	done <"$work/commands"
	return "$status"
}

# ---- metrics -------------------------------------------------------------------------------------

# Lines of "METRIC", "METRIC LABEL" and "METRIC LABEL VALUE" of all that is served.
served() {
	"$bin/docs_metrics" | grep -v '^#' | awk '
		{ name = $1; sub(/\{.*/, "", name); print name; rest = $0 }
		{ while (match(rest, /[a-z_]+="[^"]*"/)) {
			label = value = substr(rest, RSTART, RLENGTH); rest = substr(rest, RSTART + RLENGTH)
			sub(/=.*/, "", label); sub(/^[a-z_]*="/, "", value); sub(/"$/, "", value)
			print name, label; print name, label, value } }' | sort -u
}

# The same of the queries in standard input. A value may be several, as in "read|write".
used() {
	awk '
		function put(name, rest,   label, value, i, n, values) {
			print name
			while (match(rest, /[a-z_]+(=|!=|=~|!~)"[^"]*"/)) {
				label = value = substr(rest, RSTART, RLENGTH); rest = substr(rest, RSTART + RLENGTH)
				sub(/[=!].*/, "", label); sub(/^[^"]*"/, "", value); sub(/"$/, "", value)
				if (label ~ /^(job|instance)$/) continue
				print name, label
				n = split(value, values, "|")
				for (i = 1; i <= n; i++) if (values[i] !~ /^\$/) print name, label, values[i]
			}
		}
		{
			while (match($0, /(up|ALERTS|rmemfs_[a-z_]+) *\{[^}]*\}/)) {
				selector = substr($0, RSTART, RLENGTH)
				$0 = substr($0, 1, RSTART - 1) " " substr($0, RSTART + RLENGTH)
				name = selector; sub(/ *\{.*/, "", name); put(name, selector)
			}
			gsub(/(by|without|on) *\([^)]*\)/, "")
			while (match($0, /rmemfs_[a-z_]+/)) {
				print substr($0, RSTART, RLENGTH); $0 = substr($0, RSTART + RLENGTH)
			}
		}' | grep -vE '^(up|ALERTS)( |$)' | sort -u
}

# metrics_of QUERIES: each metric, label and value in them is served.
metrics_of() {
	served >"$work/served"
	"$1" | used >"$work/used"
	[ "$(wc -l <"$work/used")" -gt 20 ] || complain "hardly any metrics were found" || return
	comm -23 "$work/used" "$work/served" >"$work/missing"
	[ ! -s "$work/missing" ] || complain "not served: $(paste -sd ';' "$work/missing")"
}

# Labels that queries group by, and that texts name.
labels() {
	{
		rule_queries
		dashboard_queries
	} | grep -oE '(by|without|on) *\([^)]*\)' | grep -oE '[a-z_]+' | grep -vxE 'by|without|on' >"$work/named"
	grep -oE '\$labels\.[a-z_]+' "$rules" | cut -d . -f 2 >>"$work/named"
	jq -r '.panels[].targets[]?.legendFormat' "$dashboard" | grep -oE '\{\{[a-z_]+\}\}' | tr -d '{}' >>"$work/named"
	{
		printf '%s\n' job instance
		served | cut -d ' ' -f 2 -s
	} | sort -u >"$work/labels"
	sort -u "$work/named" | comm -23 - "$work/labels" >"$work/missing"
	[ ! -s "$work/missing" ] || complain "no such labels: $(paste -sd ' ' "$work/missing")"
}

# ---- the dashboard -------------------------------------------------------------------------------

# Grafana 9 has version 37 of the format. Panels have different numbers and don't overlap; all ask the data source
# that is chosen; and each variable is there.
well_formed_dashboard() {
	local variable status=0
	jq -e '
		def cells: .gridPos as $at | range($at.x; $at.x + $at.w) as $x | range($at.y; $at.y + $at.h) as $y | [$x, $y];
		def unique_of(f): [f] | length == (unique | length);
		def must(what; $text): if what then true else error($text) end;
		must(.schemaVersion == 37 and .uid and .title; "version, uid or title") and
		must(.templating.list[0] | .name == "datasource" and .type == "datasource"; "no choice of a data source") and
		must(unique_of(.panels[].id); "numbers of panels") and
		must(unique_of(.panels[] | cells); "panels overlap") and
		must(all(.panels[].gridPos; .x + .w <= 24); "too wide") and
		must(all(.panels[] | select(.type != "row"); .title and .description and (.targets | length > 0)); "an empty panel") and
		must(all(.panels[] | select(.type != "row") | ., .targets[]; .datasource.uid == "${datasource}"); "another data source") and
		must(all(.templating.list[1:][]; .datasource.uid == "${datasource}"); "another data source")' "$dashboard" || return
	for variable in $(grep -oE '\$\{?[a-z]+' "$dashboard" | tr -d '${' | sort -u); do
		jq -e --arg name "$variable" 'any(.templating.list[]; .name == $name)' "$dashboard" >"$work/found" ||
			complain "no variable $variable" || status=1
	done
	return "$status"
}

# Prometheus takes each query as that of a recording rule.
dashboard_syntax() {
	dashboard_queries | jq -R -s '{groups: [{name: "queries", rules:
		[split("\n")[] | select(. != "")] | to_entries | map({record: "query\(.key)", expr: .value})}]}' >"$work/queries.yml"
	promtool check rules "$work/queries.yml"
}

# ---- the configuration ---------------------------------------------------------------------------

# As it is, and with all that it has in comments.
configuration() {
	cp "$folder"/*.yml "$work/"
	promtool check config "$work/prometheus.yml" || return
	touch "$work/password"
	sed -E "s/^#( {2,}[^ ]|[a-z])/\1/; s#password_file: .*#password_file: $work/password#" \
		"$folder/prometheus.yml" >"$work/prometheus.yml"
	grep -qE '^alerting:' "$work/prometheus.yml" || complain "nothing is in comments" || return
	promtool check config "$work/prometheus.yml"
}

[ -x "$bin/docs_metrics" ] || {
	echo "$bin has no programs: cmake --build" >&2
	exit 1
}
check "alerts: promtool check" check_rules
check "alerts: promtool test" test_rules
check "alerts: severity, texts and runbook" complete_rules
check "alerts: each is tested" tested_alerts
check "alerts: each is in the README" documented_alerts
check "alerts: commands in runbooks" commands_in_runbooks
check "alerts: metrics, labels and values" metrics_of rule_queries
check "dashboard: metrics, labels and values" metrics_of dashboard_queries
check "labels that are grouped by or shown" labels
check "dashboard: panels and variables" well_formed_dashboard
check "dashboard: syntax of the queries" dashboard_syntax
check "example of prometheus.yml" configuration
check_end
