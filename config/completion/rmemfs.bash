# shellcheck shell=bash
# Completion of rmemfs, rmemfs-server and rmemfsctl for bash. The words are from the programs' own --help.

# _rmemfs_options PROGRAM [COMMAND]: its options, one per line.
_rmemfs_options() {
	"$@" --help 2>/dev/null | sed -nE 's/^ +(-.*)/\1/p' | sed 's/  .*//' |
		grep -oE '(^|[ ,])--?[a-zA-Z][a-z-]*' | tr -d ' ,'
}

# Commands of rmemfsctl.
_rmemfs_commands() {
	"$1" --help 2>/dev/null | sed -nE 's/^  ([a-z]+) +[a-z].*/\1/p'
}

# _rmemfs_value OPTION PROGRAM [COMMAND]: the kind of its value, as --help names it, or nothing.
_rmemfs_value() {
	local option=$1
	shift
	"$@" --help 2>/dev/null | sed -nE "s/^ +(-[a-zA-Z], )?$option ([A-Z]+).*/\2/p; s/^ +$option, --[a-z-]+ ([A-Z]+).*/\1/p"
}

# Names of mount options; those with a value end in =.
_rmemfs_mount_options() {
	"$1" --help 2>/dev/null | sed -n '/^Mount options:/,/^$/p' | sed -nE 's/^  ([a-z])/\1/p' |
		sed -E 's/  .*//; s/, /\n/g' | sed -E 's/=.*/=/' | grep -v '^\.'
}

# bash splits words at = and :, which mount options contain. Sets begin to the first part of the word under the
# cursor, and part to what its last part is so far.
_rmemfs_parts() {
	begin=$COMP_CWORD
	while ((begin > 1)) && [[ ${COMP_WORDS[begin]} == [=:]* || ${COMP_WORDS[begin - 1]} == [=:]* ]]; do
		begin=$((begin - 1))
	done
	part=${COMP_WORDS[COMP_CWORD]}
	[[ $part != [=:] ]] || part=''
}

# _rmemfs_mount_option PROGRAM: of a list with commas the last one is completed.
_rmemfs_mount_option() {
	local before='' name
	if [[ $part == *,* ]]; then
		before=${part%,*},
	elif [ "$begin" -ne "$COMP_CWORD" ]; then
		# A value. Those of key are files.
		name=${COMP_WORDS[COMP_CWORD - 1]}
		[[ $name != = ]] || name=${COMP_WORDS[COMP_CWORD - 2]}
		[[ ${name##*,} != log_level ]] || _rmemfs_complete LEVEL
		return
	fi
	compopt -o nospace
	mapfile -t COMPREPLY < <(compgen -P "$before" -W "$(_rmemfs_mount_options "$1")" -- "${part##*,}")
}

# _rmemfs_complete KIND: readline itself completes files (-o default).
_rmemfs_complete() {
	case $1 in
	DIR) mapfile -t COMPREPLY < <(compgen -d -- "$part") ;;
	LEVEL) mapfile -t COMPREPLY < <(compgen -W 'error warning notice info debug' -- "$part") ;;
	esac
}

# rmemfsctl's options depend on its command.
_rmemfs() {
	local begin part previous kind='' usage=("$1")
	COMPREPLY=()
	_rmemfs_parts
	previous=${COMP_WORDS[begin - 1]}
	if [[ ${1##*/} == rmemfsctl ]] && [ "$begin" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_rmemfs_commands "$1") --help --version" -- "$part")
		return
	fi
	[[ ${1##*/} != rmemfsctl ]] || usage+=("${COMP_WORDS[1]}")
	[[ $previous != -* ]] || kind=$(_rmemfs_value "$previous" "${usage[@]}")
	if [[ $kind == OPTIONS ]]; then
		_rmemfs_mount_option "$1"
	elif [[ -n $kind ]]; then
		_rmemfs_complete "$kind"
	elif [[ $part == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_rmemfs_options "${usage[@]}")" -- "$part")
	fi
}

complete -o default -F _rmemfs rmemfs rmemfs-server rmemfsctl
