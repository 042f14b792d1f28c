#include "daemon/op/op.h"

#include <assert.h>
#include <errno.h>

#include "common/base/log.h"
#include "common/base/probes.h"
#include "daemon/op/fs_parts.h"
#include "daemon/remote/remote.h"
#include "daemon/request/caller.h"

struct op *op_of(struct request *req)
{
	return (struct op *)(void *)req->state;
}

static struct request *op_request_of(struct op *op)
{
	return request_of_state(op);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void waiter_run(struct thread_call *call)
{
	struct waiter *w = container_of(call, struct waiter, call);

	op_of(w->req)->wait = OP_RUNS;
	w->resume(w->req, w->status);
}

void op_waits(struct op *op, enum op_wait wait, pthread_mutex_t *lock)
{
	op->waiter_lock = lock;
	op->withdraw = NULL;
	op->wait = wait;
}

void op_waits_by(struct op *op, enum op_wait wait, bool (*withdraw)(struct request *req))
{
	op->withdraw = withdraw;
	op->wait = wait;
}

/* False: it is not in the list any more, and about to go on. */
static bool leave_list(struct op *op)
{
	bool waiting;

	if (op->waiter_lock)
		pthread_mutex_lock(op->waiter_lock);
	waiting = !list_empty(&op->waiter.link);
	list_del(&op->waiter.link);
	if (op->waiter_lock)
		pthread_mutex_unlock(op->waiter_lock);
	return waiting;
}

void op_is_inside(struct request *req, struct op_hold *hold, void (*leave)(struct request *req))
{
	struct op *op = op_of(req);

	hold->leave = leave;
	hold->next = op->holds;
	op->holds = hold;
}

void op_has_left(struct request *req, struct op_hold *hold)
{
	for (struct op_hold **at = &op_of(req)->holds; *at; at = &(*at)->next) {
		if (*at != hold)
			continue;
		*at = hold->next;
		return;
	}
}

void op_yield(struct request *req)
{
	struct op_hold *next;

	for (struct op_hold *hold = op_of(req)->holds; hold; hold = next) {
		next = hold->next;
		if (hold->yields)
			hold->leave(req);
	}
}

void waiter_init(
	struct waiter *w, struct request *req, void (*resume)(struct request *req, int status))
{
	*w = (struct waiter){.req = req, .resume = resume, .call = {.run = waiter_run}};
	list_init(&w->link);
	list_init(&w->call.link);
}

void waiter_wake(struct waiter *w, int status)
{
	w->status = status;
	io_thread_call(w->req->thread, &w->call);
}

void waiters_wake(struct list *waiters, int status)
{
	struct list *link;

	while ((link = list_pop(waiters)))
		waiter_wake(list_entry(link, struct waiter, link), status);
}

void waiters_answer(struct list *waiters, uint64_t n, int status)
{
	list_for_each_safe (pos, waiters) {
		struct waiter *w = list_entry(pos, struct waiter, link);

		if (status && w->until >= n)
			continue;
		list_del(pos);
		waiter_wake(w, status);
	}
}

/* ---- the network, the kernel ----------------------------------------------------------------- */

static void io_done(struct io_call *io, int status)
{
	struct op *op = container_of(io, struct op, io);

	PROBE(rmemfs, transfer_complete, op_request_of(op)->unique, status);
	op->wait = OP_RUNS;
	op->moved(op_request_of(op), status);
}

static void start_io(struct request *req, const struct io_call *io,
	void (*moved)(struct request *req, int status))
{
	struct op *op = op_of(req);

	op->io = *io;
	op->io.works = req->buf->works;
	op->io.done = io_done;
	list_init(&op->io.link);
	op->moved = moved;
	op->wait = OP_AT_IO;
	PROBE(rmemfs, transfer_post, req->unique, io->dir, io->nworks);
	io_start(req->thread, &op->io);
}

void op_io(struct request *req, enum io_dir dir, uint32_t nworks,
	void (*moved)(struct request *req, int status))
{
	start_io(req, &(struct io_call){.dir = dir, .nworks = nworks}, moved);
}

void op_io_reply(struct request *req, uint32_t nworks, uint32_t len,
	void (*moved)(struct request *req, int status))
{
	struct io_call io = {
		.dir = IO_READ,
		.nworks = nworks,
		.head = reply_pipe_head(req, len),
		.headlen = REPLY_HEAD_BYTES,
	};

	start_io(req, &io, moved);
}

void op_reply_read(struct request *req, uint32_t len)
{
	if (op_of(req)->io.piped)
		reply_pipe(req, io_pipe(req->thread), len);
	else
		reply_buffer(req, len);
}

static void buffer_taken(struct request *req)
{
	struct op *op = op_of(req);

	op->wait = OP_RUNS;
	op->buffered(req, 0);
}

void op_take_buffer(struct request *req, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);

	op->buffered = then;
	op->wait = OP_AT_BUFFER;
	if (request_take_buffer(req, buffer_taken))
		buffer_taken(req);
}

/* ---- callers that were signalled ------------------------------------------------------------- */

void op_watch(struct request *req)
{
	struct op *op = op_of(req);

	list_del(&op->interrupted); /* it may be watched already */
	list_add_tail(&fs_thread_of(req->thread)->interrupted, &op->interrupted);
}

void op_watch_begin(struct request *req)
{
	bool untold = request_signals_are_untold(req);

	list_init(&op_of(req)->interrupted);
	if (req->interrupted || untold)
		op_watch(req);
	/* It waits anyway, and its thread may have ended before the next tick. */
	if (untold && remote_disconnected(req->thread))
		caller_note_process(&req->process, req->pid);
}

/* ---- the session ----------------------------------------------------------------------------- */

/* Another thread may know already that the session has ended. */
bool op_ends_with_session(const struct request *req, int status)
{
	const struct fs *fs = req->thread->fs;

	return (status == -ESTALE || status == -EIO) && !req->replied &&
	       (fs_is_renewing(fs) || session_has_ended(fs->session)) &&
	       !remote_gives_up(req->thread);
}

/* ---- taking back ----------------------------------------------------------------------------- */

/* Each operation goes its own way out, as if the wait had failed. */
bool op_cancel(struct request *req, int error)
{
	struct op *op = op_of(req);
	struct rpc_reply taken_back = {.op = op->call.req.op, .status = -ECANCELED};

	if (op->acked)
		return false;
	req->taken_back = error;
	switch (op->wait) {
	case OP_AT_BUFFER:
		request_leave_buffers(req);
		op->wait = OP_RUNS;
		op->buffered(req, -ECANCELED);
		return true;
	case OP_AT_RPC:
		if (!rpc_cancel(req->thread, &op->call))
			return false;
		op->call.done(&op->call, &taken_back);
		return true;
	case OP_AT_IO:
		if (!io_cancel(req->thread, &op->io))
			return false;
		io_done(&op->io, -ECANCELED);
		return true;
	case OP_RUNS:
		return false;
	default:
		if (!(op->withdraw ? op->withdraw(req) : leave_list(op)))
			return false;
	}
	op->wait = OP_RUNS;
	op->waiter.resume(req, -ECANCELED);
	return true;
}

bool op_is_sent(const struct op *op)
{
	return (op->wait == OP_AT_RPC && op->call.sent) ||
	       (op->wait == OP_AT_IO && (op->io.tried || op->io.status));
}

const char *op_wait_name(enum op_wait wait)
{
	static const char *const names[] = {
		[OP_RUNS] = "nothing",
		[OP_AT_ABANDONED] = "abandoned operation",
		[OP_AT_BUFFER] = "buffer",
		[OP_AT_RPC] = "server",
		[OP_AT_IO] = "transfer",
		[OP_AT_GATE] = "same pages",
		[OP_AT_INODE] = "same file",
		[OP_AT_DROP] = "kernel",
		[OP_AT_PAGES] = "pages",
		[OP_AT_FREEZE] = "snapshot",
		[OP_AT_QUOTA] = "quota",
		[OP_AT_RELEASE] = "pages",
		[OP_AT_REMOUNT] = "remount",
		[OP_AT_LEASE] = "lease",
		[OP_AT_RENEWAL] = "session",
		[OP_AT_CONVERSION] = "conversion",
		[OP_AT_APPEND] = "earlier append",
		[OP_AT_NAMES] = "earlier names",
	};

	return names[wait];
}
