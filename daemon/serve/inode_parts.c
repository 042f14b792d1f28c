/* inode_parts.c - see inode_parts.h. */
#include "daemon/serve/inode_parts.h"

#include "daemon/file/inode_return.h"
#include "daemon/kcache/kernel_attr.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/kcache/stale_pages.h"
#include "daemon/lease/append_order.h"
#include "daemon/lease/keep.h"
#include "daemon/lease/lease.h"
#include "daemon/lock/lock_owner.h"

struct inode_parts {
	struct stale_pages drop;
	struct inode_lease lease;
	struct kernel_pages cached;
	struct kernel_attr told;
	struct kernel_owner kernel_owner;
	struct appends appends;
	struct inode_locks locks;
};

static void init(struct inode *inode, void *at)
{
	struct inode_parts *parts = at;

	inode->drop = &parts->drop;
	inode->lease = &parts->lease;
	inode->cached = &parts->cached;
	inode->told = &parts->told;
	inode->kernel_owner = &parts->kernel_owner;
	inode->appends = &parts->appends;
	inode->locks = &parts->locks;
	stale_pages_init(inode->drop, inode);
	inode_lease_init(inode->lease, inode);
	kernel_attr_init(inode->told, inode);
	append_order_init(inode->appends);
	inode_locks_init(inode->locks);
}

static void fini(struct inode *inode)
{
	lease_fini(inode);
	inode_locks_fini(inode->locks);
	kernel_pages_fini(inode->cached);
}

static bool inode_parts_is_idle(const struct inode *inode)
{
	return inode->lease->state == LEASE_IDLE;
}

/* The inode knew which answers still to come are too old. The note tells that from now on. */
static void forgotten(struct inode *inode)
{
	if (inode->lease->returned)
		lease_note(inode->fs, inode->ino);
	inode_return_forgotten(inode);
}

static void change_begins(struct inode *inode)
{
	kernel_attr_try_take_back_locked(inode);
}

const struct inode_hooks inode_parts_hooks = {
	.parts_bytes = sizeof(struct inode_parts),
	.init = init,
	.fini = fini,
	.lower = lease_lower_locked,
	.lowered = lease_lowered_locked,
	.settle = lease_settle,
	.is_used = lease_is_used_locked,
	.is_idle = inode_parts_is_idle,
	.is_leaving = lease_is_leaving_locked,
	.end_lease = lease_end_locked,
	.forgotten = forgotten,
	.end_is_told = kernel_pages_end_is_told_locked,
	.change_begins = change_begins,
	.kernel_forgets = kernel_owner_forget,
};
