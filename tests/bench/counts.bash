# shellcheck shell=bash disable=SC2016,SC2034,SC2154,SC2178
# counts.bash - how many requests the kernel sends for what a program does, how many messages the
# client sends to the server for it, and how often threads of the client sleep meanwhile. The last
# depends on the machine's other work.
#
# Each work is counted at three places: on a mount that is alone, on one beside which an idle mount of
# the same export is, and on one with names=local, alone. Cold: on a mount that has just been made.
# Warm: the mount has done the same before, or has made what it works on. The kernel of a mount that is
# alone keeps names and attributes for a quarter of the lease time. To count takes seconds, so the lease
# time is longer than usual: else nothing would be warm.

counted_export=counted

# count_mount PLACE: mounts it anew. $beside is the idle mount, if there is one.
count_mount() {
	local options=''
	[ "$1" != names ] || options=names=local
	[ -z "${mounts[$1]:-}" ] || rmem_umount "$1"
	rmem_mount "$1" "$count_transport" $counted_export $options
	[ "$(count_state "$1" .options.share)" = "$([ "$1" = shared ] && echo true || echo false)" ] ||
		bench_die "mount $1 shares, or does not"
}

count_state() {
	"$bin/rmemfsctl" status --json "${folder[$1]}" | jq -r "$2"
}

# The kernel waits for no answer to a FORGET, so it is none of these.
count_requests() {
	count_state "$1" '[.operations | to_entries[] | select(.key | test("forget|interrupt") | not).value.count] | add // 0'
}

# count_kinds PLACE: as JSON, each kind by its name.
count_kinds() {
	count_state "$1" '.operations | map_values(.count)'
}

# Those of all sessions of the export. Signs of life do not count.
count_messages() {
	"$bin/rmemfsctl" status --json "$work/socket" |
		jq "[.sessions[] | select(.export == \"$counted_export\").requests] | add // 0"
}

count_sleeps() {
	cat "/proc/${daemon[$1]}/task"/*/status | awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }'
}

# count_settled PLACE: prints requests and messages, when neither has changed for as long as the client
# keeps something back.
count_settled() {
	local before='' now quiet=0
	while [ $quiet -lt 4 ]; do
		now="$(count_requests "$1") $(count_messages)"
		quiet=$(($([ "$now" = "$before" ] && echo $quiet || echo 0) + 1))
		before=$now
		sleep 0.3
	done
	echo "$now"
}

# counted NAME PLACE UNITS COMMAND...: so many operations are done by the command; the counts are
# of one of them.
counted() {
	local name=$1 place=$2 n=$3 requests messages sleeps all_requests all_messages
	shift 3
	read -r requests messages <<<"$(count_settled "$place")"
	count_kinds "$place" >"$work/kinds.before"
	sleeps=$(count_sleeps "$place")
	"$@" >"$work/counted.log" 2>&1 || bench_die "$name on $place failed: $(tail -n 3 "$work/counted.log")"
	sleeps=$(($(count_sleeps "$place") - sleeps))
	read -r all_requests all_messages <<<"$(count_settled "$place")"
	count_kinds "$place" | jq -rs --slurpfile before "$work/kinds.before" --argjson n "$n" \
		'.[0] | to_entries | map({key, n: ((.value - ($before[0][.key] // 0)) / $n * 100 | round / 100)}
			| select(.n > 0) | "\(.key) \(.n)") | "'"$name $place"': " + join(", ")' >>"$results/kinds.txt"
	record "count-$name" "$place" "$(ratio $((all_requests - requests)) "$n")" requests
	record "count-$name" "$place" "$(ratio $((all_messages - messages)) "$n")" messages
	record "count-$name" "$place" "$(ratio "$sleeps" "$n")" sleeps
}

# ---- single operations ---------------------------------------------------------------------------

# count_op STATE PLACE KIND [PREFIX]: on all files of the folder `names`.
count_op() {
	local state=$1 place=$2 kind=$3
	counted "$kind-$state" "$place" "$counted_files" "$bin/nameops" "$kind" "${folder[$place]}/names" \
		"$counted_files" ${4:+"$4"}
}

# Names and contents as programs leave them: new files are not opened again before they are read.
count_single() {
	local place=$1
	count_mount "$place"
	mkdir "${folder[$place]}/names"
	count_op new "$place" write
	count_op first "$place" stat
	count_op warm "$place" stat
	count_mount "$place"
	count_op cold "$place" stat
	count_mount "$place"
	count_op cold "$place" read
	count_op warm "$place" read
	count_mount "$place"
	count_op old "$place" write b
	count_op warm "$place" unlink b
	count_op cold "$place" mkdir
	count_op warm "$place" rmdir
	count_op warm "$place" mkdir
	count_mount "$place"
	count_op cold "$place" rmdir
	count_op cold "$place" rename
	count_op warm "$place" rename-back
	count_mount "$place"
	count_op cold "$place" unlink
	rmdir "${folder[$place]}/names"
}

# ---- trees ---------------------------------------------------------------------------------------

count_make_sources() {
	local i at=$work/sources
	mkdir "$at"
	for ((i = 0; i < 20; i++)); do
		printf 'int f%d(int x)\n{\n\treturn x + %d;\n}\n' $i $i >"$at/f$i.c"
	done
	printf 'int main(void)\n{\n\treturn 0;\n}\n' >"$at/main.c"
	{
		echo "OBJECTS = main.o $(printf 'f%d.o ' {0..19})"
		printf 'all: $(OBJECTS)\n\tcc -o program $(OBJECTS)\n'
		printf 'clean:\n\trm -f program $(OBJECTS)\n'
	} >"$at/Makefile"
}

git_here() {
	git -C "$1" -c safe.directory='*' -c user.name=bench -c user.email=bench@localhost "${@:2}"
}

# git status finds nothing that has changed, so it has compared all files.
git_is_clean() {
	[ -z "$(git_here "$1" status --porcelain)" ]
}

count_git() {
	local place=$1
	git_here "${folder[$place]}/tree" init -q
	git_here "${folder[$place]}/tree" add .
	git_here "${folder[$place]}/tree" commit -q -m all
	git_is_clean "${folder[$place]}/tree" || bench_die "git finds changes"
	counted git-status-warm "$place" 1 git_is_clean "${folder[$place]}/tree"
	count_mount "$place"
	counted git-status-cold "$place" 1 git_is_clean "${folder[$place]}/tree"
	rm -r "${folder[$place]}/tree/.git"
}

count_build() {
	local place=$1
	cp -r "$work/sources" "${folder[$place]}/sources"
	count_mount "$place"
	counted build-cold "$place" 1 make -C "${folder[$place]}/sources"
	make -C "${folder[$place]}/sources" clean >"$work/counted.log"
	counted build-warm "$place" 1 make -C "${folder[$place]}/sources"
	"${folder[$place]}/sources/program" || bench_die "what was built on $place does not run"
	rm -r "${folder[$place]}/sources"
}

count_tree() {
	local place=$1 n=$counted_tree
	count_mount "$place"
	mkdir "${folder[$place]}/tree"
	counted untar-new "$place" "$n" tar -C "${folder[$place]}/tree" -xf "$memory/tree.tar"
	tar -C "${folder[$place]}/tree" -df "$memory/tree.tar" || bench_die "the tree on $place differs from its archive"
	counted cp-a-warm "$place" "$n" cp -a "${folder[$place]}/tree" "${folder[$place]}/copy"
	counted rm-r-warm "$place" "$n" rm -r "${folder[$place]}/copy"
	count_mount "$place"
	counted cp-a-cold "$place" "$n" cp -a "${folder[$place]}/tree" "${folder[$place]}/copy"
	count_mount "$place"
	counted rm-r-cold "$place" "$n" rm -r "${folder[$place]}/copy"
	count_git "$place"
	rm -r "${folder[$place]:?}/tree"
	count_build "$place"
}

# ---- NFS, in the guest ---------------------------------------------------------------------------

# nfs_calls PLACE: as JSON, the remote calls of each kind that its mount has made, from
# /proc/self/mountstats.
nfs_calls() {
	awk -v at="$work/$1" '
		/^device / { here = $5 == at; calls = 0 }
		here && /per-op statistics/ { calls = 1; next }
		here && calls && $1 ~ /^[A-Z_0-9]+:$/ { print $1, $2 }' /proc/self/mountstats |
		jq -Rn '[inputs | split(": ") | {(.[0]): (.[1] | tonumber)}] | add // {}'
}

# counted_calls NAME PLACE UNITS COMMAND...: as counted, of an NFS mount.
counted_calls() {
	local name=$1 place=$2 n=$3
	shift 3
	sync -f "${folder[$place]}"
	nfs_calls "$place" >"$work/calls.before"
	"$@" >"$work/counted.log" 2>&1 || bench_die "$name on $place failed: $(tail -n 3 "$work/counted.log")"
	sync -f "${folder[$place]}"
	nfs_calls "$place" | jq -s --slurpfile before "$work/calls.before" --argjson n "$n" \
		'.[0] | to_entries | map({key, n: ((.value - ($before[0][.key] // 0)) / $n)} | select(.n > 0))' >"$work/calls"
	jq -r 'map("\(.key) \(.n * 100 | round / 100)") | "'"$name $place"': " + join(", ")' "$work/calls" | tee -a "$results/kinds.txt"
	record "count-$name" "$place" "$(jq 'map(.n) | add // 0' "$work/calls")" messages
}

# nfs_op STATE PLACE KIND
nfs_op() {
	counted_calls "$3-$1" "$2" "$counted_files" "$bin/nameops" "$3" "${folder[$2]}/names" "$counted_files"
}

# nfs_counts PLACE: what counts tells of rmemfs's mounts.
nfs_counts() {
	local place=$1
	rep=1 untar_files=$counted_tree make_archive
	mkdir "${folder[$place]}/names" "${folder[$place]}/tree"
	nfs_op new "$place" write
	nfs_op first "$place" stat
	nfs_op warm "$place" read
	nfs_op warm "$place" rename
	nfs_op warm "$place" rename-back
	nfs_op warm "$place" unlink
	nfs_op warm "$place" mkdir
	nfs_op warm "$place" rmdir
	counted_calls untar-new "$place" "$counted_tree" tar -C "${folder[$place]}/tree" -xf "$memory/tree.tar"
	counted_calls rm-r-warm "$place" "$counted_tree" rm -r "${folder[$place]}/tree"
	awk -F, '
		BEGIN { print "| work | calls of NFS |\n| --- | --- |" }
		/^count-/ { printf "| %s | %.2f |\n", substr($1, 7), $5 }' "$results/raw.csv" >"$results/counts.md"
}

# ---- all -----------------------------------------------------------------------------------------

# count_table: of raw.csv, in the order of the works; the numbers are requests / messages.
count_table() {
	awk -F, '
		/^count-/ {
			work = substr($1, 7)
			if (!(work in seen)) { seen[work] = 1; order[++n] = work }
			cell[work, $2, $6] = $5
		}
		function text(v) { return v == int(v) ? v : sprintf("%.2f", v) }
		function of(work, place) {
			return text(cell[work, place, "requests"]) " / " text(cell[work, place, "messages"])
		}
		END {
			print "| work | alone | shared | names=local |"
			print "| --- | --- | --- | --- |"
			for (i = 1; i <= n; i++)
				print "| " order[i] " | " of(order[i], "alone") " | " of(order[i], "shared") " | " of(order[i], "names") " |"
		}' "$results/raw.csv"
}

# counts TRANSPORT: on a server of its own.
counts() {
	local place count_transport=$1
	: >"$results/kinds.txt"
	rep=1 rdma_device=''
	lease_time=60 server_start 127.0.0.1 "$counted_export:512MiB"
	copy_mib=1 file_mib=1 make_source
	untar_files=$counted_tree make_archive
	count_make_sources
	for place in alone names shared; do
		[ "$place" != shared ] || rmem_mount idle "$count_transport" $counted_export
		count_single "$place"
		count_tree "$place"
		rmem_umount "$place"
	done
	bench_undo
	count_table >"$results/counts.md"
	cat "$results/counts.md"
}
