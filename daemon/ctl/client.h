/* client.h - asks a server for its status, for who has a file, for a snapshot, or for a reload.
 *
 * ERRORS     0 or -errno with a line in why, which is printable: a server may have written it.
 */
#ifndef RMEMFS_DAEMON_CTL_CLIENT_H
#define RMEMFS_DAEMON_CTL_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "common/rpc/rpc.h"

/* where: a socket's path, HOST[:PORT], HOST:/EXPORT, or TRANSPORT:ADDRESS as the server's --listen
 * takes it. key_file: the keys to prove to the server, or NULL. *text: JSON, malloced; over tcp and
 * verbs a server tells what the key may see, and without one only its versions. *round_trip_ns:
 * from the first question to its answer. Takes at most timeout_ms, and the resolver's time. */
int ctl_fetch_status(const char *where, const char *key_file, int timeout_ms, char **text,
	int64_t *round_trip_ns, char *why, size_t whylen);

/* The same for one file of an export: a path in it, or an inode's number. */
int ctl_fetch_who(const char *where, int timeout_ms, const char *export_name, const char *path,
	char **text, char *why, size_t whylen);

struct ctl_snapshot_state {
	enum rpc_snapshot_state state;
	uint64_t done, total, pause_ns; /* pages */
	char text[RPC_TEXT_MAX + 1];    /* as the server has sent it */
};

/* dir: of SNAPSHOT_START; else "". */
int ctl_ask_snapshot(const char *where, int timeout_ms, enum rpc_snapshot_command command,
	const char *export_name, const char *dir, struct ctl_snapshot_state *state, char *why,
	size_t whylen);

/* Makes the server read its clients and keys anew. */
int ctl_ask_reload(const char *where, int timeout_ms, char *why, size_t whylen);

#endif
