/* snapshot.h - a snapshot of an export while it is in use: freeze, marker, thaw, copy.
 *
 *     START -> (directory is made) -> every client is told by PING's reply -> it ends its writes,
 *     commits what is dirty, sends FROZEN -> when all have: marker -> FROZEN is answered -> copying
 *
 * The server sees no client's writes. So all that a client wrote before it sent FROZEN is in the
 * snapshot, and nothing that it writes after the answer is: pages of the marker's files are
 * protected (protect.h), and who is going to write to one asks first (UNPROTECT). What names and
 * attributes do needs no pause: they change here, one after the other, and the marker is a moment
 * between two of them.
 *
 * A client that does not answer within FREEZE_MS, or has had no connection for AWAY_MS (its own
 * attempts are less than that apart), makes the snapshot fail, not the service (but
 * for a server's last ones). One whose process is known to have ended is not waited for. So does a
 * disk for which a client's request has waited ROOM_MS: memory to put pages aside is bounded. One
 * snapshot at a time. Allowed to root and to the server's own user, by the socket of this machine.
 *
 * OWNERSHIP  server.snapshot; snapshot_end() ends it before the regions go.
 * THREADS    The metadata thread; snapshot_copy.h has one of its own.
 */
#ifndef RMEMFS_SERVER_SNAPSHOT_SNAPSHOT_H
#define RMEMFS_SERVER_SNAPSHOT_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "server/session/conn.h"
#include "server/session/context.h"

struct client_session;

/* Makes the descriptor that the loop watches. */
int snapshot_init(struct server *s);
void snapshot_end(struct server *s);
int snapshot_fd(const struct server *s);
/* It is readable: a phase has ended, or there is room again for pages to be put aside. */
void snapshot_event(struct server *s);
/* What is due; returns when to ask next in ms, or -1. */
int64_t snapshot_tick(struct server *s, int64_t now);

/* RPC_SNAPSHOT and RPC_FROZEN. */
void snapshot_request(struct client_request *req);
void snapshot_frozen(struct client_request *req);

/* The last one of an export whose server is to end: for what is acknowledged after its moment there
 * is no other. So with the marker the export is closed (export.closed): no request of its sessions
 * is run any more, nobody attaches, FROZEN stays without an answer. A client that does not end its
 * writes in time loses its channels; what it has written so far is in the snapshot. Only when any
 * other snapshot has ended. clear: snapshot_copy_new()'s. 0 or -errno. */
int snapshot_take_last(struct server *s, struct export *export, const char *dir, const char *clear);
/* Whatever is on its way ends soon, unless it is too late for that; its thread may take as long as
 * the disk does. */
void snapshot_cancel(struct server *s, const char *reason);
/* False while one is on its way; then err, and why, say how the last one ended. */
bool snapshot_has_ended(const struct server *s, int *err, const char **why);

/* Of the one on its way: they change as long as its disk takes something. */
uint64_t snapshot_steps(const struct server *s);

/* A session has ended, which may be the one that was waited for. */
void snapshot_lost_session(struct server *s);

/* For status: state, pages done and in all; SNAPSHOT_NONE: there was none of this export. */
struct snapshot_view {
	enum rpc_snapshot_state state;
	uint64_t done, total, pause_ns;
	const char *dir;
	/* The last one that was completed by this run of the server; s of the clock, 0: none. */
	int64_t completed;
	const char *completed_dir;
};
void snapshot_look(const struct server *s, const struct export *export, struct snapshot_view *view);

#endif
