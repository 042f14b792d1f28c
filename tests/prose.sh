#!/bin/bash
# prose.sh [FILE...] - holds sentences to plain English: in documents (*.md), in manual pages, and in
# the comments of C and scripts. It finds a sentence of more than 40 words, one that opens with "who",
# "what", "which", "whose" or the like and is no question, and "he", "him" or "his".
#
# With files it lists what it finds in them, and fails if that is anything. Without, it holds the whole
# tree against the numbers below, which only fall: more is an error, and less is one, too, until the
# number here is lowered. prose_selftest.sh shows that it finds each kind.
set -euo pipefail

cd "$(dirname "$0")/.."

# So many of them may still be there.
in_documents=0
in_pages=0
in_comments=0

max_words=40

# Below are filters: each turns files of one kind into lines of "FILE<tab>LINE<tab>TEXT". A line
# without a text ends a sentence.

# Headings, tables, code and HTML comments are no sentences.
documents() {
	awk '
		function put(text) { print FILENAME "\t" FNR "\t" text }
		FNR == 1 { code = 0; html = 0 }
		/^[ \t]*(```|~~~)/ { code = !code; put(""); next }
		code { next }
		/<!--/ { html = 1 }
		html { put(""); if (/-->/) html = 0; next }
		/^[ \t]*$/ || /^#/ || /^[ \t]*\|/ || /^[ \t]*!\[/ || /^---/ { put(""); blank = 1; next }
		/^(    |\t)/ && blank { next }
		{ blank = 0; text = $0 }
		/^[ \t]*([-*+]|[0-9]+[.)]) / { put(""); sub(/^[ \t]*([-*+]|[0-9]+[.)]) /, "", text) }
		{
			gsub(/`[^`]*`/, "CODE", text)
			gsub(/\]\([^)]*\)/, "", text)
			gsub(/[*[>]|\]/, "", text)
			put(text)
		}
		/  $/ { put("") }' "$@"
}

# Displays, the synopsis and examples are text to type, not sentences.
pages() {
	awk '
		function put(text) { print FILENAME "\t" FNR "\t" text }
		BEGIN {
			n = split("Nm Fl Ar Cm Ic Pa Sy Em Li Ql Dq Sq Pq Bq Op Ns No Va Ev Ad Dv Er Fn Lk Mt Sx Qq " \
				"Brq Bro Brc Po Pc Do Dc Bo Bc Oo Oc Qo Qc So Sc Aq Ao Ac Vt Fa Ft In Tn Ux Bx Xo Xc", names, " ")
			for (i = 1; i <= n; i++) inner[names[i]] = 1
			n = split("Fl Cm Ic Pa Li Ql Va Ev Dv Er Fn Ar", names, " ")
			for (i = 1; i <= n; i++) code[names[i]] = 1
		}
		# Code is one word, as in documents.
		function words(from,   i, text, is_code, told) {
			text = ""
			is_code = substr($1, 2) in code
			told = 0
			for (i = from; i <= NF; i++) {
				if ($i in inner) {
					is_code = $i in code
					told = 0
				} else if ($i ~ /^[.,;:?!)]+$/) {
					if (!is_code || i == NF) text = text $i
				} else if (!is_code || !told++) {
					text = text " " (is_code ? "CODE" : $i)
				}
			}
			gsub(/"/, "", text)
			return text
		}
		FNR == 1 { shown = 0; display = 0; name = FILENAME; sub(/.*\//, "", name); sub(/\.[0-9]$/, "", name) }
		/^\.\\"/ { next }
		/^\.(Sh|Ss) / { shown = /EXAMPLES|SYNOPSIS/; put(""); next }
		/^\.Bd / { display = 1 }
		/^\.Ed/ { display = 0 }
		shown || display || /^\.(Pp|Bl|El|It|Bd|Ed|D1|Dl|Dd|Dt|Os|Sm|Nd|TH|PP|TP|br|sp)/ { put(""); next }
		/^\.Nm/ && NF < 3 && (NF == 1 || $2 ~ /^[.,;:]$/) { put(name (NF == 1 ? "" : $2)); next }
		/^\.Xr / { put($2 "(" $3 ")" words(4)); next }
		/^\.[A-Z][a-z]/ {
			put(words(2))
			next
		}
		/^[.'\'']/ { next }
		{ text = $0; gsub(/\\&|\\f[A-Z]/, "", text); put(text) }' "$@"
}

# Columns and what is set in after an empty line are tables and drawings, not sentences.
c_comments() {
	awk '
		function put(text) { print FILENAME "\t" FNR "\t" text }
		function line(text) {
			sub(/^[ \t]*\*?/, "", text)
			if (text ~ /^[ \t]*$/ || text ~ /^ ?----/) { put(""); blank = 1; return }
			if (text ~ /^ ?[A-Z][A-Z]+  /) blank = 0
			if (blank && text ~ /^    /) { put(""); return }
			blank = 0
			sub(/^ +/, "", text)
			if (text ~ /^[-*] / || text ~ /^[A-Z][A-Z]+  /) put("")
			if (text ~ /[^ .]   /) { put(""); if (text !~ /^[A-Z][A-Z]+  /) return }
			put(text)
		}
		# Where in a line a comment begins, but for what stands in a string.
		function begin(text, mark,   at, from, before) {
			from = 1
			while ((at = index(substr(text, from), mark)) > 0) {
				before = substr(text, 1, from + at - 2)
				gsub(/\\./, "", before)
				gsub(/'\''"'\''/, "", before)
				if (gsub(/"/, "", before) % 2 == 0) return from + at - 1
				from += at + 1
			}
			return 0
		}
		FNR == 1 { inside = 0; slashes = 0 }
		{
			rest = $0
			while (rest != "") {
				if (!inside) {
					block = begin(rest, "/*")
					slash = begin(rest, "//")
					if (slash && (!block || slash < block)) {
						if (!slashes) put("")
						slashes = 2
						line(substr(rest, slash + 2))
						break
					}
					if (!block) break
					put("")
					blank = 0
					inside = 1
					rest = substr(rest, block + 2)
				}
				end = index(rest, "*/")
				line(end ? substr(rest, 1, end - 1) : rest)
				rest = end ? substr(rest, end + 2) : ""
				if (end) { inside = 0; put("") }
				else if (rest == "") break
			}
			if (inside && $0 ~ /^[ \t]*$/) { put(""); blank = 1 }
			if (slashes) slashes--
		}' "$@"
}

script_comments() {
	awk '
		function put(text) { print FILENAME "\t" FNR "\t" text }
		FNR == 1 { blank = 0; put("") }
		/^#!/ || /^[ \t]*# shellcheck / { put(""); next }
		/^[ \t]*#/ {
			text = $0
			sub(/^[ \t]*#+/, "", text)
			if (text ~ /^[ \t-]*$/) { put(""); blank = 1; next }
			if (blank && text ~ /^(    |\t)/ || text ~ /^ ----/ || text ~ /[^ .]   /) { put(""); next }
			blank = 0
			sub(/^[ \t]+/, "", text)
			if (text ~ /^[-*] /) put("")
			put(text)
			next
		}
		{
			put("")
			blank = 0
			at = match($0, /[ \t]# [A-Za-z]/)
			if (!at) next
			before = substr($0, 1, at)
			if (gsub(/"/, "", before) % 2 || gsub(/'\''/, "", before) % 2) next
			put(substr($0, at + 3))
			put("")
		}' "$@"
}

# Sentences of what the filters print: "FILE:LINE: what is wrong: how it begins".
findings() {
	awk -F '\t' -v max="$max_words" '
		function bare(word) {
			word = tolower(word)
			gsub(/[^a-z]/, "", word)
			return word
		}
		function tell(what) { print place ": " what ": " substr(begins, 1, 60) }
		function end(   asks) {
			if (words == 0) { begins = ""; return }
			asks = last ~ /\?/
			if (words > max) tell(words " words")
			if (!asks && (first in opening || (first in before && (second in opening)) ||
					(first == "that" && second == "which")))
				tell("opens with \"" first (first in opening ? "" : " " second) "\"")
			if (pronoun != "") tell("\"" pronoun "\"")
			words = 0
			first = second = last = begins = pronoun = ""
		}
		BEGIN {
			split("who whom whose whoever whomever what whatever which whichever", list, " ")
			for (i in list) opening[list[i]] = 1
			split("of by for to with from in on at against", list2, " ")
			for (i in list2) before[list2[i]] = 1
			split("he him his himself", list3, " ")
			for (i in list3) he[list3[i]] = 1
		}
		$1 != file { end(); file = $1 }
		$3 == "" { end(); next }
		{
			n = split($3, word, /[ \t]+/)
			for (i = 1; i <= n; i++) {
				if (word[i] == "") continue
				if (words == 0) place = $1 ":" $2
				begins = begins (begins == "" ? "" : " ") word[i]
				if (word[i] ~ /[A-Za-z0-9]/) {
					words++
					plain = bare(word[i])
					if (words == 1) first = plain
					if (words == 2) second = plain
					if (plain in he && word[i] !~ /^["'\''(]*["'\'']/ && word[i] !~ /[_(`]./) pronoun = plain
				}
				last = word[i]
				if (word[i] ~ /[A-Za-z0-9)"'\''`\]_>][.!?][)"'\''`]*$/ || word[i] ~ /^[.!?]$/)
					if (word[i] !~ /^\(?(e\.g|i\.e|vs|cf)\./) end()
			}
		}
		END { end() }'
}

scripts() {
	find config tests .ci -type f \( -name '*.sh' -o -name '*.bash' -o -name '*.bats' \) 2>/dev/null
	find config tests .ci -type f ! -name '*.*' -exec grep -lE '^#!/bin/(ba)?sh' {} + 2>/dev/null
}

# files PATTERN...: those of the tree, but not of a build.
files() {
	local names=(-name "$1") name
	for name in "${@:2}"; do names+=(-o -name "$name"); done
	find . -name build -prune -o -path './.*/*' -prune -o -type f \( "${names[@]}" \) -print | sed 's|^\./||' | sort
}

# run FILTER FILE...
run() {
	local filter=$1
	shift
	[ $# -eq 0 ] || "$filter" "$@" | findings
}

all_of() {
	local -a list
	case $1 in
	documents) mapfile -t list < <(files '*.md') && run documents "${list[@]}" ;;
	pages) mapfile -t list < <(files '*.1' '*.5' '*.7' '*.8') && run pages "${list[@]}" ;;
	comments)
		mapfile -t list < <(files '*.c' '*.h') && run c_comments "${list[@]}"
		mapfile -t list < <(scripts | sort) && run script_comments "${list[@]}"
		;;
	esac
}

# hold KIND NUMBER
hold() {
	local kind=$1 number=$2 found count
	found=$(all_of "$kind")
	count=$(grep -c . <<<"$found" || true)
	[ "$count" -ne "$number" ] || return 0
	if [ "$count" -lt "$number" ]; then
		echo "tests/prose.sh: write in_$kind=$count instead of $number: there are fewer now"
		return 1
	fi
	head -n 60 <<<"$found"
	echo "$kind: $count such sentences, and $number may be there; 'tests/prose.sh FILE' lists those of a file"
	return 1
}

status=0
if [ $# -gt 0 ]; then
	for file in "$@"; do
		case $file in
		*.md) run documents "$file" ;;
		*.[1578]) run pages "$file" ;;
		*.[ch]) run c_comments "$file" ;;
		*) run script_comments "$file" ;;
		esac
	done | grep . && status=1
	exit $status
fi
hold documents "$in_documents" || status=1
hold pages "$in_pages" || status=1
hold comments "$in_comments" || status=1
exit $status
