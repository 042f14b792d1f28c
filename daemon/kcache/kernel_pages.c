#include "daemon/fuse/receive.h"
#include "daemon/kcache/kernel_pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/kcache/cached_lookers.h"
#include "daemon/kcache/stale_pages.h"
#include "daemon/op/op.h"
#include "daemon/file/handle.h"
#include "daemon/file/inode.h"
#include "daemon/file/op_inode.h"

/* The bytes that are dropped at once in the beginning; more follow while nobody reads them. */
enum { STEP_BYTES = 2 << 20 };

/* More bytes than can be mapped. */
static const uint64_t ENDLESS = UINT64_C(1) << 47;

void kernel_pages_fini(struct kernel_pages *c)
{
	free(c->pages);
}

bool kernel_pages_make_locked(struct inode *inode)
{
	struct cached_pages *p = inode->cached->pages;

	if (p)
		return true;
	p = inode->cached->pages = calloc(1, sizeof(*p));
	if (!p)
		return false;
	p->inode = inode;
	p->step = STEP_BYTES;
	p->behind = p->zeroed = CACHED_NOTHING;
	return true;
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

/* The nearest range. The new one is joined to it if they meet, or if there is no room. */
static unsigned nearest(const struct cached_pages *p, struct cached_range r)
{
	unsigned best = 0;

	for (unsigned i = 1; i < p->nranges; i++)
		if (gap(p->ranges[i], r) < gap(p->ranges[best], r))
			best = i;
	return best;
}

static void remove_range(struct cached_pages *p, unsigned i)
{
	p->ranges[i] = p->ranges[--p->nranges];
}

static void add_range(struct cached_pages *p, struct cached_range r)
{
	while (p->nranges) {
		unsigned i = nearest(p, r);
		struct cached_range other = p->ranges[i];

		if (gap(other, r) && p->nranges < CACHED_RANGES)
			break;
		r.from = min_u64(r.from, other.from);
		r.to = max_u64(r.to, other.to);
		remove_range(p, i);
	}
	p->ranges[p->nranges++] = r;
}

static bool is_before(struct cached_range r, struct cached_range cut)
{
	return r.to <= cut.from;
}

/* Joins the two ranges that are nearest to each other on one side of the cut. */
static void join_beside(struct cached_range *r, unsigned n, struct cached_range cut)
{
	unsigned a = 0, b = 0;

	for (unsigned i = 0; i < n; i++)
		for (unsigned j = i + 1; j < n; j++)
			if (is_before(r[i], cut) == is_before(r[j], cut) &&
				(a == b || gap(r[i], r[j]) < gap(r[a], r[b]))) {
				a = i;
				b = j;
			}
	r[a].from = min_u64(r[a].from, r[b].from);
	r[a].to = max_u64(r[a].to, r[b].to);
	r[b] = r[n - 1];
}

/* Takes these bytes out of the ranges. One range at most has bytes on both sides, and becomes two.
 */
static void cut_ranges(struct cached_pages *p, struct cached_range cut)
{
	struct cached_range left[CACHED_RANGES + 1];
	unsigned n = 0;

	if (cut.from >= cut.to)
		return;
	for (unsigned i = 0; i < p->nranges; i++) {
		struct cached_range r = p->ranges[i];

		if (r.from < cut.from)
			left[n++] = (struct cached_range){r.from, min_u64(r.to, cut.from)};
		if (cut.to < r.to)
			left[n++] = (struct cached_range){max_u64(r.from, cut.to), r.to};
	}
	if (n > CACHED_RANGES)
		join_beside(left, n--, cut);
	memcpy(p->ranges, left, n * sizeof(*left));
	p->nranges = n;
}

/* Whether the kernel may have some of these pages, or is dropping them. */
static bool may_have(const struct cached_pages *p, struct cached_range r)
{
	bool found = p->running && touch(p->dropped, r);

	for (unsigned i = 0; i < p->nranges; i++)
		found |= touch(p->ranges[i], r);
	return found;
}

static void raise_locked(struct inode *inode, struct io_thread *thread);

void kernel_pages_end_is_answered(struct inode *inode, uint64_t end)
{
	atomic_store_explicit(&inode->cached->told_end, end, memory_order_relaxed);
}

void kernel_pages_end_is_written(struct inode *inode, uint64_t end)
{
	if (atomic_load_explicit(&inode->cached->told_end, memory_order_relaxed) < end)
		kernel_pages_end_is_answered(inode, end);
}

/* Under a lease: others have made the file longer since the kernel was told its end. */
static bool ends_early(const struct inode *inode)
{
	return atomic_load_explicit(&inode->cached->told_end, memory_order_relaxed) <
	       inode->attr.size;
}

bool kernel_pages_is_for_mapping(const struct request *req)
{
	const struct handle *handle = handle_of(req);

	return req->op == OP_READ && (!handle || handle->kind != OPENED_CACHED);
}

void kernel_pages_note_locked(
	struct inode *inode, struct io_thread *thread, struct cached_range bytes, bool for_mapping)
{
	struct cached_pages *p = inode->cached->pages;
	struct cached_range r = pages_of(bytes.from, bytes.to - bytes.from);

	/* The kernel asks for pages that it does not have. */
	if (r.from <= p->zeroed && p->zeroed < r.to)
		p->zeroed = CACHED_NOTHING;
	p->clean = false;
	/* A READ of the page with the end finds that, and the kernel knows of that page. */
	p->to_raise |= for_mapping && ends_early(inode) && r.to < pages_of(0, inode->attr.size).to;
	p->mapped |= for_mapping;
	p->read_again |= p->running && touch(p->dropped, r);
	add_range(p, r);
	if (p->to_raise && !p->running)
		raise_locked(inode, thread);
}

/* A write through the cache leaves its pages there. */
static bool fills_cache(const struct request *req)
{
	const struct fs *fs = req->thread->fs;

	if (req->op == OP_WRITE)
		return fs->options.cache == CACHE_SHARED && !fs->features.direct_io_allow_mmap;
	return req->op == OP_READ && req->args.cached;
}

bool kernel_pages_note_alone(const struct request *req)
{
	struct inode *inode;
	bool made;

	if (!fills_cache(req))
		return true;
	inode = op_inode_of(req);
	pthread_mutex_lock(&inode->lock);
	made = kernel_pages_make_locked(inode);
	if (made) {
		add_range(inode->cached->pages, pages_of(req->args.offset, req->args.size));
		inode->cached->pages->mapped |= kernel_pages_is_for_mapping(req);
	}
	if (req->op == OP_WRITE)
		stale_pages_read_locked(inode, req->args.offset, req->args.offset + req->args.size);
	pthread_mutex_unlock(&inode->lock);
	inode_put(inode);
	return made;
}

static void count_writers(struct inode *inode, void *arg)
{
	unsigned *nwriters = arg;

	pthread_mutex_lock(&inode->lock);
	*nwriters += inode->nopen_cached ? inode->nwriters : 0;
	pthread_mutex_unlock(&inode->lock);
}

unsigned kernel_pages_writers(struct fs *fs)
{
	unsigned nwriters = 0;

	if (!fs->features.direct_io_allow_mmap)
		inode_each(fs, count_writers, &nwriters);
	return nwriters;
}

void kernel_pages_share_locked(struct inode *inode, struct io_thread *thread)
{
	struct cached_pages *p = inode->cached->pages;

	/* Nobody else has changed it before. */
	if (inode->attr_valid)
		kernel_pages_end_is_answered(inode, inode->attr.size);
	if (!p)
		return;
	p->mapped = inode->nopen && p->mapped;
	p->to_raise = false;
	p->clean = !inode->nopen && p->nranges;
	if (!inode->nopen)
		kernel_pages_drop_locked(inode, thread, LEASE_NONE);
}

bool kernel_pages_are_clean_locked(const struct inode *inode)
{
	return inode->cached->pages && inode->cached->pages->clean;
}

bool kernel_pages_any_locked(const struct inode *inode)
{
	const struct cached_pages *p = inode->cached->pages;

	return p && (p->nranges || p->running);
}

/* Whether it may be mapped, and others must not move the end that the kernel knows. */
static bool goes_by_end(const struct inode *inode)
{
	const struct cached_pages *p = inode->cached->pages;

	return p && p->mapped && inode->nopen && !inode->nopen_cached &&
	       !inode->cached->nappenders && !cached_lookers_any(p);
}

bool kernel_pages_is_endless_locked(const struct inode *inode)
{
	return inode->fs->sharing && goes_by_end(inode) && inode->cached->pages->endless;
}

uint64_t kernel_pages_size_of_entry(struct inode *inode, uint64_t size)
{
	struct cached_pages *p;

	/* One that is alone may have told the kernel that there is no end while it was not. */
	if (!fs_may_share(inode->fs))
		return size;
	pthread_mutex_lock(&inode->lock);
	p = inode->cached->pages;
	if (kernel_pages_is_endless_locked(inode))
		size = ENDLESS;
	else
		kernel_pages_end_is_told_locked(inode);
	kernel_pages_end_is_answered(inode, size);
	if (p && p->told_before && cached_lookers_any(p))
		p->raised = false;
	pthread_mutex_unlock(&inode->lock);
	return size;
}

/* A thread that was sent back before comes through, however long its way was. */
bool kernel_pages_sends_back_locked(struct inode *inode, uint32_t pid)
{
	struct cached_pages *p = inode->cached->pages;
	bool comes_again = p && cached_lookers_remove(p, pid);

	if (comes_again || !p || !p->raised)
		return false;
	p->told_before &= cached_lookers_any(p);
	p->nsent_back++;
	return true;
}

void kernel_pages_sent_back(struct inode *inode, uint32_t pid)
{
	struct cached_pages *p = inode->cached->pages;

	pthread_mutex_lock(&inode->lock);
	p->nsent_back--;
	p->told_before = true;
	cached_lookers_add(p, pid);
	pthread_mutex_unlock(&inode->lock);
}

bool kernel_pages_is_raised_end(struct inode *inode, uint64_t size)
{
	bool raised;

	pthread_mutex_lock(&inode->lock);
	raised = size >= ENDLESS && inode->cached->pages && inode->cached->pages->was_raised;
	pthread_mutex_unlock(&inode->lock);
	return raised;
}

/* Whether the kernel has to be told that there is no end. */
static bool may_grow_behind_kernel(const struct inode *inode, enum lease_type keep)
{
	return keep < LEASE_SHARED && goes_by_end(inode) && !inode->cached->pages->endless;
}

bool kernel_pages_hinders_locked(const struct inode *inode, enum lease_type keep)
{
	return (kernel_pages_any_locked(inode) &&
		       (keep < LEASE_SHARED || inode->cached->nstorers)) ||
	       may_grow_behind_kernel(inode, keep);
}

bool kernel_pages_drops_behind_locked(const struct inode *inode)
{
	const struct cached_pages *p = inode->cached->pages;

	return p && (p->behind != CACHED_NOTHING || (p->running && p->drops_behind));
}

bool kernel_pages_drops_locked(const struct inode *inode, uint64_t offset, uint64_t len)
{
	const struct cached_pages *p = inode->cached->pages;

	return p && p->running && touch(p->dropped, pages_of(offset, len));
}

/* ---- dropping -------------------------------------------------------------------------------- */

/* Leaves out the empty pages that waiting READs have locked, and all pages behind those. */
static struct cached_range minus_waiting(const struct inode *inode, struct cached_range r)
{
	list_for_each (pos, &inode->lease_waiters) {
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

/* The same, in whatever order the READs wait. */
static struct cached_range minus_all_waiting(const struct inode *inode, struct cached_range r)
{
	struct cached_range before;

	do {
		before = r;
		r = minus_waiting(inode, r);
	} while (r.from != before.from && r.from < r.to);
	return r;
}

/* Takes the next range out of the cached ones. Empty: there is nothing. */
static struct cached_range take_next_locked(struct inode *inode)
{
	struct cached_pages *p = inode->cached->pages;
	struct cached_range r = {0};

	while (p->nranges && r.from == r.to) {
		r.from = p->ranges[0].from;
		r.to = min_u64(p->ranges[0].to, r.from + p->step);
		r = minus_all_waiting(inode, r);
		p->ranges[0].from = r.to;
		if (p->ranges[0].from == p->ranges[0].to)
			remove_range(p, 0);
	}
	return r;
}

static void add_behind(struct cached_pages *p, struct cached_range r)
{
	bool some = p->behind != CACHED_NOTHING;

	p->behind = some ? min_u64(p->behind, r.from) : r.from;
	p->behind_to = some ? max_u64(p->behind_to, r.to) : r.to;
}

static void drop_behind_locked(struct inode *inode, struct io_thread *thread);

static void kernel_pages_dropped(struct notifier_job *job)
{
	struct cached_pages *p = container_of(job, struct cached_pages, job);
	struct inode *inode = p->inode;
	/* The job may be used again as soon as none is running. */
	struct io_thread *thread = job->thread;

	fuse_receive_drop_ended(inode->fs->threads[0].thread);
	pthread_mutex_lock(&inode->lock);
	p->running = false;
	if (p->dropped.from <= p->zeroed && p->zeroed < p->dropped.to)
		p->zeroed = CACHED_NOTHING;
	if (!p->drops_behind)
		p->step = p->read_again ? STEP_BYTES : min_u64(2 * p->step, INT64_MAX / 2);
	if (p->to_raise)
		raise_locked(inode, thread);
	if (!p->running)
		drop_behind_locked(inode, thread);
	/* Nobody waits for pages of a lost lease to be dropped, so this goes on by itself. */
	if (!p->running && inode->lease_type == LEASE_NONE)
		kernel_pages_drop_locked(inode, thread, LEASE_NONE);
	p->clean &= kernel_pages_any_locked(inode);
	pthread_mutex_unlock(&inode->lock);
	inode->fs->inodes->hooks->settle(inode, thread);
	inode_put(inode);
}

static void kernel_pages_tell_locked(struct inode *inode, struct io_thread *thread)
{
	struct cached_pages *p = inode->cached->pages;

	p->running = true;
	p->read_again = false;
	p->job.port = thread->port;
	p->job.node = inode_node(inode);
	p->job.thread = thread;
	p->job.done = kernel_pages_dropped;
	inode_ref(inode);
	fuse_receive_drop_begins(inode->fs->threads[0].thread);
	notifier_add(&inode->fs->giver, &p->job);
}

/* While a program appends, the end that the kernel knows is that program's position. A program that
 * reads through the cache stops there. */
static void raise_locked(struct inode *inode, struct io_thread *thread)
{
	struct cached_pages *p = inode->cached->pages;

	p->to_raise = false;
	if (!goes_by_end(inode))
		return;
	p->endless = p->raised = p->was_raised = true;
	kernel_pages_end_is_answered(inode, ENDLESS);
	p->drops_behind = false;
	p->dropped = (struct cached_range){0};
	p->job = (struct notifier_job){.size = ENDLESS};
	kernel_pages_tell_locked(inode, thread);
}

static void drop_behind_locked(struct inode *inode, struct io_thread *thread)
{
	struct cached_pages *p = inode->cached->pages;
	struct cached_range r = {.from = p->behind, .to = p->behind_to}, all = r;

	if (p->behind == CACHED_NOTHING || p->nends)
		return;
	/* The lease goes: all pages are dropped, and then the kernel is told the end. Or it has
	 * gone since the READ was answered. But pages that are only read stay if it goes down. */
	if (inode->lease_type < LEASE_SHARED ||
		(inode->fs->inodes->hooks->is_leaving(inode) && !inode->nopen_cached)) {
		p->behind = CACHED_NOTHING;
		return;
	}
	r = minus_all_waiting(inode, r);
	p->behind = r.to < all.to ? r.to : CACHED_NOTHING;
	all.to = r.to;
	cut_ranges(p, all);
	if (r.from >= r.to) {
		p->behind = CACHED_NOTHING;
		return;
	}
	p->dropped = r;
	p->drops_behind = true;
	p->job = (struct notifier_job){
		.off = (int64_t)r.from,
		.len = (int64_t)(r.to - r.from),
	};
	kernel_pages_tell_locked(inode, thread);
}

/* A handle that uses the cache would show zeros behind the end from the page that it is in. */
static uint64_t first_behind(const struct inode *inode, uint64_t end)
{
	return inode->nopen_cached ? end / PAGE_BYTES * PAGE_BYTES : pages_of(0, end).to;
}

bool kernel_pages_answers_end(struct inode *inode, uint64_t end)
{
	struct cached_pages *p;
	bool notes;

	pthread_mutex_lock(&inode->lock);
	/* The kernel may take it from this answer. */
	if (end < atomic_load_explicit(&inode->cached->told_end, memory_order_relaxed))
		kernel_pages_end_is_answered(inode, end);
	p = inode->cached->pages;
	notes = p && (inode->nopen_cached || (p->was_raised && inode->cached->nstorers));
	if (notes) {
		add_behind(
			p, (struct cached_range){.from = first_behind(inode, end), .to = ENDLESS});
		p->nends++;
		inode_ref(inode);
	}
	pthread_mutex_unlock(&inode->lock);
	return notes;
}

bool kernel_pages_writes_end(struct inode *inode, uint64_t end)
{
	struct cached_pages *p;
	bool short_of_it;

	pthread_mutex_lock(&inode->lock);
	p = inode->cached->pages;
	short_of_it = p && end % PAGE_BYTES && end < inode->attr.size;
	if (short_of_it) {
		add_behind(p, pages_of(end, 1));
		p->zeroed = min_u64(p->zeroed, end);
		p->nends++;
		inode_ref(inode);
	}
	pthread_mutex_unlock(&inode->lock);
	return short_of_it;
}

uint64_t kernel_pages_written_to_locked(const struct inode *inode, uint64_t end)
{
	const struct cached_pages *p = inode->cached->pages;
	bool has_zeros = p && p->zeroed < end && end <= pages_of(p->zeroed, 1).to;

	return has_zeros ? p->zeroed : end;
}

void kernel_pages_end_answered(struct inode *inode, struct io_thread *thread)
{
	struct cached_pages *p = inode->cached->pages;

	pthread_mutex_lock(&inode->lock);
	p->nends--;
	if (!p->running)
		drop_behind_locked(inode, thread);
	pthread_mutex_unlock(&inode->lock);
	inode->fs->inodes->hooks->settle(inode, thread);
	inode_put(inode);
}

bool kernel_pages_may_be_stored_into_locked(const struct inode *inode)
{
	return inode->cached->pages && inode->cached->nstorers;
}

bool kernel_pages_drop_written_locked(
	struct inode *inode, struct io_thread *thread, uint64_t offset, uint64_t len)
{
	struct cached_pages *p = inode->cached->pages;
	struct cached_range r = pages_of(offset, len);

	if (!may_have(p, r))
		return false;
	add_behind(p, r);
	if (!p->running)
		drop_behind_locked(inode, thread);
	return true;
}

void kernel_pages_drop_locked(struct inode *inode, struct io_thread *thread, enum lease_type keep)
{
	struct cached_pages *p = inode->cached->pages;

	if (!p || p->running)
		return;
	p->drops_behind = false;
	p->dropped = take_next_locked(inode);
	if (p->dropped.from < p->dropped.to) {
		p->job = (struct notifier_job){
			.off = (int64_t)p->dropped.from,
			.len = (int64_t)(p->dropped.to - p->dropped.from),
		};
		kernel_pages_tell_locked(inode, thread);
		return;
	}
	p->step = STEP_BYTES;
	if (may_grow_behind_kernel(inode, keep))
		raise_locked(inode, thread);
}

void kernel_pages_end_is_told_locked(struct inode *inode)
{
	if (inode->cached->pages)
		inode->cached->pages->endless = false;
}

void kernel_pages_append_ended_locked(struct inode *inode, struct io_thread *thread)
{
	if (inode->fs->sharing && may_grow_behind_kernel(inode, inode->lease_type))
		kernel_pages_drop_locked(inode, thread, inode->lease_type);
}

void kernel_pages_reader_closed_locked(struct inode *inode, struct io_thread *thread)
{
	struct cached_pages *p = inode->cached->pages;

	if (!inode->fs->sharing || !p)
		return;
	/* Another handle may be mapped to pages that were read by this one: it has to ask, too. */
	if (!inode->nopen_cached && p->nranges)
		add_behind(p, (struct cached_range){.from = 0, .to = ENDLESS});
	p->to_raise |= p->mapped && !p->endless;
	if (p->running)
		return;
	if (p->to_raise)
		raise_locked(inode, thread);
	else
		drop_behind_locked(inode, thread);
}

void kernel_pages_closed_locked(struct inode *inode)
{
	if (inode->cached->pages)
		inode->cached->pages->mapped = false;
}

/* ---- alone again ----------------------------------------------------------------------------- */

/* While it was shared, stores into a mapping, and what a program appends, kept the kernel from
 * being told the end. A handle that reads through the cache asks for it. */
bool kernel_pages_end_is_open_locked(const struct inode *inode)
{
	const struct kernel_pages *c = inode->cached;
	const struct cached_pages *p = c->pages;

	return p && p->mapped &&
	       (p->was_raised || c->nstorers || c->nappenders ||
		       (p->to_raise && !inode->nopen_cached));
}

bool kernel_pages_have_old_end_locked(const struct inode *inode)
{
	return inode->cached->pages && inode->cached->pages->nranges && ends_early(inode);
}

/* The byte by which the kernel is told must not come into a page that it has. */
bool kernel_pages_raise_end_locked(struct inode *inode, struct io_thread *thread)
{
	struct cached_pages *p = inode->cached->pages;

	if (!inode->attr.size || (p && p->nranges))
		return true;
	if (!kernel_pages_make_locked(inode))
		return false;
	p = inode->cached->pages;
	if (p->running)
		return false;
	p->drops_behind = false;
	p->dropped = (struct cached_range){0};
	p->job = (struct notifier_job){.size = pages_of(0, inode->attr.size).to};
	kernel_pages_tell_locked(inode, thread);
	return true;
}
