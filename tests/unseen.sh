#!/bin/bash
# unseen.sh [FILE...] - finds conditions of tests that can fail unseen: a command behind !, and all but the last of a
# chain of &&, where more follows in the function. The shell goes on after such a failure (bash(1), -e), and the
# function returns what comes last. Of no FILE: of all bats files and their helpers.
set -euo pipefail

cd "$(dirname "$0")/.."
[ $# -gt 0 ] || mapfile -t files < <(find tests -name '*.bats' -o -name '*.bash' | sort)
[ $# -eq 0 ] || files=("$@")

awk '
function trimmed(line) { sub(/^[ \t]+/, "", line); sub(/[ \t]+$/, "", line); return line }
# A chain is told when the line behind it is known.
function tell(next_line) {
	if (chain != "" && next_line != "}") {
		print where ": " chain
		found = 1
	}
	chain = ""
}
FNR == 1 { tell("}"); whole = "" }
{
	line = trimmed($0)
	if (whole == "" && (line == "" || line ~ /^#/))
		next
	if (whole == "") {
		tell(line)
		begin = FILENAME ":" FNR
	}
	whole = whole " " line
	if (line ~ /(&&|\|\||\\)$/)
		next
	whole = trimmed(whole)
	# An odd number of quotes: the end of a text for another shell.
	last = odd = whole
	sub(/.*&& */, "", last)
	if (whole ~ /^! / && whole !~ /\|\||&&/ && gsub(/'\''/, "", odd) % 2 == 0) {
		chain = whole
		where = begin
	} else if (whole ~ /^(!|\[\[?|grep|cmp|test) / && whole ~ /&&/ && whole !~ /\|\|/ &&
	    gsub(/'\''/, "", odd) % 2 == 0 && last ~ /^(!|\[\[?|grep|cmp|diff|test|getfattr|run) /) {
		chain = whole
		where = begin
	}
	whole = ""
}
END { tell("}"); exit found }' "${files[@]}"
