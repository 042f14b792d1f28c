#include "daemon/kcache/stale_pages.h"

#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/file/inode.h"

void stale_pages_init(struct stale_pages *d, struct inode *inode)
{
	d->inode = inode;
	list_init(&d->waiters);
}

/* ---- dropping -------------------------------------------------------------------------------- */

static void stale_pages_dropped(struct notifier_job *job);

/* Several notes become one range: pages that are dropped without need are only read again. */
static void start_locked(struct inode *inode, struct fuse_port *port)
{
	struct stale_pages *d = inode->drop;

	d->job = (struct notifier_job){
		.port = port,
		.node = inode_node(inode),
		.off = (int64_t)d->from,
		.len = (int64_t)(d->to - d->from),
		.done = stale_pages_dropped,
	};
	d->from = d->to = 0;
	d->round++;
	notifier_add(&inode->fs->dropper, &d->job);
}

static void stale_pages_wake_locked(struct stale_pages *d, uint64_t round)
{
	list_for_each_safe (pos, &d->waiters) {
		struct waiter *w = list_entry(pos, struct waiter, link);

		if (w->until > round)
			continue;
		list_del(&w->link);
		waiter_wake(w, 0);
	}
}

static void stale_pages_dropped(struct notifier_job *job)
{
	struct inode *inode = container_of(job, struct stale_pages, job)->inode;
	struct stale_pages *d = inode->drop;
	bool again;

	pthread_mutex_lock(&inode->lock);
	stale_pages_wake_locked(d, d->round);
	again = d->running = d->from < d->to;
	if (again)
		start_locked(inode, job->port);
	pthread_mutex_unlock(&inode->lock);
	/* The job that was started again keeps the reference. */
	if (!again)
		inode_put(inode);
}

/* Returns the round of it. */
static uint64_t note_locked(struct inode *inode, struct fuse_port *port, uint64_t from, uint64_t to)
{
	struct stale_pages *d = inode->drop;
	bool noted = d->from < d->to;

	d->from = noted ? min_u64(d->from, from) : from;
	d->to = noted ? max_u64(d->to, to) : to;
	if (d->running)
		return d->round + 1;
	d->running = true;
	inode_ref(inode);
	start_locked(inode, port);
	return d->round;
}

static bool was_read(const struct stale_pages *d, uint64_t from, uint64_t to)
{
	return from < d->read_to && to > d->read_from;
}

uint64_t stale_pages_note_locked(
	struct inode *inode, struct fuse_port *port, uint64_t from, uint64_t to)
{
	uint64_t round = note_locked(inode, port, from, to);

	return was_read(inode->drop, from, to) ? round : 0;
}

uint64_t stale_pages_unseen_locked(
	struct inode *inode, struct fuse_port *port, uint64_t from, uint64_t to)
{
	inode->stale = true;
	if (!inode->nopen_cached && !was_read(inode->drop, from, to))
		return 0;
	return stale_pages_note_locked(inode, port, from, to);
}

/* ---- reading --------------------------------------------------------------------------------- */

void stale_pages_read_locked(struct inode *inode, uint64_t from, uint64_t to)
{
	struct stale_pages *d = inode->drop;
	bool some = d->read_from < d->read_to;

	d->read_from = some ? min_u64(d->read_from, from) : from;
	d->read_to = some ? max_u64(d->read_to, to) : to;
}

void stale_pages_forget_reads_locked(struct inode *inode)
{
	inode->drop->read_from = inode->drop->read_to = 0;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void stale_pages_waited(struct request *req, int status)
{
	struct op *op = op_of(req);

	atomic_fetch_sub(&req->thread->fs->ndrop_waiters, 1);
	/* Even if the request was taken back, its write has been done. */
	(void)status;
	op->undropped(req, 0);
}

static bool stale_pages_may_wait(struct fs *fs)
{
	if (atomic_fetch_add(&fs->ndrop_waiters, 1) < DROP_WAITING_MAX)
		return true;
	atomic_fetch_sub(&fs->ndrop_waiters, 1);
	return false;
}

static bool is_over_locked(const struct stale_pages *d, uint64_t round)
{
	return round < d->round || (round == d->round && !d->running);
}

bool stale_pages_wait(
	struct request *req, uint64_t round, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);
	struct inode *inode = op->inode;
	struct fs *fs = req->thread->fs;
	bool over;

	if (!stale_pages_may_wait(fs))
		return true;
	op->undropped = then;
	waiter_init(&op->waiter, req, stale_pages_waited);
	op->waiter.until = round;
	pthread_mutex_lock(&inode->lock);
	over = is_over_locked(inode->drop, round);
	if (!over) {
		op_waits(op, OP_AT_DROP, &inode->lock);
		list_add_tail(&inode->drop->waiters, &op->waiter.link);
	}
	pthread_mutex_unlock(&inode->lock);
	if (over) {
		atomic_fetch_sub(&fs->ndrop_waiters, 1);
		return true;
	}
	/* Snapshots, and operations that want to send something, or the lease, do not wait for this
	 * one. */
	op_yield(req);
	request_return_buffer(req);
	return false;
}
