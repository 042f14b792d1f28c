#include "daemon/file/last_resort.h"

#include <errno.h>

#include "common/base/probes.h"
#include "daemon/op/fs_parts.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/op/op.h"
#include "daemon/file/inode_return.h"
#include "daemon/file/inode.h"
#include "daemon/file/make_first.h"
#include "daemon/file/name_queue.h"
#include "daemon/pages/quota_allowance.h"
#include "daemon/pages/grants.h"
#include "daemon/remote/replay.h"

void last_resort_init(struct last_resorts *r)
{
	*r = (struct last_resorts){0};
	pthread_mutex_init(&r->lock, NULL);
	list_init(&r->waiters);
	list_init(&r->next);
}

void last_resort_fini(struct last_resorts *r)
{
	pthread_mutex_destroy(&r->lock);
}

static void round_begin(struct last_resorts *r, struct io_thread *thread);

static void round_end(struct io_thread *thread)
{
	struct last_resorts *r = thread->fs->releases;
	bool again;

	pthread_mutex_lock(&r->lock);
	waiters_wake(&r->waiters, 0);
	list_splice_tail(&r->waiters, &r->next);
	r->what = r->next_what;
	r->next_what = 0;
	again = r->running = !list_empty(&r->waiters);
	pthread_mutex_unlock(&r->lock);
	if (again)
		round_begin(r, thread);
}

static void round_returned(struct io_thread *thread)
{
	if (thread->fs->releases->what & RELEASE_ALLOWANCES)
		quota_allowance_give_back(thread, round_end);
	else
		round_end(thread);
}

static void empty(struct inode *inode, void *arg)
{
	const unsigned *what = arg;

	pthread_mutex_lock(&inode->lock);
	if (*what & RELEASE_WINDOWS)
		window_return(&inode->window, inode->fs->grants);
	if (*what & RELEASE_SHARES)
		quota_allowance_return_locked(inode->fs, &inode->share, &inode->attr);
	pthread_mutex_unlock(&inode->lock);
}

/* While the session is renewed, a thread that is idle already begins nothing for the old one. */
static void round_passed(struct io_thread *thread)
{
	unsigned what = thread->fs->releases->what;

	if (fs_is_renewing(thread->fs)) {
		round_end(thread);
		return;
	}
	if (what & (RELEASE_WINDOWS | RELEASE_SHARES))
		inode_each(thread->fs, empty, &what);
	name_queue_flush(thread->fs->name_queue, thread);
	inode_return_drain(thread, round_returned);
}

static void pass(struct thread_call *call)
{
	struct last_resorts *r = container_of(call, struct last_resorts, call);
	struct io_thread *here = r->at, *next = io_thread_sibling(here, here->index + 1);

	if (next == r->first) {
		round_passed(here);
	} else {
		r->at = next;
		io_thread_call(next, call);
	}
}

static void round_begin(struct last_resorts *r, struct io_thread *thread)
{
	r->first = r->at = thread;
	r->call.run = pass;
	io_thread_call_when_read(thread, &r->call);
}

bool last_resort_wait(
	struct request *req, unsigned what, void (*then)(struct request *req, int status))
{
	struct last_resorts *r = req->thread->fs->releases;
	struct op *op = op_of(req);
	bool begin;

	if (!(what & ~op->released))
		return false;
	op->released |= what;
	waiter_init(&op->waiter, req, then);
	op_waits(op, OP_AT_RELEASE, &r->lock);
	pthread_mutex_lock(&r->lock);
	begin = !r->running;
	if (begin) {
		r->running = true;
		r->what = what;
	} else {
		r->next_what |= what;
	}
	list_add_tail(begin ? &r->waiters : &r->next, &op->waiter.link);
	pthread_mutex_unlock(&r->lock);
	if (begin)
		round_begin(r, req->thread);
	return true;
}

/* ---- calls to the server -------------------------------------------------------------------- */

static void rpc_again(struct request *req, int status)
{
	struct op *op = op_of(req);

	if (status)
		op->answered(req, &(struct rpc_reply){.op = op->call.req.op, .status = status});
	else
		op_rpc(req, op->answered);
}

/* The parts of a long value are used up by its first try. */
static bool can_be_repeated(const struct rpc_request *rpc)
{
	return rpc->op >= RPC_SETATTR && (rpc->op != RPC_SETXATTR || !rpc->setxattr.stage);
}

static bool lacks_room(const struct op *op, int status)
{
	return (status == -EDQUOT || status == -ENOSPC) && can_be_repeated(&op->call.req);
}

/* Reserved quota counts as used, so it is released for names, too. */
static unsigned last_resort_what_to_release(const struct fs *fs)
{
	return RELEASE_NOTHING_MORE |
	       (session_quotas(fs->session) ? RELEASE_SHARES | RELEASE_ALLOWANCES : 0);
}

static void rpc_done(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct op *op = container_of(call, struct op, call);
	struct request *req = request_of_state(op);

	PROBE(rmemfs, rpc_reply, req->unique, rep->status);
	op->wait = OP_RUNS;
	op->changing |= call->sent && rpc_op_info(call->req.op)->mutates;
	if (!rep->status)
		op->released = 0;
	if (!lacks_room(op, rep->status) ||
		!last_resort_wait(req, last_resort_what_to_release(req->thread->fs), rpc_again))
		op->answered(req, rep);
}

static void rpc_send(struct request *req)
{
	struct op *op = op_of(req);

	list_init(&op->call.link);
	op->call.done = rpc_done;
	op->call.nested = op->leased;
	op->call.by = request_number(req);
	op->wait = OP_AT_RPC;
	if (request_is_resent(req) && replay_answers(req->thread, &op->call))
		return;
	PROBE(rmemfs, rpc_send, req->unique, op->call.req.op);
	rpc_start(req->thread, &op->call);
}

static void rpc_made(struct request *req, int status)
{
	if (status)
		rpc_again(req, status);
	else
		rpc_send(req);
}

void op_rpc(struct request *req, void (*answered)(struct request *req, const struct rpc_reply *rep))
{
	struct op *op = op_of(req);
	struct op_about about = make_first_about(&op->call.req);

	op->answered = answered;
	if (make_first(req, &about, rpc_made))
		rpc_send(req);
}
