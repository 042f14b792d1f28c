/* start.h - parts of a start. Each export is described to the store. Exports are restored from
 * snapshots before the server serves anybody. The snapshots are those of --restore. Or, if the
 * memory directory is new, they are the latest set of snapshot_dir (restore_on_start).
 *
 * With restore_on_start a new memory directory is marked (memdir_begin_restore) before it gets its
 * store. However such a start ends, the next one does not take it for one that began empty.
 *
 * THREADS  The metadata thread.
 * ERRORS   0 or -errno; the reason, and what can be done, is logged. -EINTR: asked to end.
 */
#ifndef RMEMFS_SERVER_SERVE_START_H
#define RMEMFS_SERVER_SERVE_START_H

#include <signal.h>

#include "common/conf/conf.h"
#include "server/memory/exports.h"
#include "server/meta/meta.h"
#include "server/session/context.h"

/* The signals that end the server. */
static inline sigset_t signals_to_end(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	return set;
}

/* Describes an export of the configuration to the store. *out borrows of both. */
void start_describe(
	const struct server_config *config, const struct export *export, struct meta_export *out);

/* Opens snapshot_dir, if a setting needs it: sets server.sets. */
int start_open_sets(struct server *s);
/* Gives up its lock. */
void start_close_sets(struct server *s);

/* The snapshots that a start restores. */
struct start_plan {
	struct conf_strings dirs;
	bool is_latest; /* they are the latest set of snapshot_dir */
};
/* Chooses the snapshots to restore; before the store is opened. */
int start_plan_restore(struct server *s, struct start_plan *plan);
void start_plan_fini(struct start_plan *plan);
/* Restores all of them or nothing; after the store was opened. */
int start_restore(struct server *s, const struct start_plan *plan);

#endif
