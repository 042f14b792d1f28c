/* snapshot.h - a snapshot of an export while it is in use: freeze, marker, thaw, copy.
 *
 *     START -> (directory is made) -> every client is told by PING's reply -> it ends its writes,
 *     commits what is dirty, sends FROZEN -> when all have: marker -> FROZEN is answered -> copying
 *
 * The server sees no client's writes. All that a client wrote before it sent FROZEN is in the
 * snapshot, and nothing that it writes after the answer is. For that the pages of the marker's
 * files are protected (protect.h), and a client that is going to write to one asks first
 * (UNPROTECT). Names and attributes need no pause: the server changes them, one after the other,
 * and the marker is a moment between two changes.
 *
 * The snapshot fails if a client does not answer within FREEZE_MS, or has had no connection for
 * AWAY_MS. (A client's attempts to connect are less than that apart.) The service goes on. A
 * server's last snapshots do not fail for that. The snapshot does not wait for a client whose
 * process is known to have ended. It also fails if a client's request has waited for the disk for
 * ROOM_MS: memory to put pages aside is bounded. There is one snapshot at a time. Root and the
 * server's own user may ask for one, by the socket of this machine.
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
/* The descriptor is readable: a phase has ended, or there is room again to put pages aside. */
void snapshot_event(struct server *s);
/* Does what is due. Returns when to call it next in ms, or -1. */
int64_t snapshot_tick(struct server *s, int64_t now);

/* RPC_SNAPSHOT and RPC_FROZEN. */
void snapshot_request(struct client_request *req);
void snapshot_frozen(struct client_request *req);

/* Takes the last snapshot of an export whose server is to end. No other one would have what is
 * acknowledged after its moment. So with the marker the export is closed (export.closed): no
 * request of its sessions is run any more, nobody attaches, FROZEN gets no answer. A client that
 * does not end its writes in time loses its channels; what it has written so far is in the
 * snapshot. Call it only when any other snapshot has ended. clear: see snapshot_copy_new(). 0 or
 * -errno. */
int snapshot_take_last(struct server *s, struct export *export, const char *dir, const char *clear);
/* Ends the snapshot that is under way, unless it is too late for that. Its thread may take as long
 * as the disk does. */
void snapshot_cancel(struct server *s, const char *reason);
/* False while one is under way. Else err and why say how the last one ended. */
bool snapshot_has_ended(const struct server *s, int *err, const char **why);

/* A number that changes as long as the disk of the snapshot under way takes something. */
uint64_t snapshot_steps(const struct server *s);

/* A session has ended. The snapshot may have waited for it. */
void snapshot_lost_session(struct server *s);

/* Whether one of this export is under way, or its thread has not ended. */
bool snapshot_is_of(const struct server *s, const struct export *export);
/* The export goes: none of it is under way, and nobody asks for the last one any more. */
void snapshot_forget(struct server *s, const struct export *export);

/* For status: state, pages done and in all. SNAPSHOT_NONE: this export had none. */
struct snapshot_view {
	enum rpc_snapshot_state state;
	uint64_t done, total, pause_ns;
	const char *dir;
	/* The last one that this run of the server has completed; s of the clock, 0: none. */
	int64_t completed;
	const char *completed_dir;
};
void snapshot_look(const struct server *s, const struct export *export, struct snapshot_view *view);

#endif
