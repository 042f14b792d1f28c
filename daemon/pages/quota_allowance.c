#include "daemon/pages/quota_allowance.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"

enum { IDLE_MS = 5000 };

/* Pages of one user's or group's quota that this client may use. It stays in the table while it is
 * busy. */
struct allowance {
	struct list link;
	enum rpc_quota_kind kind;
	uint32_t id;
	uint64_t npages;     /* in no share */
	bool unlimited;      /* the server said so... */
	uint64_t epoch;      /* ... at this value of session_quotas() */
	uint32_t target;     /* pages to ask for next */
	int64_t used_ms;     /* when pages were last wanted */
	bool busy;           /* QUOTA is on its way or is being prepared */
	struct list waiters; /* struct waiter: writers without pages */
	struct fs *fs;
	struct io_thread *thread; /* that asks */
	struct rpc_call call;
	uint64_t asked_epoch;
	uint64_t nasked; /* questions, ever: waiters hear only of failures of later ones */
};

void quota_allowance_init(struct quota_allowances *as)
{
	*as = (struct quota_allowances){0};
	pthread_mutex_init(&as->lock, NULL);
	for (unsigned i = 0; i < ALLOWANCE_BUCKETS; i++)
		list_init(&as->buckets[i]);
}

void quota_allowance_fini(struct quota_allowances *as)
{
	struct list *link;

	for (unsigned i = 0; i < ALLOWANCE_BUCKETS; i++)
		while ((link = list_pop(&as->buckets[i])))
			free(list_entry(link, struct allowance, link));
	pthread_mutex_destroy(&as->lock);
}

/* ---- pools ----------------------------------------------------------------------------------- */

static struct list *quota_allowance_bucket_of(
	struct quota_allowances *as, enum rpc_quota_kind kind, uint32_t id)
{
	return &as->buckets[(id + kind) % ALLOWANCE_BUCKETS];
}

static struct allowance *quota_allowance_find_locked(
	struct quota_allowances *as, enum rpc_quota_kind kind, uint32_t id)
{
	list_for_each (pos, quota_allowance_bucket_of(as, kind, id)) {
		struct allowance *a = list_entry(pos, struct allowance, link);

		if (a->kind == kind && a->id == id)
			return a;
	}
	return NULL;
}

/* Finds or makes the allowance. NULL: no memory. */
static struct allowance *get_locked(struct fs *fs, enum rpc_quota_kind kind, uint32_t id)
{
	struct allowance *a = quota_allowance_find_locked(fs->allowances, kind, id);

	if (a)
		return a;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->kind = kind;
	a->id = id;
	a->fs = fs;
	a->target = ALLOWANCE_ASK_MIN;
	a->used_ms = now_ms();
	list_init(&a->waiters);
	list_add_tail(quota_allowance_bucket_of(fs->allowances, kind, id), &a->link);
	return a;
}

static bool is_unlimited(const struct allowance *a, uint64_t epoch)
{
	return a->unlimited && a->epoch == epoch;
}

static uint64_t available(const struct allowance *a, uint64_t epoch)
{
	if (!a)
		return 0;
	return is_unlimited(a, epoch) ? UINT64_MAX : a->npages;
}

/* ---- shares ---------------------------------------------------------------------------------- */

/* Returns whether the allowance is limited. Only pages of a limited one are given back later. */
static bool quota_allowance_take_locked(struct allowance *a, uint32_t npages, uint64_t epoch)
{
	a->used_ms = now_ms();
	if (is_unlimited(a, epoch))
		return false;
	a->npages -= npages;
	return true;
}

static void refill_share(struct quota_allowances *as, struct share *s, const struct attr *owners,
	uint32_t want, uint64_t epoch)
{
	uint64_t n = max_u64(want, max_u64(s->appetite, SHARE_PAGES_MIN));
	struct allowance *user, *group;

	pthread_mutex_lock(&as->lock);
	user = quota_allowance_find_locked(as, QUOTA_USER, owners->uid);
	group = quota_allowance_find_locked(as, QUOTA_GROUP, owners->gid);
	n = min_u64(n, min_u64(available(user, epoch), available(group, epoch)));
	if (n) {
		s->npages = (uint32_t)n;
		s->appetite = (uint32_t)min_u64(n * 2, SHARE_PAGES_MAX);
		s->epoch = epoch;
		s->user = quota_allowance_take_locked(user, s->npages, epoch);
		s->group = quota_allowance_take_locked(group, s->npages, epoch);
	}
	pthread_mutex_unlock(&as->lock);
}

uint32_t quota_allowance_ready_locked(
	struct fs *fs, struct share *s, const struct attr *owners, uint32_t want)
{
	uint64_t epoch = session_quotas(fs->session);

	if (!epoch)
		return want;
	if (s->npages && s->epoch != epoch)
		quota_allowance_return_locked(fs, s, owners);
	if (!s->npages)
		refill_share(fs->allowances, s, owners, want, epoch);
	return (uint32_t)min_u64(want, s->npages);
}

void quota_allowance_use_locked(struct share *s, uint32_t npages)
{
	s->npages -= (uint32_t)min_u64(s->npages, npages);
}

/* Without memory for the entry the pages stay reserved until the session ends. */
static void quota_allowance_put_locked(
	struct fs *fs, enum rpc_quota_kind kind, uint32_t id, uint32_t npages)
{
	struct allowance *a = get_locked(fs, kind, id);

	if (a)
		a->npages += npages;
}

void quota_allowance_return_locked(struct fs *fs, struct share *s, const struct attr *owners)
{
	struct quota_allowances *as = fs->allowances;

	if (s->npages) {
		pthread_mutex_lock(&as->lock);
		if (s->user)
			quota_allowance_put_locked(fs, QUOTA_USER, owners->uid, s->npages);
		if (s->group)
			quota_allowance_put_locked(fs, QUOTA_GROUP, owners->gid, s->npages);
		pthread_mutex_unlock(&as->lock);
	}
	*s = (struct share){0};
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void ask_answered(struct rpc_call *call, const struct rpc_reply *rep);

static void send_quota(struct allowance *a, struct io_thread *thread, uint64_t npages,
	bool give_back, void (*done)(struct rpc_call *call, const struct rpc_reply *rep))
{
	a->thread = thread;
	a->call = (struct rpc_call){.done = done};
	a->call.req.op = RPC_QUOTA;
	a->call.req.quota = (struct rpc_quota){
		.kind = (uint8_t)a->kind, .id = a->id, .npages = npages, .give_back = give_back};
	fs_thread_of(thread)->nbackground++;
	rpc_start(thread, &a->call);
}

static void quota_allowance_ask(struct allowance *a, struct io_thread *thread)
{
	a->asked_epoch = session_quotas(a->fs->session);
	send_quota(a, thread, a->target, false, ask_answered);
}

/* True: the caller is to ask. */
static bool quota_allowance_begin_locked(struct allowance *a)
{
	if (a->busy)
		return false;
	a->busy = true;
	a->nasked++;
	return true;
}

/* The asking is over: writers try again, or learn that there is nothing. */
static void quota_allowance_settle(struct allowance *a, int status)
{
	struct quota_allowances *as = a->fs->allowances;
	bool again;

	pthread_mutex_lock(&as->lock);
	a->busy = false;
	if (status == -EDQUOT && available(a, a->asked_epoch))
		status = 0;
	waiters_answer(&a->waiters, a->nasked, status);
	again = !list_empty(&a->waiters) && quota_allowance_begin_locked(a);
	pthread_mutex_unlock(&as->lock);
	if (again)
		quota_allowance_ask(a, a->thread);
}

static void take_answer(struct allowance *a, uint64_t npages)
{
	struct quota_allowances *as = a->fs->allowances;

	pthread_mutex_lock(&as->lock);
	a->unlimited = npages == QUOTA_UNLIMITED;
	a->epoch = a->asked_epoch;
	a->used_ms = now_ms();
	if (!a->unlimited)
		a->npages += npages;
	/* Near the end of a quota this asks only for what is needed. */
	a->target = npages < a->target ? ALLOWANCE_ASK_MIN
				       : (uint32_t)min_u64(a->target * 2, ALLOWANCE_ASK_MAX);
	pthread_mutex_unlock(&as->lock);
	quota_allowance_settle(a, 0);
}

static void ask_answered(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct allowance *a = container_of(call, struct allowance, call);
	int status = rep->status;

	fs_thread_of(a->thread)->nbackground--;
	if (!status && !rep->quota.npages)
		status = -EDQUOT;
	if (!status)
		take_answer(a, rep->quota.npages);
	else
		quota_allowance_settle(a, status);
}

/* Returns the one of the two that has nothing; NULL: both have pages. */
static struct allowance *lacking_locked(struct fs *fs, uint32_t uid, uint32_t gid, int *status)
{
	uint64_t epoch = session_quotas(fs->session);
	struct allowance *user = get_locked(fs, QUOTA_USER, uid);
	struct allowance *group = get_locked(fs, QUOTA_GROUP, gid);

	*status = user && group ? 0 : -ENOMEM;
	if (*status || !epoch)
		return NULL;
	if (!available(user, epoch))
		return user;
	return available(group, epoch) ? NULL : group;
}

bool quota_allowance_wait(struct request *req, uint32_t uid, uint32_t gid,
	void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);
	struct fs *fs = req->thread->fs;
	struct quota_allowances *as = fs->allowances;
	struct allowance *a;
	bool asks = false;
	int status;

	pthread_mutex_lock(&as->lock);
	a = lacking_locked(fs, uid, gid, &status);
	if (a || status)
		waiter_init(&op->waiter, req, then);
	if (a) {
		op_waits(op, OP_AT_QUOTA, &as->lock);
		op->waiter.until = a->nasked;
		list_add_tail(&a->waiters, &op->waiter.link);
		asks = quota_allowance_begin_locked(a);
	} else if (status) {
		waiter_wake(&op->waiter, status);
	}
	pthread_mutex_unlock(&as->lock);
	if (asks)
		quota_allowance_ask(a, req->thread);
	return !a && !status;
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void quota_allowance_give_back_answered(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct allowance *a = container_of(call, struct allowance, call);
	struct io_thread *thread = a->thread;
	struct fs *fs = a->fs;
	struct quota_allowances *as = fs->allowances;
	void (*given)(struct io_thread *) = NULL;
	bool asks = false;

	fs_thread_of(thread)->nbackground--;
	if (rep->status && rep->status != -ESTALE)
		log_warning("the server refused to take back what was reserved of a quota: %s",
			errno_text(rep->status));
	pthread_mutex_lock(&as->lock);
	a->busy = false;
	if (!list_empty(&a->waiters))
		asks = quota_allowance_begin_locked(a);
	if (!--as->ngiving)
		given = steal_ptr(&as->given);
	pthread_mutex_unlock(&as->lock);
	if (asks)
		quota_allowance_ask(a, thread);
	if (given)
		given(thread);
}

/* Returns the next pool that has pages and was not used since `before`, and makes it busy. Idle
 * pools without pages are forgotten. */
static struct allowance *begin_idle_locked(
	struct quota_allowances *as, int64_t before, uint64_t *npages)
{
	for (unsigned i = 0; i < ALLOWANCE_BUCKETS; i++) {
		list_for_each_safe (pos, &as->buckets[i]) {
			struct allowance *a = list_entry(pos, struct allowance, link);

			if (a->busy || a->used_ms >= before || !list_empty(&a->waiters))
				continue;
			if (a->npages) {
				*npages = a->npages;
				a->npages = 0;
				a->busy = true;
				as->ngiving++;
				return a;
			}
			list_del(&a->link);
			free(a);
		}
	}
	return NULL;
}

static void give_back_idle(struct fs *fs, struct io_thread *thread, int64_t before)
{
	struct quota_allowances *as = fs->allowances;
	struct allowance *a;
	uint64_t npages = 0;

	do {
		pthread_mutex_lock(&as->lock);
		a = begin_idle_locked(as, before, &npages);
		pthread_mutex_unlock(&as->lock);
		if (a)
			send_quota(a, thread, npages, true, quota_allowance_give_back_answered);
	} while (a);
}

void quota_allowance_forget(struct quota_allowances *as)
{
	pthread_mutex_lock(&as->lock);
	for (unsigned i = 0; i < ALLOWANCE_BUCKETS; i++)
		list_for_each (pos, &as->buckets[i])
			list_entry(pos, struct allowance, link)->npages = 0;
	pthread_mutex_unlock(&as->lock);
}

void quota_allowance_tick(struct io_thread *thread, int64_t now)
{
	give_back_idle(thread->fs, thread, now - IDLE_MS);
}

void quota_allowance_give_back(struct io_thread *thread, void (*given)(struct io_thread *thread))
{
	struct quota_allowances *as = thread->fs->allowances;

	give_back_idle(thread->fs, thread, INT64_MAX);
	pthread_mutex_lock(&as->lock);
	assert(!as->given);
	if (as->ngiving)
		as->given = steal_ptr(&given);
	pthread_mutex_unlock(&as->lock);
	if (given)
		given(thread);
}

bool quota_allowance_give_all(struct io_thread *thread)
{
	struct quota_allowances *as = thread->fs->allowances;
	bool none = true;

	/* Leaves only pools that a request is on its way for. */
	give_back_idle(thread->fs, thread, INT64_MAX);
	pthread_mutex_lock(&as->lock);
	for (unsigned i = 0; none && i < ALLOWANCE_BUCKETS; i++)
		none = list_empty(&as->buckets[i]);
	pthread_mutex_unlock(&as->lock);
	return none;
}
