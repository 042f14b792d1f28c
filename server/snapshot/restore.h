/* restore.h - an export is made from a snapshot's directory.
 *
 * Numbers, names, attributes, times and bytes are those of the snapshot; where pages lie is chosen
 * anew, so that the export may have another size. It is done in many batches, before anything is
 * served: the caller sees to it that a memory directory in which this was begun and not ended is
 * never served (memdir_begin_restore).
 *
 * A store without names takes over the snapshot's hash of them (dirent.h), and records come as they
 * are, in their keys' order. Where the store has names that are hashed otherwise, or the snapshot's
 * hash is one of a former version, which no new store has, names get new cookies.
 *
 * THREADS  The metadata thread, outside batches.
 * ERRORS   0 or -errno with a line in why: -EBADMSG and -EPROTONOSUPPORT as image.h's; -EEXIST: the
 *          export has files; -ENOSPC: the export or the store is too small, or too many names of
 *          one directory have the same new hash.
 */
#ifndef RMEMFS_SERVER_SNAPSHOT_RESTORE_H
#define RMEMFS_SERVER_SNAPSHOT_RESTORE_H

#include "server/snapshot/image.h"

struct meta;

/* Called again and again with the pages that are done, and are in all; an error ends it. NULL:
 * nobody looks on. */
struct restore_watch {
	int (*tick)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};

/* Before the first of those that a start restores. An end half way leaves none of the memory
 * directory, so -EEXIST: an export of it, this one or another, has files or a session. */
int restore_may_begin(struct meta *m, const struct image_why *why);
/* Reads all of it, and finds what the export could not be made from; changes nothing. */
int restore_check(struct meta *m, unsigned export_index, struct image_reader *image,
	const struct restore_watch *watch, const struct image_why *why);
/* After that. */
int restore_export(struct meta *m, unsigned export_index, struct image_reader *image,
	const struct restore_watch *watch, const struct image_why *why);

#endif
