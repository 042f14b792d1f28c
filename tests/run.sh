#!/bin/bash
# run.sh [STAGE]... - installs what the tests need, builds, runs them; see usage below.
#
# Every stage speaks TAP. Its output goes to the screen and to a log, the log is counted, and a stage
# that ends badly, or with fewer results than it announced, counts as failed: nothing is lost by a
# crash in the middle.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
builds=${RMEMFS_BUILD:-$root/build}
# shellcheck source=config/packages.sh
. "$root/config/packages.sh"

usage() {
	cat <<-END
		usage: tests/run.sh [STAGE]...
		  unit     every module by itself, and the transports' contract over shm and tcp
		  e2e      both programs, mounted, over tcp or shm
		  vm       the contract and a part of e2e over verbs, in a guest with Soft-RoCE
		  lint     format, static analysis, spelling, include rules, documents
		  asan     unit and a part of e2e under the address and undefined behaviour sanitizers
		  tsan     the same under the thread sanitizer
		  all      all of these (the default); here a skipped test is a failure, but for what
		           the guest's kernel can't do
		  vm2      two guests on a wire, over verbs and tcp: the wire is cut, one of them dies
		  nightly  all, and what takes longer: vm2, all of e2e over shm, verbs and under the
		           sanitizers, fuzzers, the server under valgrind; nightly:STAGE is a part of it
	END
}

# ---- packages ------------------------------------------------------------------------------------

stage_packages() {
	echo "${PACKAGES_BUILD[@]}" libcmocka-dev
	case $1 in
	e2e)
		echo "${PACKAGES_RUN[@]}" attr acl libcap2-bin bats fio git jq sqlite3 systemd tar diffutils iproute2 procps
		[ "${RMEMFS_TEST_NIGHTLY:-0}" = 0 ] || echo dbench postgresql postgresql-contrib rsync stress-ng
		;;
	asan | tsan) echo "${PACKAGES_RUN[@]}" attr acl libcap2-bin bats fio git jq sqlite3 diffutils iproute2 procps ;;
	vm | vm2) echo "${PACKAGES_RUN[@]}" attr acl libcap2-bin bats fio git jq sqlite3 qemu-system-x86 cpio kmod iproute2 ;;
	lint) echo clang-format clang-tidy cppcheck shellcheck codespell mandoc groff-base ;;
	fuzz) echo clang libclang-rt-14-dev ;;
	valgrind) echo "${PACKAGES_RUN[@]}" bats valgrind fio git jq sqlite3 diffutils iproute2 procps ;;
	esac
}

install_packages() {
	local stage packages
	mapfile -t packages < <(for stage in "$@"; do stage_packages "$stage"; done | tr ' ' '\n' | sort -u)
	packages_install jq "${packages[@]}"
}

# ---- results -------------------------------------------------------------------------------------

work=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-run.XXXXXX")
memory=$(mktemp -d /dev/shm/rmemfs-run.XXXXXX)
trap '[ -z "${behind:-}" ] || kill -- "-$behind" 2>/dev/null; rm -rf "$work" "$memory"' EXIT
: >"$work/results"

# What tests leave behind is found by these. Ordinary users have a part in some.
mkdir "$work/tmp"
chmod 755 "$work" "$work/tmp" "$memory"
export TMPDIR=$work/tmp RMEMFS_TEST_RUN=$work RMEMFS_TEST_SHM=$memory

# result STAGE TRANSPORT PASSED FAILED SKIPPED [PERMITTED]: the last are skips, too.
result() {
	echo "$*" >>"$work/results"
}

# The reason for which a stage's tests may skip, where it is set.
may_skip=

# Counts a TAP log: cmocka writes a skip as "not ok N # SKIP", bats as "ok N name # skip".
count_tap() {
	awk -v may_skip="$may_skip" '
		may_skip != "" && /^ok [0-9].*# [Ss][Kk][Ii][Pp]/ && index($0, may_skip) { permitted++; next }
		/^1\.\.[0-9]+/ { planned += substr($0, 4) + 0; next }
		/^(not )?ok [0-9].*# [Ss][Kk][Ii][Pp]/ { skipped++; next }
		/^ok [0-9]/ { passed++; next }
		/^not ok [0-9]/ { failed++ }
		END {
			missing = planned - passed - failed - skipped - permitted
			if (missing > 0) failed += missing
			print passed + 0, failed + 0, skipped + 0, permitted + 0
		}' "$1"
}

# Seconds for one command of a stage: a silence without end helps nobody.
limit=2500

# An area of which no test is of this transport (areas_may_be_empty) says so.
may_be_empty() {
	[ -n "${areas_may_be_empty:-}" ] && grep -qx '1\.\.0' "$1"
}

# run_tap STAGE TRANSPORT COMMAND...
run_tap() {
	local stage=$1 transport=$2 log=$work/$1.$2.log status=0 passed failed skipped permitted
	shift 2
	echo "== $stage ($transport)"
	timeout -k 10 "$limit" "$@" </dev/null 2>&1 | tee "$log" || status=$?
	read -r passed failed skipped permitted < <(count_tap "$log")
	if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
		echo "== $stage ($transport) ended with status $status"
		failed=1
	elif [ $((passed + failed + skipped)) -eq 0 ] && ! may_be_empty "$log"; then
		echo "== $stage ($transport) ran no test"
		failed=1
	fi
	result "$stage" "$transport" "$passed" "$failed" "$skipped" "$permitted"
}

# ---- leftovers -----------------------------------------------------------------------------------

left_more_than_before() {
	"$root/tests/leftovers.sh" >"$work/after"
	comm -13 "$work/before" "$work/after" >"$work/left"
	[ -s "$work/left" ]
}

# demand_nothing_left STAGE: some take a moment to end. What is left then is named and ended, so that
# it harms nothing after it.
demand_nothing_left() {
	local deadline=$((SECONDS + 5)) what name
	while left_more_than_before; do
		if [ $SECONDS -ge $deadline ]; then
			sed "s/^/== $1 left /" "$work/left"
			result "$1:leftovers" none 0 1 0
			while read -r what name _; do
				[ "$what" != process ] || kill -KILL "$name" 2>/dev/null || true
				[ "$what" != mount ] || umount -l "$name" || true
			done <"$work/left"
			return
		fi
		sleep 0.1
	done
}

# Prints the lines people look for, and returns whether all is well.
report() {
	local strict=$1
	echo
	awk '
		$2 != "none" { passed[$2] += $3 }
		END { for (t in passed) printf "over %s: %d passed\n", t, passed[t] }
	' "$work/results" | sort
	awk '
		$4 + $5 > 0 { printf "%s (%s): %d failed, %d skipped\n", $1, $2, $4, $5 }
		$6 > 0 { printf "%s (%s): %d skipped, as they may be there\n", $1, $2, $6 }
	' "$work/results"
	if [ "$strict" = yes ]; then
		for transport in shm tcp verbs; do
			awk -v t=$transport '$2 == t { n += $3 } END { exit n == 0 }' "$work/results" || {
				echo "nothing passed over $transport"
				result missing $transport 0 1 0
			}
		done
	fi
	awk -v strict="$strict" '
		{ passed += $3; failed += $4; skipped += $5 }
		END {
			printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
			exit failed > 0 || (strict == "yes" && skipped > 0) || passed == 0
		}' "$work/results"
}

# ---- stages --------------------------------------------------------------------------------------

# build PRESET: once a run; who comes meanwhile waits.
build() {
	local preset=$1 lock
	exec {lock}>"$work/lock.$preset"
	flock "$lock"
	[ -e "$work/built.$preset" ] || build_now "$preset" {lock}>&-
	exec {lock}>&-
	return "$(cat "$work/built.$preset")"
}

build_now() {
	local preset=$1 dir=$builds/$1 log=$work/build.$1.log status=0
	echo "== build ($preset)"
	{
		(cd "$root" && cmake --preset "$preset" -B "$dir") && cmake --build "$dir"
	} >"$log" 2>&1 || status=1
	if [ $status -ne 0 ]; then
		cat "$log"
		result "build-$preset" none 0 1 0
	fi
	echo $status >"$work/built.$preset"
}

# One program that ctest knows by "NAME<tab>COMMAND<tab>ARGUMENTS..." as a TAP log of its own, shown
# whole when it has ended: others run at the same time.
run_unit_program() {
	local stage=$1 name=$2 transport=none out
	out=$work/$stage.$name.out
	shift 2
	case $name in
	*_shm | *_tcp | *_verbs) transport=${name##*_} ;;
	esac
	CMOCKA_MESSAGE_OUTPUT=TAP run_tap "$stage:$name" "$transport" "$@" >"$out" 2>&1
	flock "$work" cat "$out"
	rm "$out"
}

# Most of them are one thread: as many at a time as there are processors. (A subshell, so that only
# these are waited for.)
run_unit() (
	stage=$1 dir=$2 list=$work/unit.list running=0
	shift 2
	ctest --test-dir "$dir" --show-only=json-v1 >"$work/ctest.json"
	jq -r '.tests[] | select(.command) | [.name] + .command | @tsv' "$work/ctest.json" >"$list"
	if [ ! -s "$list" ]; then
		echo "== $stage: no tests were built"
		result "$stage" none 0 1 0
	fi
	while IFS=$'\t' read -r -a line; do
		[[ " ${left_out[*]-} " != *" ${line[0]} "* ]] || continue
		if [ $running -eq "$(nproc)" ]; then
			wait -n
			running=$((running - 1))
		fi
		run_unit_program "$stage" "${line[0]}" "$@" "${line[@]:1}" &
		running=$((running + 1))
	done <"$list"
	wait
)

# run_bats STAGE TRANSPORT PRESET FILE...
run_bats() {
	local stage=$1 transport=$2 preset=$3 instrumented=1
	shift 3
	[ "$preset" != dev ] || instrumented=0
	RMEMFS_TEST_TRANSPORT=$transport RMEMFS_BIN=$builds/$preset/bin \
		RMEMFS_TEST_SANITIZED=$instrumented \
		run_tap "$stage" "$transport" "$root/tests/e2e/run.sh" "$@"
}

stage_unit() {
	build dev || return 0
	run_unit unit "$builds/dev"
}

# Most of the time is waiting, so several areas run at the same time: whoever has ended one takes the
# next, so that all end together. Those that take long come first.
e2e_streams=3
stage_e2e() {
	local queue=$work/e2e.queue i pids=()
	build dev || return 0
	e2e_queue >"$queue"
	for ((i = 0; i < e2e_streams; i++)); do
		run_queue "$queue" &
		pids+=($!)
	done
	wait "${pids[@]}"
}

# Lines of "AREA TRANSPORT".
e2e_queue() {
	local area
	for area in "${long[@]}"; do
		[[ " ${remote[*]} " != *" $area "* ]] || echo "$area tcp"
		[[ " ${shared[*]} " != *" $area "* ]] || echo "$area shm"
	done
	for area in "${areas[@]}"; do
		[[ " ${long[*]} " != *" $area "* ]] || continue
		[[ " ${remote[*]} " != *" $area "* ]] || echo "$area tcp"
		[[ " ${shared[*]} " != *" $area "* ]] || echo "$area shm"
	done
}

take_from() {
	local queue=$1
	(
		flock 9
		sed -n 1p "$queue"
		sed -i 1d "$queue"
	) 9>"$queue.lock"
}

# The output of each is shown whole.
run_queue() {
	local queue=$1 area transport out areas_may_be_empty=1
	while read -r area transport < <(take_from "$queue"); do
		out=$work/e2e.$area.$transport.out
		run_bats "e2e:$area" "$transport" dev "$area" >"$out" 2>&1
		flock "$work" cat "$out"
		rm "$out"
	done
}

# A guest's memory is elsewhere.
in_guest=(env -u RMEMFS_TEST_SHM)

stage_vm() {
	local may_skip="MAP_SHARED needs Linux 6.9"
	build dev || return 0
	RMEMFS_BIN=$builds/dev/bin run_tap vm verbs "${in_guest[@]}" \
		"$root/tests/vm/run.sh" --timeout $((limit - 100)) -- "$root/tests/e2e/guest.sh" "${emulated[@]}"
}

stage_vm2() {
	local transport
	build dev || return 0
	for transport in verbs tcp; do
		RMEMFS_TEST_TRANSPORT=$transport RMEMFS_BIN=$builds/dev/bin \
			run_tap vm2 "$transport" "${in_guest[@]}" "$root/tests/vm/two.sh"
	done
}

stage_lint() {
	build dev || return 0
	run_tap lint none "$root/tests/lint.sh" "$builds/dev"
	run_tap lint:docs none "$root/tests/docs.sh" "$builds/dev"
}

stage_asan() {
	build asan || return 0
	run_unit asan "$builds/asan"
	run_bats asan tcp asan "${asan[@]}"
}

stage_tsan() {
	local left_out=("${one_threaded[@]}")
	build tsan || return 0
	# The thread sanitizer can't place its shadow under some kernels' address randomisation.
	run_unit tsan "$builds/tsan" setarch -R
	run_bats tsan tcp tsan "${tsan[@]}"
}

# The server's memory, where sanitizers do not look: what is used before it is set.
stage_valgrind() {
	local memcheck=(valgrind --quiet --fair-sched=yes --error-exitcode=99 --leak-check=full
		"--errors-for-leak-kinds=definite,indirect,possible")
	build dev || return 0
	RMEMFS_TEST_SMALL=1 RMEMFS_TEST_SERVER_UNDER=${memcheck[*]} \
		run_bats valgrind tcp dev basic namespace faults
}

stage_fuzz() {
	local fuzzer
	build fuzz || return 0
	for fuzzer in "$builds"/fuzz/bin/fuzz_*; do
		run_tap "fuzz:${fuzzer##*/}" none "$root/tests/fuzz/run.sh" "$fuzzer" 120
	done
}

# Every day each area of e2e runs over tcp or, where the network has little part in it, over shm; what
# runs more than once is what the transport, the sanitizers or the guest's kernel may make a
# difference to. Nightly all of it runs everywhere.
local_only=(acl cache full locks mmap quota regions scale times tmpfile xattr)
shared=(cost faults mount coherence shared_faults shared_fence "${local_only[@]}")
long=(shared scale namespace mount shared_locks coherence shared_fence shared_faults kill snapshot programs faults stress)
areas=() remote=()
for area in "$root"/tests/e2e/*.bats; do
	area=${area##*/}
	areas+=("${area%.bats}")
	[[ " ${local_only[*]} " == *" ${area%.bats} "* ]] || remote+=("${area%.bats}")
done
asan=(namespace) tsan=(basic)
# Long under the thread sanitizer, and the work of one thread.
one_threaded=(test_server_copy test_server_damage test_server_model test_server_size
	test_server_xattr_model)
# What operations cost is counted there nightly: it takes five minutes in an emulated guest.
emulated=(faults coherence)

take_all() {
	shared=("${areas[@]}") remote=("${areas[@]}") asan=() tsan=() emulated=() one_threaded=()
	limit=10800
	export RMEMFS_TEST_NIGHTLY=1
}

# What needs only the processors is begun behind the first tests, most of whose time is waiting.
behind=
begin_behind() {
	build dev || return 0
	mkdir "$work/behind"
	set -m # a process group of its own, to end it by
	do_behind "$@" >"$work/behind.log" 2>&1 &
	behind=$!
	set +m
	renice -n 19 -g $behind >/dev/null
}

do_behind() {
	local stage begin=$SECONDS
	export TMPDIR=$work/behind
	unset RMEMFS_TEST_RUN RMEMFS_TEST_SHM # what runs here is no test's leftover
	for stage in "$@"; do
		case $stage in
		lint)
			stage_lint
			echo "== lint took $((SECONDS - begin)) s, behind others"
			;;
		asan | tsan | fuzz) build "$stage" || true ;;
		esac
	done
}

end_behind() {
	[ -n "$behind" ] || return 0
	wait $behind || result behind none 0 1 0
	behind=
	cat "$work/behind.log"
}

# ---- main ----------------------------------------------------------------------------------------

stages=() strict=no
for stage in "${@:-all}"; do
	case $stage in
	unit | e2e | vm | vm2 | lint | asan | tsan | valgrind | fuzz) stages+=("$stage") ;;
	all) stages+=(lint unit e2e asan tsan vm) strict=yes ;;
	nightly)
		stages+=(lint unit e2e asan tsan vm vm2 fuzz valgrind)
		strict=yes
		take_all
		;;
	nightly:unit | nightly:e2e | nightly:vm | nightly:asan | nightly:tsan)
		stages+=("${stage#nightly:}")
		take_all
		;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
done
install_packages "${stages[@]}"
[ ${#stages[@]} -eq 1 ] || begin_behind "${stages[@]}"
for stage in "${stages[@]}"; do
	[ "$stage" != lint ] || [ -z "$behind" ] || continue
	begin=$SECONDS
	"$root/tests/leftovers.sh" >"$work/before"
	"stage_$stage"
	demand_nothing_left "$stage"
	echo "== $stage took $((SECONDS - begin)) s"
done
end_behind
report "$strict"
