/* restore.h - makes an export from a snapshot's directory.
 *
 * Numbers, names, attributes, times and bytes are those of the snapshot. Pages get new places, so
 * the export may have another size. The restore takes many batches, before anything is served. The
 * caller must never serve a memory directory in which a restore was begun and not ended
 * (memdir_begin_restore).
 *
 * A store without names takes over the snapshot's hash of names (dirent.h), and records come as
 * they are, in their keys' order. Names get new cookies if the store has names that are hashed
 * otherwise. They get new ones, too, if the snapshot's hash is one of a former version, which no
 * new store has.
 *
 * THREADS  The metadata thread, outside batches.
 * ERRORS   0 or -errno with a line in why: -EBADMSG and -EPROTONOSUPPORT as in image.h. -EEXIST:
 *          the export has files. -ENOSPC: the export or the store is too small, or too many names
 *          of one directory have the same new hash.
 */
#ifndef RMEMFS_SERVER_SNAPSHOT_RESTORE_H
#define RMEMFS_SERVER_SNAPSHOT_RESTORE_H

#include "server/snapshot/image.h"

struct meta;

/* Called again and again with the pages that are done and the pages in all; an error ends the
 * restore. NULL: not wanted. */
struct restore_watch {
	int (*tick)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};

/* The reason and the remedy, where the memory directory has files. */
extern const char restore_into_files[];

/* Before the first export that a start restores. A restore that ends half way costs the whole
 * memory directory. So -EEXIST: an export of it, this one or another, has files or a session. */
int restore_may_begin(struct meta *m, const struct image_why *why);
/* Reads the whole snapshot, to find whether the export can be made from it; changes nothing. */
int restore_check(struct meta *m, unsigned export_index, struct image_reader *image,
	const struct restore_watch *watch, const struct image_why *why);
/* After restore_check(). */
int restore_export(struct meta *m, unsigned export_index, struct image_reader *image,
	const struct restore_watch *watch, const struct image_why *why);

#endif
