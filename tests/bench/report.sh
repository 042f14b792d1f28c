#!/bin/bash
# report.sh RESULTS TARGETS - makes measurements readable: from RESULTS/raw.csv
# (work,place,x,rep,value,unit; a line per measurement) come
#   summary.csv, results.json   medians, lowest and highest of each work at each place
#   report.md                   the same as a table, and the verdicts
#   verdicts.txt                a line for each of the targets: its ratio, and whether it is met; printed
#   *.svg, *.png                plots, where gnuplot is installed
# Speed is no test: the exit status says only whether the report could be made.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
results=${1:?usage: report.sh RESULTS TARGETS} targets=${2:?usage: report.sh RESULTS TARGETS}

to_json() {
	jq -R -s 'split("\n") | .[1:] | map(select(length > 0) | split(",") | {
		work: .[0], x: (if .[1] == "" then null else (.[1] | tonumber) end), place: .[2], unit: .[3],
		n: (.[4] | tonumber), median: (.[5] | tonumber), min: (.[6] | tonumber),
		max: (.[7] | tonumber), values: (.[8] | split(" ") | map(tonumber))})' "$results/summary.csv"
}

# The best of a rate is its highest value, of a cost its lowest.
judge() {
	awk -F, '
		function trim(s) { gsub(/^ +| +$/, "", s); return s }
		function of(name, place) { return name SUBSEP place }
		FNR == NR {
			if (FNR == 1) next
			k = of($1 ($2 == "" ? "" : "@" $2), $3)
			median[k] = $6; lowest[k] = $7; highest[k] = $8; values[k] = $9
			next
		}
		/^#/ || /^ *$/ { next }
		{
			if (split($0, t, "|") != 9) { print "bad target: " $0 > "/dev/stderr"; exit 1 }
			for (i = 1; i <= 9; i++) t[i] = trim(t[i])
			if (t[2] !~ /^(median|best)$/ || t[7] !~ /^(least|most)$/) {
				print "bad target: " $0 > "/dev/stderr"; exit 1
			}
			a = of(t[3], t[4]); b = of(t[5], t[6])
			wants = "at " t[7] " " t[8] ", aim " t[9]
			if (!(a in median) || !(b in median)) {
				printf "%-12s %6s  (%s)  %s\n", "not measured", "", wants, t[1]
				next
			}
			if (t[2] == "median") { x = median[a]; y = median[b] }
			else if (t[7] == "least") { x = highest[a]; y = highest[b] }
			else { x = lowest[a]; y = lowest[b] }
			if (y == 0) { printf "%-12s %6s  (%s)  %s\n", "not measured", "", wants, t[1]; next }
			r = x / y
			sign = t[7] == "least" ? 1 : -1
			word = sign * r < sign * t[8] ? "not met" : sign * r < sign * t[9] ? "met" : "aim reached"
			printf "%-12s %6.2f  (%s)  %s  [%s] / [%s]\n", word, r, wants, t[1], values[a], values[b]
		}' "$results/summary.csv" FS='\n' "$targets"
}

# The plots have the points of series.
table() {
	awk -F, '
		function human(v, unit) {
			if (unit == "B/s") return sprintf("%.0f MB/s", v / 1e6)
			if (unit == "B") return sprintf("%.0f MiB", v / 2^20)
			return sprintf(v < 10 ? "%.3g %s" : "%.0f %s", v, unit)
		}
		NR == 1 || $2 != "" { next }
		!($1 in known) { known[$1] = 1; works[++nworks] = $1 }
		!($3 in seen) { seen[$3] = 1; places[++nplaces] = $3 }
		{ cell[$1, $3] = human($6, $4) " (" human($7, $4) " to " human($8, $4) ")" }
		END {
			line = "| |"; rule = "| --- |"
			for (p = 1; p <= nplaces; p++) { line = line " " places[p] " |"; rule = rule " --- |" }
			print line; print rule
			for (w = 1; w <= nworks; w++) {
				line = "| " works[w] " |"
				for (p = 1; p <= nplaces; p++) line = line " " cell[works[w], places[p]] " |"
				print line
			}
		}' "$results/summary.csv"
}

report() {
	echo "# Benchmark"
	echo
	cat "$results/machine.txt" 2>/dev/null || :
	echo
	echo "## Verdicts"
	echo
	echo "Ratios of what was measured in this run, and the values they come from."
	echo
	sed 's/^/    /' "$results/verdicts.txt"
	echo
	echo "## Medians (lowest to highest)"
	echo
	table
	local plot
	for plot in "$results"/*.svg; do
		[ -e "$plot" ] || continue
		echo
		echo "![${plot##*/}](${plot##*/})"
	done
}

[ -s "$results/raw.csv" ] || {
	echo "report.sh: $results/raw.csv is missing or empty" >&2
	exit 1
}
"$here/summary.sh" "$results" >"$results/summary.csv"
to_json >"$results/results.json"
judge >"$results/verdicts.txt"
if command -v gnuplot >/dev/null; then
	"$here/plots.sh" "$results"
else
	echo "report.sh: gnuplot is not installed: no plots" >&2
fi
report >"$results/report.md"
cat "$results/verdicts.txt"
