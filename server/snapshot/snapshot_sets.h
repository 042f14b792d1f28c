/* snapshot_sets.h - snapshot_dir, the directory of a server's own snapshots: two sets of them.
 *
 *     DIR/a/EXPORT/   a snapshot of each export (image.h)
 *     DIR/a/.whole    once all of them are on the disk; no export has such a name
 *     DIR/b/          the set before, or one that is being made
 *     DIR/latest      a link to the set that is to be restored
 *     DIR/latest.new  the link that is about to replace it
 *
 * A new set is made where the latest is not. When its snapshots are on the disk, the server makes
 * latest.new, then the mark .whole, then it renames latest.new. The mark is the moment: a whole set
 * that latest.new leads to is the latest. So a power cut loses nothing that was acknowledged before
 * it. Without a mark the latest set is the one before. That one stays until the next is begun: the
 * disk must have room for two anyway. An administrator may turn the link latest.
 *
 * OWNERSHIP  The directory is locked by flock(2) until the process ends: one server at a time.
 * THREADS    snapshot_set_clear() may be called by another thread; the rest by the metadata thread.
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_SERVER_SNAPSHOT_SNAPSHOT_SETS_H
#define RMEMFS_SERVER_SNAPSHOT_SNAPSHOT_SETS_H

#include <stdbool.h>

#include "server/snapshot/image.h"

enum { SNAPSHOT_SET_PATH_BYTES = 904 }; /* DIR of at most 900 bytes, and the set */

struct snapshot_sets {
	const char *dir; /* the caller's */
	int fd;          /* -1: not open */
};

/* Takes the lock and, if writable, turns the link if that was left to do. -ENOENT, -ENOTDIR: no
 * such directory; -EPERM: others can change it; -EACCES, -EROFS: `writable` was asked for, and it
 * is not; -EAGAIN: another server has it; others: it can't be locked. */
int snapshot_sets_open(
	struct snapshot_sets *s, const char *dir, bool writable, const struct image_why *why);

/* The same for a server that runs on, with the directory `before` or NULL. If that is the same
 * directory, both have its lock, until both are closed. */
int snapshot_sets_reopen(struct snapshot_sets *s, const struct snapshot_sets *before,
	const char *dir, bool writable, const struct image_why *why);
void snapshot_sets_close(struct snapshot_sets *s);

/* The same for a look: the link is not turned, and the lock is held until fd is closed. restart: a
 * server that may have the lock ends before. */
int snapshot_sets_look(struct snapshot_sets *s, const char *dir, bool writable, bool restart,
	const struct image_why *why);

/* The set to restore. -ENOENT: there is none, nor the beginning of one; -EBADMSG: there is only an
 * incomplete one, or no link to one. *newer: an incomplete set is beside it, which was begun
 * later. */
int snapshot_sets_latest(const struct snapshot_sets *s, char set[SNAPSHOT_SET_PATH_BYTES],
	bool *newer, const struct image_why *why);

/* The place of the next set: not the latest, nor, without a latest, the only whole one. */
void snapshot_sets_next(const struct snapshot_sets *s, char set[SNAPSHOT_SET_PATH_BYTES]);
/* Makes that place an empty directory. -ENOTEMPTY: it holds files that no snapshot has. */
int snapshot_set_clear(const char *set, const struct image_why *why);
/* Makes the set the latest; all its snapshots are on the disk. After an error it is not. */
int snapshot_sets_publish(
	const struct snapshot_sets *s, const char *set, const struct image_why *why);

#endif
