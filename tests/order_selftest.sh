#!/bin/bash
# order_selftest.sh - order.sh finds a wrong include, a wrong call without an include, and files that
# call each other in a circle, in a small tree made for it, and nothing in a correct tree. It finds a
# README.md that gives another order of its files, too.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-order.XXXXXX")
trap 'rm -rf "$tree"' EXIT

# source_file PATH: compiles standard input, and places the object as CMake would.
source_file() {
	local path=$1 object
	object=$tree/build/${path%%/*}/CMakeFiles/x.dir/${path#*/}.o
	mkdir -p "$(dirname "$tree/$path")" "$(dirname "$object")"
	cat >"$tree/$path"
	[[ $path != *.c ]] || (cd "$tree" && gcc -I . -c -o "$object" "$path")
}

# demands WHAT: order.sh prints exactly these lines.
demands() {
	local found
	found=$("$here/order.sh" "$tree/build" "$tree" || true)
	[ "$found" = "$1" ] || {
		printf 'expected:\n%s\nfound:\n%s\n' "$1" "$found"
		exit 1
	}
}

source_file common/base/log.c <<<'void log_it(void) {}'
source_file server/store/store.h <<<'void store_get(void);'
source_file server/store/store.c <<<'void log_it(void); void store_get(void) { log_it(); }'
source_file daemon/ops/read.h <<<'void read_it(void);'
source_file daemon/ops/read.c <<<'void gate_enter(void); void read_it(void) { gate_enter(); }'
source_file daemon/file/gate.c <<<'void gate_enter(void) {}'
demands ''

source_file daemon/file/gate.c <<<'void read_it(void); void gate_enter(void) { read_it(); }'
demands 'against the order: daemon/file/gate.c -> daemon/ops/read.c: read_it'

source_file daemon/file/gate.c <<-END
	#include "daemon/ops/read.h"
	void gate_enter(void) {}
END
demands 'against the order: daemon/file/gate.c -> daemon/ops/read.h'

source_file daemon/file/gate.c <<<'void gate_enter(void) {}'
demands ''

source_file daemon/new/thing.c <<<'void read_it(void); void thing(void) { read_it(); }'
demands 'against the order: daemon/new/thing.c -> no folder of the order'
rm -r "$tree/daemon/new" "$tree/build/daemon/CMakeFiles/x.dir/new"

# The main file of rmemfsctl is above its folders; the mount knows none of them.
source_file daemon/ctl/client.c <<<'void ask(void) {}'
source_file daemon/ctl/doctor/doctor.c <<<'void ask(void); void examine(void) { ask(); }'
source_file daemon/ctl/rmemfsctl.c <<<'void examine(void); int main(void) { examine(); return 0; }'
demands ''
source_file daemon/ctl/client.c <<<'void examine(void); void ask(void) { examine(); }'
demands 'against the order: daemon/ctl/client.c -> daemon/ctl/doctor/doctor.c: examine'
source_file daemon/ctl/client.c <<<'void ask(void) {}'
source_file daemon/file/gate.c <<<'void examine(void); void gate_enter(void) { examine(); }'
demands 'against the order: daemon/file/gate.c -> daemon/ctl/doctor/doctor.c: examine'
source_file daemon/file/gate.c <<<'void gate_enter(void) {}'
rm -r "$tree/daemon/ctl" "$tree/build/daemon/CMakeFiles/x.dir/ctl"

source_file daemon/file/commit.c <<<'void gate_enter(void); void commit_it(void) { gate_enter(); }'
demands ''

source_file daemon/file/gate.c <<<'void commit_it(void); void gate_enter(void) { commit_it(); }'
demands 'a circle: daemon/file/commit.c daemon/file/gate.c'
source_file daemon/file/gate.c <<<'void gate_enter(void) {}'

# A README.md that gives the order of its files is true, and has all of them.
table() {
	printf 'A file calls only files below it.\n\n'
	printf '| word | meaning |\n| --- | --- |\n| gate | a word |\n\n## Files\n\n| file | does |\n| --- | --- |\n'
	printf '| %s | something |\n' "$@"
}
table "\`commit\`" "\`gate\`, gate.h" | source_file daemon/file/README.md
demands ''
table gate.c commit gate.h | source_file daemon/file/README.md
demands 'daemon/file/README.md: daemon/file/commit.c calls daemon/file/gate.c, which is not below it'
table "commit, gate" | source_file daemon/file/README.md
demands 'daemon/file/README.md: daemon/file/commit.c calls daemon/file/gate.c, which is not below it'
table commit gate.h | source_file daemon/file/README.md
demands 'daemon/file/README.md: daemon/file/gate.c is not in the table'
