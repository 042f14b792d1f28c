/* extents.h - where a file's pages lie: the extents of an inode, in its record and beyond.
 *
 * The caller loads the inode, checks, changes, and saves it: extents_add, extents_cut and
 * extents_punch change the struct and the table, not the record. Extents are sorted by file page
 * and never overlap. Two that adjoin in the file and in memory are one.
 *
 * THREADS  The metadata thread, in a transaction.
 * ERRORS   The store failed, but for -ENOENT where said.
 */
#ifndef RMEMFS_SERVER_RECORD_EXTENTS_H
#define RMEMFS_SERVER_RECORD_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/types.h"
#include "server/record/volume.h"

struct stored_inode;

/* The extent that holds the page or is the first after it; -ENOENT: none. */
int extents_at(struct volume *v, const struct stored_inode *i, uint64_t fpage, struct extent *out);

/* None of the pages may be mapped, nor lie beyond the cut. */
int extents_add(struct volume *v, struct stored_inode *i, const struct extent *e);

/* Removes all pages from fpage on: few extents are freed (become dirty), many are hidden and left
 * to the reaper. */
int extents_cut(struct volume *v, struct stored_inode *i, uint64_t fpage);

/* Frees the pages of [first, end) (they become dirty) of up to *budget extents, and counts it down.
 * *reached: all pages of the range before it are a hole now. */
int extents_punch(struct volume *v, struct stored_inode *i, uint64_t first, uint64_t end,
	unsigned *budget, uint64_t *reached);

/* Frees up to *budget hidden extents, and counts it down. *npages: so many pages were freed. */
int extents_free_hidden(
	struct volume *v, struct stored_inode *i, unsigned *budget, uint64_t *npages, bool *done);

/* For checks: the record of the extent in the table at or after fpage, hidden ones too. */
int extents_stored_at(
	struct volume *v, const struct stored_inode *i, uint64_t fpage, struct extent *out);

/* For walks over records of any inode. */
int extents_decode(
	struct volume *v, struct store_key key, const struct store_val *val, struct extent *e);

#endif
