/* inode_record.h - the form of an inode's record in the store.
 *
 * THREADS  The metadata thread; inode_record_glance() any thread.
 * ERRORS   -EBADMSG: the record is damaged.
 */
#ifndef RMEMFS_SERVER_RECORD_INODE_RECORD_H
#define RMEMFS_SERVER_RECORD_INODE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "server/record/inode.h"

enum {
	INODE_RECORD_FIXED_BYTES = 77,
	INODE_RECORD_EXTENT_BYTES = 18,
	INODE_RECORD_BYTES_MAX =
		INODE_RECORD_FIXED_BYTES + INLINE_EXTENTS * INODE_RECORD_EXTENT_BYTES,
};

/* Returns the length. */
size_t inode_record_encode(const struct stored_inode *i, uint8_t buf[INODE_RECORD_BYTES_MAX]);
/* Of any inode: also of a dead one. cut is not in the record. */
int inode_record_decode(struct volume *v, struct store_key key, const struct store_val *val,
	struct stored_inode *i);

/* The part of a stored value that tells whether the inode is visible. Any thread. */
struct inode_glance {
	uint8_t flags;
	uint32_t mode, nlink;
};
struct inode_glance inode_record_glance(const struct store_val *val);

#endif
