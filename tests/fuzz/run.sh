#!/bin/bash
# run.sh FUZZER [SECONDS] - runs one libFuzzer program for so long (60 s), starting from its earlier
# findings (build/fuzz/corpus); TAP on standard output. Failing inputs stay in its folder crashes.
set -euo pipefail

fuzzer=$(realpath "${1:?the program}")
seconds=${2:-60}
name=${fuzzer##*/}
corpus=$(dirname "$fuzzer")/../corpus/$name
mkdir -p "$corpus/inputs" "$corpus/crashes"
cd "$corpus"
echo 1..1
if "$fuzzer" -max_total_time="$seconds" -timeout=10 -artifact_prefix=crashes/ -print_final_stats=1 \
	inputs >last.log 2>&1; then
	echo "ok 1 - $name for $seconds s"
else
	tail -n 60 last.log | sed 's/^/# /'
	echo "not ok 1 - $name: see $corpus/crashes"
	exit 1
fi
