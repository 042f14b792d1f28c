/* start.h - exports that are made from snapshots before anybody is served: those of --restore, or
 * the latest set of snapshot_dir (restore_on_start), where the memory directory is new.
 *
 * With restore_on_start a new memory directory is marked (memdir_begin_restore) before it gets its
 * store: however such a start ends, the next one does not take it for one that began empty.
 *
 * THREADS  The metadata thread.
 * ERRORS   0 or -errno; the reason, and what can be done, is logged. -EINTR: told to end.
 */
#ifndef RMEMFS_SERVER_SERVE_START_H
#define RMEMFS_SERVER_SERVE_START_H

#include "server/session/context.h"

/* Opens snapshot_dir, where something needs it. */
int start_open_sets(struct server *s);
/* Chooses what is to be restored; before the store is opened. */
int start_plan(struct server *s);
/* All of it or nothing; after the store was opened. */
int start_restore(struct server *s);

#endif
