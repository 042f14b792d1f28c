#include "daemon/file/access_time.h"

#include <fcntl.h>
#include <sys/mount.h>

#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/file/inode.h"
#include "daemon/file/commit.h"

enum { DAY_S = 24 * 60 * 60, DELAY_MS = 10000, COMMITS_A_TURN = 256 };

#define NS_PER_MS INT64_C(1000000)
#define DAY_NS    (DAY_S * INT64_C(1000000000))

/* ---- what is wanted -------------------------------------------------------------------------- */

void access_time_set(struct access_policy *policy, unsigned long flags)
{
	if (!(flags & (MS_NOATIME | MS_NODIRATIME | MS_RELATIME | MS_STRICTATIME)))
		return;
	atomic_store(&policy->nodiratime, flags & MS_NODIRATIME);
	if (flags & MS_NOATIME)
		atomic_store(&policy->mode, ACCESS_NEVER);
	else if (flags & MS_STRICTATIME)
		atomic_store(&policy->mode, ACCESS_STRICT);
	else
		atomic_store(&policy->mode, ACCESS_RELATIVE);
}

void access_time_set_read_only(struct access_policy *policy, bool read_only)
{
	atomic_store(&policy->read_only, read_only);
}

static enum access_mode mode_of(const struct inode *inode)
{
	return atomic_load_explicit(&inode->fs->access->mode, memory_order_relaxed);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_wanted(const struct request *req, const struct inode *inode)
{
	const struct access_policy *policy = inode->fs->access;

	return mode_of(inode) != ACCESS_NEVER && !atomic_load(&policy->read_only) &&
	       !(req->args.flags & O_NOATIME) &&
	       !(S_ISDIR(inode->type) && atomic_load(&policy->nodiratime));
}

static bool is_later_than_changes(const struct attr *attr)
{
	return attr->atime > attr->mtime && attr->atime > attr->ctime;
}

/* Each read calls this, so it does not ask what time it is. */
static bool is_due_locked(const struct request *req, const struct inode *inode)
{
	return mode_of(inode) == ACCESS_STRICT || !is_later_than_changes(&inode->attr) ||
	       io_thread_now(req->thread) >= inode->access.until_ms;
}

static void list_locked(struct inode *inode, struct io_thread *thread)
{
	struct access *a = &inode->access;

	a->dirty = true;
	if (a->listed)
		return;
	a->listed = true;
	a->since_ms = io_thread_now(thread);
	list_add_tail(&fs_thread_of(thread)->accessed, &a->link);
	inode_ref(inode);
}

void access_time_mark_locked(struct request *req)
{
	struct inode *inode = op_of(req)->inode;
	struct access *a = &inode->access;
	int64_t now, age;

	if (a->held || !is_due_locked(req, inode) || !is_wanted(req, inode))
		return;
	now = session_time(inode->fs->session);
	age = inode->attr.atime > now - DAY_NS ? now - inode->attr.atime : DAY_NS;
	if (mode_of(inode) == ACCESS_STRICT || age == DAY_NS ||
		!is_later_than_changes(&inode->attr)) {
		inode->attr.atime = now;
		age = 0;
		if (!inode->orphan)
			list_locked(inode, req->thread);
	}
	a->until_ms = io_thread_now(req->thread) + (DAY_NS - (age > 0 ? age : 0)) / NS_PER_MS;
}

void access_time_mark(struct request *req)
{
	struct inode *inode = op_of(req)->inode;

	pthread_mutex_lock(&inode->lock);
	access_time_mark_locked(req);
	pthread_mutex_unlock(&inode->lock);
}

/* ---- by hand --------------------------------------------------------------------------------- */

void access_time_hold(struct inode *inode)
{
	struct commit *c = &inode->commit;

	pthread_mutex_lock(&inode->lock);
	inode->access.held++;
	inode->access.dirty = false;
	/* One more change, so that a request that waits for all of them waits for the COMMIT on its
	 * way. */
	if (c->running && (c->call.req.commit.flags & COMMIT_ATIME))
		c->changes++;
	pthread_mutex_unlock(&inode->lock);
}

void access_time_release(struct inode *inode, const int64_t *atime)
{
	pthread_mutex_lock(&inode->lock);
	inode->access.held--;
	if (atime) {
		inode->attr.atime = *atime;
		inode->access.until_ms = 0;
	}
	pthread_mutex_unlock(&inode->lock);
}

/* ---- telling the server ---------------------------------------------------------------------- */

static void commit_one(struct inode *inode, struct io_thread *thread)
{
	struct access *a = &inode->access;
	bool running, send;

	pthread_mutex_lock(&inode->lock);
	running = inode->commit.running;
	a->dirty = a->dirty && !inode->orphan;
	send = a->dirty;
	if (!running) {
		list_del(&a->link);
		a->listed = false;
	}
	pthread_mutex_unlock(&inode->lock);
	/* The one on its way may have begun before the mark was made. */
	if (running)
		return;
	if (send)
		commit_start(inode, thread);
	inode_put(inode);
}

bool access_time_tick(struct io_thread *thread)
{
	struct fs_thread *ft = fs_thread_of(thread);
	bool all = ft->stopping || atomic_load(&thread->fs->committing_all);
	int64_t now = io_thread_now(thread);
	unsigned n = 0;

	list_for_each_safe (pos, &ft->accessed) {
		struct inode *inode = list_entry(pos, struct inode, access.link);

		if (!all && (n == COMMITS_A_TURN || now - inode->access.since_ms < DELAY_MS))
			break;
		commit_one(inode, thread);
		n++;
	}
	return list_empty(&ft->accessed);
}
