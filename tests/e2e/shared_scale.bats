#!/usr/bin/env bats
# shared_scale.bats - one mount makes many files; another one finds and removes them (-o share). The test
# prints how fast that is, beside a mount that does all of it itself. It checks only the messages and
# recalls.

# shellcheck disable=SC2034,SC2154 # what helpers take and set
load helpers
load mounts

folders=50

setup() {
	test_seconds=600
	files=1000 reserve=64MiB size=192MiB
	if at_full_size; then
		test_seconds=3000 files=1000000 reserve=1536MiB size=4608MiB
	fi
	setup_rmem
	mounts=()
	server_conf=$dir/server.conf
	cat >"$server_conf" <<-END
		metadata_reserve = "$reserve";
		exports = ( { name = "default"; size = "$size"; } );
	END
}

teardown() {
	end_mounts
}

make_tree() {
	local i
	mkdir "$1"
	for ((i = 0; i < folders; i++)); do
		mkdir "$1/$i"
		scale create "$1/$i" $((files / folders))
	done
}

# counted NAME COMMAND...: prints and keeps the time, the requests and the recalls of the command.
counted() {
	local name=$1 rpcs recalled began=${EPOCHREALTIME/./}
	rpcs=$(status_of '[.sessions[].requests] | add')
	recalled=$(status_of .exports[0].leases.recalled)
	"${@:2}"
	rpcs=$(($(status_of '[.sessions[].requests] | add') - rpcs))
	recalled=$(($(status_of .exports[0].leases.recalled) - recalled))
	echo "# $files files: $name $(((${EPOCHREALTIME/./} - began) / 1000)) ms, $rpcs requests, $recalled recalls" >&3
	eval "${name}_rpcs=$rpcs ${name}_recalled=$recalled"
}

# lent: prints how many leases the newest mount has.
lent() {
	status_of '.sessions | max_by(.id) | .leases | .shared + .exclusive'
}

finds() {
	[ "$(find "$1" -type f | wc -l)" -eq $((files / folders * folders)) ]
}

@test "many files that one mount has made are found and removed by another one" {
	local kept lent
	begin 1 2
	counted make_own make_tree "$dir/1/own"
	counted find_own finds "$dir/1/own"
	counted remove_own rm -r "$dir/1/own"
	make_tree "$dir/1/tree"
	kept=$(status_of '[.exports[0].leases.shared, .exports[0].leases.exclusive] | add')
	lent=$(lent)
	counted find finds "$dir/2/tree"
	lent=$(($(lent) - lent))
	echo "$lent leases came with what was found"
	counted remove rm -r "$dir/2/tree"
	# find asks only for listings, and gets no lease of the files that it lists.
	[ "$find_rpcs" -le $((files / 10 + 6 * folders)) ]
	[ "$find_recalled" -le $((2 * folders + 4)) ]
	[ "$lent" -le $((2 * folders + 4)) ]
	# Each name costs a lookup and a removal, and each lease that the first mount has kept a recall.
	[ "$remove_recalled" -le $((kept + 2 * folders + 4)) ]
	[ "$remove_rpcs" -le $((4 * files + 100 * folders + 2 * remove_recalled)) ]
}
