#!/bin/bash
# lint.sh [BUILD] - format, static analysis, spelling, plain English, and the rules of includes; TAP on
# standard output. BUILD is a configured build folder (build/dev): the analysers take the compiler's
# flags from its compile_commands.json. With RMEMFS_TEST_NIGHTLY=1 clang's analyzer also looks for
# wrong paths through the code, which takes ten minutes. On Debian 12: other versions of
# clang-format format differently.
set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=tests/tap.bash
. tests/tap.bash
build=${1:-build/dev}

sources() {
	find common server daemon tests -name '*.[ch]' -type f | sort
}

scripts() {
	find config tests .ci -type f \( -name '*.sh' -o -name '*.bash' -o -name '*.bats' \) | sort
	find config packaging tests .ci -type f ! -name '*.*' -exec grep -lE '^#!/bin/(ba)?sh' {} + | sort
}

format() {
	sources | xargs clang-format --dry-run -Werror
}

tidy() {
	local checks=()
	[ "${RMEMFS_TEST_NIGHTLY:-0}" = 1 ] || checks=('--checks=-clang-analyzer-*')
	[ -e "$build/compile_commands.json" ] || {
		echo "$build is not configured: cmake --preset dev"
		return 1
	}
	sources | grep '\.c$' | while read -r file; do
		# Fuzzers and other programs outside this build have no flags in the file.
		! grep -qF "/$file\"" "$build/compile_commands.json" || echo "$file"
	done | xargs -P 2 -n 4 clang-tidy -p "$build" --quiet "${checks[@]}"
}

static_analysis() {
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
		--suppressions-list=.cppcheck-suppressions --error-exitcode=1 -j 2 -I . \
		-D_GNU_SOURCE -D__linux__ common server daemon
}

# In bats files every command is checked, and variables come from the helpers.
shell() {
	local status=0
	scripts | grep -v '\.bats$' | xargs shellcheck -x || status=1
	scripts | grep '\.bats$' | xargs shellcheck -x -e SC2154,SC2164,SC2030,SC2031,SC2016 || status=1
	return "$status"
}

spelling() {
	codespell common server daemon config systemd packaging cmake tests .ci ./*.md CMakeLists.txt CMakePresets.json
}

# Each header by itself, with the flags of the build's own files.
headers_alone() {
	local flags header status=0
	flags=$(pkg-config --cflags fuse3 libibverbs librdmacm libconfig openssl jansson libsystemd libseccomp)
	for header in $(find common server daemon -name '*.h' | sort); do
		# shellcheck disable=SC2086 # flags are several
		gcc -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Wall -Wextra -Wundef -Werror \
			-Wno-unused-parameter -Wno-missing-field-initializers -I . $flags \
			-fsyntax-only -x c -include "$header" /dev/null || status=1
	done
	return "$status"
}

# forbid PATTERN WHY FILE...: no file may have a line that matches.
forbid() {
	local pattern=$1 why=$2
	shift 2
	[ $# -gt 0 ] || return 0
	! grep -nE "$pattern" "$@" /dev/null || {
		echo "$why"
		return 1
	}
}

# home PATTERN HOME: only files whose path matches HOME may include headers that match PATTERN.
home() {
	local others
	mapfile -t others < <(find common server daemon -name '*.[ch]' | grep -vE "$2" | sort)
	forbid "^#include [<\"]($1)" "$1 may only be included by $2" "${others[@]}"
}

in_folder() {
	find "$1" -name '*.[ch]' | sort
}

# Dependencies run downward only, and external headers have one home each (ARCHITECTURE.md).
include_rules() {
	local status=0
	# shellcheck disable=SC2046 # paths without spaces
	{
		forbid '^#include "(server|daemon)/' "common/ knows neither program" \
			$(in_folder common) || status=1
		forbid '^#include "daemon/' "the server never includes the daemon" \
			$(in_folder server) || status=1
		forbid '^#include "server/' "the daemon never includes the server" \
			$(in_folder daemon) || status=1
		forbid '^#include "[^/"]+"' "our headers are included by their path from the top" \
			$(in_folder common) $(in_folder server) $(in_folder daemon) || status=1
	}
	home 'fuse|linux/fuse' '^daemon/(fuse/|ctl/doctor/features)' || status=1
	home 'infiniband/|rdma/' '^common/transport/verbs/' || status=1
	home 'lmdb\.h' '^server/store/' || status=1
	home 'xxhash\.h' '^server/(store/|snapshot/image_block)' || status=1
	home 'libconfig\.h' '^common/conf' || status=1
	home 'openssl/' '^common/auth' || status=1
	home 'seccomp\.h' '^common/sandbox' || status=1
	return "$status"
}

# Long files and functions hide two concepts; the style allows only flat ones.
sizes() {
	local status=0 file lines most
	while read -r file; do
		lines=$(wc -l <"$file")
		most=1000
		[[ $file != @(daemon|server|common)/* ]] || most=700
		[ "$lines" -le "$most" ] || {
			echo "$file has $lines lines"
			status=1
		}
	done < <(sources)
	return "$status"
}

# A test whose conditions can fail unseen, and one whose conditions can't.
unseen_is_found() {
	local tests seen unseen
	tests=$(mktemp -d)
	printf '%s\n' 'looks() {' '! rm a' '[ -e a ] &&' '	[ -e b ] && [ -e c ]' 'cd /' '}' >"$tests/unseen.bats"
	printf '%s\n' 'looks() {' 'cd /' '[ -e a ] &&' '	[ -e b ] && [ -e c ]' '}' \
		'[ -e a ] && [ -e b ] || return 1' '! rm a || return 1' 'cd /' >"$tests/seen.bats"
	seen=$(tests/unseen.sh "$tests/seen.bats" | wc -l)
	unseen=$(tests/unseen.sh "$tests/unseen.bats" | wc -l) || true
	rm -r "$tests"
	[ "$seen" -eq 0 ] && [ "$unseen" -eq 2 ]
}

check "clang-format" format
check "every header compiles alone" headers_alone
check "include rules" include_rules
check "order of the folders" tests/order.sh "$build"
check "the order is checked" tests/order_selftest.sh
check "file sizes" sizes
check "plain English" tests/prose.sh
check "plain English is checked" tests/prose_selftest.sh
check "shellcheck" shell
check "conditions of tests" tests/unseen.sh
check "conditions of tests are checked" unseen_is_found
check "codespell" spelling
check "cppcheck" static_analysis
check "clang-tidy" tidy
check_end
