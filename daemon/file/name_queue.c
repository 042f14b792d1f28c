#include "daemon/file/name_queue.h"

#include <errno.h>
#include <limits.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_here.h"
#include "daemon/file/unmade.h"
#include "daemon/op/fs_parts.h"

static void send_called(struct thread_call *call);

void name_queue_init(struct name_queue *r, const struct name_hooks *hooks)
{
	*r = (struct name_queue){.hooks = hooks, .call = {.run = send_called}};
	pthread_mutex_init(&r->lock, NULL);
	list_init(&r->queued);
	list_init(&r->sent);
	list_init(&r->waiters);
	list_init(&r->behind);
	list_init(&r->call.link);
}

/* Their inodes are gone by then. */
void name_queue_fini(struct name_queue *r)
{
	struct list *link;

	list_splice_tail(&r->sent, &r->queued);
	while ((link = list_pop(&r->sent)))
		name_change_free(list_entry(link, struct name_change, link));
	pthread_mutex_destroy(&r->lock);
}

bool name_queue_has_room(struct name_queue *r)
{
	bool room;

	pthread_mutex_lock(&r->lock);
	room = r->nqueued < NAME_QUEUE && !r->nclosing;
	pthread_mutex_unlock(&r->lock);
	return room;
}

static bool sets_owner(const struct name_change *one)
{
	return one->kind == NAME_MKDIR || one->kind == NAME_SYMLINK || one->kind == NAME_SET;
}

/* Of the directories that it changes names in. */
static void count_inside(const struct name_change *one, int change)
{
	if (one->dir)
		atomic_fetch_add(&one->dir->ninside, change);
	if (one->new_dir && one->new_dir != one->dir)
		atomic_fetch_add(&one->new_dir->ninside, change);
}

void name_queue_add_locked(struct name_queue *r, struct name_change *one)
{
	if (one->kind == NAME_SET)
		one->inode->nsets++;
	else
		one->inode->queued = one;
	count_inside(one, 1);
	pthread_mutex_lock(&r->lock);
	one->number = ++r->last;
	list_add_tail(&r->queued, &one->link);
	r->nqueued++;
	atomic_fetch_add(&r->n, 1);
	pthread_mutex_unlock(&r->lock);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void name_queue_answered(struct rpc_call *call, const struct rpc_reply *rep);

static bool is_due_locked(const struct name_queue *r)
{
	const struct list *first = r->queued.next;

	return !list_empty(&r->queued) &&
	       (r->nqueued >= NAME_MESSAGE ||
		       list_entry(first, struct name_change, link)->number <= r->wanted);
}

/* Takes the next ones out of the queue, in their order. */
static void take_some_locked(struct name_queue *r)
{
	size_t room = sizeof(r->tail);
	unsigned max = r->nalone ? 1 : NAME_MESSAGE;

	for (unsigned n = 0; n < max && !list_empty(&r->queued); n++) {
		struct name_change *one = list_entry(r->queued.next, struct name_change, link);

		if (room < name_change_bytes(one))
			return;
		room -= name_change_bytes(one);
		list_del(&one->link);
		r->nqueued--;
		list_add_tail(&r->sent, &one->link);
	}
}

/* Whether it loses its name, and is used on. */
static bool is_kept(struct name_queue *r, struct inode *inode)
{
	bool kept;

	if (!inode)
		return false;
	pthread_mutex_lock(&inode->lock);
	kept = !r->hooks->gives_up_locked(inode);
	pthread_mutex_unlock(&inode->lock);
	return kept;
}

static void put_one(struct name_queue *r, struct name_change *one, struct wire_out *w)
{
	name_change_put(one, is_kept(r, name_change_loser(one)), w);
}

/* A message that uses numbers asks for more. */
static uint8_t ask_numbers(const struct name_queue *r, struct io_thread *thread)
{
	list_for_each (pos, &r->sent)
		if (name_change_takes_number(list_entry(pos, struct name_change, link)))
			return unmade_ask_numbers(thread->fs->unmade);
	return NUMBERS_NONE;
}

/* Those that are sent are the thread's until they are answered. */
static void send_taken(struct name_queue *r, struct io_thread *thread)
{
	struct wire_out w;

	wire_out_init(&w, r->tail, sizeof(r->tail));
	list_for_each (pos, &r->sent)
		put_one(r, list_entry(pos, struct name_change, link), &w);
	r->thread = thread;
	r->rpc = (struct rpc_call){.done = name_queue_answered};
	r->rpc.req.op = RPC_NAMES;
	r->rpc.req.names = (struct rpc_names){
		.tail = {.data = r->tail, .len = (uint32_t)wire_out_len(&w)},
		.numbers = ask_numbers(r, thread),
	};
	fs_thread_of(thread)->nbackground++;
	CRASH_POINT("names.before");
	rpc_start(thread, &r->rpc);
}

static void send_due(struct name_queue *r, struct io_thread *thread)
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
	struct name_queue *r = container_of(call, struct name_queue, call);
	struct io_thread *thread;

	pthread_mutex_lock(&r->lock);
	r->called = false;
	thread = r->caller;
	pthread_mutex_unlock(&r->lock);
	send_due(r, thread);
}

/* Not at once: an inode may be locked. */
static void call_locked(struct name_queue *r, struct io_thread *thread)
{
	if (r->running || r->called)
		return;
	r->called = true;
	r->caller = thread;
	io_thread_call(thread, &r->call);
}

void name_queue_added(struct name_queue *r, struct io_thread *thread)
{
	send_due(r, thread);
}

void name_queue_flush(struct name_queue *r, struct io_thread *thread)
{
	if (!name_queue_any(r))
		return;
	pthread_mutex_lock(&r->lock);
	r->wanted = r->last;
	pthread_mutex_unlock(&r->lock);
	send_due(r, thread);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void is_no_more_queued(struct inode *inode, const struct name_change *one)
{
	pthread_mutex_lock(&inode->lock);
	if (one->kind == NAME_SET)
		inode->nsets--;
	else
		inode->queued = NULL;
	pthread_mutex_unlock(&inode->lock);
}

static void end_one(
	struct name_queue *r, struct name_change *one, struct io_thread *thread, int status)
{
	struct inode *inode = one->inode;

	is_no_more_queued(inode, one);
	if (one->replaced)
		is_no_more_queued(one->replaced, one);
	if (one->kind == NAME_LINK)
		unmade_lose_room(inode->fs->unmade);
	else if (name_change_takes_number(one))
		unmade_lose_number(inode->fs->unmade);
	if (status)
		r->hooks->refused(inode, one, status);
	else if (sets_owner(one))
		inode_settle_squash(inode);
	if (one->dir)
		inode_settle_names(one->dir);
	if (one->new_dir)
		inode_settle_names(one->new_dir);
	count_inside(one, -1);
	if (one->kind != NAME_SET)
		r->hooks->settle(inode, thread);
	if (one->replaced)
		r->hooks->settle(one->replaced, thread);
	name_change_drop(one);
}

/* Others look into the list, too. */
static struct name_change *take_sent(struct name_queue *r)
{
	struct list *link;

	pthread_mutex_lock(&r->lock);
	link = list_pop(&r->sent);
	pthread_mutex_unlock(&r->lock);
	return link ? list_entry(link, struct name_change, link) : NULL;
}

/* The outcome of an answer. */
struct outcome {
	unsigned nended;
	int loss;        /* why they are lost; 0: they are not */
	uint64_t done;   /* the number of the last one; 0: none */
	unsigned nalone; /* those that are left are tried one by one */
};

static void end_some(struct name_queue *r, unsigned n, int status, struct outcome *o)
{
	struct name_change *one;

	while (n-- && (one = take_sent(r))) {
		o->done = one->number;
		o->nended++;
		end_one(r, one, r->thread, status);
	}
}

/* The reply of an honest server tells of at least one. */
static int outcome_of(int status, const struct rpc_names_reply *rep)
{
	if (status)
		return status;
	return rep->done || rep->refused ? 0 : -EPROTO;
}

/* For those who wait for changes that were refused: whether these are lost with the session. A
 * refusal of the server's is told by fsync of the directory alone. */
static int loss(const struct name_queue *r)
{
	const struct session *session = r->thread->fs->session;

	return session_lost(session) ? -ESTALE : session_has_ended(session) ? -EIO : 0;
}

/* Those that are left go back into the queue, before all that came later. */
static void put_back_locked(struct name_queue *r)
{
	struct list rest;

	if (list_empty(&r->sent))
		return;
	r->wanted = max_u64(r->wanted, list_entry(r->sent.prev, struct name_change, link)->number);
	list_init(&rest);
	list_splice_tail(&rest, &r->sent);
	list_splice_tail(&rest, &r->queued);
	list_splice_tail(&r->queued, &rest);
	r->nqueued = list_count(&r->queued);
}

static void wake_locked(struct name_queue *r, int status)
{
	list_for_each_safe (pos, &r->waiters) {
		struct waiter *w = list_entry(pos, struct waiter, link);

		if (w->until > r->done)
			continue;
		list_del(pos);
		waiter_wake(w, status);
	}
	list_for_each_safe (pos, &r->behind) {
		struct name_behind *b = list_entry(pos, struct name_behind, link);

		if (b->until > r->done)
			continue;
		list_del(pos);
		io_thread_call(b->thread, &b->wake);
	}
}

bool name_queue_has_lost(struct name_queue *r)
{
	bool lost;

	pthread_mutex_lock(&r->lock);
	lost = r->lost;
	pthread_mutex_unlock(&r->lock);
	return lost;
}

bool name_queue_take_loss(struct name_queue *r)
{
	bool lost;

	pthread_mutex_lock(&r->lock);
	lost = r->lost;
	r->lost = false;
	pthread_mutex_unlock(&r->lock);
	return lost;
}

static struct outcome take_answer(
	struct name_queue *r, bool along, int err, const struct rpc_names_reply *rep)
{
	int status = outcome_of(err, rep);
	struct outcome o = {.loss = status ? loss(r) : 0};

	/* Together they were refused. One of them may be the reason, and the others are not to
	 * suffer. along: with them a file of a MAKE. */
	if (status && !o.loss && list_count(&r->sent) + along > 1) {
		o.nalone = list_count(&r->sent);
	} else if (status) {
		end_some(r, UINT_MAX, o.loss ? o.loss : status, &o);
	} else {
		end_some(r, rep->done, 0, &o);
		if (rep->refused)
			end_some(r, 1, -(int)(rep->refused & INT_MAX), &o);
	}
	return o;
}

/* True: none is left of those that were sent. */
static bool have_ended(
	struct name_queue *r, bool along, int status, const struct rpc_names_reply *rep)
{
	struct outcome o;
	bool all;

	CRASH_POINT("names.answered");
	o = take_answer(r, along, status, rep);
	pthread_mutex_lock(&r->lock);
	r->done = max_u64(r->done, o.done);
	r->lost |= o.loss && o.nended;
	r->nalone = o.nalone ? o.nalone : r->nalone - min_u64(r->nalone, o.nended);
	atomic_fetch_sub(&r->n, o.nended);
	all = list_empty(&r->sent);
	put_back_locked(r);
	r->running = false;
	wake_locked(r, o.loss);
	pthread_mutex_unlock(&r->lock);
	return all;
}

static void name_queue_answered(struct rpc_call *call, const struct rpc_reply *rep)
{
	static const struct rpc_lent no_numbers;
	struct name_queue *r = container_of(call, struct name_queue, rpc);
	struct io_thread *thread = r->thread;

	if (call->req.names.numbers)
		unmade_numbers_came(
			thread->fs->unmade, rep->status ? &no_numbers : &rep->names.lent);
	have_ended(r, false, rep->status, &rep->names);
	fs_thread_of(thread)->nbackground--;
	send_due(r, thread);
}

/* ---- along with a MAKE ----------------------------------------------------------------------- */

static bool fit_locked(const struct name_queue *r)
{
	size_t room = ALONG_BYTES_MAX;

	if (r->running || r->nalone || r->nqueued > NAME_MESSAGE)
		return false;
	list_for_each (pos, &r->queued) {
		const struct name_change *one = list_entry(pos, struct name_change, link);

		if (room < name_change_bytes(one))
			return false;
		room -= name_change_bytes(one);
	}
	return true;
}

/* Its owner may be gone afterwards. If it waits again, it has closed the queue once more by then.
 */
static void run_behind(struct thread_call *call)
{
	struct name_behind *behind = container_of(call, struct name_behind, wake);
	struct name_queue *r = behind->thread->fs->name_queue;
	bool closes = behind->closes;

	behind->call.run(&behind->call);
	if (!closes)
		return;
	pthread_mutex_lock(&r->lock);
	r->nclosing--;
	pthread_mutex_unlock(&r->lock);
}

static void wait_locked(struct name_queue *r, struct name_behind *behind, struct io_thread *thread)
{
	behind->until = r->wanted = r->last;
	behind->thread = thread;
	behind->wake = (struct thread_call){.run = run_behind};
	behind->closes = behind->again;
	r->nclosing += behind->closes;
	behind->again = true;
	list_add_tail(&r->behind, &behind->link);
	call_locked(r, thread);
}

static enum name_along go_along_locked(
	struct name_queue *r, struct name_behind *behind, struct io_thread *thread)
{
	if (r->last > r->done && !fit_locked(r)) {
		wait_locked(r, behind, thread);
		return ALONG_BEHIND;
	}
	behind->until = r->last;
	if (r->last <= r->done) {
		behind->again = false;
		return ALONG_NONE;
	}
	r->running = true;
	list_splice_tail(&r->sent, &r->queued);
	r->nqueued = 0;
	return ALONG_TAKEN;
}

enum name_along name_queue_go_along(struct name_queue *r, struct name_behind *behind,
	struct io_thread *thread, struct wire_out *w)
{
	enum name_along along;

	pthread_mutex_lock(&r->lock);
	along = go_along_locked(r, behind, thread);
	pthread_mutex_unlock(&r->lock);
	if (along != ALONG_TAKEN)
		return along;
	r->thread = thread;
	list_for_each (pos, &r->sent)
		put_one(r, list_entry(pos, struct name_change, link), w);
	CRASH_POINT("names.before");
	return along;
}

bool name_queue_along_answered(struct name_queue *r, int status, const struct rpc_names_reply *rep)
{
	struct io_thread *thread = r->thread;
	bool all = have_ended(r, true, status, rep);

	send_due(r, thread);
	return all && !status && !rep->refused;
}

void name_queue_along_back(struct name_queue *r)
{
	struct io_thread *thread = r->thread;

	pthread_mutex_lock(&r->lock);
	put_back_locked(r);
	r->running = false;
	pthread_mutex_unlock(&r->lock);
	send_due(r, thread);
}

bool name_queue_has_later(struct name_queue *r, const struct name_behind *behind)
{
	bool later;

	if (!name_queue_any(r))
		return false;
	pthread_mutex_lock(&r->lock);
	later = r->last > r->done && r->last > behind->until;
	pthread_mutex_unlock(&r->lock);
	return later;
}

/* ---- who comes behind them ------------------------------------------------------------------- */

static uint64_t find_locked(const struct list *list, const struct op_about *about, uint64_t found)
{
	list_for_each (pos, list) {
		const struct name_change *one = list_entry(pos, struct name_change, link);

		if (name_change_is_about(one, about))
			found = one->number;
	}
	return found;
}

uint64_t name_queue_before(struct name_queue *r, const struct op_about *about)
{
	uint64_t found = 0;

	if (!name_queue_any(r))
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

bool name_queue_wait(
	struct request *req, uint64_t until, void (*then)(struct request *req, int status))
{
	struct name_queue *r = req->thread->fs->name_queue;
	struct op *op = op_of(req);
	bool done;

	if (!until)
		return true;
	pthread_mutex_lock(&r->lock);
	done = until <= r->done;
	if (!done) {
		waiter_init(&op->waiter, req, then);
		op->waiter.until = until;
		op_waits(op, OP_AT_NAMES, &r->lock);
		list_add_tail(&r->waiters, &op->waiter.link);
		r->wanted = max_u64(r->wanted, until);
	}
	pthread_mutex_unlock(&r->lock);
	if (!done)
		send_due(r, req->thread);
	return done;
}

bool name_queue_wait_all(struct request *req, void (*then)(struct request *req, int status))
{
	static const struct op_about all = {.all = true};

	return name_queue_wait(req, name_queue_before(req->thread->fs->name_queue, &all), then);
}

bool name_queue_wait_behind(
	struct name_queue *r, struct name_behind *behind, struct io_thread *thread)
{
	bool done;

	if (!name_queue_any(r))
		return true;
	pthread_mutex_lock(&r->lock);
	done = r->last <= r->done;
	if (!done)
		wait_locked(r, behind, thread);
	pthread_mutex_unlock(&r->lock);
	return done;
}
