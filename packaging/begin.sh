# shellcheck shell=sh
# begin.sh - what packages say at their first installation. cmake/packages.cmake puts it, without these lines, in the
# place of @BEGIN@ in their scripts.

begin_client() {
	echo "rmemfs: where to begin: man rmemfs-guide. What this machine lacks: rmemfsctl doctor"
}

begin_server() {
	echo "rmemfs-server: to begin: say in /etc/rmemfs/server.conf how much memory it takes, and which clients may come;"
	echo "then rmemfs-server --check-config, and systemctl enable --now rmemfs-server. See man rmemfs-guide"
}
