/* stop.h - snapshots of all exports before the server ends (snapshot_on_stop).
 *
 *     SIGTERM -> stop_begin -> export after export: snapshot_take_last ->
 *     snapshot_sets_publish -> the end
 *
 * An export is served until its clients have ended their writes for its own snapshot, and no
 * longer. So nothing is acknowledged that a restored server would not know of. The set of the stop
 * before stays the latest until all snapshots of this one are on the disk.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_SERVE_STOP_H
#define RMEMFS_SERVER_SERVE_STOP_H

#include "server/session/context.h"

/* Makes server.stop, before the other parts. */
int stop_new(struct server *s);
void stop_delete(struct server *s);

/* Sets server.leaving. The server goes on until stop_step() sets server.stopping. */
void stop_begin(struct server *s);
/* A second signal: the server waits for nothing more. */
void stop_cancel(struct server *s);
/* Does what is due while server.leaving. Returns after how many ms to call it next. Sets
 * server.stopping at the end, and stop_error() if there is no new set. */
int stop_step(struct server *s);
/* 0, or -errno: last snapshots were to be taken, and were not. */
int stop_error(const struct server *s);

#endif
