#include "daemon/lock.h"

#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/caller.h"
#include "daemon/fs_internal.h"
#include "daemon/handle.h"
#include "daemon/io_thread_private.h"
#include "daemon/op.h"

/* One that may have record locks. */
struct lock_owner {
	struct list link; /* inode_locks.owners */
	uint64_t owner;
	const struct handle *handle; /* by which it locked last */
};

struct lock_wait {
	struct list link; /* locks.waits */
	struct list own;  /* fs_thread.lock_waits */
	struct io_thread *thread;
	uint64_t unique;
	uint32_t pid; /* of the caller */
	struct rpc_lock lock;
	struct rpc_call call;
	bool busy;  /* the call is on its way: a LOCK, or the withdrawal */
	bool known; /* to the server */
	bool withdrawn;
	bool replied;
	int error; /* what its caller is to be told, if he does not get the lock; 0: he waits */
	/* Under locks.lock. */
	bool again; /* told to come */
	bool called;
	bool over;
	struct thread_call wake;
};

void locks_init(struct locks *locks)
{
	*locks = (struct locks){0};
	pthread_mutex_init(&locks->lock, NULL);
	list_init(&locks->waits);
}

void locks_fini(struct locks *locks)
{
	struct list *link;

	while ((link = list_pop(&locks->waits)))
		free(list_entry(link, struct lock_wait, link));
	pthread_mutex_destroy(&locks->lock);
}

/* ---- giving up ------------------------------------------------------------------------------- */

/* Goes on by itself, whatever becomes of the one who waits for it. */
struct release {
	struct rpc_call call;
	struct list waiters; /* struct waiter */
};

static void released(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct release *r = container_of(call, struct release, call);

	if (rep->status && rep->status != -ESTALE)
		log_error("inode %llu: the server refused to take a lock back: %s",
			(unsigned long long)call->req.lock.ino, errno_text(rep->status));
	waiters_wake(&r->waiters, 0);
	free(r);
}

static struct release *release(struct io_thread *thread, const struct rpc_lock *lock)
{
	struct release *r = calloc(1, sizeof(*r));

	if (!r) {
		log_error(
			"inode %llu: no memory to give a lock back", (unsigned long long)lock->ino);
		return NULL;
	}
	list_init(&r->waiters);
	list_init(&r->call.link);
	r->call.done = released;
	r->call.nested = true;
	r->call.req.op = RPC_LOCK;
	r->call.req.lock = *lock;
	r->call.req.lock.type = LOCK_FREE;
	r->call.req.lock.wait = 0;
	rpc_start(thread, &r->call);
	return r;
}

static struct rpc_lock all_of(uint64_t ino, uint64_t owner, enum lock_kind kind)
{
	return (struct rpc_lock){
		.ino = ino, .owner = owner, .end = UINT64_MAX, .kind = (uint8_t)kind};
}

struct rpc_lock lock_asked(const struct request *req)
{
	const struct request_args *args = &req->args;

	return (struct rpc_lock){
		.ino = req->node,
		.owner = args->lock_owner,
		.start = args->lock.start,
		.end = args->lock.end,
		.pid = args->lock.pid,
		.kind = args->lock.kind,
		.type = args->lock.type,
	};
}

void lock_give_up(const struct request *req)
{
	const struct rpc_lock lock = lock_asked(req);

	release(req->thread, &lock);
}

/* ---- owners ---------------------------------------------------------------------------------- */

void inode_locks_init(struct inode_locks *locks)
{
	list_init(&locks->owners);
}

void inode_locks_fini(struct inode_locks *locks)
{
	struct list *link;

	while ((link = list_pop(&locks->owners)))
		free(list_entry(link, struct lock_owner, link));
}

static struct lock_owner *find_owner_locked(const struct inode *inode, uint64_t owner)
{
	list_for_each (pos, &inode->locks.owners) {
		struct lock_owner *o = list_entry(pos, struct lock_owner, link);

		if (o->owner == owner)
			return o;
	}
	return NULL;
}

static struct lock_owner *make_owner_locked(struct inode *inode, uint64_t owner)
{
	struct lock_owner *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->owner = owner;
	list_add_tail(&inode->locks.owners, &o->link);
	return o;
}

int lock_note_owner(const struct request *req, struct inode *inode)
{
	const struct request_args *args = &req->args;
	struct lock_owner *o;

	if (args->lock.kind != LOCK_KIND_POSIX || args->lock.type == LOCK_FREE)
		return 0;
	pthread_mutex_lock(&inode->lock);
	o = find_owner_locked(inode, args->lock_owner);
	if (!o)
		o = make_owner_locked(inode, args->lock_owner);
	if (o)
		o->handle = handle_of(req);
	pthread_mutex_unlock(&inode->lock);
	return o ? 0 : -ENOLCK;
}

static bool forget_owner(struct inode *inode, uint64_t owner)
{
	struct lock_owner *o;
	bool known;

	pthread_mutex_lock(&inode->lock);
	o = find_owner_locked(inode, owner);
	known = o != NULL;
	if (known)
		list_del(&o->link);
	pthread_mutex_unlock(&inode->lock);
	free(o);
	return known;
}

bool lock_flush(struct request *req, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);
	struct rpc_lock all = all_of(op->inode->ino, req->args.lock_owner, LOCK_KIND_POSIX);
	struct release *r;

	if (!op->inode->fs->options.sharing || !forget_owner(op->inode, req->args.lock_owner))
		return true;
	r = release(req->thread, &all);
	if (!r)
		return true;
	waiter_init(&op->waiter, req, then);
	op->wait = OP_AT_LOCK;
	list_add_tail(&r->waiters, &op->waiter.link);
	return false;
}

void lock_handle_closed(struct request *req, struct inode *inode, const struct handle *handle)
{
	struct list gone, *link;
	struct rpc_lock all;

	/* Others have the kernel's locks. */
	if (!inode->fs->options.sharing)
		return;
	list_init(&gone);
	pthread_mutex_lock(&inode->lock);
	list_for_each_safe (pos, &inode->locks.owners) {
		if (list_entry(pos, struct lock_owner, link)->handle != handle)
			continue;
		list_del(pos);
		list_add_tail(&gone, pos);
	}
	pthread_mutex_unlock(&inode->lock);
	while ((link = list_pop(&gone))) {
		struct lock_owner *o = list_entry(link, struct lock_owner, link);

		all = all_of(inode->ino, o->owner, LOCK_KIND_POSIX);
		release(req->thread, &all);
		free(o);
	}
	if (!req->args.flock_ends)
		return;
	all = all_of(inode->ino, req->args.lock_owner, LOCK_KIND_FLOCK);
	release(req->thread, &all);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static struct locks *locks_of(const struct lock_wait *w)
{
	return &w->thread->fs->locks;
}

static void tell(struct lock_wait *w, int status)
{
	if (!w->replied)
		fuse_reply_status(w->thread, w->unique, status);
	w->replied = true;
}

static void wait_delete(struct lock_wait *w)
{
	struct locks *locks = locks_of(w);

	list_del(&w->own);
	pthread_mutex_lock(&locks->lock);
	list_del(&w->link);
	w->over = w->called;
	pthread_mutex_unlock(&locks->lock);
	if (!w->over)
		free(w);
}

static void end(struct lock_wait *w, int status)
{
	if (!status && w->replied)
		release(w->thread, &w->lock);
	tell(w, status);
	wait_delete(w);
}

static bool take_again(struct lock_wait *w)
{
	struct locks *locks = locks_of(w);
	bool again;

	pthread_mutex_lock(&locks->lock);
	again = w->again;
	w->again = false;
	pthread_mutex_unlock(&locks->lock);
	return again;
}

static void start(struct lock_wait *w, uint8_t type,
	void (*done)(struct rpc_call *call, const struct rpc_reply *rep))
{
	w->busy = true;
	w->call = (struct rpc_call){.done = done, .nested = true};
	list_init(&w->call.link);
	w->call.req.op = RPC_LOCK;
	w->call.req.lock = w->lock;
	w->call.req.lock.type = type;
	rpc_start(w->thread, &w->call);
}

static void taken_back(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct lock_wait *w = container_of(call, struct lock_wait, call);

	tell(w, w->error);
	wait_delete(w);
}

static void withdraw(struct lock_wait *w)
{
	w->withdrawn = true;
	start(w, LOCK_FREE, taken_back);
}

static void answered(struct rpc_call *call, const struct rpc_reply *rep);

static void ask(struct lock_wait *w)
{
	take_again(w);
	start(w, w->lock.type, answered);
}

static void answered(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct lock_wait *w = container_of(call, struct lock_wait, call);

	w->busy = false;
	if (rep->status != -EINPROGRESS) {
		end(w, rep->status);
		return;
	}
	w->known = true;
	if (w->error)
		withdraw(w);
	else if (take_again(w))
		ask(w);
}

static void woken(struct thread_call *call)
{
	struct lock_wait *w = container_of(call, struct lock_wait, wake);
	struct locks *locks = locks_of(w);
	bool over;

	pthread_mutex_lock(&locks->lock);
	w->called = false;
	over = w->over;
	pthread_mutex_unlock(&locks->lock);
	if (over)
		free(w);
	else if (!w->busy)
		ask(w);
}

static void wake_locked(struct lock_wait *w)
{
	w->again = true;
	if (w->called)
		return;
	w->called = true;
	io_thread_call(w->thread, &w->wake);
}

void lock_look_again(struct io_thread *thread, uint64_t number)
{
	struct locks *locks = &thread->fs->locks;

	pthread_mutex_lock(&locks->lock);
	list_for_each (pos, &locks->waits) {
		struct lock_wait *w = list_entry(pos, struct lock_wait, link);

		if (w->lock.wait == number)
			wake_locked(w);
	}
	pthread_mutex_unlock(&locks->lock);
}

void lock_look_at_all(struct io_thread *thread)
{
	struct locks *locks = &thread->fs->locks;

	pthread_mutex_lock(&locks->lock);
	list_for_each (pos, &fs_thread_of(thread)->lock_waits)
		wake_locked(list_entry(pos, struct lock_wait, own));
	pthread_mutex_unlock(&locks->lock);
}

void lock_wait_begin(struct request *req)
{
	struct locks *locks = &req->thread->fs->locks;
	struct lock_wait *w = calloc(1, sizeof(*w));

	if (!w) {
		reply_error(req, -ENOLCK);
		return;
	}
	w->thread = req->thread;
	w->unique = req->unique;
	w->pid = req->pid;
	w->lock = lock_asked(req);
	w->error = req->interrupted ? -EINTR : 0;
	w->wake.run = woken;
	list_init(&w->wake.link);
	list_add_tail(&fs_thread_of(w->thread)->lock_waits, &w->own);
	pthread_mutex_lock(&locks->lock);
	w->lock.wait = ++locks->number;
	list_add_tail(&locks->waits, &w->link);
	pthread_mutex_unlock(&locks->lock);
	request_end(req);
	ask(w);
}

/* ---- giving up a wait ------------------------------------------------------------------------ */

/* A LOCK that is on its way may get him the lock: its answer is waited for, but not for a server
 * that is away, by somebody who is being killed. */
static void give_up(struct lock_wait *w, int error)
{
	bool away = remote_disconnected(w->thread);

	if (!w->error)
		w->error = error;
	if (w->busy && !w->withdrawn && rpc_cancel(w->thread, &w->call)) {
		w->busy = false;
		if (!w->known) {
			end(w, w->error);
			return;
		}
	}
	if (!w->busy)
		withdraw(w);
	if (away && (w->withdrawn || error == -EIO || caller_is_dying(w->pid)))
		tell(w, w->error);
}

bool lock_interrupt(struct io_thread *thread, uint64_t unique)
{
	list_for_each (pos, &fs_thread_of(thread)->lock_waits) {
		struct lock_wait *w = list_entry(pos, struct lock_wait, own);

		if (w->unique == unique && !w->replied) {
			give_up(w, -EINTR);
			return true;
		}
	}
	return false;
}

void lock_tick(struct io_thread *thread)
{
	bool lost = session_lost(thread->fs->session), gives_up = remote_gives_up(thread);

	list_for_each_safe (pos, &fs_thread_of(thread)->lock_waits) {
		struct lock_wait *w = list_entry(pos, struct lock_wait, own);

		if (w->replied)
			continue;
		if (lost && !w->busy)
			end(w, -ESTALE);
		else if (gives_up)
			give_up(w, -EIO);
		else if (w->error)
			give_up(w, w->error);
	}
}
