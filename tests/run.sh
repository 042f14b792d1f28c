#!/bin/bash
# run.sh [STAGE]... - installs what the tests need, builds, runs them; see usage below.
#
# Every stage speaks TAP. Its output goes to the screen and to a log, and the log is counted. A
# stage that fails, or gives fewer results than it announced, counts as failed: a crash in the
# middle loses nothing. The failures are shown again at the end.
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
		  vm       the contract and a part of e2e over verbs, and records by the kernel's TLS, in a
		           guest with Soft-RoCE
		  lint     format, static analysis, spelling, include rules, documents, Debian packages, the
		           benchmark's plots
		  asan     unit and a part of e2e under the address and undefined behaviour sanitizers
		  tsan     the same under the thread sanitizer
		  all      all of these (the default); here a skipped test is a failure, but for what
		           the kernel can't do
		  names    the part of e2e that makes files, in mounts with names=local; a part of it in mounts with
		           share, and with both
		  vm2      two guests on a wire, over verbs and tcp: the wire is cut, one of them dies
		  systemd  two machines with the systemd, the kernel and our packages of Debian 12, then of 13:
		           boot, reboot, crash, upgrade, loss of power
		  platforms  all presets are built, and unit runs, in clean roots of Debian 12 and 13; the packages
		           are installed, used, upgraded, removed and purged on clean machines; the
		           images of containers are made and run; unit runs for arm64, by emulation
		  nightly  all, and what takes longer: names, vm2, systemd, platforms, e2e over shm and under
		           the sanitizers, and over verbs what has to do with transports, fuzzers, the server under valgrind; nightly:STAGE is a part of it
	END
}

# ---- packages ------------------------------------------------------------------------------------

stage_packages() {
	echo "${PACKAGES_BUILD[@]}" libcmocka-dev
	case $1 in
	e2e)
		echo "${PACKAGES_RUN[@]}" attr acl libcap2-bin bats curl fio gdb git jq libxml2-utils prometheus sqlite3 systemd tar diffutils iproute2 procps
		[ "${RMEMFS_TEST_NIGHTLY:-0}" = 0 ] || echo chromium dbench postgresql postgresql-contrib rsync stress-ng
		;;
	asan | tsan | names) echo "${PACKAGES_RUN[@]}" attr acl libcap2-bin bats curl fio git jq libxml2-utils sqlite3 diffutils iproute2 procps ;;
	vm | vm2)
		echo "${PACKAGES_RUN[@]}" attr acl libcap2-bin bats fio git jq sqlite3 qemu-system-x86 cpio kmod iproute2
		[ "$1" = vm ] || echo tcpdump
		;;
	lint) echo clang-format clang-tidy cppcheck shellcheck codespell mandoc groff-base bats gnuplot-nox
		echo lintian dpkg-dev file rpm binutils diffutils prometheus zsh
		echo bpftrace python3-kubernetes python3-yaml ;;
	fuzz) echo clang libclang-rt-dev ;;
	systemd) echo bats cpio dpkg-dev iproute2 ibverbs-providers jq kmod mmdebstrap debian-archive-keyring qemu-system-x86 ;;
	platforms) echo mmdebstrap debian-archive-keyring podman crun python3-kubernetes python3-yaml iproute2 ;;
	valgrind) echo "${PACKAGES_RUN[@]}" bats valgrind fio git jq sqlite3 diffutils iproute2 procps ;;
	esac
}

# packages_of STAGE...: one per line.
packages_of() {
	local stage
	{
		echo jq
		for stage in "$@"; do
			stage_packages "$stage"
		done
	} | tr ' ' '\n' | sort -u
}

install_packages() {
	local packages
	mapfile -t packages < <(packages_of "$@")
	packages_install "${packages[@]}"
}

if [ "${1:-}" = --packages ]; then
	packages_of "${@:2}"
	exit
fi

# ---- results -------------------------------------------------------------------------------------

work=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-run.XXXXXX")
memory=$(mktemp -d /dev/shm/rmemfs-run.XXXXXX)
trap end_run EXIT
: >"$work/results"

# Leftovers are found in these folders. Ordinary users need access to some of them.
mkdir "$work/tmp"
chmod 755 "$work" "$work/tmp" "$memory"
export TMPDIR=$work/tmp RMEMFS_TEST_RUN=$work RMEMFS_TEST_SHM=$memory

# The processes with the mark of this run, or of a part of it. (A subshell of ours has none.)
marked() {
	env -u RMEMFS_TEST_RUN grep -lzsE "^RMEMFS_TEST_RUN=$work(/|\$)" /proc/[0-9]*/environ | cut -d/ -f3
}

# An interrupted run leaves nothing: the tests' mounts end with the processes of their namespaces.
end_run() {
	local deadline=$((SECONDS + 10)) processes
	mapfile -t processes < <(jobs -p)
	while :; do
		[ ${#processes[@]} -eq 0 ] || kill -KILL "${processes[@]}" 2>/dev/null || true
		# Without their queues our subshells end, too.
		rm -rf "$work" "$memory" 2>/dev/null || true
		mapfile -t processes < <(marked)
		[ ${#processes[@]} -gt 0 ] && [ $SECONDS -lt $deadline ] || break
		sleep 0.1
	done
}

# result STAGE TRANSPORT PASSED FAILED SKIPPED [PERMITTED]: the permitted ones are skips, too.
result() {
	echo "$*" >>"$work/results"
}

# The reasons for which a stage's tests may skip, as a regular expression: what this kernel, or the guest's, can't do.
new_kernel='needs Linux before 6[.]9' old_kernel='needs Linux 6[.]9'
if [ "$(printf '6.9\n%s\n' "$(uname -r)" | sort -V | head -n 1)" = 6.9 ]; then
	may_skip=$new_kernel
else
	may_skip=$old_kernel
fi

# Counts a TAP log: cmocka writes a skip as "not ok N # SKIP", bats as "ok N name # skip".
count_tap() {
	awk -v may_skip="$may_skip" '
		/^(not )?ok [0-9].*# [Ss][Kk][Ii][Pp]/ && $0 ~ may_skip { permitted++; next }
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

# note_failures STAGE TRANSPORT LOG: each test that failed, with the first and the last lines that it has printed.
note_failures() {
	awk -v stage="$1 ($2)" -v first=12 -v last=30 '
		function show(i) {
			for (i = 1; i <= n; i++) {
				if (i <= first || i > n - last)
					print "    " substr(line[i], 1, 300)
				else if (i == first + 1)
					print "    ..."
			}
			n = 0
		}
		/^(ok|not ok|1\.\.)/ { show(); fails = 0 }
		/^not ok [0-9]/ && !/# [Ss][Kk][Ii][Pp]/ { print stage ": " $0; fails = 1 }
		/^#/ && fails { line[++n] = $0 }
		END { show() }
	' "$3" >>"$work/failures"
}

# Seconds for one command of a stage, so that a silent one ends.
limit=2500

# An area without a test for this transport (areas_may_be_empty) says so.
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
	note_failures "$stage" "$transport" "$log"
	if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
		echo "== $stage ($transport) ended with status $status"
		failed=1
	elif [ $((passed + failed + skipped + permitted)) -eq 0 ] && ! may_be_empty "$log"; then
		echo "== $stage ($transport) ran no test"
		failed=1
	fi
	result "$stage" "$transport" "$passed" "$failed" "$skipped" "$permitted"
}

# ---- leftovers -----------------------------------------------------------------------------------

left_more_than_before() {
	"$root/tests/leftovers.sh" >"$TMPDIR.after"
	comm -13 "$TMPDIR.before" "$TMPDIR.after" >"$TMPDIR.left"
	[ -s "$TMPDIR.left" ]
}

# demand_nothing_left STAGE: some leftovers take a moment to end. Those that remain are named and
# ended, so that they harm no later stage.
demand_nothing_left() {
	local deadline=$((SECONDS + 5)) what name
	while left_more_than_before; do
		if [ $SECONDS -ge $deadline ]; then
			sed "s/^/== $1 left /" "$TMPDIR.left"
			result "$1:leftovers" none 0 1 0
			while read -r what name _; do
				[ "$what" != process ] || kill -KILL "$name" 2>/dev/null || true
				[ "$what" != mount ] || umount -l "$name" || true
			done <"$TMPDIR.left"
			return
		fi
		sleep 0.1
	done
}

# Prints the summary, and returns whether all is well.
report() {
	local strict=$1
	echo
	[ ! -s "$work/failures" ] || head -n 150 "$work/failures"
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

# build PRESET: once a run; a second caller waits meanwhile.
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

# Runs one program that ctest knows, given as "NAME<tab>COMMAND<tab>ARGUMENTS...". Its TAP log is
# shown whole when it has ended, since others run at the same time.
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

# take_from QUEUE: removes and prints its first line, so that each caller gets another one.
take_from() {
	local queue=$1
	(
		flock 9
		sed -n 1p "$queue"
		sed -i 1d "$queue"
	) 9>"$queue.lock"
}

# unit_queue DIR waits|computes: the programs of that kind, as lines for run_unit_program, the
# longest first.
unit_queue() {
	ctest --test-dir "$1" --show-only=json-v1 | jq -r --arg kind "$2" '
		def property($name): .properties[]? | select(.name == $name) | .value;
		[.tests[] | select(.command)
			| . + {cost: (property("COST") // 0),
				kind: (if any(property("LABELS")[]?; . == "waits") then "waits" else "computes" end)}]
		| sort_by(-.cost)[] | select(.kind == $kind) | [.name] + .command | @tsv'
}

# run_units QUEUE STAGE [COMMAND...]
run_units() {
	local queue=$1 stage=$2 line
	shift 2
	while IFS=$'\t' read -r -a line < <(take_from "$queue"); do
		[[ " ${left_out[*]-} " == *" ${line[0]} "* ]] ||
			run_unit_program "$stage" "${line[0]}" "$@" "${line[@]:1}"
	done
}

# As many programs compute at a time as there are processors, and as many others wait meanwhile. (A
# subshell, so that only these are waited for.)
run_unit() (
	stage=$1 dir=$2 computing=$work/unit.computes waiting=$work/unit.waits
	shift 2
	unit_queue "$dir" computes >"$computing"
	unit_queue "$dir" waits >"$waiting"
	if [ ! -s "$computing" ]; then
		echo "== $stage: no tests were built"
		result "$stage" none 0 1 0
	fi
	for ((i = 0; i < $(nproc); i++)); do
		run_units "$waiting" "$stage" "$@" &
		{
			run_units "$computing" "$stage" "$@"
			run_units "$waiting" "$stage" "$@"
		} &
	done
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

# Most of the time is waiting, so several areas run at the same time. A stream that has ended one
# area takes the next, so that all end together. Long areas come first.
e2e_streams=3
stage_e2e() {
	build dev || return 0
	e2e_queue | run_areas e2e dev
}

# run_areas STAGE PRESET: reads lines of "AREA TRANSPORT".
run_areas() {
	local stage=$1 preset=$2 queue=$work/$1.queue i pids=()
	cat >"$queue"
	for ((i = 0; i < e2e_streams; i++)); do
		run_queue "$queue" "$stage" "$preset" &
		pids+=($!)
	done
	wait "${pids[@]}"
}

e2e_queue() {
	local area
	for area in "${areas[@]}"; do
		[[ " ${remote[*]} " != *" $area "* ]] || echo "$area tcp"
		[[ " ${shared[*]} " != *" $area "* ]] || echo "$area shm"
	done
}

# Shows the output of each area whole.
run_queue() {
	local queue=$1 stage=$2 preset=$3 area transport out areas_may_be_empty=1
	while read -r area transport < <(take_from "$queue"); do
		out=$work/$stage.$area.$transport.out
		run_bats "$stage:$area" "$transport" "$preset" "$area" >"$out" 2>&1
		flock "$work" cat "$out"
		rm "$out"
	done
}

# A guest has its own memory.
in_guest=(env -u RMEMFS_TEST_SHM)

stage_vm() {
	local may_skip=$old_kernel
	build dev || return 0
	run_guest vm programs "${emulated[@]}" &
	[ ${#emulated_too[@]} -eq 0 ] || run_guest vm:2 "${emulated_too[@]}"
	wait $!
}

# run_guest STAGE WHAT...: see guest.sh.
run_guest() {
	local stage=$1
	shift
	RMEMFS_BIN=$builds/dev/bin run_tap "$stage" verbs "${in_guest[@]}" \
		"$root/tests/vm/run.sh" --timeout $((limit - 100)) -- "$root/tests/e2e/guest.sh" "$@"
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
	run_tap lint:packages none "$root/tests/packages.sh" "$builds/dev"
	run_tap lint:monitoring none "$root/tests/monitoring.sh" "$builds/dev"
	run_tap lint:bench none bats --formatter tap "$root"/tests/bench/*.bats
}

stage_asan() {
	build asan || return 0
	run_unit asan "$builds/asan"
	printf '%s tcp\n' "${asan[@]}" | run_areas asan asan
}

stage_tsan() {
	local left_out=("${one_threaded[@]}")
	build tsan || return 0
	# Under some kernels' address randomisation the thread sanitizer can't place its shadow.
	run_unit tsan "$builds/tsan" setarch -R
	printf '%s tcp\n' "${tsan[@]}" | run_areas tsan tsan
}

stage_names() {
	build dev || return 0
	RMEMFS_TEST_NAMES=local run_areas names dev < <(printf '%s tcp\n' "${named[@]}")
	local may_skip="$may_skip|needs a mount that is alone"
	RMEMFS_TEST_SHARE=1 run_areas share dev < <(printf '%s tcp\n' "${lone[@]}")
	RMEMFS_TEST_SHARE=1 RMEMFS_TEST_NAMES=local run_areas share-names dev < <(printf '%s tcp\n' "${lone[@]}")
}

# Valgrind finds what sanitizers do not: memory of the server that is used before it is set.
stage_valgrind() {
	local memcheck=(env RMEMFS_SANDBOX=off valgrind --quiet --fair-sched=yes --error-exitcode=99 --leak-check=full
		"--errors-for-leak-kinds=definite,indirect,possible"
		"--suppressions=$root/tests/valgrind.supp")
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

# The two machines' packages are made in a root of their release, as their administrator would get them.
stage_systemd() {
	local release folder
	for release in bookworm trixie; do
		folder=$work/$release
		if "$root/tests/platforms/make_packages.sh" "$release" "$folder" >"$work/$release.log" 2>&1; then
			run_tap "systemd:$release" none "${in_guest[@]}" "$root/tests/vm/systemd.sh" "$release" "$folder/packages"
		else
			tail -n 40 "$work/$release.log"
			result "systemd:$release" none 0 1 0
		fi
		rm -rf "$folder"
	done
}

# Neither a PID namespace nor an emulator has all that some unit tests look at: their scripts mark these skips.
stage_platforms() {
	local release may_skip='# SKIP [(]not here[)]'
	for release in bookworm trixie; do
		run_tap "platforms:$release" none "$root/tests/platforms/run.sh" "$release"
	done
}

# Every day each area of e2e runs over tcp, or over shm where the network has little part in it. An
# area runs more than once if the transport, the sanitizers or the guest's kernel may make a
# difference to it. Nightly all areas run everywhere, but in emulated guests only those in which the
# network has a part, and two guests share these. Above the transports the same code runs over all of them: for
# names, rights, ids, locks and attributes, and for an administrator's questions.
local_only=(acl cache full locks mmap quota regions scale times tmpfile xattr)
above_transports=(acl_twins attributes client_crashes guide health idmapped install metrics namespace options page probes
	prometheus quickstart shared_locks shared_owners shared_times sharing squash squash_server syscalls twins units
	unseen userns watch who)
shared=(cost faults mount shared_faults shared_fence "${local_only[@]}")
long=(alone_locks alone_revive shared scale namespace mount shared_locks coherence shared_fence shared_faults kill snapshot programs faults stress)
areas=("${long[@]}") remote=() wired=()
for area in "$root"/tests/e2e/*.bats; do
	area=$(basename "$area" .bats)
	[[ " ${long[*]} " == *" $area "* ]] || areas+=("$area")
	[[ " ${local_only[*]} " == *" $area "* ]] || remote+=("$area")
	[[ " ${local_only[*]} ${above_transports[*]} " == *" $area "* ]] || wired+=("$area")
done
asan=(namespace) tsan=(basic shared_mmap)
named=(namespace syscalls kill faults quota snapshot acl attributes basic full locks remount signals squash stress times
	tmpfile twins upgrade xattr)
# Of mounts that share from the beginning, too.
lone=(namespace syscalls quota snapshot acl xattr)
# Slow under the thread sanitizer, and the work of one thread only.
one_threaded=(test_server_namespace_copy test_server_check_damage test_server_namespace_lock test_server_namespace_model test_server_meta_size
	test_server_namespace_xattr_model)
# Nightly only, the guest counts what operations cost: it takes five minutes in an emulated guest.
emulated=(faults coherence keep_out) emulated_too=()

take_all() {
	local i
	emulated=()
	# The first guest runs programs, too.
	for ((i = 0; i < ${#wired[@]}; i++)); do
		if [ $((i % 3)) -eq 0 ]; then emulated+=("${wired[i]}"); else emulated_too+=("${wired[i]}"); fi
	done
	shared=("${areas[@]}") remote=("${areas[@]}") asan=("${areas[@]}") tsan=("${areas[@]}") one_threaded=()
	limit=10800
	export RMEMFS_TEST_NIGHTLY=1
}

wants() {
	[[ " ${stages[*]} " == *" $1 "* ]]
}

run_stage() {
	local begin=$SECONDS
	"$root/tests/leftovers.sh" >"$TMPDIR.before"
	"stage_$1"
	demand_nothing_left "$1"
	echo "== $1 took $((SECONDS - begin)) s"
}

# ---- behind the stages ---------------------------------------------------------------------------

# Most of a stage's time is waiting, so others run behind it, each by its name and process. Each has
# marks of its own, to find what it leaves.
declare -A behind=()

# begin_behind NAME COMMAND...
begin_behind() {
	local name=$1
	shift
	mkdir "$work/$name" "$memory/$name"
	TMPDIR=$work/$name RMEMFS_TEST_RUN=$work/$name RMEMFS_TEST_SHM=$memory/$name \
		"$@" >"$work/$name.log" 2>&1 &
	behind[$name]=$!
}

# end_behind NAME: waits for it, and shows its output.
end_behind() {
	wait "${behind[$1]}" || result "$1" none 0 1 0
	unset "behind[$1]"
	cat "$work/$1.log"
}

# Stages that need only the processors.
lint_behind() {
	local stage
	renice -n 19 $BASHPID >/dev/null
	for stage in asan tsan fuzz; do
		! wants "$stage" || build "$stage" || true
	done
	stage_lint
}

# ---- main ----------------------------------------------------------------------------------------

stages=() strict=no
for stage in "${@:-all}"; do
	case $stage in
	unit | e2e | names | vm | vm2 | systemd | lint | asan | tsan | valgrind | fuzz | platforms) stages+=("$stage") ;;
	all) stages+=(unit e2e asan tsan vm lint) strict=yes ;;
	nightly)
		stages+=(unit e2e names asan tsan vm vm2 systemd fuzz valgrind platforms lint)
		strict=yes
		take_all
		;;
	nightly:lint | nightly:unit | nightly:e2e | nightly:vm | nightly:asan | nightly:tsan)
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
[ ${#stages[@]} -eq 1 ] || ! wants lint || begin_behind lint lint_behind
for stage in "${stages[@]}"; do
	[ "$stage" != asan ] || ! wants vm || begin_behind vm run_stage vm
	if [ -n "${behind[$stage]:-}" ]; then
		end_behind "$stage"
	else
		run_stage "$stage"
	fi
done
report "$strict"
