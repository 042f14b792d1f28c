# shellcheck shell=bash disable=SC2034
# shown.bash - the commands and files that documents in Markdown show; sourced. tests/docs.sh checks that
# they are known, tests/e2e/guide.bats runs them.

# Commands that guide.bats does not run: a regular expression for the whole command, and the reason.
shown_elsewhere=(
	'config/quickstart\.sh' 'tests/e2e/quickstart.bats runs it'
	'tests/run\.sh' 'it runs the tests'
	'xargs rm .*' 'it would remove what is installed on the machine'
	'apt(-get)? .*' 'it would change the packages of the machine'
	'cmake .*' 'tests/e2e/install.bats and tests/packages.sh build and install'
	'cd build/release/packages' 'tests/packages.sh makes the packages elsewhere'
	'modprobe tls' 'it would change the kernel of the machine'
	'scp 10\.0\.0\.1:.*' 'it takes another machine; here both ends have the same file'
	'ssh -L .*' 'it takes another machine'
	'rdma link show' 'it takes an RDMA device'
	'ip (addr show|link set) .*eth1.*' 'it takes the interface of an RDMA device'
	'bpftrace .*' 'it runs until it is interrupted; tests/docs.sh compiles the scripts'
	'dcb .*' 'it takes a network card with DCB'
	'.* ?/sys/kernel/config/rdma_cm/mlx5_0.*' 'it takes an RDMA device'
)

# shown_is_elsewhere COMMAND
shown_is_elsewhere() {
	local i
	for ((i = 0; i < ${#shown_elsewhere[@]}; i += 2)); do
		[[ ! $1 =~ ^(${shown_elsewhere[i]})$ ]] || return 0
	done
	return 1
}

# shown_blocks FILE PREFIX: the fenced blocks of FILE as PREFIX.NNN; those for a shell end in .sh.
shown_blocks() {
	rm -f "$2".*
	awk -v to="$2" '
		/^```/ { on = !on; out = sprintf("%s.%03d%s", to, ++n, $0 == "```sh" ? ".sh" : ""); next }
		on { print > out }' "$1"
}

# shown_commands FILE...: the commands in blocks for a shell, one per line: continued lines are joined, comments
# removed.
shown_commands() {
	sed -e ':a; /\\$/ { N; s/\\\n//; ba }' "$@" | sed -E 's/(^|[[:space:]])#.*//; s/&&/\n/g' |
		sed -E 's/^[[:space:]]+//; s/[[:space:]]+$//' | grep . || true
}

# shown_inline FILE: text in backquotes within a line is a command, too, if it begins with a program of ours.
shown_inline() {
	# shellcheck disable=SC2016 # backquotes of Markdown
	grep -oE '`(rmemfs|rmemfsctl|rmemfs-server) [^`]*`' "$1" | tr -d '`' || true
}
