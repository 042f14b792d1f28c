/* kernel_owner.h - which owner and group the kernel of a sharing mount has of an inode.
 *
 * By owner and group the kernel checks who may change modes, owners, times and access control
 * lists, and does not ask again before. Another mount may have changed the owner since. So such a
 * request is right only if the owner that the kernel has checked the caller by is still the owner
 * at the server.
 *
 * The kernel surely takes only the answer to a SETATTR. It may drop any other answer, or that is
 * still on its way. So the kernel has one of the owners that it was told since the last SETATTR, or
 * since it knows the inode. If there are several, it is not known which one it has checked by. The
 * kernel holds the inode's lock from a check until the answer to its SETATTR or SETXATTR; no other
 * request of these is on its way meanwhile.
 *
 * An owner 0 counts only if the kernel was told no other one: root may change everybody's files, so
 * it does no harm if the kernel has checked by that one.
 *
 * THREADS    Any; the fields belong to the inode's lock. An answer is noted before it is sent.
 */
#ifndef RMEMFS_DAEMON_KCACHE_KERNEL_OWNER_H
#define RMEMFS_DAEMON_KCACHE_KERNEL_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rpc/rights.h"

struct attr;
struct inode;
struct request;

struct kernel_owner {
	bool told; /* the kernel has an owner and a group */
	bool one_uid, one_gid;
	uint32_t uid, gid;
};

/* The kernel, which has lookups of the inode, is about to get an answer about it, other than
 * SETATTR's. On a mount that has never shared this does nothing. */
void kernel_owner_tell(struct inode *inode, const struct attr *attr);
/* The same for SETATTR's answer. */
void kernel_owner_settle(struct inode *inode, const struct attr *attr);
/* The mount shares from now on. Until now it has not noted what the kernel was told. */
void kernel_owner_share_locked(struct inode *inode);
/* The kernel may have no lookups of the inode any more. */
void kernel_owner_forget(struct inode *inode);

/* Whether the kernel has checked an owner's right by the owner that the inode has now. On a mount
 * that has never shared it has. On one that is alone again it has, if it was told of no other
 * owner: nobody else changes that any more. Of a mount that shares this is not known. */
bool kernel_owner_is_right(struct inode *inode);
/* The rights of a request that the kernel has checked: the inode still has the owner that the
 * kernel has checked by. Reads nothing of the caller. False: the kernel may have had one of several
 * owners; or the caller is root, which may change what others own by now; or it is squashed, so
 * that the kernel has checked another user. Then, and when the server refuses these rights,
 * caller_rights() are the right ones. `groups` is none. */
bool kernel_owner_rights(const struct request *req, struct inode *inode, struct rights *rights);
/* The groups for which the server keeps a set-group-id bit that the request sets. It is the group
 * that the kernel has checked by, which leaves the bit to members only; for root all groups. If the
 * kernel may have one of several, or the caller is squashed, it is the caller's groups, as far as
 * these can be seen. `known`: the group that the inode is thought to have. */
struct id_range kernel_owner_groups(const struct request *req, struct inode *inode, uint32_t known);

#endif
