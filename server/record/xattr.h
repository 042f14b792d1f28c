/* xattr.h - the records of extended attributes.
 *
 * Each attribute has a record under a cookie of its name, as directory entries have (dirent.h). A
 * long value lies in parts of its own, since values of more than half a page would need pages in a
 * row. One more record has the total length of the inode's names. An inode without attributes has
 * no records.
 *
 * The caller loads the inode, checks, changes, and saves it: xattr_put and xattr_del keep its
 * ATTR_* flags, not the record.
 *
 * THREADS  The metadata thread, in a transaction.
 * ERRORS   The store failed, but for -ENOENT and -ENOSPC where said.
 */
#ifndef RMEMFS_SERVER_RECORD_XATTR_H
#define RMEMFS_SERVER_RECORD_XATTR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rpc/rpc.h"
#include "server/record/dirent.h"
#include "server/record/volume.h"

struct stored_inode;

enum {
	XATTR_NAMES_MAX = 65536, /* bytes of an inode's names, each with its NUL: listxattr(2)'s
				  * limit */
	XATTR_PART_BYTES = 1900,
	XATTR_INLINE_MAX = XATTR_PART_BYTES - NAME_BYTES_MAX - 2,
	XATTR_HEADER = 0, /* cookie of the record with the names' length */
};

struct xattr {
	uint64_t cookie;
	bool exists;
	struct rpc_str name; /* name and data lie in the store's map: valid until the next change */
	uint32_t len;        /* of the value */
	uint64_t sum;        /* store_hash() of it */
	uint64_t parts;      /* first record of its parts; 0: it is at data */
	const void *data;
};

/* The flag that tells of an attribute of this name: ATTR_ACL, ATTR_DEFAULT_ACL, ATTR_CAPS; else
 * 0. */
uint32_t xattr_flag(const struct rpc_str *name);

/* The attribute of the name, or where it can be added. -ENOSPC: 256 names with one hash. */
int xattr_find(struct volume *v, const struct dirent_hash *hash, const struct stored_inode *i,
	const struct rpc_str *name, struct xattr *x);
/* The first one beyond the cookie; -ENOENT: none. */
int xattr_next(struct volume *v, const struct stored_inode *i, uint64_t cookie, struct xattr *x);

/* Reads a range, which must lie within the value. */
int xattr_read(struct volume *v, const struct stored_inode *i, const struct xattr *x,
	uint32_t offset, void *buf, uint32_t len);
/* *same: the attribute exists and has this value. */
int xattr_equals(struct volume *v, const struct stored_inode *i, const struct xattr *x,
	const void *data, uint32_t len, bool *same);

/* The length of all names, each with its NUL. */
int xattr_names_len(struct volume *v, const struct stored_inode *i, uint32_t *len);

/* Store pages that xattr_put() of a value of this length may touch; len 0: xattr_del(). */
uint64_t xattr_room(const struct xattr *x, uint32_t len);
/* Adds or replaces the attribute. The caller has checked the length of the names. */
int xattr_put(struct volume *v, struct stored_inode *i, const struct xattr *x,
	const struct rpc_str *name, const void *data, uint32_t len);
/* The attribute must exist. */
int xattr_del(struct volume *v, struct stored_inode *i, const struct xattr *x,
	const struct rpc_str *name);

/* Deletes up to *budget records of a dead inode, in any order, and counts it down. */
int xattr_free(struct volume *v, const struct stored_inode *i, unsigned *budget, bool *done);

/* For checks. */
int xattr_decode(
	struct volume *v, struct store_key key, const struct store_val *val, struct xattr *x);
uint32_t xattr_nparts(const struct xattr *x);

#endif
