#!/bin/bash
# order.sh BUILD [ROOT] - holds the order of the folders: a file includes and calls only its own
# folder and those below it. Within a folder no files call each other in a circle. Includes come
# from the sources in ROOT (this repository), calls from the symbols of BUILD's objects, so that a
# call without an include is found, too. Where a README.md gives an order of its files the calls follow
# it. Prints each line that breaks an order, and the files of each circle. order_selftest.sh tests
# this script.
set -euo pipefail

build=$(realpath "${1:?the build folder}")
cd "${2:-$(dirname "$0")/..}"

# From the highest to the lowest. Folders on one line do not use each other.
order() {
	cat <<-END
		daemon mount
		daemon admin handover
		daemon serve
		daemon ops
		daemon barrier squash
		daemon lock lease
		daemon kcache
		daemon file
		daemon pages
		daemon op
		daemon fuse
		daemon remote
		daemon record
		daemon request
		daemon metrics
		daemon ctl/rmemfsctl
		daemon ctl/survey
		daemon ctl/doctor
		daemon ctl
		server serve
		server check admin
		server snapshot
		server recall
		server session
		server access
		server namespace
		server meta memory
		server config
		server record
		server space
		server store
		server base
		common transport/kinds proof
		common transport/verbs transport/tcp transport/shm
		common transport/sock
		common transport
		common rpc conf auth sandbox
		common base
	END
}

# "FILE HEADER"
includes() {
	{ grep -rHoE '^#include "(common|daemon|server)/[^"]+"' common daemon server --include='*.[ch]' || true; } |
		sed -E 's/:#include "(.*)"$/ \1/'
}

# "SOURCE OBJECT" of each source that was built.
objects() {
	find "$build"/{common,daemon,server}/CMakeFiles -name '*.c.o' |
		sed -E 's|^(.*/(common\|daemon\|server)/CMakeFiles/[^/]*\.dir/(.*)\.o)$|\2/\3 \1|' |
		while read -r source object; do
			[ ! -e "$source" ] || echo "$source $object" # else an earlier build left it
		done
}

# "FILE FILE SYMBOL" of each call, and each use of data.
calls() {
	objects | while read -r source object; do
		nm -g "$object" | awk -v source="$source" '{ print source, $(NF - 1), $NF }'
	done | awk '
		$2 ~ /^[TDBRVW]$/ { split($1, part, "/"); home[part[1], $3] = $1; next }
		$2 == "U" { user[++n] = $1; symbol[n] = $3 }
		END {
			for (i = 1; i <= n; i++) {
				split(user[i], part, "/")
				to = home[part[1], symbol[i]]
				if (to == "") to = home["common", symbol[i]]
				if (to != "") print user[i], to, symbol[i]
			}
		}'
}

# Prints "FILE -> FILE[: SYMBOL]" for each use that runs upward, or sideways. rmemfsctl and
# rmemfs-metrics know nothing of the mount, and the mount nothing of them. The main file of rmemfsctl
# is above its folders.
against() {
	awk -v tools='^daemon/(ctl|metrics)(/|$)' '
		function folder(path) {
			if (path ~ /^common\/transport\/kinds\.[ch]$/) return "common/transport/kinds"
			if (path ~ /^daemon\/ctl\/rmemfsctl\.c$/) return "daemon/ctl/rmemfsctl"
			sub(/\/[^\/]*$/, "", path)
			return path
		}
		FILENAME == ARGV[1] {
			for (i = 2; i <= NF; i++) rank[$1 "/" $i] = FNR
			next
		}
		{
			from = folder($1)
			to = folder($2)
			split(from, a, "/")
			split(to, b, "/")
			if (!(from in rank)) { print $1 " -> no folder of the order"; next }
			if (from == to || a[1] != b[1]) next
			apart = to ~ tools && from !~ tools
			if (rank[from] < rank[to] && !apart) next
			print $1 " -> " $2 ($3 == "" ? "" : ": " $3)
		}' "$@"
}

# The folders in which several files do one job, and call each other.
entwined() {
	cat <<-END
		common/transport/tcp
		common/transport/verbs
		daemon/lease
		daemon/serve
		server/check
		server/serve
	END
}

# Prints one line with the files of each circle in another folder.
circles() {
	awk '
		function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
		FILENAME == ARGV[1] { may[$1]; next }
		$1 != $2 && folder($1) == folder($2) && !(folder($1) in may) { print $1, $2 }' "$@" |
		sort -u | { LC_ALL=C tsort 2>&1 >/dev/null || true; } | awk '
			/contains a loop/ { n++; next }
			{ files[n] = files[n] " " $2 }
			END { for (i = 1; i <= n; i++) print "a circle:" files[i] }'
}

# "FILE ROW" of each file that a folder's README.md has in its table of files, where it says that a
# file calls only files below it. Files in one row don't call each other. Headers call nothing.
tables() {
	local readmes
	mapfile -t readmes < <(grep -rl '^A file calls only files below it' common daemon server --include=README.md)
	[ ${#readmes[@]} -eq 0 ] || awk '
		FNR == 1 { folder = FILENAME; sub(/[^\/]*$/, "", folder) }
		/^## / { in_files = $2 == "Files" }
		in_files && split($0, cell, "|") > 2 {
			n = split(cell[2], name, /[^a-z0-9_.]+/)
			for (i = 1; i <= n; i++) {
				sub(/\.c$/, "", name[i])
				if (name[i] ~ /^[a-z0-9_]+$/) print folder name[i], FNR
			}
		}' "${readmes[@]}"
}

# Prints each call that such a table tells otherwise, and each file that it leaves out.
untrue() {
	awk '
		function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
		function module(path) { sub(/\.c$/, "", path); return path }
		function leaves_out(path) { print folder(path) "/README.md: " path " is not in the table" }
		FILENAME == ARGV[1] { row[$1] = $2; told[folder($1)]; next }
		$1 == $2 || folder($1) != folder($2) || !(folder($1) in told) { next }
		!(module($1) in row) { leaves_out($1); next }
		!(module($2) in row) { leaves_out($2); next }
		row[module($1)] >= row[module($2)] {
			print folder($1) "/README.md: " $1 " calls " $2 ", which is not below it"
		}' "$@" | sort -u
}

work=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-order.XXXXXX")
trap 'rm -rf "$work"' EXIT
order >"$work/order"
includes >"$work/includes"
calls >"$work/calls"
[ -s "$work/calls" ] || {
	echo "$build has no objects to look at: build it"
	exit 1
}
against "$work/order" "$work/includes" "$work/calls" | sort -u >"$work/found"
sed -i 's/^/against the order: /' "$work/found"
entwined >"$work/entwined"
circles "$work/entwined" "$work/calls" >>"$work/found"
tables >"$work/tables"
untrue "$work/tables" "$work/calls" >>"$work/found"
cat "$work/found"
[ ! -s "$work/found" ]
