# shellcheck shell=bash
# tap.bash - checks of a script as TAP on standard output.

failed=0 checks=0

# check NAME COMMAND...: shows the command's output if it fails.
check() {
	local name=$1 output
	shift
	checks=$((checks + 1))
	if output=$("$@" 2>&1); then
		echo "ok $checks - $name"
	else
		failed=1
		echo "not ok $checks - $name"
		printf '%s\n' "$output" | sed 's/^/# /'
	fi
}

# Prints the plan and exits.
check_end() {
	echo "1..$checks"
	exit "$failed"
}
