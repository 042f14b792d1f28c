#include "daemon/pages/grant_refill.h"

#include <errno.h>

#include "common/base/log.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/pages/grants.h"

enum { IDLE_MS = 5000, HOLD_MS = 1000 };

void grant_refill_init(struct grant_refill *r, const struct refill_holders *holders)
{
	*r = (struct grant_refill){
		.holders = holders, .target = REFILL_PAGES_MIN, .max = REFILL_PAGES_MIN};
	list_init(&r->waiters);
}

void grant_refill_set_limit(struct grant_refill *r, uint64_t export_pages)
{
	r->max = (uint32_t)max_u64(REFILL_PAGES_MIN, min_u64(REFILL_PAGES_MAX, export_pages / 16));
}

static void grow_target_locked(struct grant_refill *r)
{
	r->target = (uint32_t)min_u64((uint64_t)r->target * 2, r->max);
}

static bool low_locked(const struct fs *fs)
{
	return fs->grants->npages < fs->refill->target / 2;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void grant_answered(struct rpc_call *call, const struct rpc_reply *rep);

static void grant_refill_ask(struct io_thread *thread, uint32_t want)
{
	struct grant_refill *r = thread->fs->refill;

	r->thread = thread;
	r->call = (struct rpc_call){.done = grant_answered};
	r->call.req.op = RPC_GRANT;
	r->call.req.grant = (struct rpc_grant){.want_pages = want, .wait = r->patient};
	fs_thread_of(thread)->nbackground++;
	rpc_start(thread, &r->call);
}

/* Whether a waiter has released all that it could: then the server may take its time to free pages.
 */
static bool any_patient(const struct grant_refill *r)
{
	list_for_each (pos, &r->waiters)
		if (op_of(list_entry(pos, struct waiter, link)->req)->released)
			return true;
	return false;
}

/* True: the caller is to ask, or to give back. */
static bool grant_refill_begin_locked(struct grant_refill *r)
{
	if (r->busy)
		return false;
	r->busy = true;
	r->nasked++;
	r->patient = any_patient(r);
	return true;
}

enum next { NEXT_NOTHING, NEXT_ASK, NEXT_GIVE };

/* Tells the caller how to go on. While a writer lacks pages there are none to give. */
static enum next grant_refill_next_locked(struct grant_refill *r)
{
	bool lacking = !list_empty(&r->waiters), wanted = r->wanted && !r->nwoken;

	if ((!lacking && !wanted) || !grant_refill_begin_locked(r))
		return NEXT_NOTHING;
	return lacking ? NEXT_ASK : NEXT_GIVE;
}

static void give_back(struct io_thread *thread);

static void grant_refill_go_on(struct io_thread *thread, enum next next)
{
	if (next == NEXT_ASK)
		grant_refill_ask(thread, REFILL_PAGES_MIN);
	else if (next == NEXT_GIVE)
		give_back(thread);
}

/* All writers try again. */
static void grant_refill_wake_locked(struct grant_refill *r)
{
	list_for_each (pos, &r->waiters)
		r->nwoken++;
	waiters_wake(&r->waiters, 0);
}

/* The asking is over: writers try again, or learn that there is nothing. */
static void grant_refill_settle(struct io_thread *thread, int status)
{
	struct fs *fs = thread->fs;
	struct grant_refill *r = fs->refill;
	enum next next;

	pthread_mutex_lock(&fs->grants->lock);
	r->busy = false;
	if (status == -ENOSPC && (r->nlent || fs->grants->npages))
		status = 0;
	if (status)
		waiters_answer(&r->waiters, r->nasked, status);
	else
		grant_refill_wake_locked(r);
	next = grant_refill_next_locked(r);
	pthread_mutex_unlock(&fs->grants->lock);
	grant_refill_go_on(thread, next);
}

static void add_all(struct fs *fs, const struct extent *grant, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		grants_add(fs->grants, &grant[i]);
}

static void grant_answered(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct grant_refill *r = container_of(call, struct grant_refill, call);
	struct io_thread *thread = r->thread;
	struct fs *fs = thread->fs;
	int status = rep->status;

	fs_thread_of(thread)->nbackground--;
	if (!status && !rep->grant.ngrant)
		status = -ENOSPC;
	if (!status)
		add_all(fs, rep->grant.grant, rep->grant.ngrant);
	pthread_mutex_lock(&fs->grants->lock);
	if (status) {
		r->target = REFILL_PAGES_MIN;
		r->hold_ms = io_thread_now(thread) + HOLD_MS;
	} else if (r->wanted <= rep->grant.answers) {
		r->wanted = 0;
	}
	pthread_mutex_unlock(&fs->grants->lock);
	grant_refill_settle(thread, status);
}

void grant_refill_check(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	struct grant_refill *r = fs->refill;
	int64_t now = io_thread_now(thread);
	uint32_t want = 0;

	pthread_mutex_lock(&fs->grants->lock);
	r->used_ms = now;
	r->idle = false;
	if (low_locked(fs) && !r->along && now >= r->hold_ms && grant_refill_begin_locked(r)) {
		want = r->target;
		grow_target_locked(r);
	}
	pthread_mutex_unlock(&fs->grants->lock);
	if (want)
		grant_refill_ask(thread, want);
}

/* Giving back goes on when each woken writer has tried. */
static void tried(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	struct grant_refill *r = fs->refill;
	enum next next;

	pthread_mutex_lock(&fs->grants->lock);
	r->nwoken--;
	next = grant_refill_next_locked(r);
	pthread_mutex_unlock(&fs->grants->lock);
	grant_refill_go_on(thread, next);
}

static void resume(struct request *req, int status)
{
	struct io_thread *thread = req->thread;

	op_of(req)->refilled(req, status);
	if (!status)
		tried(thread);
}

bool grant_refill_wait(struct request *req, void (*then)(struct request *req, int status))
{
	struct fs *fs = req->thread->fs;
	struct grant_refill *r = fs->refill;
	struct op *op = op_of(req);
	uint32_t want = 0;

	pthread_mutex_lock(&fs->grants->lock);
	if (fs->grants->npages) {
		pthread_mutex_unlock(&fs->grants->lock);
		return true;
	}
	op->refilled = then;
	waiter_init(&op->waiter, req, resume);
	op->waiter.until = r->nasked;
	list_add_tail(&r->waiters, &op->waiter.link);
	op_waits(op, OP_AT_PAGES, &fs->grants->lock);
	if (grant_refill_begin_locked(r)) {
		want = r->target;
		grow_target_locked(r);
	}
	pthread_mutex_unlock(&fs->grants->lock);
	if (want)
		grant_refill_ask(req->thread, want);
	return false;
}

void grant_refill_lend_begin(struct fs *fs)
{
	pthread_mutex_lock(&fs->grants->lock);
	fs->refill->nlent++;
	pthread_mutex_unlock(&fs->grants->lock);
}

void grant_refill_lend_end(struct fs *fs)
{
	pthread_mutex_lock(&fs->grants->lock);
	fs->refill->nlent--;
	if (fs->grants->npages)
		grant_refill_wake_locked(fs->refill);
	pthread_mutex_unlock(&fs->grants->lock);
}

uint32_t grant_refill_along(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	struct grant_refill *r = fs->refill;
	uint32_t want = 0;

	pthread_mutex_lock(&fs->grants->lock);
	if (low_locked(fs) && !r->busy && !r->along && io_thread_now(thread) >= r->hold_ms) {
		r->along = true;
		r->used_ms = io_thread_now(thread);
		r->idle = false;
		want = r->target;
		grow_target_locked(r);
	}
	pthread_mutex_unlock(&fs->grants->lock);
	return want;
}

void grant_refill_along_done(struct io_thread *thread, const struct extent *grant, unsigned n)
{
	struct fs *fs = thread->fs;
	struct grant_refill *r = fs->refill;
	enum next next;

	add_all(fs, grant, n);
	pthread_mutex_lock(&fs->grants->lock);
	r->along = false;
	if (!n)
		r->hold_ms = io_thread_now(thread) + HOLD_MS;
	if (n)
		grant_refill_wake_locked(r);
	next = grant_refill_next_locked(r);
	pthread_mutex_unlock(&fs->grants->lock);
	grant_refill_go_on(thread, next);
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void grant_refill_give_back_answered(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct grant_refill *r = container_of(call, struct grant_refill, call);
	struct io_thread *thread = r->thread;
	struct fs *fs = thread->fs;
	enum next next;

	fs_thread_of(thread)->nbackground--;
	if (rep->status && rep->status != -ESTALE)
		log_warning("the server refused to take back granted pages: %s",
			errno_text(rep->status));
	pthread_mutex_lock(&fs->grants->lock);
	r->busy = false;
	next = grant_refill_next_locked(r);
	pthread_mutex_unlock(&fs->grants->lock);
	grant_refill_go_on(thread, next);
}

/* The server's question is answered by the RETURN that leaves the pool empty. */
static uint64_t take_wanted(struct fs *fs)
{
	struct grant_refill *r = fs->refill;
	uint64_t wanted = 0;

	pthread_mutex_lock(&fs->grants->lock);
	if (!fs->grants->npages) {
		wanted = r->wanted;
		r->wanted = 0;
	}
	pthread_mutex_unlock(&fs->grants->lock);
	return wanted;
}

static void give_back(struct io_thread *thread)
{
	struct grant_refill *r = thread->fs->refill;
	struct extent run;
	struct wire_out w;

	wire_out_init(&w, r->tail, sizeof(r->tail));
	while (wire_out_room(&w) >= RPC_EXTENT_BYTES &&
		grants_take(thread->fs->grants, UINT32_MAX, NULL, &run))
		rpc_put_extent(&w, &run);
	r->thread = thread;
	r->call = (struct rpc_call){.done = grant_refill_give_back_answered};
	r->call.req.op = RPC_RETURN;
	r->call.req.ret = (struct rpc_return){
		.kind = RETURN_GRANTS,
		.answers = take_wanted(thread->fs),
		.tail = {.data = r->tail, .len = (uint32_t)wire_out_len(&w)},
	};
	fs_thread_of(thread)->nbackground++;
	rpc_start(thread, &r->call);
}

void grant_refill_tick(struct io_thread *thread, int64_t now)
{
	struct fs *fs = thread->fs;
	struct grant_refill *r = fs->refill;
	int64_t before = now - IDLE_MS;
	bool first, give = false;

	pthread_mutex_lock(&fs->grants->lock);
	first = !r->idle && r->used_ms < before;
	if (first) {
		r->idle = true;
		r->target = REFILL_PAGES_MIN;
	}
	pthread_mutex_unlock(&fs->grants->lock);
	if (first)
		r->holders->empty_windows(fs, before);

	pthread_mutex_lock(&fs->grants->lock);
	give = r->idle && fs->grants->npages && !r->nwoken && grant_refill_begin_locked(r);
	pthread_mutex_unlock(&fs->grants->lock);
	if (give)
		give_back(thread);
}

void grant_refill_give_back(struct io_thread *thread, uint64_t wanted)
{
	struct fs *fs = thread->fs;
	struct grant_refill *r = fs->refill;
	enum next next;

	r->holders->return_nameless(thread);
	r->holders->empty_windows(fs, io_thread_now(thread));
	pthread_mutex_lock(&fs->grants->lock);
	/* An older question may come later by another channel. */
	r->wanted = max_u64(r->wanted, wanted);
	r->target = REFILL_PAGES_MIN;
	next = grant_refill_next_locked(r);
	pthread_mutex_unlock(&fs->grants->lock);
	grant_refill_go_on(thread, next);
}

bool grant_refill_give_all(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	struct grant_refill *r = fs->refill;
	bool give, none;

	r->holders->empty_windows(fs, INT64_MAX);
	pthread_mutex_lock(&fs->grants->lock);
	none = !fs->grants->npages && !r->busy && !r->along;
	give = fs->grants->npages && grant_refill_begin_locked(r);
	pthread_mutex_unlock(&fs->grants->lock);
	if (give)
		give_back(thread);
	return none;
}
