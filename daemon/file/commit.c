#include "daemon/file/commit.h"

#include <errno.h>

#include "common/base/log.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/op/op.h"
#include "daemon/pages/grant_refill.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_here.h"
#include "daemon/file/extent_map.h"
#include "daemon/file/gate.h"
#include "daemon/file/inode_path.h"
#include "daemon/file/unmade.h"

/* Extents in one COMMIT, or of a file in one MAKE. */
enum { COMMIT_EXTENTS = MAKE_BATCH_EXTENTS };

bool commit_is_clean_locked(const struct inode *inode)
{
	return inode->commit.changes == inode->commit.done || inode->returned;
}

bool commit_is_at_risk_locked(const struct inode *inode)
{
	const struct commit *c = &inode->commit;

	return !commit_is_clean_locked(inode) &&
	       (c->size_dirty || commit_sets_locked(c) || inode->map.uncommitted || inode->unmade);
}

bool commit_lacks_data(struct inode *inode)
{
	bool lacks;

	pthread_mutex_lock(&inode->lock);
	lacks = inode->commit.size_dirty || inode->map.uncommitted || inode->unmade;
	pthread_mutex_unlock(&inode->lock);
	return lacks;
}

void commit_mark_locked(struct inode *inode)
{
	const struct commit *c = &inode->commit;
	uint32_t marks = 0;

	if (!inode->note)
		return;
	if (commit_is_at_risk_locked(inode) || gate_has_acknowledged(&inode->gate) ||
		(c->nfailures && !c->told))
		marks = MARK_AT_RISK | MARK_TOUCHED;
	else if (!commit_is_clean_locked(inode))
		marks = MARK_TOUCHED;
	inode_mark_locked(inode, marks, MARK_AT_RISK | MARK_TOUCHED);
}

void commit_dirty_locked(struct inode *inode, struct io_thread *thread)
{
	struct commit *c = &inode->commit;

	inode->changed = true;
	c->changes++;
	c->refused = false;
	commit_mark_locked(inode);
	if (c->listed)
		return;
	c->listed = true;
	list_add_tail(&fs_thread_of(thread)->dirty, &c->dirty);
	inode_ref(inode);
}

/* ---- who is told ----------------------------------------------------------------------------- */

void commit_failed_locked(struct inode *inode, int status)
{
	struct commit *c = &inode->commit;

	/* After the session's end no server can be asked what became of the file. */
	c->error = fs_is_renewing(inode->fs) ? -EIO : status;
	c->nfailures++;
	c->told = false;
	commit_mark_locked(inode);
}

void commit_pages_failed(struct inode *inode, int status)
{
	struct commit *c = &inode->commit;
	bool room = status == -ENOSPC || status == -EDQUOT;

	pthread_mutex_lock(&inode->lock);
	c->page_error = room ? status : -EIO;
	c->npage_failures++;
	c->lost_pages |= session_has_ended(inode->fs->session);
	pthread_mutex_unlock(&inode->lock);
}

void commit_handle_opened_locked(struct inode *inode, struct handle *handle)
{
	const struct commit *c = &inode->commit;

	handle->told_pages = c->npage_failures;
	handle->told = c->nfailures - (c->nfailures && !c->told);
}

bool commit_has_to_tell_locked(const struct inode *inode, const struct handle *handle)
{
	return handle->told != inode->commit.nfailures;
}

bool commit_has_to_tell(struct inode *inode, const struct handle *handle)
{
	bool has;

	pthread_mutex_lock(&inode->lock);
	has = commit_has_to_tell_locked(inode, handle);
	pthread_mutex_unlock(&inode->lock);
	return has;
}

int commit_tell(struct inode *inode, struct handle *handle)
{
	struct commit *c = &inode->commit;
	int error = 0;

	pthread_mutex_lock(&inode->lock);
	if (commit_has_to_tell_locked(inode, handle)) {
		handle->told = c->nfailures;
		c->told = true;
		error = c->error;
		commit_mark_locked(inode);
	}
	pthread_mutex_unlock(&inode->lock);
	return error;
}

int commit_tell_pages(struct inode *inode, struct handle *handle, enum request_op op)
{
	const struct commit *c = &inode->commit;
	int error = 0;

	pthread_mutex_lock(&inode->lock);
	if (handle->told_pages != c->npage_failures && op == OP_FLUSH)
		error = c->page_error;
	handle->told_pages = c->npage_failures;
	pthread_mutex_unlock(&inode->lock);
	return error;
}

void commit_told_by_answer(struct inode *inode, struct handle *handle)
{
	struct commit *c = &inode->commit;

	pthread_mutex_lock(&inode->lock);
	if (handle->told + 1 == c->nfailures) {
		handle->told = c->nfailures;
		c->told = true;
		commit_mark_locked(inode);
	}
	pthread_mutex_unlock(&inode->lock);
}

/* ---- one COMMIT ------------------------------------------------------------------------------ */

static void commit_answered(struct rpc_call *call, const struct rpc_reply *rep);
static void commit_is_next(struct thread_call *call);

/* Room for the extents: of a COMMIT until it is answered; a MAKE's are copied at once. */
static uint8_t *extents_room(struct inode *inode, struct io_thread *thread, size_t n)
{
	struct commit *c = &inode->commit;

	if (inode->unmade)
		return fs_thread_of(thread)->makes->extents;
	c->tail = malloc(n * RPC_EXTENT_BYTES);
	return c->tail;
}

/* Fills the request's tail with new extents. *more: not all of them fit. */
static int take_extents_locked(
	struct inode *inode, struct io_thread *thread, struct rpc_tail *tail, bool *more)
{
	struct extent batch[COMMIT_EXTENTS];
	size_t n = extent_map_collect(&inode->map, batch, COMMIT_EXTENTS, more);
	struct wire_out w;
	uint8_t *room;

	*tail = (struct rpc_tail){0};
	if (!n)
		return 0;
	room = extents_room(inode, thread, n);
	if (!room) {
		extent_map_collected(&inode->map, false);
		return -ENOMEM;
	}
	wire_out_init(&w, room, n * RPC_EXTENT_BYTES);
	for (size_t i = 0; i < n; i++)
		rpc_put_extent(&w, &batch[i]);
	*tail = (struct rpc_tail){.data = room, .len = (uint32_t)wire_out_len(&w)};
	return 0;
}

/* The size goes with the last extents, and leaves out acknowledged writes that are on their way. So
 * the server's file is never longer than what has arrived of it. */
static int fill_request_locked(struct inode *inode, struct io_thread *thread)
{
	struct commit *c = &inode->commit;
	struct rpc_commit *req = &c->call.req.commit;
	bool more;
	int r;

	c->call = (struct rpc_call){.done = commit_answered};
	c->call.req.op = inode->unmade ? RPC_MAKE : RPC_COMMIT;
	*req = (struct rpc_commit){.ino = inode->ino};
	r = take_extents_locked(inode, thread, &req->tail, &more);
	if (r)
		return r;
	c->covers = more ? c->done : c->changes;
	if (c->size_dirty && !more) {
		req->flags |= COMMIT_SIZE;
		req->size = c->sent_size = gate_size(&inode->gate, 0, inode->attr.size);
	}
	if (c->times_dirty && !more) {
		req->flags |= COMMIT_MTIME;
		req->mtime = inode->attr.mtime;
		req->ctime = inode->attr.ctime;
	}
	if (c->set && !more) {
		req->flags |= c->set;
		c->telling = c->set;
		c->set = 0;
		req->mode = inode->attr.mode;
		req->uid = inode->attr.uid;
		req->gid = inode->attr.gid;
	}
	if (inode->access.dirty && !more) {
		req->flags |= COMMIT_ATIME;
		req->atime = inode->attr.atime;
	}
	return 0;
}

static void tell_failure_locked(struct inode *inode, int status)
{
	struct commit *c = &inode->commit;

	c->refused = true;
	commit_failed_locked(inode, status);
	waiters_wake(&c->waiters, status);
}

static void wake_covered_locked(struct commit *c)
{
	list_for_each_safe (pos, &c->waiters) {
		struct waiter *w = list_entry(pos, struct waiter, link);

		if (w->until > c->done)
			continue;
		list_del(pos);
		waiter_wake(w, 0);
	}
}

static bool tells_nothing(const struct rpc_request *req)
{
	return req->op == RPC_COMMIT && !req->commit.flags && !req->commit.tail.len;
}

/* Only a COMMIT that tells all changes may lower the lease. */
static void lower_along_locked(struct inode *inode)
{
	struct commit *c = &inode->commit;
	struct rpc_commit *req = &c->call.req.commit;

	if (c->covers == c->changes && inode->fs->sharing)
		req->lease = inode->fs->inodes->hooks->lower(inode, &req->keep);
}

static void commit_run_locked(struct inode *inode, struct io_thread *thread)
{
	struct commit *c = &inode->commit;

	c->running = true;
	c->thread = thread;
	inode_ref(inode);
	fs_thread_of(thread)->nbackground++;
}

static int prepare_locked(struct inode *inode, struct io_thread *thread)
{
	int r = fs_is_renewing(inode->fs) ? -EIO : fill_request_locked(inode, thread);

	if (r)
		tell_failure_locked(inode, r);
	return r;
}

/* The first COMMIT of a file that was made here is a MAKE. */
static void send_make_locked(struct inode *inode, struct io_thread *thread)
{
	struct make_batch *batch = fs_thread_of(thread)->makes;
	struct commit *c = &inode->commit;

	if (make_batch_waits(batch) || name_queue_any(inode->fs->name_queue)) {
		commit_run_locked(inode, thread);
		make_batch_add(batch, &c->making);
	} else if (!prepare_locked(inode, thread)) {
		struct rpc_making making = {inode->unmade->make, c->call.req.commit};

		commit_run_locked(inode, thread);
		make_batch_send_one(batch, &c->making, &making);
	}
}

static void commit_send_locked(struct inode *inode, struct io_thread *thread)
{
	struct commit *c = &inode->commit;

	if (inode->unmade) {
		send_make_locked(inode, thread);
		return;
	}
	if (prepare_locked(inode, thread))
		return;
	/* There is nothing to tell: bytes have changed in place, or the access time is being set by
	 * hand. */
	if (tells_nothing(&c->call.req)) {
		c->done = c->covers;
		commit_mark_locked(inode);
		wake_covered_locked(c);
		return;
	}
	lower_along_locked(inode);
	commit_run_locked(inode, thread);
	rpc_start(thread, &c->call);
}

/* It counts as running while it waits for the names that were changed before it. A MAKE takes them
 * along. */
static void go_behind_names_locked(struct inode *inode, struct io_thread *thread)
{
	struct commit *c = &inode->commit;

	if (inode->unmade || name_queue_wait_behind(inode->fs->name_queue, &c->behind, thread)) {
		commit_send_locked(inode, thread);
	} else {
		c->waited = c->changes;
		commit_run_locked(inode, thread);
	}
}

void commit_start_locked(struct inode *inode, struct io_thread *thread)
{
	struct name_behind *behind = &inode->commit.behind;

	behind->call.run = commit_is_next;
	behind->again = false;
	go_behind_names_locked(inode, thread);
}

/* It has run until now, and does not any more, unless it has just begun again. Ends the lock. */
static void leave_locked(struct inode *inode, struct io_thread *thread)
{
	struct commit *c = &inode->commit;
	void (*ended)(struct inode * inode, struct io_thread * thread) =
		inode->orphan && !c->running ? c->ended : NULL;

	pthread_mutex_unlock(&inode->lock);
	fs_thread_of(thread)->nbackground--;
	if (ended)
		ended(inode, thread);
	inode_put(inode);
}

/* A change of the file while it waited may have come behind names that were changed meanwhile, and
 * would go with it. */
static void commit_is_next(struct thread_call *call)
{
	struct inode *inode = container_of(call, struct inode, commit.behind.call);
	struct commit *c = &inode->commit;
	struct io_thread *thread = c->thread;

	pthread_mutex_lock(&inode->lock);
	c->running = false;
	if (c->waited == c->changes)
		commit_send_locked(inode, thread);
	else
		go_behind_names_locked(inode, thread);
	leave_locked(inode, thread);
}

/* The file has waited for a message. It is not to be made any more if it was forgotten. The names
 * of the message have been chosen, and what was changed here since may have come behind later ones.
 */
static enum make_fill fill_make(struct make_entry *entry, struct rpc_making *making)
{
	struct inode *inode = container_of(entry, struct inode, commit.making);
	struct commit *c = &inode->commit;
	const struct name_behind *behind = &fs_thread_of(c->thread)->makes->behind;

	pthread_mutex_lock(&inode->lock);
	if (inode->unmade && name_queue_has_later(inode->fs->name_queue, behind)) {
		pthread_mutex_unlock(&inode->lock);
		return FILL_LATER;
	}
	if (inode->unmade && !prepare_locked(inode, c->thread)) {
		*making = (struct rpc_making){inode->unmade->make, c->call.req.commit};
		pthread_mutex_unlock(&inode->lock);
		return FILL_TAKEN;
	}
	c->running = false;
	if (!inode->unmade && !commit_is_clean_locked(inode))
		commit_start_locked(inode, c->thread);
	leave_locked(inode, c->thread);
	return FILL_ENDED;
}

static void succeed_locked(struct inode *inode, struct io_thread *thread)
{
	struct commit *c = &inode->commit;
	bool more = c->covers == c->done && c->changes != c->done;

	c->done = c->covers;
	if (c->call.req.commit.flags & COMMIT_SIZE)
		c->size_dirty = inode->attr.size != c->sent_size;
	/* If the COMMIT made a lease less, later changes are not changes of the file's data. */
	if (c->call.req.commit.flags & COMMIT_MTIME)
		c->times_dirty = c->changes != c->done && !c->call.req.commit.lease;
	c->telling = 0;
	if ((c->call.req.commit.flags & COMMIT_ATIME) &&
		c->call.req.commit.atime == inode->attr.atime)
		inode->access.dirty = false;
	commit_mark_locked(inode);
	wake_covered_locked(c);
	if (more || !list_empty(&c->waiters))
		commit_start_locked(inode, thread);
}

/* No request waits for an access time alone. One that has begun to wait meanwhile waits for more.
 */
static bool only_access(const struct rpc_request *req)
{
	return req->op == RPC_COMMIT && req->commit.flags == COMMIT_ATIME && !req->commit.tail.len;
}

static void fail_locked(struct inode *inode, struct io_thread *thread, int status)
{
	struct commit *c = &inode->commit;

	c->set |= c->telling;
	c->telling = 0;
	if (c->call.req.commit.flags & COMMIT_ATIME)
		inode->access.dirty = false;
	if (!only_access(&c->call.req))
		tell_failure_locked(inode, status);
	else if (!list_empty(&c->waiters))
		commit_start_locked(inode, thread);
}

/* The losses of a session that ends are logged at its end. */
static void log_refused(struct inode *inode, int status)
{
	char text[PATH_INODE_BYTES];

	if (!fs_is_renewing(inode->fs))
		log_error("%s: the server did not take what was written: %s",
			path_name_inode(inode, text), errno_text(status));
}

static void settle_locked(struct inode *inode, struct io_thread *thread, int status)
{
	struct commit *c = &inode->commit;
	uint64_t npages;

	free(steal_ptr(&c->tail));
	c->running = false;
	npages = extent_map_collected(&inode->map, !status);
	/* It was in the list of those that are not made until the MAKE has ended: a request that
	 * looks there waits for that. */
	if (c->call.req.op == RPC_MAKE && !status)
		unmade_delete(inode->fs->unmade, steal_ptr(&inode->unmade));
	if (c->call.req.commit.lease)
		inode->fs->inodes->hooks->lowered(inode, thread, !status);
	if (status) {
		fail_locked(inode, thread, status);
	} else {
		inode->attr.npages += npages;
		if (c->call.req.op == RPC_MAKE)
			inode_settle_squash_locked(inode);
		succeed_locked(inode, thread);
	}
}

static void commit_over(struct inode *inode, int status)
{
	struct commit *c = &inode->commit;
	struct io_thread *thread = c->thread;
	void (*ended)(struct inode * inode, struct io_thread * thread);

	if (status && !only_access(&c->call.req))
		log_refused(inode, status);
	pthread_mutex_lock(&inode->lock);
	settle_locked(inode, thread, status);
	ended = inode->orphan ? c->ended : NULL;
	pthread_mutex_unlock(&inode->lock);
	fs_thread_of(thread)->nbackground--;
	if (inode->fs->sharing)
		inode->fs->inodes->hooks->settle(inode, thread);
	if (ended)
		ended(inode, thread);
	inode_put(inode);
}

static bool has_same_owner(const struct attr *a, const struct attr *b)
{
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

/* A server that squashes users since mode and owners were set leaves some of them out. */
static void compare_sets(struct inode *inode, const struct attr *at_server)
{
	pthread_mutex_lock(&inode->lock);
	if (inode->commit.telling && !inode->commit.set && !has_same_owner(&inode->attr, at_server))
		inode_settle_squash_locked(inode);
	pthread_mutex_unlock(&inode->lock);
}

static void commit_answered(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct inode *inode = container_of(call, struct inode, commit.call);

	if (!rep->status)
		compare_sets(inode, &rep->attr.attr);
	commit_over(inode, rep->status);
}

static void make_answered(struct make_entry *entry, int status)
{
	commit_over(container_of(entry, struct inode, commit.making), status);
}

/* The server is asked again. */
static void make_again(struct make_entry *entry)
{
	struct inode *inode = container_of(entry, struct inode, commit.making);
	struct commit *c = &inode->commit;
	struct io_thread *thread = c->thread;

	pthread_mutex_lock(&inode->lock);
	c->running = false;
	extent_map_collected(&inode->map, false);
	c->set |= c->telling;
	c->telling = 0;
	commit_start_locked(inode, thread);
	leave_locked(inode, thread);
}

static uint8_t ask_numbers(struct io_thread *thread)
{
	return unmade_ask_numbers(thread->fs->unmade);
}

static void numbers_came(struct io_thread *thread, const struct rpc_lent *lent)
{
	unmade_numbers_came(thread->fs->unmade, lent);
}

static enum name_along names_before(
	struct io_thread *thread, struct name_behind *behind, struct wire_out *w)
{
	return name_queue_go_along(thread->fs->name_queue, behind, thread, w);
}

static bool names_answered(struct io_thread *thread, int status, const struct rpc_names_reply *rep)
{
	return name_queue_along_answered(thread->fs->name_queue, status, rep);
}

static void names_back(struct io_thread *thread)
{
	name_queue_along_back(thread->fs->name_queue);
}

const struct make_hooks commit_make_hooks = {
	.fill = fill_make,
	.answered = make_answered,
	.again = make_again,
	.names_before = names_before,
	.names_answered = names_answered,
	.names_back = names_back,
	.ask_numbers = ask_numbers,
	.numbers_came = numbers_came,
};

/* ---- who wants one --------------------------------------------------------------------------- */

bool commit_wait(struct request *req, struct inode *inode, int *status,
	void (*then)(struct request *req, int status))
{
	struct commit *c = &inode->commit;
	struct op *op = op_of(req);
	bool clean;

	pthread_mutex_lock(&inode->lock);
	*status = 0;
	clean = commit_is_clean_locked(inode);
	if (!clean) {
		waiter_init(&op->waiter, req, then);
		op->waiter.until = c->changes;
		op_waits(op, OP_AT_INODE, &inode->lock);
		list_add_tail(&c->waiters, &op->waiter.link);
		if (!c->running)
			commit_start_locked(inode, req->thread);
	}
	pthread_mutex_unlock(&inode->lock);
	return clean;
}

bool commit_wait_set(struct request *req, struct inode *inode, int *status,
	void (*then)(struct request *req, int status))
{
	bool known;

	pthread_mutex_lock(&inode->lock);
	known = !commit_sets_locked(&inode->commit);
	pthread_mutex_unlock(&inode->lock);
	*status = 0;
	return known || commit_wait(req, inode, status, then);
}

void commit_start(struct inode *inode, struct io_thread *thread)
{
	pthread_mutex_lock(&inode->lock);
	if (!inode->commit.running && (!commit_is_clean_locked(inode) || inode->access.dirty))
		commit_start_locked(inode, thread);
	pthread_mutex_unlock(&inode->lock);
}

void commit_forget_locked(struct inode *inode)
{
	struct commit *c = &inode->commit;

	unmade_delete(inode->fs->unmade, steal_ptr(&inode->unmade));
	c->done = c->changes;
	c->size_dirty = c->times_dirty = false;
	c->set = c->telling = 0;
	commit_mark_locked(inode);
	wake_covered_locked(c);
}

bool commit_tick(struct io_thread *thread)
{
	struct list *dirty = &fs_thread_of(thread)->dirty;
	struct make_batch *makes = fs_thread_of(thread)->makes;

	make_batch_hold(makes);
	list_for_each_safe (pos, dirty) {
		struct inode *inode = list_entry(pos, struct inode, commit.dirty);
		struct commit *c = &inode->commit;
		bool unlist;

		pthread_mutex_lock(&inode->lock);
		unlist = !c->running && (commit_is_clean_locked(inode) || c->refused);
		if (unlist) {
			list_del(pos);
			c->listed = false;
		} else if (!c->running) {
			commit_start_locked(inode, thread);
		}
		pthread_mutex_unlock(&inode->lock);
		if (unlist)
			inode_put(inode);
	}
	make_batch_let_go(makes);
	name_queue_flush(thread->fs->name_queue, thread);
	return list_empty(dirty) && !name_queue_any(thread->fs->name_queue);
}
