#include "daemon/lease/append_order.h"

#include <errno.h>
#include <fcntl.h>

#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/op/op.h"
#include "daemon/file/inode.h"
#include "daemon/lease/lease.h"
#include "daemon/file/op_inode.h"
#include "daemon/fuse/receive.h"

/* A thread that has parked an earlier WRITE is asked again, until it had room for that. */
enum { PARKED_MS = 5 };

void append_order_init(struct appends *a)
{
	*a = (struct appends){0};
	list_init(&a->waiting);
}

static struct request *append_order_request_of(struct op_append *a)
{
	return request_of_state(container_of(a, struct shared_op, append));
}

/* A WRITE of pages from the kernel's cache goes to where the kernel has them. */
static bool is_append(const struct request *req)
{
	return req->op == OP_WRITE && req->args.flags & O_APPEND && !req->args.cached;
}

bool append_order_appends(const struct request *req)
{
	return is_append(req) && !fs_kernel_knows_ends(req->thread->fs) &&
	       !shared_op(op_of((struct request *)req))->append.stays;
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void insert_locked(struct appends *queue, struct op_append *a)
{
	struct list *last = queue->waiting.prev;

	/* Most WRITEs come in order. */
	while (last != &queue->waiting &&
		list_entry(last, struct op_append, link)->offset > a->offset)
		last = last->prev;
	list_add_tail(last->next, &a->link);
}

static struct op_append *first_locked(const struct appends *queue)
{
	return list_empty(&queue->waiting)
		       ? NULL
		       : list_entry(queue->waiting.next, struct op_append, link);
}

/* The WRITE that has its turn from now on, or NULL. */
static struct op_append *append_order_next_locked(struct appends *queue)
{
	struct op_append *a = first_locked(queue);

	if (queue->inside || !a || !a->settled)
		return NULL;
	list_del(&a->link);
	queue->inside = a->inside = true;
	return a;
}

static void wake_next_locked(struct appends *queue)
{
	struct op_append *a = append_order_next_locked(queue);

	if (a)
		waiter_wake(&op_of(append_order_request_of(a))->waiter, a->status);
}

/* ---- what is not known yet ------------------------------------------------------------------- */

static bool knows_all(struct op_append *a);
static void leave_locked(struct request *req, int status);

/* All WRITEs before this one have their places, or nobody wants this one any more. */
static void settled(struct op_append *a)
{
	struct inode *inode = a->inode;

	pthread_mutex_lock(&inode->lock);
	a->settled = true;
	if (a->unwanted) {
		leave_locked(append_order_request_of(a), -ECANCELED);
		waiter_wake(&op_of(append_order_request_of(a))->waiter, -ECANCELED);
	} else {
		wake_next_locked(inode->appends);
	}
	pthread_mutex_unlock(&inode->lock);
}

static bool is_unwanted(struct op_append *a)
{
	bool unwanted;

	pthread_mutex_lock(&a->inode->lock);
	unwanted = a->unwanted;
	pthread_mutex_unlock(&a->inode->lock);
	return unwanted;
}

/* Runs in the thread that is asked, after that thread has looked at all that it had read. */
static void look(struct thread_call *call)
{
	struct op_append *a = container_of(call, struct op_append, call);
	struct io_thread *here = io_thread_sibling(append_order_request_of(a)->thread, a->asked);
	bool unwanted = is_unwanted(a);

	if (!unwanted && fuse_receive_has_parked_append(here, inode_node(a->inode), a->offset)) {
		io_thread_call_later(here, call, PARKED_MS);
		return;
	}
	a->asked++;
	if (unwanted || knows_all(a))
		settled(a);
}

/* False: a thread is asked. */
static bool knows_all(struct op_append *a)
{
	const struct io_thread *home = append_order_request_of(a)->thread;

	for (; a->asked < io_thread_siblings(home); a->asked++) {
		struct io_thread *thread = io_thread_sibling(home, a->asked);

		if (!fuse_receive_may_hide(thread, home))
			continue;
		a->call.run = look;
		io_thread_call(thread, &a->call);
		return false;
	}
	return true;
}

/* ---- one of them ----------------------------------------------------------------------------- */

static void leave(struct request *req)
{
	append_order_leave(req, shared_op_of(req)->append.status);
}

static void take_place(struct request *req)
{
	struct op_append *a = &shared_op_of(req)->append;
	struct inode *inode;

	atomic_store_explicit(&handle_of(req)->appended, true, memory_order_relaxed);
	inode = a->inode = op_inode_of(req);
	a->offset = req->args.offset;
	pthread_mutex_lock(&inode->lock);
	insert_locked(inode->appends, a);
	pthread_mutex_unlock(&inode->lock);
	op_is_inside(req, &a->hold, leave);
}

static bool has_place(struct request *req)
{
	return shared_op_of(req)->append.inode;
}

void append_order_queue(struct request *req)
{
	if (append_order_appends(req) && !has_place(req))
		take_place(req);
}

void append_order_hold(struct request *req)
{
	if (is_append(req) && !has_place(req))
		take_place(req);
}

void append_order_share_locked(struct inode *inode)
{
	list_for_each (pos, &inode->appends->waiting) {
		struct op_append *a = list_entry(pos, struct op_append, link);

		a->stays = inode->sized && a->offset < inode->attr.size;
	}
}

bool append_order_is_waited_for(struct request *req)
{
	const struct op_append *a = &shared_op_of(req)->append;
	bool later;

	if (!a->inode)
		return false;
	pthread_mutex_lock(&a->inode->lock);
	later = list_entry(a->inode->appends->waiting.prev, struct op_append, link)->offset >
		a->offset;
	pthread_mutex_unlock(&a->inode->lock);
	return later;
}

bool append_order_enter(struct request *req, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);
	struct op_append *a = &shared_op(op)->append;
	struct inode *inode = a->inode;
	bool inside = false;

	if (!inode)
		return true;
	waiter_init(&op->waiter, req, then);
	if (knows_all(a)) {
		pthread_mutex_lock(&inode->lock);
		a->settled = true;
		inside = append_order_next_locked(inode->appends) == a;
		pthread_mutex_unlock(&inode->lock);
	}
	if (inside && !a->status)
		return true;
	if (inside)
		waiter_wake(&op->waiter, a->status);
	op_watch_begin(req);
	op_waits_by(op, OP_AT_APPEND, append_order_withdraw);
	return false;
}

/* A request that was taken back tells nothing of the others. */
static int failure_of(const struct request *req, int status)
{
	if (status == -ECANCELED)
		status = req->taken_back;
	return status == -EINTR ? 0 : status;
}

/* Fails the next WRITE if it is the next piece of the same request. */
static void fail_next_locked(struct appends *queue, struct op_append *a, int status)
{
	const struct list *behind = a->inside ? queue->waiting.next : a->link.next;
	struct op_append *next = list_entry(behind, struct op_append, link);

	if (behind != &queue->waiting &&
		next->offset == a->offset + append_order_request_of(a)->args.size)
		next->status = status;
}

static void leave_locked(struct request *req, int status)
{
	struct op_append *a = &shared_op_of(req)->append;
	struct appends *queue = a->inode->appends;
	int failure = failure_of(req, status);

	if (!a->inside && list_empty(&a->link))
		return; /* it has left already */
	if (failure)
		fail_next_locked(queue, a, failure);
	list_del(&a->link);
	if (a->inside)
		a->inside = queue->inside = false;
	wake_next_locked(queue);
}

void append_order_done_locked(struct request *req)
{
	if (shared_op_of(req)->append.inside)
		leave_locked(req, 0);
}

void append_order_leave(struct request *req, int status)
{
	struct op_append *a = &shared_op_of(req)->append;
	struct inode *inode = a->inode;

	if (!inode)
		return;
	op_has_left(req, &a->hold);
	pthread_mutex_lock(&inode->lock);
	leave_locked(req, status);
	pthread_mutex_unlock(&inode->lock);
	inode_put(steal_ptr(&a->inode));
}

bool append_order_withdraw(struct request *req)
{
	struct op_append *a = &shared_op_of(req)->append;
	struct inode *inode = a->inode;
	bool waits;

	pthread_mutex_lock(&inode->lock);
	waits = a->settled && !list_empty(&a->link);
	if (waits)
		leave_locked(req, -ECANCELED);
	a->unwanted = !a->settled;
	pthread_mutex_unlock(&inode->lock);
	return waits;
}
