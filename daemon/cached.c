#include "daemon/cached.h"

#include "common/util.h"
#include "daemon/fs_internal.h"
#include "daemon/op.h"

/* What is dropped at once: at first, and more as long as nobody reads it meanwhile. */
enum { STEP_BYTES = 2 << 20 };

/* More than can be mapped. */
static const uint64_t ENDLESS = UINT64_C(1) << 47;

void cached_init(struct cached *c)
{
	c->step = STEP_BYTES;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static struct cached_range pages_of(uint64_t offset, uint64_t len)
{
	return (struct cached_range){.from = offset / PAGE_BYTES * PAGE_BYTES,
		.to = div_round_up(offset + len, PAGE_BYTES) * PAGE_BYTES};
}

static bool touch(struct cached_range a, struct cached_range b)
{
	return a.from < b.to && b.from < a.to;
}

static uint64_t gap(struct cached_range a, struct cached_range b)
{
	if (touch(a, b))
		return 0;
	return a.from < b.from ? b.from - a.to : a.from - b.to;
}

/* The one that is nearest: it becomes one with what is added if they meet, or there is no room. */
static unsigned nearest(const struct cached *c, struct cached_range r)
{
	unsigned best = 0;

	for (unsigned i = 1; i < c->nranges; i++)
		if (gap(c->ranges[i], r) < gap(c->ranges[best], r))
			best = i;
	return best;
}

static void remove_range(struct cached *c, unsigned i)
{
	c->ranges[i] = c->ranges[--c->nranges];
}

static void add_range(struct cached *c, struct cached_range r)
{
	while (c->nranges) {
		unsigned i = nearest(c, r);
		struct cached_range other = c->ranges[i];

		if (gap(other, r) && c->nranges < CACHED_RANGES)
			break;
		r.from = min_u64(r.from, other.from);
		r.to = max_u64(r.to, other.to);
		remove_range(c, i);
	}
	c->ranges[c->nranges++] = r;
}

void cached_note_locked(struct inode *inode, uint64_t offset, uint64_t len)
{
	struct cached *c = &inode->cached;
	struct cached_range r = pages_of(offset, len);

	c->mapped = true;
	c->read_again |= c->running && touch(c->dropped, r);
	add_range(c, r);
}

bool cached_any_locked(const struct inode *inode)
{
	return inode->cached.nranges || inode->cached.running;
}

/* For the kernel, though others may move it. */
static bool has_an_end(const struct inode *inode, enum lease_type keep)
{
	const struct cached *c = &inode->cached;

	return keep < LEASE_SHARED && c->mapped && inode->nopen && !c->endless;
}

bool cached_hinders_locked(const struct inode *inode, enum lease_type keep)
{
	return (cached_any_locked(inode) && (keep < LEASE_SHARED || inode->cached.nstorers)) ||
	       has_an_end(inode, keep);
}

bool cached_drops_locked(const struct inode *inode, uint64_t offset, uint64_t len)
{
	const struct cached *c = &inode->cached;

	return c->running && touch(c->dropped, pages_of(offset, len));
}

/* ---- dropping -------------------------------------------------------------------------------- */

/* Cuts off what the READs that wait have locked, which is empty, and all that lies behind it. */
static struct cached_range without_locked(const struct inode *inode, struct cached_range r)
{
	list_for_each (pos, &inode->lease.waiters) {
		const struct request *req = list_entry(pos, struct waiter, link)->req;
		struct cached_range locked;

		if (req->op != OP_READ || !req->args.cached)
			continue;
		locked = pages_of(req->args.offset, req->args.size);
		if (locked.from <= r.from && r.from < locked.to)
			r.from = min_u64(locked.to, r.to);
		else if (touch(locked, r))
			r.to = locked.from;
	}
	return r;
}

/* Takes it out of what is cached. Empty: there is nothing. */
static struct cached_range take_next_locked(struct inode *inode)
{
	struct cached *c = &inode->cached;
	struct cached_range r = {0}, before;

	while (c->nranges && r.from == r.to) {
		r.from = c->ranges[0].from;
		r.to = min_u64(c->ranges[0].to, r.from + c->step);
		/* In whatever order they wait. */
		do {
			before = r;
			r = without_locked(inode, r);
		} while (r.from != before.from && r.from < r.to);
		c->ranges[0].from = r.to;
		if (c->ranges[0].from == c->ranges[0].to)
			remove_range(c, 0);
	}
	return r;
}

static void dropped(struct notifier_job *job)
{
	struct inode *inode = container_of(job, struct inode, cached.job);
	struct cached *c = &inode->cached;

	pthread_mutex_lock(&inode->lock);
	c->running = false;
	c->step = c->read_again ? STEP_BYTES : min_u64(2 * c->step, INT64_MAX / 2);
	/* What a lost lease has left is dropped for nobody in particular. */
	if (inode->lease.type == LEASE_NONE)
		cached_drop_locked(inode, job->thread, LEASE_NONE);
	pthread_mutex_unlock(&inode->lock);
	lease_settle(inode, job->thread);
	inode_put(inode);
}

static void tell_locked(struct inode *inode, struct io_thread *thread)
{
	struct cached *c = &inode->cached;

	c->running = true;
	c->read_again = false;
	c->job.port = thread->port;
	c->job.node = inode_node(inode);
	c->job.thread = thread;
	c->job.done = dropped;
	inode_ref(inode);
	notifier_add(&inode->fs->giver, &c->job);
}

void cached_drop_locked(struct inode *inode, struct io_thread *thread, enum lease_type keep)
{
	struct cached *c = &inode->cached;

	if (c->running)
		return;
	c->dropped = take_next_locked(inode);
	if (c->dropped.from < c->dropped.to) {
		c->job = (struct notifier_job){
			.off = (int64_t)c->dropped.from,
			.len = (int64_t)(c->dropped.to - c->dropped.from),
		};
		tell_locked(inode, thread);
		return;
	}
	c->step = STEP_BYTES;
	if (!has_an_end(inode, keep))
		return;
	c->endless = true;
	c->job = (struct notifier_job){.size = ENDLESS};
	tell_locked(inode, thread);
}

void cached_leased_locked(struct inode *inode)
{
	inode->cached.endless = false;
}

void cached_closed_locked(struct inode *inode)
{
	inode->cached.mapped = false;
}
