#include "daemon/op/op.h"

#include <assert.h>
#include <errno.h>

#include "common/base/log.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/file/inode_path.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/barrier/abandoned.h"
#include "daemon/file/last_resort.h"
#include "daemon/barrier/remount.h"
#include "daemon/pages/landing.h"
#include "daemon/barrier/session_renewal.h"
#include "daemon/barrier/snapshot_freeze.h"
#include "daemon/file/inode_return.h"

struct op *op_of(struct request *req)
{
	return (struct op *)(void *)req->state;
}

static struct request *request_of(struct op *op)
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

/* False: it is in the list no more, and about to go on. */
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

/* So many wait for the same inode, however much waits for others. */
enum { WAITING_ALWAYS = 64 };

static bool wait_few(const struct list *waiting, pthread_mutex_t *lock)
{
	unsigned n = 0;

	pthread_mutex_lock(lock);
	list_for_each (pos, waiting)
		if (++n > WAITING_ALWAYS)
			break;
	pthread_mutex_unlock(lock);
	return n <= WAITING_ALWAYS;
}

static bool may_wait(struct request *req)
{
	struct op *op = op_of(req);
	struct inode *inode = op->wait == OP_AT_APPEND ? op->append.inode : op->at_lease->inode;

	return req->aside || fs_may_set_aside(req->thread->fs) ||
	       wait_few(
		       op->wait == OP_AT_APPEND ? &inode->appends->waiting : &inode->lease->waiters,
		       &inode->lock);
}

void op_wait_for_others(struct request *req)
{
	bool may = may_wait(req);

	if (landing_holds(req))
		landing_fetch(req->thread);
	if (!request_set_aside(req) || !may || !request_stow(req))
		op_cancel(req, -ENOMEM);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct inode *op_inode_of(const struct request *req)
{
	const struct handle *handle = req->args.has_fh ? handle_of(req) : NULL;
	struct inode *inode =
		handle ? inode_ref(handle->inode) : inode_of_node(req->thread->fs, req->node);

	assert(inode && inode->ino == req->node);
	return inode;
}

struct op *op_begin_with(struct request *req, struct inode *inode)
{
	struct op *op = op_of(req);

	fs_watch_begin(req);
	op->inode = inode;
	return op;
}

struct op *op_begin(struct request *req)
{
	return op_begin_with(req, op_inode_of(req));
}

void op_end(struct request *req)
{
	struct op *op = op_of(req);

	list_del(&op->interrupted);
	if (op->pass.inside)
		op_leave(req);
	while (op->holds)
		op->holds->leave(req);
	inode_put(steal_ptr(&op->inode));
}

void op_finish(struct request *req, int status)
{
	op_end(req);
	reply_error(req, status);
}

/* Who has unmapped the file may be told by nobody else. */
static void log_lost_stores(const struct request *req, int status)
{
	static struct log_ratelimit limit;
	struct inode *inode;
	char path[PATH_TEXT_BYTES];

	if (req->op != OP_WRITE || !req->args.cached || !log_ratelimit_ok(&limit, 1000))
		return;
	inode = op_inode_of(req);
	path_describe(inode, path, sizeof(path));
	inode_put(inode);
	log_error("%s: %u bytes at %llu, stored into a mapping, are lost: %s", path, req->args.size,
		(unsigned long long)req->args.offset, errno_text(status));
}

void op_refuse(struct request *req, int status)
{
	log_lost_stores(req, status);
	append_leave(req, status);
	reply_error(req, status);
}

struct ttl op_ttl(struct request *req)
{
	const struct fs *fs = req->thread->fs;
	uint32_t ms;

	if (fs->options.sharing)
		return (struct ttl){.attr_ms = op_of(req)->attr_ms};
	ms = session_ttl_ms(fs->session);
	return (struct ttl){.entry_ms = ms, .attr_ms = ms};
}

bool op_is_removed_directory(struct request *req, int status)
{
	const struct fs *fs = req->thread->fs;

	return status == -ESTALE && fs->options.sharing && S_ISDIR(op_of(req)->inode->type) &&
	       !session_lost(fs->session) && !renewal_is_running(fs->renewal);
}

void op_reply_entry(struct request *req, struct inode *inode)
{
	struct ttl ttl = op_ttl(req);
	struct attr attr = op_of(req)->seen;

	if (!req->replied) {
		inode_remember(inode);
		kernel_owner_tell(inode, &attr);
	}
	path_note(inode, req->node, req->args.name);
	attr.size = cached_size_of_entry(inode, attr.size);
	op_end(req);
	reply_entry(req, inode_node(inode), &attr, ttl);
	inode_put(inode);
}

/* ---- the network, the kernel
 * ----------------------------------------------------------------------------- */

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

/* Of a quota what is only reserved counts, whatever the room is wanted for. */
static unsigned what_to_release(const struct fs *fs)
{
	return RELEASE_NOTHING_MORE |
	       (session_quotas(fs->session) ? RELEASE_SHARES | RELEASE_ALLOWANCES : 0);
}

static void rpc_done(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct op *op = container_of(call, struct op, call);
	struct request *req = request_of(op);

	op->wait = OP_RUNS;
	op->changing |= call->sent && rpc_op_info(call->req.op)->mutates;
	if (!rep->status)
		op->released = 0;
	if (!lacks_room(op, rep->status) ||
		!release_wait(req, what_to_release(req->thread->fs), rpc_again))
		op->answered(req, rep);
}

/* A pin keeps nobody waiting. */
static bool has_lease(const struct op *op)
{
	for (unsigned i = 0; i < op->nleases; i++)
		if (op->leases[i].type)
			return true;
	return false;
}

void op_rpc(struct request *req, void (*answered)(struct request *req, const struct rpc_reply *rep))
{
	struct op *op = op_of(req);

	list_init(&op->call.link);
	op->call.done = rpc_done;
	op->call.nested = has_lease(op);
	op->answered = answered;
	op->wait = OP_AT_RPC;
	rpc_start(req->thread, &op->call);
}

static void io_done(struct io_call *io, int status)
{
	struct op *op = container_of(io, struct op, io);

	op->wait = OP_RUNS;
	op->moved(request_of(op), status);
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

static void job_done(struct notifier_job *job)
{
	struct op *op = container_of(job, struct op, job);

	op->expired(request_of(op), 0);
}

static void expire_attr(struct request *req, struct notifier *notifier,
	void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);

	op->job = (struct notifier_job){
		.port = req->thread->port,
		.node = inode_node(op->inode),
		.off = -1,
		.thread = req->thread,
		.done = job_done,
	};
	op->expired = then;
	notifier_add(notifier, &op->job);
}

void op_expire_attr(struct request *req, void (*then)(struct request *req, int status))
{
	expire_attr(req, &req->thread->fs->notifier, then);
}

void op_expire_attr_behind_drops(struct request *req, void (*then)(struct request *req, int status))
{
	expire_attr(req, &req->thread->fs->giver, then);
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

/* ---- the gate -------------------------------------------------------------------------------- */

static bool leave_gate(struct request *req);

static bool enter(
	struct request *req, struct op_pass *pass, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);
	struct inode *inode = pass->inode;

	pass->op = op;
	waiter_init(&op->waiter, req, then);
	pthread_mutex_lock(&inode->lock);
	pass->inside = gate_enter(&inode->gate, &pass->pass);
	if (!pass->inside) {
		op->at_gate = pass;
		op_waits_by(op, OP_AT_GATE, leave_gate);
	}
	pthread_mutex_unlock(&inode->lock);
	return op->wait != OP_AT_GATE;
}

bool op_enter(struct request *req, enum gate_kind kind, uint64_t first, uint64_t end,
	void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);

	op->pass = (struct op_pass){
		.inode = op->inode, .pass = {.kind = kind, .first = first, .end = end}};
	return enter(req, &op->pass, then);
}

bool op_enter_pass(struct request *req, struct op_pass *pass, struct inode *inode,
	enum gate_kind kind, void (*then)(struct request *req, int status))
{
	*pass = (struct op_pass){.inode = inode, .pass = {.kind = kind, .end = UINT64_MAX}};
	return enter(req, pass, then);
}

/* Another thread's op is told by its own inode's lock that it is inside now. */
static void admit_waiting_locked(struct inode *inode)
{
	struct gate_pass *next;

	while ((next = gate_next(&inode->gate))) {
		struct op_pass *pass = container_of(next, struct op_pass, pass);

		pass->inside = true;
		waiter_wake(&pass->op->waiter, 0);
	}
}

static bool leave_pass_locked(struct op_pass *pass)
{
	struct inode *inode = pass->inode;

	pass->inside = false;
	if (pass->pass.kind == GATE_EXCLUSIVE)
		inode->growing = false;
	gate_leave(&inode->gate, &pass->pass);
	admit_waiting_locked(inode);
	return inode->orphan;
}

void op_leave_pass(struct request *req, struct op_pass *pass)
{
	struct inode *inode = pass->inode;
	bool orphan;

	pthread_mutex_lock(&inode->lock);
	orphan = leave_pass_locked(pass);
	pthread_mutex_unlock(&inode->lock);
	if (orphan)
		returns_settle(inode, req->thread);
}

bool op_leave_locked(struct request *req)
{
	return leave_pass_locked(&op_of(req)->pass);
}

void op_leave(struct request *req)
{
	op_leave_pass(req, &op_of(req)->pass);
}

static void are_remote(struct request *req, int status)
{
	struct op *op = op_of(req);

	if (op->pass.inside)
		op_leave(req);
	op->all_remote(req, status);
}

bool op_wait_acknowledged(struct request *req, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);
	struct inode *inode = op->inode;
	bool any;

	pthread_mutex_lock(&inode->lock);
	any = gate_has_acknowledged(&inode->gate);
	pthread_mutex_unlock(&inode->lock);
	op->all_remote = then;
	if (!any || !op_enter(req, GATE_READ, 0, UINT64_MAX, are_remote))
		return !any;
	op_leave(req);
	return true;
}

/* ---- the map --------------------------------------------------------------------------------- */

/* Leaves what lies from fpage on. False: nothing. */
static bool cut_front(struct extent *e, uint64_t fpage)
{
	uint64_t before = fpage - e->fpage;

	if (before >= e->npages)
		return false;
	e->fpage = fpage;
	e->page += (uint32_t)before;
	e->npages -= (uint32_t)before;
	return true;
}

static int put_extents_locked(struct inode *inode, const struct rpc_extents_reply *rep)
{
	struct wire_in r = rpc_tail_reader(&rep->tail);
	uint64_t known = inode->map.known_end;
	struct extent e;
	int status;

	while (rpc_get_extent(&r, &e)) {
		/* The first one may begin among those that are known. */
		if (e.fpage < known && !cut_front(&e, known))
			return -EPROTO;
		status = extent_map_learn(&inode->map, &e);
		if (status)
			return status == -EEXIST ? -EPROTO : status;
	}
	if (r.truncated || (!rep->last && inode->map.known_end == known))
		return -EPROTO;
	if (rep->last)
		extent_map_learned_all(&inode->map);
	return 0;
}

static void extents_answered(struct request *req, const struct rpc_reply *rep)
{
	struct op *op = op_of(req);
	struct inode *inode = op->inode;
	int status = rep->status;

	pthread_mutex_lock(&inode->lock);
	if (!status)
		status = put_extents_locked(inode, &rep->extents);
	inode->fetching = false;
	/* Who waited asks for itself if this one was only taken back. */
	waiters_wake(&inode->fetchers, status == -ECANCELED ? 0 : status);
	pthread_mutex_unlock(&inode->lock);
	if (status == -EPROTO)
		log_error("inode %llu: the server's list of extents makes no sense",
			(unsigned long long)inode->ino);
	op->waiter.resume(req, status == -EPROTO ? -EIO : status);
}

bool op_know_map(struct request *req, uint64_t end, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);
	struct inode *inode = op->inode;
	uint64_t known;
	bool fetch;

	pthread_mutex_lock(&inode->lock);
	known = inode->map.known_end;
	if (known >= end) {
		pthread_mutex_unlock(&inode->lock);
		return true;
	}
	waiter_init(&op->waiter, req, then);
	fetch = !inode->fetching;
	inode->fetching = true;
	if (!fetch) {
		op_waits(op, OP_AT_INODE, &inode->lock);
		list_add_tail(&inode->fetchers, &op->waiter.link);
	}
	pthread_mutex_unlock(&inode->lock);
	if (fetch) {
		op->call.req.op = RPC_EXTENTS;
		op->call.req.extents = (struct rpc_extents){.ino = inode->ino, .fpage = known};
		op_rpc(req, extents_answered);
	}
	return false;
}

/* ---- what may be told ---------------------------------------------------------------------------
 */

bool op_may_tell(const struct request *req)
{
	return session_ttl_ms(req->thread->fs->session) > 0 && remote_connected(req->thread);
}

static void sure_answered(struct request *req, const struct rpc_reply *rep)
{
	op_of(req)->waiter.resume(req, rep->status);
}

bool op_make_sure(struct request *req, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);

	if (!req->thread->fs->options.sharing || op_may_tell(req))
		return true;
	waiter_init(&op->waiter, req, then);
	op->call.req.op = RPC_EXTENTS;
	op->call.req.extents =
		(struct rpc_extents){.ino = op->inode->ino, .fpage = UINT64_MAX >> PAGE_SHIFT};
	op_rpc(req, sure_answered);
	return false;
}

/* ---- taking back ----------------------------------------------------------------------------- */

static bool leave_gate(struct request *req)
{
	struct op *op = op_of(req);
	struct inode *inode = op->at_gate->inode;
	bool waiting;

	pthread_mutex_lock(&inode->lock);
	waiting = gate_withdraw(&op->at_gate->pass);
	if (waiting)
		admit_waiting_locked(inode);
	pthread_mutex_unlock(&inode->lock);
	return waiting;
}

/* Each way out is the operation's own, as if what it waited for had failed. */
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
		rpc_done(&op->call, &taken_back);
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
