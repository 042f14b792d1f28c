/* reload.h - reads the configuration and all keys anew, while the server serves.
 *
 * The configuration file, exports.d, the command line and all key files are read and checked as at
 * a start. If anything in them is wrong, nothing changes. Else the clients come in force at once:
 *
 *     clients    channels that the new table would not let in are closed, each with a line in the
 *                log: their clients connect again, perhaps by another key, or are refused
 *
 * Then the exports follow. The reload does all of this, or nothing of it, and says in one line why:
 *
 *     exports    those that are new are added. A thread of its own allocates and registers their
 *                memory (new_exports.h), while all others are served. They begin empty.
 *     limits     inodes, metadata and quotas of each export count from then on
 *
 * It refuses:
 *
 *     an export that is served and not configured any more, or with another size. One that is not
 *     configured keeps its clients; keys that their files have no more don't count any more
 *     an export that the store has and this run does not serve: its sessions come at a start
 *     first or last quotas of an export
 *     memory that is not there, or can't be registered
 *
 * An export that is added changes nothing for other exports' sessions, grants and channels; but the
 * memory for metadata grows, and is shared anew. It grows between two batches. While a snapshot
 * reads the store, a reload that needs this is refused. If the snapshot began meanwhile, the thread
 * frees the memory again before the reload ends.
 *
 * A reload that is asked for while another one works is done after it. Settings that are named
 * nowhere here count from the next start on. A killed server has added all of the new exports, or
 * its next start adds them, since the configuration has them.
 *
 * THREADS    The metadata thread, which reads files meanwhile.
 */
#ifndef RMEMFS_SERVER_SERVE_RELOAD_H
#define RMEMFS_SERVER_SERVE_RELOAD_H

#include "server/session/conn.h"

/* -errno: there is no descriptor or memory left. */
int reload_new(struct server *s);
/* Takes back what a reload has not finished, and may wait for that; before the ports close. */
void reload_delete(struct server *s);

/* Begins a reload; how it ends is logged, and told to systemd. */
void reload_begin(struct server *s);
/* RPC_RELOAD: the same, for an admin, who gets the answer at the end: what has changed
 * (changes.h), or why nothing has. */
void reload_request(struct client_request *req);
/* The server stops, or takes its last snapshots: a reload that works comes to nothing, and those
 * that asked for it are answered now. */
void reload_stop(struct server *s);

/* Readable when reload_event() has something to do. */
int reload_fd(const struct server *s);
void reload_event(struct server *s);

#endif
