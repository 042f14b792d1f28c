/* acl.h - POSIX access control lists, in the form that their extended attributes have
 * (linux/posix_acl_xattr.h), and how a list and a mode change each other; see acl(5).
 *
 * A list has, in this order: the owner's entry, named users, the group's entry, named groups, a
 * mask, the entry of all others. There must be a mask if anybody is named.
 *
 * THREADS  Pure functions.
 */
#ifndef RMEMFS_COMMON_RPC_ACL_H
#define RMEMFS_COMMON_RPC_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ACL_ENTRIES_MAX = 500,
	ACL_HEADER_BYTES = 4,
	ACL_ENTRY_BYTES = 8,
	ACL_BYTES_MAX = ACL_HEADER_BYTES + ACL_ENTRIES_MAX * ACL_ENTRY_BYTES,
};

struct acl_entry {
	uint16_t tag, perm;
	uint32_t id; /* of named users and groups; else ACL_UNDEFINED_ID */
};

struct acl {
	unsigned n; /* 0: there is no list */
	struct acl_entry entries[ACL_ENTRIES_MAX];
};

/* No bytes, or no entries: no list. -EINVAL: not a valid list; -EOPNOTSUPP: of another version;
 * -E2BIG: too many entries. */
int acl_decode(struct acl *acl, const void *data, size_t len);
size_t acl_encode(const struct acl *acl, uint8_t buf[ACL_BYTES_MAX]);

/* Whether the list says no more than a mode does. */
bool acl_is_mode(const struct acl *acl);

/* The mode with the permissions that go with an access list. */
uint32_t acl_to_mode(const struct acl *acl, uint32_t mode);
/* The other way: chmod(2) of an inode that has the list. */
void acl_set_mode(struct acl *acl, uint32_t mode);

/* Makes a directory's default list the access list of a new inode in it. mode: the one asked for.
 * Returns the mode that the inode gets. */
uint32_t acl_inherit(struct acl *acl, uint32_t mode);

#endif
