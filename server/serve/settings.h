/* settings.h - the settings beside the exports, at a reload.
 *
 *     taken   log_level, snapshot_on_stop, restore_on_start, snapshot_dir
 *     later   all others: the server names those that have changed, and they count from its next
 *             start on. server.later has them, for the status
 *
 * local_access goes with the clients; region_size, and a larger metadata_reserve, with the exports.
 *
 * OWNERSHIP  Zeros are no plan; settings_drop() frees what was not taken, and makes zeros.
 * THREADS    The metadata thread, which opens snapshot_dir meanwhile.
 */
#ifndef RMEMFS_SERVER_SERVE_SETTINGS_H
#define RMEMFS_SERVER_SERVE_SETTINGS_H

#include "server/serve/changes.h"
#include "server/session/context.h"

struct settings_plan {
	bool reopens;               /* snapshots are another matter from now on */
	struct snapshot_sets *sets; /* NULL: nothing needs them */
};

/* Changes nothing. -errno with a line in why: snapshot_dir can't be used so. */
int settings_read(struct server *s, const struct server_config *config, struct settings_plan *out,
	char *why, size_t whylen);
/* Can't fail. Swaps the strings that are taken with those of config. */
void settings_take(struct server *s, struct server_config *config, struct settings_plan *plan,
	struct changes *changes);
void settings_drop(struct settings_plan *plan);

#endif
