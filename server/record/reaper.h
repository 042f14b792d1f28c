/* reaper.h - frees the pages of long files, and the attributes of dead inodes, piece by piece.
 *
 * reap_record.h tells what is to be freed. A dead inode's extended attributes stay as long.
 *
 * THREADS  The metadata thread, in a transaction.
 * ERRORS   The store failed.
 */
#ifndef RMEMFS_SERVER_RECORD_REAPER_H
#define RMEMFS_SERVER_RECORD_REAPER_H

#include <stdbool.h>
#include <stdint.h>

#include "server/record/volume.h"

struct stored_inode;

/* The inode has no name and nobody keeps it: frees its pages and its record, or leaves
 * both to reaper_step if they are many, or if it has extended attributes... */
int reaper_inode(struct volume *v, struct stored_inode *i);
/* ... or in any case. */
int reaper_inode_later(struct volume *v, struct stored_inode *i);

/* Frees at most nextents extents, or records of attributes. *more: there is more to do. *finished:
 * files done. */
int reaper_step(struct volume *v, unsigned nextents, bool *more, uint64_t *finished);

/* Sets the volume's counts when it is opened. */
int reaper_open(struct volume *v);

#endif
