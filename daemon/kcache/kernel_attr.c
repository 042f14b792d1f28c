#include "daemon/kcache/kernel_attr.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/fuse/port.h"
#include "daemon/file/inode.h"

/* Times end by this share of the lease time early: a caller that has an answer may be late to note
 * it. */
enum { MARGIN_SHARE = 8 };

/* After this time an answer that its caller has not taken is not waited for. */
enum { LATE_MS = 1000 };

/* The pause between two tries is as long as the tries have taken so far. */
enum { AGAIN_MIN_MS = 1, AGAIN_MAX_MS = 50 };

static void try_again(struct thread_call *call);

void kernel_attr_init(struct kernel_attr *told, struct inode *inode)
{
	told->inode = inode;
	told->call.run = try_again;
	list_init(&told->call.link);
}

static struct fuse_port *port_of(const struct inode *inode)
{
	return inode->fs->threads[0].thread->port;
}

/* False: the kernel does not know the inode. */
static bool take_back_locked(struct inode *inode)
{
	return fuse_port_inval_inode(port_of(inode), inode_node(inode), -1, 0) != -ENOENT;
}

/* ---- giving ---------------------------------------------------------------------------------- */

static bool may_keep_locked(const struct inode *inode, const struct request *req)
{
	const struct attr *attr = &inode->attr;

	return !(inode_is_regular(inode) && inode->nopen) &&
	       (req->op != OP_LOOKUP || inode->fs->features.evictions_seen) &&
	       (attr->nlink == 1 || S_ISDIR(attr->mode));
}

/* The kernel forgets what it has from before this lease. So it does not keep the answer to this
 * question, but shows it to the caller. */
static bool is_first_locked(struct inode *inode)
{
	if (inode->told->number == inode->lease_number)
		return false;
	take_back_locked(inode);
	inode->told->number = inode->lease_number;
	return true;
}

uint32_t kernel_attr_attr_locked(struct inode *inode, const struct request *req)
{
	uint32_t left, margin;

	if (!may_keep_locked(inode, req) || inode->fs->inodes->hooks->is_leaving(inode) ||
		is_first_locked(inode))
		return 0;
	left = session_ttl_ms(inode->fs->session);
	margin = session_lease_ms(inode->fs->session) / MARGIN_SHARE;
	if (left <= margin)
		return 0;
	inode->told->attr = true;
	inode->told->since_ms = 0;
	return left - margin;
}

/* ---- taking back ----------------------------------------------------------------------------- */

static void set_taken_back(struct kernel_attr *told)
{
	told->attr = false;
	told->since_ms = 0;
}

bool kernel_attr_try_take_back_locked(struct inode *inode)
{
	if (inode->told->attr && take_back_locked(inode))
		set_taken_back(inode->told);
	return !inode->told->attr;
}

void kernel_attr_forget_locked(struct inode *inode)
{
	kernel_attr_try_take_back_locked(inode);
	set_taken_back(inode->told);
	inode->told->number = 0;
}

static void try_again(struct thread_call *call)
{
	struct kernel_attr *told = container_of(call, struct kernel_attr, call);
	struct inode *inode = told->inode;
	struct io_thread *thread = told->thread;

	pthread_mutex_lock(&inode->lock);
	told->thread = NULL;
	pthread_mutex_unlock(&inode->lock);
	inode->fs->inodes->hooks->settle(inode, thread);
	inode_put(inode);
}

/* Whether an answer is on its way to its caller, or a FORGET to us, unless the mount is ending. */
static bool is_coming_locked(struct inode *inode)
{
	struct kernel_attr *told = inode->told;
	int64_t now = now_ms();

	if (!__atomic_load_n(&inode->nlookup, __ATOMIC_ACQUIRE) || fuse_port_gone(port_of(inode)))
		return false;
	if (!told->since_ms)
		told->since_ms = now;
	if (now - told->since_ms < LATE_MS)
		return true;
	log_warning("inode %llu: the kernel has not taken an answer for %d ms, and may take it for "
		    "true when it is not",
		(unsigned long long)inode->ino, LATE_MS);
	return false;
}

/* The caller that is to take its answer may wait for a CPU, or for memory. */
static void try_again_later_locked(struct inode *inode, struct io_thread *thread)
{
	struct kernel_attr *told = inode->told;
	int64_t waited = now_ms() - told->since_ms;

	told->thread = thread;
	inode_ref(inode);
	io_thread_call_later(thread, &told->call,
		(unsigned)max_u64(AGAIN_MIN_MS, min_u64((uint64_t)waited, AGAIN_MAX_MS)));
}

bool kernel_attr_take_back_locked(struct inode *inode, struct io_thread *thread)
{
	struct kernel_attr *told = inode->told;

	if (!told->attr)
		return true;
	if (take_back_locked(inode) || !is_coming_locked(inode)) {
		set_taken_back(told);
		return true;
	}
	if (!told->thread)
		try_again_later_locked(inode, thread);
	return false;
}
