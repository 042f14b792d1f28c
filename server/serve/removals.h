/* removals.h - exports that leave the server for good, since an administrator wants it.
 *
 * `rmemfsctl export remove` makes a mark in exports.d (config_files.h), has the server reload, and
 * takes the export's file and the mark away when the server has done it. The server removes an
 * export only for a mark whose command still waits. A file that is lost removes nothing.
 *
 *     mark     the export is                reload                       start
 *     wanted   served                       removes it, or refuses       serves it
 *     left     served, or in the store      serves it                    serves it
 *     any      not in the store (any more)  does not add it, though its file is there: both
 *     none     served, not configured       refuses
 *
 * The point of no return is one transaction of the store (meta/removal.h). Before it the export is
 * whole, after it the export is gone: a start finds the mark, and removes region files that a
 * killed server has left.
 *
 *     [check] -> store's transaction -> out of server.exports -> the thread of new_exports.h
 *                                       frees registrations, files and mappings -> the answer
 *
 * An export is in use, and is not removed, while it has a session in any state, or a snapshot of it
 * is taken. A session that lost its client counts, too: the client may come back to it, and expects
 * its files. So does one that ends: its client may reach the memory. Nobody else refers to an
 * export: requests, recalls, places, grants and keys belong to sessions; ATTACHes that wait name
 * it, and are tried again; the scrubber is told to forget it (scrub_forget()). The check and the
 * transaction are one step of the metadata thread, so no client attaches in between. A client that
 * comes later is refused, as for any name that is not there.
 *
 * THREADS    The metadata thread.
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_SERVER_SERVE_REMOVALS_H
#define RMEMFS_SERVER_SERVE_REMOVALS_H

#include <stdbool.h>
#include <stddef.h>

#include "server/session/context.h"
#include "server/serve/changes.h"

enum { USERS_BYTES = 240 }; /* of a refusal, which has room for more */

struct removal {
	struct export *export;
	uint64_t files, bytes; /* below its root, for the log; set by removals_count() */
};

struct removals {
	struct removal *v;
	unsigned n;
};

/* At a start, once the memory directory is known and before exports are planned: takes exports out
 * of the configuration that were removed, and removes their region files; look: changes no file. */
int removals_start(struct server_config *config, const struct memdir *dir, bool look, char *why,
	size_t whylen);

/* At a reload, whose configuration was read: finds the served exports that are to go, and takes
 * those out of the configuration that are gone already. */
int removals_read(struct server *s, struct server_config *config, struct removals *out, char *why,
	size_t whylen);
bool removals_has(const struct removals *r, const struct export *export);
/* Whether all may go: -EBUSY: one is in use, why names by whom. -EINVAL: its file is not its own,
 * or it is the last export. */
int removals_check(const struct server *s, const struct server_config *config,
	const struct removals *r, char *why, size_t whylen);
/* The part of it that may have changed since: whether one is in use. */
int removals_check_users(
	const struct server *s, const struct removals *r, char *why, size_t whylen);
/* Takes them out of the configuration. */
int removals_drop(const struct removals *r, struct server_config *config, char *why, size_t whylen);
/* The last moment to see what goes: before the transaction. */
void removals_count(struct server *s, struct removals *r);
/* The store has forgotten them: so does the server, and tells of each. gone, which has room, takes
 * them over. */
void removals_take(
	struct server *s, struct removals *r, struct exports *gone, struct changes *changes);
void removals_fini(struct removals *r);

/* Names the users of the export, for a refusal: "session 5 of HOST:/mnt (active) and 2 more".
 * False: nothing. */
bool removals_users(const struct server *s, const struct export *export, char *text, size_t len);

#endif
