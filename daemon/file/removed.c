#include "daemon/file/removed.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "daemon/file/inode.h"
#include "daemon/op/fs_parts.h"

static void send_called(struct thread_call *call);

void removed_init(struct removed_names *r, const struct removed_hooks *hooks)
{
	*r = (struct removed_names){.hooks = hooks, .call = {.run = send_called}};
	pthread_mutex_init(&r->lock, NULL);
	list_init(&r->queued);
	list_init(&r->sent);
	list_init(&r->waiters);
	list_init(&r->behind);
	list_init(&r->call.link);
}

/* Their inodes are gone by then. */
void removed_fini(struct removed_names *r)
{
	struct list *link;

	list_splice_tail(&r->sent, &r->queued);
	while ((link = list_pop(&r->sent)))
		free(list_entry(link, struct removed, link));
	pthread_mutex_destroy(&r->lock);
}

bool removed_has_room(struct removed_names *r)
{
	bool room;

	pthread_mutex_lock(&r->lock);
	room = r->nqueued < REMOVED_QUEUE;
	pthread_mutex_unlock(&r->lock);
	return room;
}

struct removed *removed_new(struct inode *inode, struct inode *dir, const char *name, int64_t time)
{
	size_t len = strlen(name);
	struct removed *one = len <= NAME_BYTES_MAX ? malloc(sizeof(*one)) : NULL;

	if (!one)
		return NULL;
	one->inode = inode_ref(inode);
	one->number = 0;
	one->dir = inode_ref(dir);
	one->time = time;
	one->len = (uint16_t)len;
	memcpy(one->name, name, len + 1);
	return one;
}

void removed_drop(struct removed *one)
{
	inode_put(one->inode);
	inode_put(one->dir);
	free(one);
}

void removed_add_locked(struct removed_names *r, struct removed *one)
{
	one->inode->removed = one;
	pthread_mutex_lock(&r->lock);
	one->number = ++r->last;
	list_add_tail(&r->queued, &one->link);
	r->nqueued++;
	atomic_fetch_add(&r->n, 1);
	pthread_mutex_unlock(&r->lock);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void removed_answered(struct rpc_call *call, const struct rpc_reply *rep);

static bool is_due_locked(const struct removed_names *r)
{
	const struct list *first = r->queued.next;

	return !list_empty(&r->queued) &&
	       (r->nqueued >= REMOVED_MESSAGE ||
		       list_entry(first, struct removed, link)->number <= r->wanted);
}

/* Takes the next ones out of the queue, in their order. */
static void take_some_locked(struct removed_names *r)
{
	size_t room = sizeof(r->tail);
	unsigned max = r->nalone ? 1 : REMOVED_MESSAGE;

	for (unsigned n = 0; n < max && !list_empty(&r->queued); n++) {
		struct removed *one = list_entry(r->queued.next, struct removed, link);

		if (room < (size_t)RPC_REMOVAL_BYTES + one->len)
			return;
		room -= (size_t)RPC_REMOVAL_BYTES + one->len;
		list_del(&one->link);
		r->nqueued--;
		list_add_tail(&r->sent, &one->link);
	}
}

static void put_one(struct removed_names *r, struct removed *one, struct wire_out *w)
{
	struct rpc_removal removal = {
		.parent = one->dir->ino,
		.ino = one->inode->ino,
		.time = one->time,
		.name = {one->name, one->len},
	};

	pthread_mutex_lock(&one->inode->lock);
	removal.keep = !r->hooks->gives_up_locked(one->inode);
	pthread_mutex_unlock(&one->inode->lock);
	rpc_put_removal(w, &removal);
}

/* Those that are sent are the thread's until they are answered. */
static void send_taken(struct removed_names *r, struct io_thread *thread)
{
	struct wire_out w;

	wire_out_init(&w, r->tail, sizeof(r->tail));
	list_for_each (pos, &r->sent)
		put_one(r, list_entry(pos, struct removed, link), &w);
	r->thread = thread;
	r->rpc = (struct rpc_call){.done = removed_answered};
	r->rpc.req.op = RPC_REMOVALS;
	r->rpc.req.removals.tail =
		(struct rpc_tail){.data = r->tail, .len = (uint32_t)wire_out_len(&w)};
	fs_thread_of(thread)->nbackground++;
	CRASH_POINT("removed.before");
	rpc_start(thread, &r->rpc);
}

static void send_due(struct removed_names *r, struct io_thread *thread)
{
	bool send;

	pthread_mutex_lock(&r->lock);
	send = !r->running && is_due_locked(r);
	if (send) {
		r->running = true;
		take_some_locked(r);
	}
	pthread_mutex_unlock(&r->lock);
	if (send)
		send_taken(r, thread);
}

static void send_called(struct thread_call *call)
{
	struct removed_names *r = container_of(call, struct removed_names, call);
	struct io_thread *thread;

	pthread_mutex_lock(&r->lock);
	r->called = false;
	thread = r->caller;
	pthread_mutex_unlock(&r->lock);
	send_due(r, thread);
}

/* Not at once: an inode may be locked. */
static void call_locked(struct removed_names *r, struct io_thread *thread)
{
	if (r->running || r->called)
		return;
	r->called = true;
	r->caller = thread;
	io_thread_call(thread, &r->call);
}

void removed_added(struct removed_names *r, struct io_thread *thread)
{
	send_due(r, thread);
}

void removed_flush(struct removed_names *r, struct io_thread *thread)
{
	if (!removed_any(r))
		return;
	pthread_mutex_lock(&r->lock);
	r->wanted = r->last;
	pthread_mutex_unlock(&r->lock);
	send_due(r, thread);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void end_one(
	struct removed_names *r, struct removed *one, struct io_thread *thread, int status)
{
	struct inode *inode = one->inode;

	pthread_mutex_lock(&inode->lock);
	inode->removed = NULL;
	pthread_mutex_unlock(&inode->lock);
	if (status)
		r->hooks->refused(inode, one, status);
	r->hooks->settle(inode, thread);
	removed_drop(one);
}

/* Others look into the list, too. */
static struct removed *take_sent(struct removed_names *r)
{
	struct list *link;

	pthread_mutex_lock(&r->lock);
	link = list_pop(&r->sent);
	pthread_mutex_unlock(&r->lock);
	return link ? list_entry(link, struct removed, link) : NULL;
}

/* The outcome of an answer. */
struct outcome {
	unsigned nended;
	uint64_t done;   /* the number of the last one; 0: none */
	unsigned nalone; /* those that are left are tried one by one */
};

static void end_some(struct removed_names *r, unsigned n, int status, struct outcome *o)
{
	struct removed *one;

	while (n-- && (one = take_sent(r))) {
		o->done = one->number;
		o->nended++;
		end_one(r, one, r->thread, status);
	}
}

/* The reply of an honest server tells of at least one. */
static int outcome_of(const struct rpc_reply *rep)
{
	if (rep->status)
		return rep->status;
	return rep->removals.done || rep->removals.refused ? 0 : -EPROTO;
}

/* Together they were refused. One of them may be the reason, and the others are not to suffer. */
static bool must_go_alone(const struct removed_names *r)
{
	struct session *session = r->thread->fs->session;

	return list_count(&r->sent) > 1 && !session_lost(session) && !session_has_ended(session);
}

/* Those that are left go back into the queue, before all that came later. */
static void put_back_locked(struct removed_names *r)
{
	struct list rest;

	if (list_empty(&r->sent))
		return;
	r->wanted = max_u64(r->wanted, list_entry(r->sent.prev, struct removed, link)->number);
	list_init(&rest);
	list_splice_tail(&rest, &r->sent);
	list_splice_tail(&rest, &r->queued);
	list_splice_tail(&r->queued, &rest);
	r->nqueued = list_count(&r->queued);
}

static void wake_locked(struct removed_names *r)
{
	list_for_each_safe (pos, &r->waiters) {
		struct waiter *w = list_entry(pos, struct waiter, link);

		if (w->until > r->done)
			continue;
		list_del(pos);
		waiter_wake(w, 0);
	}
	list_for_each_safe (pos, &r->behind) {
		struct removed_behind *b = list_entry(pos, struct removed_behind, link);

		if (b->until > r->done)
			continue;
		list_del(pos);
		io_thread_call(b->thread, &b->call);
	}
}

static struct outcome take_answer(struct removed_names *r, const struct rpc_reply *rep)
{
	int status = outcome_of(rep);
	struct outcome o = {0};

	if (status && must_go_alone(r)) {
		o.nalone = list_count(&r->sent);
	} else if (status) {
		end_some(r, UINT_MAX, status, &o);
	} else {
		end_some(r, rep->removals.done, 0, &o);
		if (rep->removals.refused)
			end_some(r, 1, -(int)(rep->removals.refused & INT_MAX), &o);
	}
	return o;
}

static void removed_answered(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct removed_names *r = container_of(call, struct removed_names, rpc);
	struct io_thread *thread = r->thread;
	struct outcome o;

	CRASH_POINT("removed.answered");
	o = take_answer(r, rep);
	pthread_mutex_lock(&r->lock);
	r->done = max_u64(r->done, o.done);
	r->nalone = o.nalone ? o.nalone : r->nalone - min_u64(r->nalone, o.nended);
	atomic_fetch_sub(&r->n, o.nended);
	put_back_locked(r);
	r->running = false;
	wake_locked(r);
	pthread_mutex_unlock(&r->lock);
	fs_thread_of(thread)->nbackground--;
	send_due(r, thread);
}

/* ---- who comes behind them ------------------------------------------------------------------- */

static bool is_named(const struct op_about *about, const struct removed *one)
{
	return about->ino[0] == one->dir->ino && about->name.len == one->len &&
	       memcmp(about->name.s, one->name, one->len) == 0;
}

static bool removed_is_about(const struct op_about *about, const struct removed *one)
{
	bool is_dir = false;

	for (unsigned i = 0; i < ARRAY_SIZE(about->ino); i++) {
		if (about->ino[i] == one->inode->ino)
			return true;
		is_dir |= about->ino[i] == one->dir->ino;
	}
	return about->name.len ? is_named(about, one) : is_dir;
}

static uint64_t find_locked(const struct list *list, const struct op_about *about, uint64_t found)
{
	list_for_each (pos, list) {
		const struct removed *one = list_entry(pos, struct removed, link);

		if (removed_is_about(about, one))
			found = one->number;
	}
	return found;
}

uint64_t removed_before(struct removed_names *r, const struct op_about *about)
{
	uint64_t found = 0;

	if (!removed_any(r))
		return 0;
	pthread_mutex_lock(&r->lock);
	if (about->all || about->changes)
		found = r->last;
	else
		found = find_locked(&r->queued, about, find_locked(&r->sent, about, 0));
	if (found <= r->done)
		found = 0;
	pthread_mutex_unlock(&r->lock);
	return found;
}

bool removed_wait(
	struct request *req, uint64_t until, void (*then)(struct request *req, int status))
{
	struct removed_names *r = req->thread->fs->removed;
	struct op *op = op_of(req);
	bool done;

	if (!until)
		return true;
	pthread_mutex_lock(&r->lock);
	done = until <= r->done;
	if (!done) {
		waiter_init(&op->waiter, req, then);
		op->waiter.until = until;
		op_waits(op, OP_AT_REMOVED, &r->lock);
		list_add_tail(&r->waiters, &op->waiter.link);
		r->wanted = max_u64(r->wanted, until);
	}
	pthread_mutex_unlock(&r->lock);
	if (!done)
		send_due(r, req->thread);
	return done;
}

bool removed_wait_behind(
	struct removed_names *r, struct removed_behind *behind, struct io_thread *thread)
{
	bool done;

	if (!removed_any(r))
		return true;
	pthread_mutex_lock(&r->lock);
	done = r->last <= r->done;
	if (!done) {
		behind->until = r->wanted = r->last;
		behind->thread = thread;
		list_add_tail(&r->behind, &behind->link);
		call_locked(r, thread);
	}
	pthread_mutex_unlock(&r->lock);
	return done;
}
