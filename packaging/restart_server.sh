# shellcheck shell=sh
# restart_server.sh - what packages do with a server that runs when they have replaced it. cmake/packages.cmake puts
# it, without these lines, in the place of @RESTART_SERVER@ in their scripts.

# stays REASON REMEDY
stays() {
	echo "rmemfs-server: the server goes on with the version before: $1."
	echo "$2; then: systemctl restart rmemfs-server"
}

# Prints the versions of the wire protocol that the server and its mounts speak. The new rmemfsctl knows its own and
# the one before.
spoken() {
	timeout 10 rmemfsctl status --json 2>/dev/null | grep -o '"wire_version": *[0-9]*' | grep -o '[0-9]*$'
}

# The oldest version that the new server speaks.
oldest() {
	echo $(($(rmemfs-server --version | sed 's/.*(wire protocol \([0-9]*\))$/\1/') - 1))
}

# A server that runs is started again: its files are in memory, and its mounts wait, and go on. The old one goes
# on where that would end them, since the new one does not speak their wire protocol any more. If the new version
# refuses the configuration, standard error has the reason. The arguments are
# systemctl, or the command that scripts of a distribution use instead.
restart_server() {
	systemctl --quiet is-active rmemfs-server.service || return 0
	versions=$(spoken) || versions=''
	if [ -z "$versions" ]; then
		stays "it has an old wire protocol, or no socket at /run/rmemfs/server.sock" \
			"Upgrade its clients and unmount"
	elif [ "$(echo "$versions" | sort -n | head -n 1)" -lt "$(oldest)" ]; then
		stays "mounts speak a wire protocol that the new one has no more: rmemfsctl status shows them" \
			"Upgrade these clients, unmount and mount"
	elif ! rmemfs-server --check-config >/dev/null; then
		stays "the new one would not start" "Correct what is named above"
	else
		"$@" try-restart rmemfs-server.service >/dev/null || true
	fi
}
