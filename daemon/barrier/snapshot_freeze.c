#include "daemon/barrier/snapshot_freeze.h"

#include "common/base/log.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/file/inode.h"
#include "daemon/file/extent_map.h"
#include "daemon/file/commit.h"

enum { WORD_BITS = 64, AHEAD_PAGES = 512 };

static void step_called(struct thread_call *call)
{
	struct freeze_thread *t = container_of(call, struct freeze_thread, call);

	atomic_store(&t->called, false);
	snapshot_freeze_step(t->thread);
}

void snapshot_freeze_thread_init(struct freeze_thread *t, struct io_thread *thread)
{
	t->thread = thread;
	list_init(&t->held);
	list_init(&t->call.link);
	t->call.run = step_called;
}

void snapshot_freeze_init(struct snapshot_freeze *f, struct fs *fs)
{
	pthread_mutex_init(&f->lock, NULL);
	f->fs = fs;
}

void snapshot_freeze_fini(struct snapshot_freeze *f)
{
	pthread_mutex_destroy(&f->lock);
	free(f->bits);
}

static void wake(struct fs_thread *ft)
{
	if (!atomic_exchange(&ft->freeze->called, true))
		io_thread_call(ft->thread, &ft->freeze->call);
}

static void wake_all(struct fs *fs)
{
	for (unsigned i = 0; i < fs->options.session.io_threads; i++)
		wake(&fs->threads[i]);
}

/* ---- pages that were asked for --------------------------------------------------------------- */

void snapshot_freeze_forget_pages(struct snapshot_freeze *f, uint64_t id)
{
	uint64_t nbits;

	f->region_pages = session_region_pages(f->fs->session);
	nbits = session_nregions(f->fs->session) * f->region_pages;
	free(f->bits);
	f->bits = calloc(nbits / WORD_BITS + 1, sizeof(*f->bits));
	f->nbits = f->bits ? nbits : 0;
	atomic_store(&f->bits_id, f->bits ? id : 0);
}

void snapshot_freeze_forget(struct snapshot_freeze *f)
{
	pthread_mutex_lock(&f->lock);
	f->sent = 0;
	pthread_mutex_unlock(&f->lock);
	atomic_store(&f->bits_id, 0);
}

static bool was_asked(const struct snapshot_freeze *f, uint64_t bit)
{
	return bit < f->nbits &&
	       atomic_load_explicit(&f->bits[bit / WORD_BITS], memory_order_relaxed) >>
			       bit % WORD_BITS &
		       1;
}

void snapshot_freeze_unprotected(struct fs *fs, const struct extent *e, unsigned n)
{
	struct snapshot_freeze *f = fs->freeze;

	if (atomic_load(&f->bits_id) != session_snapshot(fs->session))
		return;
	for (; n--; e++) {
		uint64_t bit = e->region * f->region_pages + e->page;

		for (uint32_t i = 0; i < e->npages && bit < f->nbits; i++, bit++)
			atomic_fetch_or_explicit(&f->bits[bit / WORD_BITS],
				UINT64_C(1) << bit % WORD_BITS, memory_order_relaxed);
	}
}

/* The first of e's pages [from, to) that must be asked for. The question may reach up to
 * `limit`. */
static bool must_ask(const struct snapshot_freeze *f, bool remembered,
	const struct mapped_extent *e, uint64_t from, uint64_t to, uint64_t limit,
	struct extent *out)
{
	uint64_t bit = e->region * f->region_pages + e->page + (from - e->fpage);

	/* The snapshot may have an extent whose COMMIT has no answer yet. */
	if (e->state != EXTENT_COMMITTED && e->state != EXTENT_COMMITTING)
		return false;
	while (remembered && from < to && was_asked(f, bit)) {
		from++;
		bit++;
	}
	if (from >= to)
		return false;
	limit = min_u64(max_u64(limit, to), e->fpage + e->npages);
	*out = (struct extent){
		.npages = (uint32_t)(limit - from),
		.page = (uint32_t)(e->page + (from - e->fpage)),
		.region = e->region,
	};
	return true;
}

unsigned snapshot_freeze_protected_locked(
	struct inode *inode, uint64_t *fpage, uint64_t end, struct extent *out, unsigned max)
{
	struct snapshot_freeze *f = inode->fs->freeze;
	bool remembered = atomic_load(&f->bits_id) == session_snapshot(inode->fs->session);
	uint64_t limit = remembered && *fpage == inode->written_to ? end + AHEAD_PAGES : end;
	struct extent_cursor at;
	struct mapped_extent e;
	unsigned n = 0;
	bool found = extent_map_seek(&inode->map, *fpage, &at, &e);

	for (; found && e.fpage < end && n < max; found = extent_map_next(&inode->map, &at, &e)) {
		uint64_t from = max_u64(*fpage, e.fpage), to = min_u64(end, e.fpage + e.npages);

		n += must_ask(f, remembered, &e, from, to, limit, &out[n]);
		*fpage = to;
	}
	if (!found || e.fpage >= end)
		*fpage = end;
	return n;
}

/* ---- writes ---------------------------------------------------------------------------------- */

bool snapshot_freeze_enter(struct request *req, void (*then)(struct request *req, int status))
{
	struct freeze_thread *t = fs_thread_of(req->thread)->freeze;
	struct op *op = op_of(req);

	if (t->id) {
		waiter_init(&op->waiter, req, then);
		op_waits(op, OP_AT_FREEZE, NULL);
		list_add_tail(&t->held, &op->waiter.link);
		return false;
	}
	op->writing = true;
	op->writing_hold.yields = true;
	op_is_inside(req, &op->writing_hold, snapshot_freeze_leave);
	t->nwriting++;
	return true;
}

void snapshot_freeze_leave(struct request *req)
{
	struct fs_thread *ft = fs_thread_of(req->thread);

	op_of(req)->writing = false;
	op_has_left(req, &op_of(req)->writing_hold);
	ft->freeze->nwriting--;
	if (ft->freeze->id)
		wake(ft);
}

/* ---- the freeze ------------------------------------------------------------------------------ */

static void frozen_answered(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct snapshot_freeze *f = container_of(call, struct snapshot_freeze, call);

	session_thaw(f->fs->session, call->req.frozen.snapshot);
	pthread_mutex_lock(&f->lock);
	f->busy = false;
	pthread_mutex_unlock(&f->lock);
	wake_all(f->fs);
}

static void send_frozen(struct snapshot_freeze *f, struct io_thread *thread, uint64_t id)
{
	snapshot_freeze_forget_pages(f, id);
	f->call = (struct rpc_call){.done = frozen_answered};
	list_init(&f->call.link);
	f->call.req.op = RPC_FROZEN;
	f->call.req.frozen.snapshot = id;
	rpc_start(thread, &f->call);
}

/* Notes the thread's phase. */
static void say(
	struct snapshot_freeze *f, struct freeze_thread *t, uint64_t id, enum freeze_phase phase)
{
	pthread_mutex_lock(&f->lock);
	t->id = id;
	t->phase = phase;
	pthread_mutex_unlock(&f->lock);
}

static bool all_are_locked(const struct snapshot_freeze *f, uint64_t id, enum freeze_phase phase)
{
	for (unsigned i = 0; i < f->fs->options.session.io_threads; i++) {
		const struct freeze_thread *t = f->fs->threads[i].freeze;

		if (t->id != id || t->phase < phase)
			return false;
	}
	return true;
}

static bool all_are(struct snapshot_freeze *f, uint64_t id, enum freeze_phase phase)
{
	bool all;

	pthread_mutex_lock(&f->lock);
	all = all_are_locked(f, id, phase);
	pthread_mutex_unlock(&f->lock);
	return all;
}

/* One of the threads sends it. */
static bool may_send(struct snapshot_freeze *f, uint64_t id)
{
	bool send;

	pthread_mutex_lock(&f->lock);
	send = all_are_locked(f, id, FREEZE_CLEAN) && f->sent != id && !f->busy;
	if (send) {
		f->sent = id;
		f->busy = true;
	}
	pthread_mutex_unlock(&f->lock);
	return send;
}

/* Another freeze begins, or one ends. */
static void snapshot_freeze_change(struct fs_thread *ft, struct snapshot_freeze *f, uint64_t id)
{
	say(f, ft->freeze, id, id ? FREEZE_HOLDS : FREEZE_NONE);
	wake_all(f->fs);
	if (!id)
		waiters_wake(&ft->freeze->held, 0);
}

void snapshot_freeze_step(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	struct snapshot_freeze *f = fs->freeze;
	struct fs_thread *ft = fs_thread_of(thread);
	struct freeze_thread *t = ft->freeze;
	uint64_t id = session_freezing(fs->session);

	/* A mount that another daemon is to get begins none: that one is asked again. */
	if (!t->id && fs_is_paused(fs))
		return;
	if (id != t->id)
		snapshot_freeze_change(ft, f, id);
	if (!id)
		return;
	if (t->phase == FREEZE_HOLDS && !t->nwriting) {
		say(f, t, id, FREEZE_QUIET);
		if (all_are(f, id, FREEZE_QUIET))
			wake_all(fs);
	}
	/* Only when all threads are quiet: until then a write of another thread may still make an
	 * inode dirty that is listed here. */
	if (t->phase == FREEZE_QUIET && all_are(f, id, FREEZE_QUIET) && commit_tick(thread))
		say(f, t, id, FREEZE_CLEAN);
	if (t->phase == FREEZE_CLEAN && may_send(f, id))
		send_frozen(f, thread, id);
}
