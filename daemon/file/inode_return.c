#include "daemon/file/inode_return.h"

#include <assert.h>
#include <errno.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/inode.h"
#include "daemon/file/commit.h"
#include "daemon/file/gate.h"
#include "daemon/file/name_queue.h"

void inode_return_init(struct inode_returns *r)
{
	*r = (struct inode_returns){0};
	pthread_mutex_init(&r->lock, NULL);
}

void inode_return_fini(struct inode_returns *r)
{
	pthread_mutex_destroy(&r->lock);
	free(r->v);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void send_some_locked(struct inode_returns *r, struct io_thread *thread, size_t least);

/* Whether somebody waits for the next inodes to be returned. */
static bool is_awaited(const struct inode_returns *r)
{
	return r->drained && r->nanswered < r->until;
}

static void send_due_locked(struct inode_returns *r, struct io_thread *thread)
{
	send_some_locked(r, thread, is_awaited(r) ? 1 : RETURNS_BATCH);
}

typedef void drained_fn(struct io_thread *thread);

/* The function to call, if its wait is over. */
static drained_fn *take_drained_locked(struct inode_returns *r)
{
	return r->nawaited || is_awaited(r) ? NULL : steal_ptr(&r->drained);
}

static void returns_answered(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct inode_returns *r = container_of(call, struct inode_returns, call);
	struct io_thread *thread = r->thread;
	drained_fn *drained;

	fs_thread_of(thread)->nbackground--;
	if (rep->status && rep->status != -ESTALE)
		log_warning("the server refused to take back unlinked files: %s",
			errno_text(rep->status));
	pthread_mutex_lock(&r->lock);
	r->nanswered += r->nsent;
	r->nsent = 0;
	send_due_locked(r, thread);
	drained = take_drained_locked(r);
	pthread_mutex_unlock(&r->lock);
	if (drained)
		drained(thread);
}

static void inode_return_put_batch(
	struct inode_returns *r, struct wire_out *w, enum rpc_return_kind kind)
{
	for (; r->first < r->n && r->nsent < RETURNS_BATCH; r->nsent++) {
		const struct returned_inode *one = &r->v[r->first++];

		if (kind == RETURN_LEASES)
			rpc_put_returned(w, &(struct rpc_returned){.ino = one->ino,
						    .number = one->number,
						    .pin = RETURN_UNPIN});
		else
			wire_put_u64(w, one->ino);
	}
}

/* Sends the next batch, if none is on its way and at least so many have gathered. */
static void send_some_locked(struct inode_returns *r, struct io_thread *thread, size_t least)
{
	enum rpc_return_kind kind = thread->fs->sharing ? RETURN_LEASES : RETURN_INODES;
	struct wire_out w;

	if (r->nsent || r->n - r->first < least)
		return;
	wire_out_init(&w, r->tail, sizeof(r->tail));
	inode_return_put_batch(r, &w, kind);
	r->thread = thread;
	r->call = (struct rpc_call){.done = returns_answered};
	r->call.req.op = RPC_RETURN;
	r->call.req.ret = (struct rpc_return){
		.kind = kind,
		.tail = {.data = r->tail, .len = (uint32_t)wire_out_len(&w)},
	};
	fs_thread_of(thread)->nbackground++;
	rpc_start(thread, &r->call);
}

void inode_return_flush(struct io_thread *thread)
{
	struct inode_returns *r = thread->fs->returns;

	pthread_mutex_lock(&r->lock);
	send_some_locked(r, thread, 1);
	pthread_mutex_unlock(&r->lock);
}

void inode_return_drain(struct io_thread *thread, drained_fn *drained)
{
	struct inode_returns *r = thread->fs->returns;

	pthread_mutex_lock(&r->lock);
	assert(!r->drained);
	r->ndrains++;
	r->nawaited = r->nleaving;
	r->until = r->nadded;
	r->drained = drained;
	send_due_locked(r, thread);
	drained = take_drained_locked(r);
	pthread_mutex_unlock(&r->lock);
	if (drained)
		drained(thread);
}

bool inode_return_is_idle(struct fs *fs)
{
	struct inode_returns *r = fs->returns;
	bool idle;

	pthread_mutex_lock(&r->lock);
	idle = r->first == r->n && !r->nsent && !r->nleaving;
	pthread_mutex_unlock(&r->lock);
	return idle;
}

void inode_return_forget(struct io_thread *thread)
{
	struct inode_returns *r = thread->fs->returns;
	drained_fn *drained;

	pthread_mutex_lock(&r->lock);
	assert(!r->nsent);
	r->nanswered += r->n - r->first;
	r->first = r->n = 0;
	drained = take_drained_locked(r);
	pthread_mutex_unlock(&r->lock);
	if (drained)
		drained(thread);
}

/* ---- gathering ------------------------------------------------------------------------------- */

static bool make_room_locked(struct inode_returns *r)
{
	size_t cap = r->cap ? r->cap * 2 : RETURNS_BATCH;
	struct returned_inode *grown;

	if (r->n < r->cap)
		return true;
	if (r->first && r->first >= r->cap / 2) {
		r->n -= r->first;
		memmove(r->v, r->v + r->first, r->n * sizeof(*r->v));
		r->first = 0;
		return true;
	}
	grown = realloc(r->v, cap * sizeof(*grown));
	if (!grown)
		return false;
	r->v = grown;
	r->cap = cap;
	return true;
}

/* Without memory for its entry the inode is freed when the session ends. */
static void inode_return_put_locked(struct inode_returns *r, uint64_t ino, uint64_t number)
{
	if (!make_room_locked(r))
		return;
	r->v[r->n++] = (struct returned_inode){ino, number};
	r->nadded++;
}

void inode_return_add(struct io_thread *thread, uint64_t ino, uint64_t number)
{
	struct inode_returns *r = thread->fs->returns;

	pthread_mutex_lock(&r->lock);
	inode_return_put_locked(r, ino, number);
	send_due_locked(r, thread);
	pthread_mutex_unlock(&r->lock);
}

/* A use may last as long as its user likes. A file's pages are wanted by others as soon as it has
 * no handle. */
static bool in_use_locked(const struct inode *inode)
{
	return !inode_is_regular(inode) || inode->nopen || inode->nlinking ||
	       !gate_idle(&inode->gate) || inode->fs->inodes->hooks->is_used(inode);
}

/* Whether a message about it is on its way to the server; its answer calls inode_return_settle().
 * Pages that were written to are no grants any more, and go with the file, so they are committed
 * before. */
static bool is_busy_locked(struct inode *inode, struct io_thread *thread)
{
	const struct commit *c = &inode->commit;

	if (inode->queued || !inode->fs->inodes->hooks->is_idle(inode))
		return true;
	if (!c->running && inode->map.uncommitted && !c->refused && !commit_is_clean_locked(inode))
		commit_start_locked(inode, thread);
	return c->running;
}

/* It is returned now, or stays in use. */
static void end_leaving_locked(struct inode_returns *r, struct inode *inode)
{
	if (inode->leaving && inode->leaving <= r->ndrains) {
		r->nawaited--;
		if (inode->returned)
			r->until = r->nadded;
	}
	r->nleaving -= inode->leaving != 0;
	inode->leaving = 0;
}

/* The kernel has forgotten a directory or a special file that has no references but those of the
 * name that goes, of changes before that, and of its access time. */
static bool is_known_elsewhere_locked(const struct inode *inode)
{
	uint64_t own = 1 + (uint64_t)inode->nsets + inode->access.listed;

	return __atomic_load_n(&inode->refs, __ATOMIC_ACQUIRE) > own;
}

/* With uncommitted pages, or a COMMIT on its way, it is returned later, as any other. */
bool inode_return_gives_up_locked(struct inode *inode)
{
	const struct inode_hooks *hooks = inode->fs->inodes->hooks;

	if (inode->returned)
		return true;
	if (inode_is_regular(inode) ? in_use_locked(inode) : is_known_elsewhere_locked(inode))
		return false;
	if (inode->commit.running || inode->map.uncommitted || !hooks->is_idle(inode))
		return false;
	inode_return_unused_locked(inode);
	hooks->end_lease(inode);
	inode->returned = true;
	return true;
}

static void inode_return_give_locked(struct inode_returns *r, struct inode *inode)
{
	inode->returned = true;
	inode_return_put_locked(r, inode->ino, inode->lease_number);
}

static drained_fn *inode_return_settle_locked(
	struct inode_returns *r, struct inode *inode, struct io_thread *thread)
{
	bool used = !inode->orphan || in_use_locked(inode);
	bool busy = !used && is_busy_locked(inode, thread);
	drained_fn *drained;

	if (used && !inode->leaving)
		return NULL;
	if (!used && !busy) {
		inode_return_unused_locked(inode);
		inode->fs->inodes->hooks->end_lease(inode);
	}
	pthread_mutex_lock(&r->lock);
	if (!used && !busy)
		inode_return_give_locked(r, inode);
	if (!busy) {
		end_leaving_locked(r, inode);
	} else if (!inode->leaving) {
		inode->leaving = r->ndrains + 1;
		r->nleaving++;
	}
	send_due_locked(r, thread);
	drained = take_drained_locked(r);
	pthread_mutex_unlock(&r->lock);
	return drained;
}

/* It does not wait any more. */
static drained_fn *end_given_up_locked(struct inode_returns *r, struct inode *inode)
{
	drained_fn *drained;

	pthread_mutex_lock(&r->lock);
	end_leaving_locked(r, inode);
	drained = take_drained_locked(r);
	pthread_mutex_unlock(&r->lock);
	return drained;
}

void inode_return_settle_removed(struct inode *inode, struct io_thread *thread)
{
	drained_fn *drained = NULL;

	pthread_mutex_lock(&inode->lock);
	if (inode->returned)
		drained = end_given_up_locked(inode->fs->returns, inode);
	pthread_mutex_unlock(&inode->lock);
	if (drained)
		drained(thread);
	else
		inode_return_settle(inode, thread);
}

void inode_return_settle(struct inode *inode, struct io_thread *thread)
{
	struct inode_returns *r = inode->fs->returns;
	drained_fn *drained = NULL;

	pthread_mutex_lock(&inode->lock);
	/* An inode that has got a name may have been leaving. */
	if ((inode->orphan || inode->leaving) && !inode->returned)
		drained = inode_return_settle_locked(r, inode, thread);
	pthread_mutex_unlock(&inode->lock);
	if (drained)
		drained(thread);
}

/* No thread is at hand that could send the batch. */
void inode_return_forgotten(struct inode *inode)
{
	struct inode_returns *r = inode->fs->returns;

	if (!inode->orphan || inode->returned)
		return;
	pthread_mutex_lock(&r->lock);
	inode_return_give_locked(r, inode);
	end_leaving_locked(r, inode);
	pthread_mutex_unlock(&r->lock);
}

void inode_return_orphan(struct inode *inode, uint64_t number, struct io_thread *thread)
{
	pthread_mutex_lock(&inode->lock);
	inode->lease_number = max_u64(inode->lease_number, number);
	inode->orphan = true;
	inode->commit.ended = inode_return_settle;
	inode->nameless = false;
	inode_mark_locked(inode, MARK_ORPHAN, MARK_NAMELESS);
	inode->attr.nlink = 0;
	pthread_mutex_unlock(&inode->lock);
	inode_return_settle(inode, thread);
}

void inode_return_nameless(struct inode *inode)
{
	pthread_mutex_lock(&inode->lock);
	inode->orphan = inode->nameless = true;
	inode_mark_locked(inode, MARK_ORPHAN | MARK_NAMELESS, 0);
	inode->commit.ended = inode_return_settle;
	pthread_mutex_unlock(&inode->lock);
}

bool inode_return_link_begin(struct inode *inode)
{
	bool ok;

	pthread_mutex_lock(&inode->lock);
	ok = !inode->returned && (!inode->orphan || inode->nameless);
	inode->nlinking += ok;
	pthread_mutex_unlock(&inode->lock);
	return ok;
}

void inode_return_link_end(struct inode *inode, bool linked, struct io_thread *thread)
{
	pthread_mutex_lock(&inode->lock);
	inode->nlinking--;
	if (linked && inode->nameless) {
		inode->orphan = inode->nameless = false;
		inode_mark_locked(inode, 0, MARK_ORPHAN | MARK_NAMELESS);
	}
	pthread_mutex_unlock(&inode->lock);
	inode_return_settle(inode, thread);
}

static void return_nameless(struct io_thread *thread)
{
	name_queue_flush(thread->fs->name_queue, thread);
	inode_return_flush(thread);
}

const struct refill_holders inode_return_refill_holders = {
	.empty_windows = inodes_return_unused,
	.return_nameless = return_nameless,
};
