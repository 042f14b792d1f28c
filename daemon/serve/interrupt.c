/* interrupt.c - see interrupt.h. */
#include "daemon/serve/interrupt.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/log.h"
#include "daemon/barrier/abandoned.h"
#include "daemon/file/handle.h"
#include "daemon/file/inode_path.h"
#include "daemon/lock/lock_owner.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/request/caller.h"

enum { FAILING_LOG_MS = 30000, NOTE_MS = 200, UNTOLD_MS = 500 };

/* ---- callers that were signalled ------------------------------------------------------------- */

/* Whether the wait ends soon while this thread's connection is up. Waits for other threads'
 * connections do not, nor do those for pages and leases of other clients: locked pages of the
 * kernel may be part of those. */
static bool ends_by_itself(const struct request *req, const struct op *op)
{
	if (req->op != OP_STATFS && (op->wait == OP_AT_RPC || op->wait == OP_AT_DROP) &&
		req->thread->fs->sharing)
		return false;
	return op->wait != OP_AT_PAGES && op->wait != OP_AT_QUOTA && op->wait != OP_AT_RELEASE &&
	       op->wait != OP_AT_ABANDONED && op->wait != OP_AT_REMOUNT &&
	       op->wait != OP_AT_LEASE && op->wait != OP_AT_RENEWAL &&
	       op->wait != OP_AT_CONVERSION && op->wait != OP_AT_APPEND;
}

/* A FLUSH that is held before it begins, and that gives up locks. Nobody else would, if other
 * processes have the file open, too. A conversion ends in time while the server is there. */
static bool gives_up_locks(const struct request *req, const struct op *op)
{
	return req->op == OP_FLUSH && !req->replied && op->wait == OP_AT_CONVERSION &&
	       lock_owner_has_records(handle_of(req)->inode, req->args.lock_owner);
}

/* umount(8) asks for STATFS before anything else, so that waits for nobody. */
static bool waits_for_ever(const struct request *req)
{
	bool signalled = req->interrupted || req->op == OP_FLUSH;

	return req->op != OP_STATFS &&
	       !caller_ends_wait(req->thread, (struct caller){req->pid, req->process}, signalled,
		       req->since_ms);
}

/* Most requests of which the kernel tells nothing end before /proc is worth reading. */
static bool is_looked_at(const struct request *req)
{
	return req->interrupted || !request_signals_are_untold(req) ||
	       io_thread_now(req->thread) - req->since_ms >= UNTOLD_MS;
}

static bool changes_data(const struct request *req)
{
	return req->op == OP_WRITE || req->op == OP_FALLOCATE;
}

/* While the server answers, every wait ends soon by itself. An EINTR that the application does not
 * expect of a file would do harm. Without the server a process that is killed must not hang. The
 * kernel does not tell of the signal that kills after it has told of another one. A caller that was
 * answered wants nothing any more. True: the request has ended. */
static bool interrupt_ends(struct request *req)
{
	struct op *op = op_of(req);
	bool disconnected = remote_disconnected(req->thread);

	/* An acknowledged write is done, whatever becomes of its caller. */
	if (op->acked || (!disconnected && (ends_by_itself(req, op) || gives_up_locks(req, op))) ||
		!is_looked_at(req) || (!req->replied && waits_for_ever(req)))
		return false;
	list_del(&op->interrupted);
	if (op_cancel(req, -EINTR))
		return true;
	if (disconnected) {
		abandoned_make(req, -EINTR);
	} else if (op->wait == OP_AT_RPC) {
		rpc_withdraw(req->thread, &op->call);
		/* If the RPC changes something, the caller waits for its answer: it has happened,
		 * or it has not. So does the caller of an operation that changes data after this
		 * RPC. */
		if (!rpc_op_info(op->call.req.op)->mutates && !changes_data(req))
			request_abandon(req, -EINTR);
	}
	return false;
}

/* Its thread may end before it does. Again most end before /proc is worth reading. */
static void note_process(struct request *req)
{
	if (request_signals_are_untold(req) &&
		(remote_disconnected(req->thread) ||
			io_thread_now(req->thread) - req->since_ms >= NOTE_MS))
		caller_note_process(&req->process, req->pid);
}

static void look_after(struct request *req)
{
	note_process(req);
	if (!interrupt_ends(req))
		op_watch(req);
}

void interrupt_request(struct request *req)
{
	if (!req->interrupted)
		req->since_ms = io_thread_now(req->thread);
	req->interrupted = true;
	look_after(req);
}

/* An operation that ends may end others that it has held up. They are taken from the same list
 * then. */
void interrupt_tick(struct io_thread *thread)
{
	struct fs_thread *ft = fs_thread_of(thread);
	struct list look, *link;

	list_init(&look);
	list_splice_tail(&look, &ft->interrupted);
	while ((link = list_pop(&look)))
		look_after(request_of_state(list_entry(link, struct op, interrupted)));
}

/* ---- a soft mount without its server --------------------------------------------------------- */

static void log_unsafe(struct request *req)
{
	static struct log_ratelimit limit;
	struct inode *inode = op_of(req)->inode;
	char text[PATH_INODE_BYTES];

	if ((req->op != OP_FLUSH && req->op != OP_FSYNC) || !log_ratelimit_ok(&limit, 1000))
		return;
	snprintf(text, sizeof(text), "inode %llu", (unsigned long long)req->node);
	log_warning("%s: what was written is not safe yet: it will be committed if the server "
		    "comes back before the mount ends",
		inode ? path_name_inode(inode, text) : text);
}

static void log_failing(const struct fs *fs)
{
	static struct log_ratelimit limit;

	if (log_ratelimit_ok(&limit, FAILING_LOG_MS))
		log_warning("server %s: no sign of life for %u s: operations fail with EIO (soft "
			    "mount)",
			session_server(fs->session), fs->options.session.soft_ms / 1000);
}

/* Operations that were sent keep their request, slot and buffer until the server is back; all
 * others end. So there is always room for the next request, or it can be refused at once. */
static void fail_one(struct request *req, void *arg)
{
	struct op *op = op_of(req);

	/* Nobody would close the handle again. So this waits for the next session, which soft
	 * mounts get, too. */
	if (op->wait == OP_RUNS || req->op == OP_RELEASE || req->op == OP_RELEASEDIR)
		return;
	if (!req->replied) {
		log_failing(req->thread->fs);
		log_unsafe(req);
	}
	if (!op_cancel(req, -EIO) && op_is_sent(op))
		abandoned_make(req, -EIO);
}

void interrupt_all_failing(struct io_thread *thread)
{
	request_each(thread, fail_one, NULL);
}
