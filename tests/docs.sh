#!/bin/bash
# docs.sh [BUILD] - checks manual pages, README and examples against the programs; TAP on standard
# output. BUILD is a build folder with the programs in it (build/dev).
#
# A page's source shows its facts: options are in ".It Fl", mount options in ".It Cm", keys in ".It
# Ic" with type, range and default in the line after it, messages in ".It Sy".
set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=tests/tap.bash
. tests/tap.bash
# shellcheck source=tests/shown.bash
. tests/shown.bash
bin=${1:-build/dev}/bin
work=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-docs.XXXXXX")
trap 'rm -rf "$work"' EXIT

programs=(rmemfs rmemfs-server rmemfsctl rmemfs-metrics)
manuals=(daemon/rmemfs.8 server/rmemfs-server.8 daemon/rmemfsctl.8 daemon/rmemfs-metrics.8 config/rmemfs.conf.5
	docs/rmemfs-guide.7)
conf_page=config/rmemfs.conf.5

complain() {
	echo "$*"
	return 1
}

page_of() {
	printf '%s\n' "${manuals[@]}" | grep "/$1\.8$"
}

# same WHAT FIRST SECOND: the two files have the same lines, and are not empty.
same() {
	sort -u "$2" >"$work/first"
	sort -u "$3" >"$work/second"
	[ -s "$work/first" ] || complain "$1: nothing was found" || return
	diff "$work/first" "$work/second" || complain "$1: < only in ${2##*/}, > only in ${3##*/}"
}

# all_in WHAT FIRST SECOND: each line of the first file, which is not empty, is in the second.
all_in() {
	sort -u "$2" >"$work/first"
	sort -u "$3" >"$work/second"
	[ -s "$work/first" ] || complain "$1: nothing was found" || return
	comm -23 "$work/first" "$work/second" >"$work/missing"
	[ ! -s "$work/missing" ] || complain "$1 not in ${3##*/}: $(paste -sd ' ' "$work/missing")"
}

# section PAGE HEADING: prints the section's source.
section() {
	awk -v heading="$2" '/^\.Sh / { on = substr($0, 5) == heading } on' "$1"
}

# ---- options -------------------------------------------------------------------------------------

help_options() {
	"$bin/$1" "${@:2}" --help | grep -E '^ +-' | sed -E 's/^ +//; s/  .*//' |
		grep -oE '(^|[ ,])--?[a-zA-Z][a-z-]*' | tr -d ' ,'
}

# ".It Fl c , Fl -config Ar file" is -c and --config.
page_options() {
	grep -E '^\.It Fl ' "$1" | grep -oE 'Fl [^ ]+' | sed 's/^Fl /-/'
}

# The long options in a program's getopt table.
source_options() {
	sed -nE 's/^\t\{"([a-z-]+)", (no|required)_argument.*/--\1/p' "$1"
}

options() {
	local source=$2
	help_options "$1" >"$work/--help"
	page_options "$(page_of "$1")" >"$work/page"
	source_options "$source" >"$work/source"
	same "options of $1" "$work/--help" "$work/page" || return
	all_in "options of $source" "$work/source" "$work/--help"
}

# The synopsis as --help writes it: ".Op Ar host" is "[HOST]". Usages of the program itself, without
# a command, are left out.
page_usages() {
	section daemon/rmemfsctl.8 SYNOPSIS | sed -nE -e 's/^\.Nm.*/\n/p' -e 's/^\.Cm //p' \
		-e 's/^\.Op Fl (.*) Ar (.*)/[-\1 \U\2]/p' -e 's/^\.Op Fl (.*)/[-\1]/p' -e 's/^\.Op Ar (.*)/[\U\1]/p' -e 's/^\.Ar (.*)/\U\1/p' |
		awk -v RS= '{ $1 = $1; print }' | grep '^[a-z]'
}

# The summary and the page have each command's own usage, with its options.
usages() {
	local command usage status=0
	page_usages >"$work/page"
	"$bin/rmemfsctl" --help | sed -nE 's/^.{6} rmemfsctl ([a-z].*)/\1/p' >"$work/--help"
	same "usages" "$work/--help" "$work/page" || return
	while read -r usage; do
		command=${usage%% *}
		"$bin/rmemfsctl" "$command" --help >"$work/$command"
		[ "$(head -n 1 "$work/$command")" = "Usage: rmemfsctl $usage" ] ||
			complain "rmemfsctl $command --help begins with another usage" || status=1
		grep -qE "^  $command +[a-z]" < <("$bin/rmemfsctl" --help) ||
			complain "--help does not say what $command does" || status=1
		{
			grep -oE '[-]-[a-z]+' <<<"$usage" || true
			printf '%s\n' -h --help
		} >"$work/usage"
		help_options rmemfsctl "$command" >"$work/options"
		same "options of rmemfsctl $command" "$work/usage" "$work/options" || status=1
	done <"$work/page"
	return "$status"
}

# completed_by SHELL WORD...: prints what the shell's completion offers for the last word, one per line. The
# stand-ins print what zsh's own functions would be given. bash splits words at "=".
completed_by() {
	local shell=$1
	shift
	case $shell in
	bash)
		PATH=$bin:$PATH bash -c '
			. config/completion/rmemfs.bash
			compopt() { :; }
			COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
			_rmemfs "$1"
			printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
		;;
	zsh)
		PATH=$bin:$PATH zsh -f -c '
			_describe() { print -l -- ${${(P)2}%%:*} }
			_files() { : }
			compset() { return 1 }
			compadd() { print -l -- "$@" }
			words=("$@") CURRENT=$# PREFIX=$@[-1] service=$1
			. config/completion/_rmemfs' zsh "$@"
		;;
	esac
}

# Both shells complete each option, command and mount option of --help.
completion() {
	local name shell=$1 command
	for name in rmemfs rmemfs-server; do
		help_options "$name" >"$work/--help"
		completed_by "$shell" "$name" - >"$work/completion"
		same "options of $name" "$work/--help" "$work/completion" || return
	done
	"$bin/rmemfsctl" --help | sed -nE 's/^.{6} rmemfsctl ([a-z]+) .*/\1/p' >"$work/--help"
	completed_by "$shell" rmemfsctl '' >"$work/completion"
	all_in "commands" "$work/--help" "$work/completion" || return
	while read -r command; do
		help_options rmemfsctl "$command" >"$work/options"
		completed_by "$shell" rmemfsctl "$command" - >"$work/completion"
		same "options of rmemfsctl $command" "$work/options" "$work/completion" || return
	done <"$work/--help"
	help_mount_options >"$work/--help"
	completed_by "$shell" rmemfs -o '' | sed 's/=$//' >"$work/completion"
	all_in "mount options" "$work/--help" "$work/completion" || return
	completed_by "$shell" rmemfs --log-level '' >"$work/completion"
	grep -qx notice "$work/completion" || complain "$shell completes no level"
}

# ---- mount options -------------------------------------------------------------------------------

help_mount_options() {
	"$bin/rmemfs" --help | sed -n '/^Mount options:/,/^$/p' | grep -E '^  [a-z]' |
		sed -E 's/^  //; s/  .*//; s/, /\n/g' | sed 's/=.*//' | grep -v '^\.\.\.$'
}

page_mount_options() {
	section daemon/rmemfs.8 'MOUNT OPTIONS' | sed -n 's/^\.It Cm //p' | sed 's/ Ns .*//; s/ , /\n/g'
}

# Nothing is mounted: the program checks the mount point after the options, and errors in options
# give 1.
accepted() {
	local said status=0
	said=$("$bin/rmemfs" "$@" 192.0.2.1:/none "$work/none" 2>&1) || status=$?
	[ "$status" -eq 32 ] || complain "$said"
}

accepts() {
	accepted -c /dev/null -o "$1" >/dev/null
}

accepts_some_value() {
	accepts "soft,$1" || accepts "soft,$1=2" || accepts "$1=auto" || accepts "$1=info" ||
		accepts "$1=none" || accepts "$1=1MiB" || accepts "$1=local" || accepts "$1=best" ||
		accepts "$1=/none"
}

mount_options() {
	local option status=0
	help_mount_options >"$work/--help"
	page_mount_options >"$work/page"
	all_in "mount options of --help" "$work/--help" "$work/page" || return
	while read -r option; do
		accepts_some_value "$option" || complain "mount option $option is refused" || status=1
	done <"$work/page"
	! accepts nosuchoption || complain "everything is accepted"
	return "$status"
}

# ---- configuration keys --------------------------------------------------------------------------

# ".It Ic KEY" and the line after it, in the words of docs_keys.c.
page_keys() {
	section "$conf_page" "$1" |
		awk '/^\.It Ic / { key = $3; getline; print key "\t" $0 }'
}

keys() {
	"$bin/$1" >"$work/table"
	page_keys "$2" >"$work/page"
	same "keys" "$work/table" "$work/page"
}

client_keys_are_options() {
	"$bin/docs_keys_daemon" | cut -f 1 >"$work/table"
	page_mount_options >"$work/page"
	all_in "keys" "$work/table" "$work/page"
}

# belong OWN OTHER FILE PROGRAM [ARGUMENT]...: for each key that the table OWN has and OTHER has
# not, PROGRAM says that it belongs to FILE.
belong() {
	local own=$1 other=$2 file=$3 key status=0
	shift 3
	"$bin/$other" | cut -f 1 >"$work/others"
	"$bin/$own" | grep '; default ' | cut -f 1 | grep -vxFf "$work/others" >"$work/own" ||
		complain "$own: no keys were found" || return
	while read -r key; do
		echo "$key = 1;" >"$work/other.conf"
		"$bin/$1" -c "$work/other.conf" "${@:2}" >"$work/said" 2>&1 || true
		grep -q ":1: $key: belongs to $file\$" "$work/said" ||
			complain "$key: $(cat "$work/said")" || status=1
	done <"$work/own"
	return "$status"
}

keys_of_the_other() {
	belong docs_keys_daemon docs_keys_server "the clients' client.conf" \
		rmemfs-server --check-config || return
	belong docs_keys_server docs_keys_daemon "the server's server.conf" \
		rmemfs 192.0.2.1:/none "$work/none"
}

# Numbers that the mount options' own page and --help repeat: "1 to 3600, 5 by default"; "(5)".
repeated_numbers() {
	local key range default text seen=0 status=0
	while read -r key range default; do
		text=$(section daemon/rmemfs.8 'MOUNT OPTIONS' | awk -v key="$key" '
			/^\.It / { on = $3 == key }
			on' | paste -sd ' ')
		seen=$((seen + 1))
		[[ $text == *"${range/-/ to }"* ]] || complain "$key: ${range/-/ to }" || status=1
		[ "$default" != automatic ] || continue
		[[ $text == *"$default by default"* ]] || complain "$key: $default by default" || status=1
		grep -qE "^ +$key=.*\($default\)" < <("$bin/rmemfs" --help) ||
			complain "--help: $key: ($default)" || status=1
	done < <("$bin/docs_keys_daemon" |
		sed -nE 's/^([a-z_]+)\tWhole number, ([0-9]+) to ([0-9]+); default (.*)\./\1 \2-\3 \4/p')
	[ "$seen" -gt 0 ] || complain "no numbers were found" || status=1
	return "$status"
}

# ---- everything else that is named ---------------------------------------------------------------

# said FILE: each line has the fixed words of a message that some program prints.
said() {
	local text status=0
	# Joins the string constants that the compiler joins.
	find common server daemon -name '*.c' -exec cat {} + | tr -d '\n' | sed -E 's/"[[:space:]]*"//g; s/\\"/"/g' \
		>"$work/sources"
	[ -s "$1" ] || complain "no messages were found" || return
	while read -r text; do
		grep -qF -- "$text" "$work/sources" ||
			complain "no program says: $text" || status=1
	done < <(sed -E "s/^[ ':();,]+//; s/[ ':();,]+\$//" "$1" | grep -E '.{6}')
	return "$status"
}

# In ".It Sy" the variable parts are in capitals; in the README's table they are "...".
messages() {
	sed -n 's/^\.It Sy //p' "$1" | tr -d '"' | sed -E 's/[A-Z]{2,}|\bN\b/\n/g; s/\\&//g' \
		>"$work/messages"
	said "$work/messages"
}

# explained PAGE FILE...: the diagnostics explain each warning of these files.
explained() {
	local text status=0
	section "$1" DIAGNOSTICS | sed -n 's/^\.It Sy //p' | tr -d '"' >"$work/diagnostics"
	cat "${@:2}" | tr -d '\n' | sed -E 's/"[[:space:]]*PRI[a-z0-9]+[[:space:]]*"/u/g; s/"[[:space:]]*"//g' |
		grep -oE 'log_warning\("[^"]*"' | sed -E 's/^[^"]*"//; s/"$//; s/%[a-z]+/\n/g' >"$work/warnings"
	[ -s "$work/warnings" ] || complain "no warnings were found" || return
	while read -r text; do
		grep -qF -- "$text" "$work/diagnostics" ||
			complain "$1 does not say: $text" || status=1
	done < <(sed -E "s/^[ ':();,]+//; s/[ ':();,]+\$//" "$work/warnings" | grep -E '.{6}')
	return "$status"
}

readme_messages() {
	# shellcheck disable=SC2016 # backquotes of Markdown
	sed -n '/^## Troubleshooting/,/^## /p' README.md | grep '^|' | cut -d '|' -f 2 |
		grep -oE '`[^`]+`' | tr -d '`' | sed -E 's/\.\.\.|[A-Z]{2,}_?[A-Z]*/\n/g' >"$work/messages"
	said "$work/messages"
}

words_of() {
	grep -oE '"[a-z][a-z0-9_]*"' | tr -d '"'
}

# Members of the JSON: the words of the code that writes it, but not those that describe states.
json() {
	sed '/^[a-z].*_state_name(/,/^}/d' server/admin/{status,who,trouble,keys}.c | words_of >"$work/status.c"
	section daemon/rmemfsctl.8 JSON | sed -nE 's/^\.(It )?Va //p' | tr -d ' .' | tr ',:' '\n' |
		grep . >"$work/rmemfsctl.8"
	same "members of the JSON" "$work/status.c" "$work/rmemfsctl.8"
}

# The same of a mount, in code that has them in another order.
mount_json() {
	sed '/^static const char .*_name(/,/^}/d; /^static json_t .*_text(/,/^}/d' \
		daemon/admin/report.c daemon/ctl/mount_ask.c |
		words_of | grep -vx status | sort -u >"$work/report.c"
	section daemon/rmemfsctl.8 'JSON OF A MOUNT' | sed -nE 's/^\.(It )?Va //p' | tr -d ' .' | tr ',:' '\n' |
		grep . | sort -u >"$work/rmemfsctl.8"
	same "members of a mount's JSON" "$work/report.c" "$work/rmemfsctl.8"
}

# Metrics: each family in the code is in the page, and the reverse.
metrics() {
	grep -oE '"rmemfs_[a-z_]+"' daemon/metrics/openmetrics.c | tr -d '"' | sort -u >"$work/openmetrics.c"
	section daemon/rmemfs-metrics.8 METRICS | grep -oE 'rmemfs_[a-z_]+' | sort -u >"$work/rmemfs-metrics.8"
	same "metrics" "$work/openmetrics.c" "$work/rmemfs-metrics.8"
}

# The checks of doctor, and the members of its JSON.
doctor() {
	sed -nE 's/^\t\{"([a-z]+)", [a-z_]+_check.*/\1/p' daemon/ctl/doctor/doctor.c >"$work/doctor.c"
	section daemon/rmemfsctl.8 DOCTOR | sed -n 's/^\.It Ic //p' | tr -d ' ' | tr ',' '\n' >"$work/rmemfsctl.8"
	same "checks of doctor" "$work/doctor.c" "$work/rmemfsctl.8" || return
	sed -n '/---- for programs/,$p' daemon/ctl/doctor/report.c | words_of >"$work/report.c"
	section daemon/rmemfsctl.8 DOCTOR | sed -nE 's/^\.(It )?Va //p' | tr -d ' ' | tr ',' '\n' >"$work/rmemfsctl.8"
	same "members of doctor's JSON" "$work/report.c" "$work/rmemfsctl.8"
}

# The checks of health, and the members of its JSON.
health() {
	sed -nE 's/.*report_begin\([^"]*"([a-z]+)"\).*/\1/p; s/.*->check = "([a-z]+)".*/\1/p' \
		daemon/ctl/survey/health*.c >"$work/health.c"
	section daemon/rmemfsctl.8 HEALTH | sed -n 's/^\.It Ic //p' | tr -d ' ' | tr ',' '\n' >"$work/rmemfsctl.8"
	same "checks of health" "$work/health.c" "$work/rmemfsctl.8" || return
	{
		sed -n '/---- for programs/,/---- all/p' daemon/ctl/survey/health.c
		sed -n '/^static json_t .finding_json/,/^}/p' daemon/ctl/doctor/report.c
	} | words_of >"$work/health.c"
	section daemon/rmemfsctl.8 HEALTH | sed -nE 's/^\.(It )?Va //p' | tr -d ' ' | tr ',' '\n' >"$work/rmemfsctl.8"
	same "members of health's JSON" "$work/health.c" "$work/rmemfsctl.8"
}

# The members of the JSON of top. Its rates of all mounts, and of exports, are for the status page.
top_json() {
	{
		sed -n '/^static json_t .compare/,/^}/p' daemon/ctl/survey/top.c
		sed -E '/^static const json_t .counterpart/,/^}/d; /---- times/,/^\/\* Null/d
			/^json_t .top_rates_(all|exports)/,/^}/d' daemon/ctl/survey/top_rates.c
	} | words_of | grep -vxE 'answer|bytes|connection|count|counters|pid|read' >"$work/top.c"
	section daemon/rmemfsctl.8 'RATES OF A SECOND' | sed -nE 's/^\.(It )?Va //p' | tr -d ' .' | tr ',' '\n' | grep . >"$work/rmemfsctl.8"
	same "members of top's JSON" "$work/top.c" "$work/rmemfsctl.8"
}

states() {
	sed -n '/_state_name(const/,/^}/p' server/admin/status.c | words_of | grep -v unknown >"$work/status.c"
	section daemon/rmemfsctl.8 OUTPUT | sed -n 's/^\.Cm //p' | tr -d ' :' | tr ',' '\n' |
		grep . >"$work/rmemfsctl.8"
	same "states" "$work/status.c" "$work/rmemfsctl.8"
}

environment() {
	# No user of a release sees RMEMFS_WORN_BLOCKS: it is for tests alone.
	grep -rhoE 'getenv\("[A-Z_]+"' common server daemon --include='*.c' | cut -d '"' -f 2 |
		grep -vx RMEMFS_WORN_BLOCKS >"$work/sources"
	# The server looks for no socket of a mount.
	[ "$1" != server/rmemfs-server.8 ] || sed -i /^XDG_RUNTIME_DIR$/d "$work/sources"
	section "$1" ENVIRONMENT | sed -n 's/^\.It Ev //p' | sed 's/ , /\n/g' >"$work/page"
	grep RMEMFS_ "$work/page" >"$work/ours"
	all_in "variables of the sources" "$work/sources" "$work/page" || return
	all_in "variables of the page" "$work/ours" "$work/sources"
}

exit_statuses() {
	sed -nE 's/^\tMOUNT_[A-Z]+ = ([0-9]+).*/\1/p' daemon/mount/exit_status.h >"$work/mount_status.h"
	section daemon/rmemfs.8 'EXIT STATUS' | sed -n 's/^\.It //p' >"$work/rmemfs.8"
	same "exit statuses" "$work/mount_status.h" "$work/rmemfs.8"
}

# ---- probes ---------------------------------------------------------------------------------------

# "PROVIDER NAME SIZE...": the size of each argument in bytes, below 0 if it is signed.
built_probes() {
	LC_ALL=C readelf -n "$1" | awk '
		$1 == "Provider:" { provider = $2 }
		$1 == "Name:" { name = $2 }
		$1 == "Arguments:" { $1 = ""; gsub(/@[^ ]*/, ""); print provider, name $0 }'
}

# The same from the tables: `NAME(u64 ARGUMENT, s32 ARGUMENT)`.
page_probes() {
	awk -v heading="## Probes of $1" -v provider="${1//-/_}" '
		/^## / { on = $0 == heading }
		on && match($0, /`[a-z_]+\([^)]*\)`/) {
			text = substr($0, RSTART + 1, RLENGTH - 3)
			sub(/\(/, " ", text)
			n = split(text, words, /[ ,]+/)
			line = provider " " words[1]
			for (i = 2; i < n; i += 2)
				line = line " " (words[i] ~ /^s/ ? "-" : "") substr(words[i], 2) / 8
			print line
		}' config/tracing/README.md
}

probes() {
	built_probes "$bin/$1" >"$work/program"
	[ -s "$work/program" ] || complain "$1 has none: install systemtap-sdt-dev, and run cmake again" || return
	page_probes "$1" >"$work/README.md"
	same "probes of $1" "$work/program" "$work/README.md"
}

# enum_of NAME FILE: "VALUE WORD" of each constant, whose prefix is left out.
enum_of() {
	sed -nE "/^enum $1 \{/,/^\};/ p" "$2" | tr '\n' ' ' | sed -E 's#/\*([^*]|\*[^/])*\*/##g; s/^[^{]*\{//; s/\}.*//' |
		tr ',' '\n' | awk '
			NF { value = $2 == "=" ? $3 : last + 1; last = value; sub(/^[A-Z]+_/, "", $1); print value, tolower($1) }'
}

# The names that a script has for numbers.
script_names() {
	grep -oE '@name\[[0-9]+\] = "[a-z_0-9]+"' "$1" | sed -E 's/[^0-9]*([0-9]+).*"(.*)"/\1 \2/'
}

# Scripts name the operations as the programs do. The kernel's header has more than this filesystem answers.
script_words() {
	local script
	enum_of rpc_op common/rpc/rpc_ops.h | grep -vE ' (op_max|trial)$' >"$work/rpc_ops.h"
	{
		enum_of fuse_opcode /usr/include/linux/fuse.h
		sed -nE 's/.*FUSE_STATX = ([0-9]+).*/\1 statx/p' daemon/fuse/*.h
	} | sort -u >"$work/fuse.h"
	sed -nE 's/^\t\[FUSE_([A-Z0-9_]+)\] = \{.*/\L\1/p' daemon/fuse/decode.c | grep -wFf - "$work/fuse.h" |
		sort -u >"$work/decode.c"
	for script in config/tracing/{requests,slow,server,recalls}.bt; do
		script_names "$script" >"$work/script"
		case $script in
		*/requests.bt | */slow.bt) same "requests in $script" "$work/decode.c" "$work/script" || return ;;
		*) same "requests in $script" "$work/rpc_ops.h" "$work/script" || return ;;
		esac
	done
}

# Each script of the table compiles, for the programs of this build: probes and arguments are there.
tracing_scripts() {
	local script status=0
	(cd config/tracing && printf '%s\n' *.bt) >"$work/folder"
	sed -nE 's/^\| \[([a-z]+\.bt)\].*/\1/p' config/tracing/README.md >"$work/README.md"
	same "scripts" "$work/folder" "$work/README.md" || return
	while read -r script; do
		sed "s#/usr/sbin/#$(realpath "$bin")/#" "config/tracing/$script" >"$work/$script"
		bpftrace -d "$work/$script" 1 >"$work/said" 2>&1 ||
			complain "$script: $(grep '^ERROR' "$work/said")" || status=1
		! grep -E ': (WARNING|ERROR): ' "$work/said" || status=1
	done <"$work/folder"
	return "$status"
}

# ---- containers ----------------------------------------------------------------------------------

manifest_value() {
	tests/manifests.py --get "$@"
}

# The manifests are objects of Kubernetes' API, and what they have for the programs is accepted. Their variables
# are those of container.sh, and the README's.
# shellcheck disable=SC2016 # patterns
manifests() {
	local folder=config/kubernetes container='spec template spec containers 0'
	tests/manifests.py "$folder"/*.yaml || return
	manifest_value ConfigMap data server.conf "$folder/server.yaml" >"$work/server.conf"
	server_takes "$work/server.conf" || return
	# shellcheck disable=SC2086 # fields are several
	accepts "$(manifest_value DaemonSet $container env 3 value "$folder/client.yaml")" || return
	grep -ohE '\$\{?[A-Z]{3,}\b' config/container.sh | tr -d '${' | sort -u >"$work/container.sh"
	grep -oE '^ +- name: [A-Z]+$' "$folder"/{client,server}.yaml | sed 's/.* //' | sort -u >"$work/manifests"
	same "variables" "$work/container.sh" "$work/manifests" || return
	sed -n '/^| word /,/^$/p' "$folder/README.md" | grep -oE '`[A-Z]{3,}`' | tr -d '`' >"$work/README.md"
	same "variables" "$work/container.sh" "$work/README.md" || return
	sed -nE 's/^(([a-z]+( \| )?)+)\) "\$1" ;;$/\1/p' config/container.sh | tr -d ' ' | tr '|' '\n' >"$work/container.sh"
	sed -nE 's/^\| `([a-z]+)` \|.*/\1/p' "$folder/README.md" >"$work/README.md"
	same "words" "$work/container.sh" "$work/README.md"
}

# ---- what is shown as an example -----------------------------------------------------------------

# known_settings ARGUMENTS...: the settings in -o are accepted.
known_settings() {
	local word item previous='' items status=0
	for word in "$@"; do
		if [ "$previous" = -o ]; then
			IFS=, read -ra items <<<"$word"
			for item in "${items[@]}"; do
				accepts "$item" || accepts "soft,$item" ||
					complain "mount option $item is refused" || status=1
			done
		fi
		previous=$word
	done
	return "$status"
}

known_flags() {
	local program=$1 word status=0
	shift
	for word in "$@"; do
		[[ $word == -* ]] || continue
		grep -qx -e "${word%%=*}" < <(help_options "$program") ||
			complain "$program has no option $word" || status=1
	done
	return "$status"
}

known_command() {
	local -a words
	read -ra words <<<"$1"
	case ${words[0]} in
	rmemfs) known_flags "${words[@]}" && known_settings "${words[@]}" ;;
	rmemfs-server | rmemfsctl) known_flags "${words[@]}" ;;
	mount) [[ $1 != *"-t rmemfs"* ]] || known_settings "${words[@]}" ;;
	config/* | tests/*) [ -x "${words[0]}" ] || complain "${words[0]} is not there" ;;
	esac
}

# document_commands FILE
document_commands() {
	local line seen=0 status=0
	shown_blocks "$1" "$work/block"
	while read -r line; do
		seen=$((seen + 1))
		known_command "$line" || status=1
	done < <(
		shown_commands "$work"/block.*.sh
		shown_inline "$1"
	)
	[ "$seen" -gt 10 ] || complain "only $seen commands were found" || status=1
	return "$status"
}

# Each entry of the list is about a command that a document shows. A command of ours within a line, without
# words to be replaced, is part of one that is run.
commands_elsewhere() {
	local i status=0 document command
	for document in README.md docs/GUIDE.md; do
		shown_blocks "$document" "$work/block"
		shown_commands "$work"/block.*.sh
	done >"$work/shown"
	for ((i = 0; i < ${#shown_elsewhere[@]}; i += 2)); do
		grep -qxE -e "${shown_elsewhere[i]}" "$work/shown" ||
			complain "tests/shown.bash: no document shows ${shown_elsewhere[i]}" || status=1
	done
	while read -r command; do
		grep -qF -e "$command" "$work/shown" || complain "no block for a shell has: $command" || status=1
	done < <(cat README.md docs/GUIDE.md >"$work/both" && shown_inline "$work/both" | grep -vE '\b[A-Z]{2,}\b')
	return "$status"
}

# server_takes FILE: the server accepts it, even if this machine lacks something for a start.
server_takes() {
	"$bin/rmemfs-server" -c "$1" --check-config >"$work/said" 2>&1 || true
	grep -q "^$1: .*; listens on " "$work/said" || complain "$(cat "$work/said")"
}

# Configuration examples are accepted, and an fstab line's options, too.
document_files() {
	local file kinds='' options
	shown_blocks "$1" "$work/block"
	for file in "$work"/block.*; do
		case $(head -n 1 "$file") in
		"# "*server.conf*)
			server_takes "$file" || return
			kinds+=s
			;;
		"# "*client.conf*) accepted -c "$file" >/dev/null || complain "$file is refused" || return ;;
		"# "*fstab*)
			options=$(awk '$3 == "rmemfs" { print $4 }' "$file")
			[ -z "$options" ] || accepts "$options" || complain "fstab: $options are refused" || return
			kinds+=f
			;;
		"# "*.env*)
			options=$(sed -n 's/^OPTIONS=//p' "$file")
			accepts "$options" || complain "$file: $options are refused" || return
			kinds+=e
			;;
		esac
	done
	[ "$(fold -w 1 <<<"$kinds" | sort -u | paste -sd '')" = efs ] ||
		complain "not all files are shown: $kinds"
}

unit_example() {
	local options
	options=$(sed -n 's/^OPTIONS=//p' config/example.env)
	[ -n "$options" ] || complain "config/example.env has no OPTIONS" || return
	accepts "$options" || complain "config/example.env: $options are refused"
}

readme_packages() {
	# shellcheck source=config/packages.sh
	. config/packages.sh
	shown_blocks README.md "$work/block"
	shown_commands "$work"/block.*.sh | sed -n 's/^apt-get install //p' | tr -s ' ' '\n' >"$work/README.md"
	printf '%s\n' "${PACKAGES_BUILD[@]}" "${PACKAGES_RUN[@]}" >"$work/packages.sh"
	same "packages" "$work/packages.sh" "$work/README.md"
}

# The guide on the Web is the manual page.
guide_is_the_page() {
	awk -f docs/markdown.awk docs/rmemfs-guide.7 | diff docs/GUIDE.md - ||
		complain "make it anew: awk -f docs/markdown.awk docs/rmemfs-guide.7 >docs/GUIDE.md"
}

# Links to its chapters, from itself and from the README.
guide_chapters() {
	sed -nE 's/^#+ (.*)/\L\1/p' docs/GUIDE.md | sed 's/[^a-z0-9 -]//g; s/ /-/g' >"$work/chapters"
	{
		grep -oE '\]\(#[^)]+' docs/GUIDE.md
		grep -oE '\]\(docs/GUIDE\.md#[^)]+' README.md
	} | sed 's/.*#//' >"$work/linked"
	all_in "links to chapters" "$work/linked" "$work/chapters"
}

# Metrics and keys that the guide names.
guide_names() {
	local name status=0
	grep -oE '\brmemfs_(mount|server|export)_[a-z_]+' docs/rmemfs-guide.7 | sed 's/_total$//' | sort -u >"$work/rmemfs-guide.7"
	grep -oE '"rmemfs_[a-z_]+"' daemon/metrics/openmetrics.c | tr -d '"' >"$work/openmetrics.c"
	all_in "metrics" "$work/rmemfs-guide.7" "$work/openmetrics.c" || status=1
	"$bin/docs_keys_daemon" | cut -f 1 >"$work/keys"
	"$bin/docs_keys_server" | cut -f 1 >>"$work/keys"
	while read -r name; do
		grep -qx "$name" "$work/keys" || complain "there is no key $name" || status=1
	done < <(sed -nE 's/^\.(Pq )?Ic ([a-z_]+)( .*)?$/\2/p' docs/rmemfs-guide.7 | grep -v '^rmemfs_' | sort -u)
	return "$status"
}

# Both examples of rmemfs.conf(5), the server's first.
conf_examples() {
	section "$conf_page" EXAMPLES | awk -v to="$work/conf." '
		/^\.Bd / { on = 1; out = to (++n); next }
		/^\.Ed/ { on = 0 }
		on { print > out }'
	server_takes "$work/conf.1" || return
	accepted -c "$work/conf.2"
}

# ---- the documents themselves --------------------------------------------------------------------

# Of the pages that are referred to, only ours must be here.
manual_lint() {
	local page status=0
	for page in "${manuals[@]}"; do
		{
			mandoc -T lint "$page" 2>&1 || true
			groff -m mdoc -ww -z "$page" 2>&1
		} | grep -vE 'referenced manual not found|outdated mandoc.db|makewhatis' || continue
		status=1
	done
	return "$status"
}

manual_references() {
	local name number status=0
	while read -r name number; do
		grep -q "/$name\.$number\$" < <(printf '%s\n' "${manuals[@]}") ||
			complain "there is no $name($number)" || status=1
	done < <(sed -nE 's/^\.Xr (rmemfs[^ ]*) ([0-9]).*/\1 \2/p' "${manuals[@]}" | sort -u)
	return "$status"
}

manual_width() {
	local page status=0
	for page in "${manuals[@]}"; do
		! mandoc -T utf8 -O width=80 "$page" 2>"$work/said" | sed 's/.\x08//g' |
			grep -nE '.{81}' ||
			complain "$page is wider than 80 columns" || status=1
	done
	return "$status"
}

# Links are relative to the document's folder.
links() {
	local file link status=0
	while read -r file; do
		while read -r link; do
			[ -e "$(dirname "$file")/$link" ] || complain "$file: $link is not there" || status=1
		done < <(grep -oE '\]\([^)#]+' "$file" | sed 's/^](//' | grep -vE '^[a-z]+:' || true)
	done < <(find . -name build -prune -o -path './.*/*' -prune -o -name '*.md' -print | sort)
	return "$status"
}

# Functions, structs and files that documents name. CONTRIBUTING.md has examples of what is not there.
# shellcheck disable=SC2016 # what documents write between backquotes
sources_named() {
	local document name status=0
	grep -rhoE '[A-Za-z_0-9]+' common daemon server tests config --include='*.[ch]' --include='*.sh' \
		--include='*.bats' --include='*.bash' | sort -u >"$work/words"
	find common daemon server tests config cmake -type f | sed 's|.*/||' | sort -u >"$work/files"
	while read -r document; do
		comm -23 <(grep -oE '`(struct [a-z_0-9]+|[a-z_0-9]+\(\))`' "$document" |
			sed -E 's/`//g; s/^struct //; s/\(\)//' | sort -u) "$work/words" >"$work/lacking"
		comm -23 <(grep -oE '`([a-z_0-9]+/)*[a-z_0-9]+\.(c|h|sh|bats|bash)`' "$document" |
			sed -E 's/`//g; s|.*/||' | sort -u) "$work/files" >>"$work/lacking"
		while read -r name; do
			complain "$document: no source has $name" || status=1
		done <"$work/lacking"
	done < <(find . -name build -prune -o -path './.*/*' -prune -o -name '*.md' ! -name CONTRIBUTING.md -print | sort)
	return "$status"
}

changelog() {
	local version wire
	version=$(sed -nE 's/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
	wire=$(sed -nE 's/.*RMEMFS_WIRE_VERSION = ([0-9]+).*/\1/p' common/rpc/wire_version.h)
	grep -qE "^## ${version//./\\.}( |\$)" CHANGELOG.md ||
		complain "CHANGELOG.md has no heading for version '$version'" || return
	grep -q "wire protocol $wire)" CHANGELOG.md ||
		complain "CHANGELOG.md does not name wire protocol '$wire'"
}

[ -x "$bin/rmemfs" ] || {
	echo "$bin has no programs: cmake --build" >&2
	exit 1
}
check "options of rmemfs" options rmemfs daemon/mount/options.c
check "options of rmemfs-server" options rmemfs-server server/config/options.c
check "options of rmemfsctl" options rmemfsctl daemon/ctl/args.c
check "options of rmemfs-metrics" options rmemfs-metrics daemon/metrics/rmemfs_metrics.c
check "usages of rmemfsctl" usages
check "completion in bash" completion bash
check "completion in zsh" completion zsh
check "mount options" mount_options
check "keys of server.conf" keys docs_keys_server SERVER.CONF
check "keys of client.conf" keys docs_keys_daemon CLIENT.CONF
check "every key of client.conf is a mount option" client_keys_are_options
check "keys that belong to the other file" keys_of_the_other
check "numbers of mount options" repeated_numbers
for name in "${programs[@]}"; do
	check "messages in $name(8)" messages "$(page_of "$name")"
done
check "warnings in rmemfs(8)" explained daemon/rmemfs.8 daemon/kcache/kernel_attr.c
check "warnings in rmemfs-server(8)" explained server/rmemfs-server.8 server/recall/{recall,recall_late,lock_news}.c
check "messages in the README" readme_messages
check "members of the status" json
check "members of a mount's status" mount_json
check "metrics of rmemfs-metrics" metrics
check "states in the status" states
check "checks and members of doctor" doctor
check "checks and members of health" health
check "members of top" top_json
check "environment of rmemfs" environment daemon/rmemfs.8
check "environment of rmemfs-server" environment server/rmemfs-server.8
check "exit statuses of rmemfs" exit_statuses
check "probes of rmemfs" probes rmemfs
check "probes of rmemfs-server" probes rmemfs-server
check "words of tracing scripts" script_words
check "tracing scripts compile" tracing_scripts
check "Kubernetes manifests" manifests
check "commands of the README" document_commands README.md
check "commands of the guide" document_commands docs/GUIDE.md
check "commands that guide.bats does not run" commands_elsewhere
check "configuration shown in the README" document_files README.md
check "configuration shown in the guide" document_files docs/GUIDE.md
check "docs/GUIDE.md is rmemfs-guide(7)" guide_is_the_page
check "chapters of the guide" guide_chapters
check "metrics and keys in the guide" guide_names
check "messages in rmemfs-guide(7)" messages docs/rmemfs-guide.7
check "example of rmemfs@" unit_example
check "packages in the README" readme_packages
check "examples of rmemfs.conf(5)" conf_examples
check "manual pages: mandoc and groff" manual_lint
check "manual pages: references" manual_references
check "manual pages: 80 columns" manual_width
check "links" links
check "sources that documents name" sources_named
check "versions in the CHANGELOG" changelog
check_end
