# markdown.awk - makes GUIDE.md of the manual page rmemfs-guide(7):
#
#     awk -f docs/markdown.awk docs/rmemfs-guide.7 >docs/GUIDE.md
#
# It knows the part of mdoc(7) that the page uses, and ends with an error at anything else. Each list with tags
# is a table, whose head is the comment before it: '.\" | symptom | cause |'. A display that begins with
# "# /" is a file; each other one has commands for a shell.

function fail(what) {
	printf "%s:%d: markdown.awk does not know: %s\n", FILENAME, FNR, what >"/dev/stderr"
	failed = 1
	exit 1
}

function plain(text) {
	gsub(/\\e/, "\\", text)
	gsub(/\\&/, "", text)
	gsub(/\\-/, "-", text)
	gsub(/\\\(dq/, "\"", text)
	return text
}

# Text outside of code: none of its characters means anything to Markdown.
function prose(text) {
	text = plain(text)
	gsub(/</, "\\&lt;", text)
	gsub(/[*_|]/, "\\\\&", text)
	return text
}

function capital(heading,    i, n, word, words) {
	n = split(tolower(heading), word, " ")
	for (i = 1; i <= n; i++) words = words (i > 1 ? " " : "") (word[i] in proper ? proper[word[i]] : word[i])
	return toupper(substr(words, 1, 1)) substr(words, 2)
}

# A word that is the name of a macro is taken for one.
function check_words(from,    i) {
	for (i = from; i <= NF; i++) if ($i ~ /^[A-Z][a-z]$/) fail($0)
}

function anchor(heading) {
	heading = tolower(heading)
	gsub(/[^a-z0-9 -]/, "", heading)
	gsub(/ /, "-", heading)
	return heading
}

# styled NAME TEXT: text as the macro shows it.
function styled(name, text) {
	if (name == "Sx") return "[" capital(text) "](#" anchor(capital(text)) ")"
	if (name == "Lk") return "<" text ">"
	if (name == "Sy") return "**" prose(text) "**"
	if (name == "Em") return "*" prose(text) "*"
	if (name !~ /^(Ql|Pa|Ic|Cm|Er|Fl|Dv|Ev|Va)$/) fail($0)
	text = plain(text)
	if (in_table) gsub(/\|/, "\\|", text)
	return "`" (name == "Fl" ? "-" : "") text "`"
}

# The macro at word number `at` with its words. Marks between and behind them are text.
function inline(at,    name, text, all, quoted, i) {
	name = $at
	sub(/^\./, "", name)
	if (name == "Xr") {
		all = $(at + 1) "(" $(at + 2) ")"
		for (i = at + 3; i <= NF; i++) all = all $i
		return all
	}
	if (name == "Pq") {
		for (i = NF; $i ~ /^[.,;:]$/; i--) all = $i all
		NF = i
		return "(" (($(at + 1) ~ /^[A-Z][a-z]$/) ? inline(at + 1) : prose(words_from(at + 1))) ")" all
	}
	quoted = words_from(at + 1)
	if (quoted ~ /^".*"$/) return styled(name, substr(quoted, 2, length(quoted) - 2))
	for (i = at + 1; i <= NF; i++) {
		if ($i ~ /^[.,;:?!)]$/) {
			if (text != "") all = all (all == "" ? "" : " ") styled(name, text)
			all = all $i
			text = ""
		} else {
			text = text (text == "" ? "" : " ") $i
		}
	}
	return text == "" ? all : all (all == "" ? "" : " ") styled(name, text)
}

function words_from(at,    i, text) {
	for (i = at; i <= NF; i++) text = text (i > at ? " " : "") $i
	return text
}

function add(text) {
	held = held (held == "" ? "" : " ") text
}

function put(line) {
	body[++lines] = line
}

# Ends a paragraph: in lines of at most 120 characters.
function flush(    first, rest, line, n, word, i) {
	if (held == "") return
	first = in_list ? (numbered ? ++number ". " : "- ") : ""
	rest = in_list ? (numbered ? "   " : "  ") : ""
	n = split(held, word, " ")
	line = first
	for (i = 1; i <= n; i++) {
		if (line != first && line != rest && length(line) + 1 + length(word[i]) > 120) {
			put(line)
			line = rest
		}
		line = line (line == first || line == rest ? "" : " ") word[i]
	}
	put(line)
	held = ""
}

function row() {
	if (tag != "") put("| " tag " | " held " |")
	tag = held = ""
}

function space() {
	if (lines && body[lines] != "") put("")
}

BEGIN {
	n = split("NUMA RoCE MTU GID", word, " ")
	for (i = 1; i <= n; i++) proper[tolower(word[i])] = word[i]
}

in_display && /^\.Ed/ { put("```"); in_display = 0; next }
in_display == 1 { put(/^# \// ? "```" : "```sh"); in_display = 2 }
in_display { put(plain($0)); next }

/^\.\\" \|/ {
	head = substr($0, 5)
	next
}
/^\.\\"/ || /^\.(Dd|Dt|Os|Nm)/ { next }
/^\.Nd / { title = substr($0, 5); next }
/^\.Sh NAME/ { next }
/^\.(Sh|Ss) / {
	flush()
	space()
	$1 = ($1 == ".Sh") ? "##" : "###"
	heading = capital(substr($0, length($1) + 2))
	check_words(2)
	put($1 " " heading)
	if ($1 == "##") contents[++chapters] = "- [" heading "](#" anchor(heading) ")"
	put("")
	next
}
/^\.Pp/ {
	if (in_table) { add("<br>"); next }
	flush()
	space()
	next
}
/^\.Bd -literal/ { flush(); space(); in_display = 1; next }
/^\.Bl -tag/ {
	flush()
	space()
	if (head == "") fail("a list of tags without the head of its table")
	put(head)
	gsub(/[^|]+/, " --- ", head)
	put(head)
	head = ""
	in_table = 1
	next
}
/^\.Bl -(bullet|enum)/ { flush(); space(); in_list = 1; numbered = /-enum/; number = 0; next }
/^\.It/ && in_table {
	check_words(3)
	row()
	tag = $2 ~ /^[A-Z][a-z]$/ ? inline(2) : prose(substr($0, 5))
	next
}
/^\.It/ && in_list { flush(); next }
/^\.El/ {
	if (in_table) row()
	flush()
	in_table = in_list = 0
	put("")
	next
}
/^\./ { add(inline(1)); next }
/^$/ { next }
{ add(prose($0)) }

END {
	if (failed) exit 1
	flush()
	print "<!-- Made of rmemfs-guide.7 by markdown.awk: change that page. -->"
	print "# " title "\n"
	for (i = 1; i <= chapters; i++) print contents[i]
	print ""
	while (lines && body[lines] == "") lines--
	for (i = 1; i <= lines; i++) if (body[i] != "" || body[i - 1] != "") print body[i]
}
