/* kernel_owner.h - which owner and group the kernel of a sharing mount has of an inode.
 *
 * The kernel checks by them who may change modes, owners, times and access control lists, and does
 * not ask again before. Another mount may have changed the owner since. So such a request is right
 * as long as the owner that the kernel has checked the caller by is the owner at the server.
 *
 * Only the answer to a SETATTR is taken by the kernel for certain. Any other answer may be dropped
 * by it, or be on its way still, so the kernel has one of the owners that it was told since the
 * last SETATTR, or since it knows the inode. If these are several ones, which one it has checked by
 * is not known. The kernel holds the inode's lock from a check until the answer to its SETATTR or
 * SETXATTR; no other request of these is on its way meanwhile.
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

/* The kernel, which has lookups of the inode, is going to be told of it by an answer, but for
 * SETATTR's. On a mount that does not share this does nothing. */
void kernel_owner_tell(struct inode *inode, const struct attr *attr);
/* By SETATTR's. */
void kernel_owner_settle(struct inode *inode, const struct attr *attr);
/* The kernel may have no lookups of the inode any more. */
void kernel_owner_forget(struct inode *inode);

/* The rights of a request that the kernel has checked: the inode still has the owner that it was
 * checked by. Reads nothing of the caller. False: the kernel may have had one of several owners, or
 * the caller is root, who may change what others own by now. Then, and when the server refuses
 * these rights, caller_rights() are the right ones. `groups` is none. */
bool kernel_owner_rights(const struct request *req, struct inode *inode, struct rights *rights);
/* The groups for which a set-group-id stays that the request sets: the one that the kernel has
 * checked by, which leaves that bit for members alone; all for root. If the kernel may have one of
 * several they are the caller's, as far as these can be seen. `known`: the group that the inode is
 * thought to have. */
struct id_range kernel_owner_groups(const struct request *req, struct inode *inode, uint32_t known);

#endif
