/* reload.h - reads the clients of the exports and their keys anew, while the server serves.
 *
 * The configuration file, the command line and all key files are read and checked as at a start. If
 * anything is wrong, nothing changes. Else the new table is in force, and channels that it would
 * not let in are closed, each with a line in the log: their clients connect again, perhaps by
 * another key, or are refused. Only clients and local_access change; other settings count from the
 * next start on.
 *
 * THREADS    The metadata thread, which reads files meanwhile.
 */
#ifndef RMEMFS_SERVER_SERVE_RELOAD_H
#define RMEMFS_SERVER_SERVE_RELOAD_H

#include "server/session/conn.h"

/* 0, or -errno with the reason in why. Both are logged, and told to systemd. */
int reload_run(struct server *s, char *why, size_t whylen);

/* RPC_RELOAD: the same, for an admin. */
void reload_request(struct client_request *req);

#endif
