#!/bin/bash
# prose_selftest.sh - prose.sh finds each of its kinds of sentence in each kind of file, and nothing
# in plain ones. Its numbers hold in both directions.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-prose.XXXXXX")
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{tests,common,build,config}

# numbers DOCUMENTS PAGES COMMENTS: a copy of prose.sh with these numbers.
numbers() {
	sed -E -e "s/^in_documents=.*/in_documents=$1/" -e "s/^in_pages=.*/in_pages=$2/" \
		-e "s/^in_comments=.*/in_comments=$3/" "$here/prose.sh" >"$tree/tests/prose.sh"
	chmod +x "$tree/tests/prose.sh"
}

# demands FILE LINES: prose.sh finds exactly these in a file with the text on standard input.
demands() {
	local file=$1 expected=$2 found
	cat >"$tree/$file"
	found=$("$tree/tests/prose.sh" "$file" || true)
	[ "$found" = "$expected" ] || {
		printf '%s: expected:\n%s\nfound:\n%s\n' "$file" "$expected" "$found"
		exit 1
	}
}

# holds LINE: the last line that prose.sh prints for the whole tree; empty, if all is well.
holds() {
	local found
	found=$("$tree/tests/prose.sh" | tail -n 1 || true)
	[ "$found" = "$1" ] || {
		printf 'expected: %s\nfound: %s\n' "$1" "$found"
		exit 1
	}
}

numbers 0 0 0
mark="#" # so that the texts below are not comments of this script
ten="one two three four five six seven eight nine ten"

demands a.md '' <<END
$mark What a heading may say
The server answers. What does it answer? The client reads it.

- $ten $ten $ten $ten
- $ten of \`a program with many words as code\`

| who | is in a table, and so is he |
\`\`\`
Who is in a block of code: he is.
\`\`\`
END
demands a.md 'a.md:1: 41 words: The one two three four five six seven eight nine ten one two
a.md:4: opens with "what": What is lost is lost.
a.md:4: opens with "of what": Of what is there it tells.
a.md:6: "his": A user keeps his files.' <<END
The $ten
$ten $ten
$ten.
What is lost is lost. Of what is there
it tells.
- A user keeps his files.
- The user keeps them.
END
demands a.8 '' <<END
.Sh NAME
.Nm a
.Nd what a heading says
.Sh DESCRIPTION
.Nm
reads
.Pa /etc/a .
.Cm who
is a command.
Members are
.Va $(tr ' ' , <<<"$ten $ten $ten $ten $ten" | sed 's/,/ , /g') .
.Bd -literal
Who is shown as it is typed.
.Ed
.Sh EXAMPLES
Whoever types this.
END
demands a.8 'a.8:2: opens with "whoever": Whoever reads a file waits.
a.8:4: "he": The user says that he waits for CODE.
a.8:8: 41 words: The one two three four five six seven eight nine ten one two' <<END
.Sh DESCRIPTION
Whoever reads a
.Em file waits .
The user says that he waits for
.Pa /etc/a .
.Bl -tag
.It Cm who
The $ten $ten
.Em $ten
$ten
END
demands common/a.c '' <<END
/* a.c - what a file is for.
 *
 *     who  --what-->  whom
 *
 * The server answers.
 */
const char *a = "/* Who is in a string */", *b = "tcp://what"; // it is read
END
demands common/a.c 'common/a.c:1: opens with "which": Which of them is first is chance.
common/a.c:4: "him": the client waits for him
common/a.c:5: opens with "what": what is left' <<END
/* Which of them
 * is first is chance.
 */
int a; /* the client waits for him */
int b; // what is left
END
demands config/a.sh '' <<END
#!/bin/bash
# a.sh - does it.
echo "who # What is in a string"
# ---- what a heading says ----
END
demands config/a.sh 'config/a.sh:1: opens with "whose": Whose turn it is, is chance.
config/a.sh:3: opens with "what": What is said.' <<END
$mark Whose turn it is,
$mark is chance.
echo yes $mark What is said.
END
echo "What is built is not ours." >"$tree/build/a.md"

numbers 4 3 5
holds ''
numbers 3 3 5
holds "documents: 4 such sentences, and 3 may be there; 'tests/prose.sh FILE' lists those of a file"
numbers 4 3 6
holds 'tests/prose.sh: write in_comments=5 instead of 6: there are fewer now'
