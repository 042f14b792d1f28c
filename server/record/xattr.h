/* xattr.h - the records of extended attributes.
 *
 * Each attribute has a record under a cookie of its name, as directory entries have (dirent.h). A
 * long value lies in parts of its own, since values of more than half a page would need pages in a
 * row. One more record has the length of the inode's names together; an inode without attributes
 * has none of all that.
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
	XATTR_NAMES_MAX = 65536, /* bytes of an inode's names, each with its NUL: listxattr(2)'s */
	XATTR_PART_BYTES = 1900,
	XATTR_INLINE_MAX = XATTR_PART_BYTES - NAME_BYTES_MAX - 2,
	XATTR_HEADER = 0, /* cookie of the record about all */
};

struct xattr {
	uint64_t cookie;
	bool exists;
	struct rpc_str name; /* this and data in the store's map: until the next change */
	uint32_t len;        /* of the value */
	uint64_t sum;        /* store_hash() of it */
	uint64_t parts;      /* where its parts begin, or 0: */
	const void *data;    /* it is here */
};

/* ATTR_ACL, ATTR_DEFAULT_ACL or ATTR_CAPS for the names that these tell of; else 0. */
uint32_t xattr_flag(const struct rpc_str *name);

/* The attribute of the name, or where it can be added. -ENOSPC: 256 names with one hash. */
int xattr_find(struct volume *v, const struct dirent_hash *hash, const struct stored_inode *i,
	const struct rpc_str *name, struct xattr *x);
/* The first one beyond the cookie; -ENOENT: none. */
int xattr_next(struct volume *v, const struct stored_inode *i, uint64_t cookie, struct xattr *x);

/* A range that lies within the value. */
int xattr_read(struct volume *v, const struct stored_inode *i, const struct xattr *x,
	uint32_t offset, void *buf, uint32_t len);
/* It exists and has this value. */
int xattr_equals(struct volume *v, const struct stored_inode *i, const struct xattr *x,
	const void *data, uint32_t len, bool *same);

/* Of all names, each with its NUL. */
int xattr_names_len(struct volume *v, const struct stored_inode *i, uint32_t *len);

/* Store pages that putting a value of this length in the place may touch; 0 for deleting it. */
uint64_t xattr_room(const struct xattr *x, uint32_t len);
/* Adds or replaces. The names' length is the caller's to check. */
int xattr_put(struct volume *v, struct stored_inode *i, const struct xattr *x,
	const struct rpc_str *name, const void *data, uint32_t len);
/* It must exist. */
int xattr_del(struct volume *v, struct stored_inode *i, const struct xattr *x,
	const struct rpc_str *name);

/* Deletes up to *budget records of a dead inode, counts it down; any order. */
int xattr_free(struct volume *v, const struct stored_inode *i, unsigned *budget, bool *done);

/* For checks. */
int xattr_decode(
	struct volume *v, struct store_key key, const struct store_val *val, struct xattr *x);
uint32_t xattr_nparts(const struct xattr *x);

#endif
