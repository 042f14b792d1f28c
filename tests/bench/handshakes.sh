#!/bin/bash
# handshakes.sh - what clients that come cost a server over tcp, and those that are there (handshakes.c).
#
# Prints how long 256 clients of one address with four channels each take to attach. Then it prints the
# latency of GETATTR without handshakes, and beside 200 a second. RMEMFS_BIN names the folder of programs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${RMEMFS_BIN:-$here/../../build/release/bin}
work=$(mktemp -d /dev/shm/rmemfs-handshakes.XXXXXX)
server=''
trap 'if [ -n "$server" ]; then kill "$server"; wait "$server" || true; fi; rm -rf "$work"' EXIT
port=$((27000 + RANDOM % 4000))

begin_server() {
	"$bin/rmemfs-server" -c "$work/conf" --memory-dir "$work/memory" --listen "tcp:127.0.0.1:$port" \
		2>>"$work/log" &
	server=$!
	until grep -qs ready "$work/log"; do
		kill -0 "$server" || {
			cat "$work/log"
			exit 1
		}
		sleep 0.05
	done
}

work() {
	"$bin/handshakes" "tcp:127.0.0.1:$port" "$work/key" "$@"
}

"$bin/rmemfsctl" keygen bench "$work/key" 2>/dev/null
cat >"$work/conf" <<-END
	exports = ({ name = "default"; size = "64MiB"; clients = ( { name = "bench"; keys = "$work/key"; } ); });
END
begin_server
for _ in 1 2 3; do
	work attach 256 4
done
for _ in 1 2 3; do
	work getattr 5
	nice -n 19 "$bin/handshakes" "tcp:127.0.0.1:$port" "$work/key" prove 200 7 & # as if on another machine
	sleep 1
	echo "beside handshakes: $(work getattr 5)"
	wait $!
done
