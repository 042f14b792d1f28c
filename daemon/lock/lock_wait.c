#include "daemon/fuse/reply.h"
#include "daemon/lock/lock_wait.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/probes.h"
#include "common/base/util.h"
#include "daemon/request/caller.h"
#include "daemon/op/fs_parts.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/op/op.h"
#include "daemon/lock/local_locks.h"
#include "daemon/lock/lock_owner.h"
#include "daemon/file/inode.h"
#include "daemon/file/op_inode.h"

struct lock_wait {
	struct list link; /* locks.waits */
	struct list own;  /* fs_thread.lock_waits */
	struct io_thread *thread;
	struct inode *inode; /* referenced */
	uint64_t unique;
	uint32_t pid; /* of the caller */
	struct rpc_lock lock;
	struct local_wait local; /* while the mount keeps its locks by itself */
	struct rpc_call call;
	bool busy;  /* the call is on its way: a LOCK, or the withdrawal */
	bool known; /* the server knows of the wait, or the mount's own table does */
	bool withdrawn;
	bool replied;
	struct lock_leaving leaving; /* from when its caller was told of an error, and it goes on */
	int error;                   /* for the caller, if it does not get the lock; 0: it waits */
	/* Under locks.lock. */
	bool again; /* the LOCK is to be sent again */
	bool called;
	bool over;
	struct thread_call wake;
};

void locks_init(struct locks *locks)
{
	*locks = (struct locks){0};
	pthread_mutex_init(&locks->lock, NULL);
	pthread_mutex_init(&locks->circles, NULL);
	list_init(&locks->waits);
	list_init(&locks->record_waits);
	list_init(&locks->found);
}

void locks_fini(struct locks *locks)
{
	struct list *link;

	while ((link = list_pop(&locks->waits)))
		free(list_entry(link, struct lock_wait, link));
	pthread_mutex_destroy(&locks->circles);
	pthread_mutex_destroy(&locks->lock);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static struct locks *locks_of(const struct lock_wait *w)
{
	return w->thread->fs->locks;
}

/* got: the lock was granted, and the caller is told so. */
static void lock_wait_tell(struct lock_wait *w, int status, bool got)
{
	lock_owner_answered(w->inode, w->lock.owner, got);
	if (status == -ESTALE && fs_is_renewing(w->thread->fs))
		status = -EIO;
	fuse_reply_status(w->thread, w->unique, status);
	PROBE(rmemfs, request_reply, w->unique, status, (uint64_t)0, (int64_t)0);
	w->replied = true;
}

static void wait_delete(struct lock_wait *w)
{
	struct locks *locks = locks_of(w);

	list_del(&w->own);
	inode_put(w->inode);
	pthread_mutex_lock(&locks->lock);
	list_del(&w->link);
	w->over = w->called;
	pthread_mutex_unlock(&locks->lock);
	if (!w->over)
		free(w);
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

static void lock_wait_start(struct lock_wait *w, const struct rpc_lock *lock,
	void (*done)(struct rpc_call *call, const struct rpc_reply *rep))
{
	w->busy = true;
	w->call = (struct rpc_call){.done = done, .nested = true};
	list_init(&w->call.link);
	w->call.req.op = RPC_LOCK;
	w->call.req.lock = *lock;
	rpc_start(w->thread, &w->call);
}

/* The caller was told before. */
static void left(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct lock_wait *w = container_of(call, struct lock_wait, call);

	lock_leaving_end(w->inode, &w->leaving);
	wait_delete(w);
}

/* Whether the mount keeps, or has kept, locks by itself. */
static bool may_wait_here(const struct lock_wait *w)
{
	return w->thread->fs->options.session.converts;
}

static void lock_wait_end(struct lock_wait *w, int status)
{
	struct rpc_lock lock = w->lock;

	if (may_wait_here(w))
		local_locks_leave(&w->local);
	if (!w->replied) {
		lock_wait_tell(w, status, !status);
		wait_delete(w);
	} else if (status) {
		left(&w->call, NULL);
	} else {
		lock.type = LOCK_FREE;
		lock.wait = 0;
		lock_wait_start(w, &lock, left);
	}
}

static void taken_back(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct lock_wait *w = container_of(call, struct lock_wait, call);

	lock_wait_end(w, w->error);
}

static void lock_wait_withdraw(struct lock_wait *w)
{
	struct rpc_lock lock = w->lock;

	w->withdrawn = true;
	lock.type = LOCK_FREE;
	lock_wait_start(w, &lock, taken_back);
}

static void answered(struct rpc_call *call, const struct rpc_reply *rep);

/* False: the server has the locks. */
static bool ask_here(struct lock_wait *w)
{
	int status;

	if (!may_wait_here(w) ||
		(!local_locks_are_kept(w->thread->fs) && !local_locks_has_wait(&w->local)))
		return false;
	status = local_locks_wait(&w->local);
	if (status == -EREMOTE)
		return false;
	w->known = true;
	if (status != -EINPROGRESS)
		lock_wait_end(w, status);
	else if (w->error)
		lock_wait_end(w, w->error);
	return true;
}

static void lock_wait_ask(struct lock_wait *w)
{
	take_again(w);
	if (!ask_here(w))
		lock_wait_start(w, &w->lock, answered);
}

static void answered(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct lock_wait *w = container_of(call, struct lock_wait, call);

	w->busy = false;
	if (rep->status != -EINPROGRESS) {
		lock_wait_end(w, rep->status);
		return;
	}
	w->known = true;
	if (w->error)
		lock_wait_withdraw(w);
	else if (take_again(w))
		lock_wait_ask(w);
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
		lock_wait_ask(w);
}

static void lock_wait_wake_locked(struct lock_wait *w)
{
	w->again = true;
	if (w->called)
		return;
	w->called = true;
	io_thread_call(w->thread, &w->wake);
}

static void told_here(struct local_wait *local)
{
	struct lock_wait *w = container_of(local, struct lock_wait, local);
	struct locks *locks = locks_of(w);

	pthread_mutex_lock(&locks->lock);
	lock_wait_wake_locked(w);
	pthread_mutex_unlock(&locks->lock);
}

void lock_look_again(struct io_thread *thread, uint64_t number)
{
	struct locks *locks = thread->fs->locks;

	pthread_mutex_lock(&locks->lock);
	list_for_each (pos, &locks->waits) {
		struct lock_wait *w = list_entry(pos, struct lock_wait, link);

		if (w->lock.wait == number)
			lock_wait_wake_locked(w);
	}
	pthread_mutex_unlock(&locks->lock);
}

void lock_look_at_all(struct io_thread *thread)
{
	struct locks *locks = thread->fs->locks;

	pthread_mutex_lock(&locks->lock);
	list_for_each (pos, &fs_thread_of(thread)->lock_waits)
		lock_wait_wake_locked(list_entry(pos, struct lock_wait, own));
	pthread_mutex_unlock(&locks->lock);
}

static void wait_enlist(struct lock_wait *w)
{
	struct locks *locks = locks_of(w);

	w->wake.run = woken;
	list_init(&w->wake.link);
	list_add_tail(&fs_thread_of(w->thread)->lock_waits, &w->own);
	pthread_mutex_lock(&locks->lock);
	list_add_tail(&locks->waits, &w->link);
	pthread_mutex_unlock(&locks->lock);
}

static struct lock_wait *wait_new(const struct request *req)
{
	struct locks *locks = req->thread->fs->locks;
	struct lock_wait *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->inode = op_inode_of(req);
	if (lock_owner_asks(req, w->inode, &w->lock)) {
		inode_put(w->inode);
		free(w);
		return NULL;
	}
	w->thread = req->thread;
	w->unique = req->unique;
	w->pid = req->pid;
	w->lock.wait = locks_number(locks);
	local_locks_wait_init(&w->local, w->inode, &w->lock, told_here);
	w->error = req->interrupted ? -EINTR : 0;
	wait_enlist(w);
	return w;
}

void lock_wait_begin(struct request *req)
{
	struct lock_wait *w = wait_new(req);

	if (!w) {
		reply_error(req, -ENOLCK);
		return;
	}
	request_end(req);
	lock_wait_ask(w);
}

/* ---- giving up a wait ------------------------------------------------------------------------ */

/* A LOCK that is on its way may get the caller the lock, so its answer is waited for. With the
 * server away a caller waits for it only while it is seen to live. */
static void lock_wait_give_up(struct lock_wait *w, int error)
{
	bool away = remote_disconnected(w->thread);

	if (!w->error)
		w->error = error;
	if (!w->busy && may_wait_here(w) && local_locks_leave(&w->local)) {
		lock_wait_end(w, w->error);
		return;
	}
	if (w->busy && !w->withdrawn && rpc_cancel(w->thread, &w->call)) {
		w->busy = false;
		if (!w->known) {
			lock_wait_end(w, w->error);
			return;
		}
	}
	if (!w->busy)
		lock_wait_withdraw(w);
	if (away && !w->replied &&
		(w->withdrawn || error == -EIO || caller_state(w->pid) != CALLER_LIVES)) {
		lock_leaving_begin(w->inode, &w->leaving);
		lock_wait_tell(w, w->error, false);
	}
}

bool lock_interrupt(struct io_thread *thread, uint64_t unique)
{
	list_for_each (pos, &fs_thread_of(thread)->lock_waits) {
		struct lock_wait *w = list_entry(pos, struct lock_wait, own);

		if (w->unique == unique && !w->replied) {
			lock_wait_give_up(w, -EINTR);
			return true;
		}
	}
	return false;
}

/* Then it needs no server. */
static bool waits_here(struct lock_wait *w)
{
	return may_wait_here(w) && local_locks_has_wait(&w->local);
}

void lock_tick(struct io_thread *thread)
{
	bool lost = session_lost(thread->fs->session), gives_up = remote_gives_up(thread);
	bool ended = fs_is_renewing(thread->fs);

	list_for_each_safe (pos, &fs_thread_of(thread)->lock_waits) {
		struct lock_wait *w = list_entry(pos, struct lock_wait, own);

		if (w->replied)
			continue;
		if ((lost || ended) && !w->busy)
			lock_wait_end(w, -ESTALE);
		else if (waits_here(w))
			local_locks_tick(w->inode);
		else if (gives_up)
			lock_wait_give_up(w, -EIO);
		else if (w->error)
			lock_wait_give_up(w, w->error);
	}
}

/* ---- another daemon -------------------------------------------------------------------------- */

static bool lock_wait_stands_locked(const struct lock_wait *w)
{
	return w->known && !w->busy && !w->error && !w->replied && !w->called;
}

bool lock_waits_stand(struct io_thread *thread)
{
	struct locks *locks = thread->fs->locks;
	bool stand = true;

	pthread_mutex_lock(&locks->lock);
	list_for_each (pos, &fs_thread_of(thread)->lock_waits)
		stand &= lock_wait_stands_locked(list_entry(pos, struct lock_wait, own));
	pthread_mutex_unlock(&locks->lock);
	return stand;
}

unsigned lock_waits_describe(struct locks *locks, struct lock_wait_kept *v, unsigned n)
{
	unsigned i = 0;

	pthread_mutex_lock(&locks->lock);
	list_for_each (pos, &locks->waits) {
		const struct lock_wait *w = list_entry(pos, struct lock_wait, link);

		if (i++ >= n)
			continue;
		v[i - 1] = (struct lock_wait_kept){
			.unique = w->unique,
			.pid = w->pid,
			.thread = w->thread->index,
			.lock = w->lock,
		};
	}
	pthread_mutex_unlock(&locks->lock);
	return i;
}

static bool is_wait(const struct lock_wait_kept *kept)
{
	const struct rpc_lock *lock = &kept->lock;

	return kept->unique && lock->wait && lock->start <= lock->end &&
	       lock->end <= LOCK_END_MAX &&
	       (lock->type == LOCK_SHARED || lock->type == LOCK_EXCLUSIVE) &&
	       (lock->kind == LOCK_KIND_POSIX || lock->kind == LOCK_KIND_FLOCK);
}

int lock_wait_adopt(struct io_thread *thread, const struct lock_wait_kept *kept)
{
	struct inode *inode = is_wait(kept) ? inode_find(thread->fs, kept->lock.ino) : NULL;
	struct lock_wait *w = inode ? calloc(1, sizeof(*w)) : NULL;
	int r = w ? 0 : inode ? -ENOMEM : -EINVAL;

	if (!r) {
		pthread_mutex_lock(&inode->lock);
		r = lock_owner_waits_locked(inode, kept->lock.owner);
		pthread_mutex_unlock(&inode->lock);
	}
	if (r) {
		free(w);
		if (inode)
			inode_put(inode);
		return r;
	}
	w->thread = thread;
	w->inode = inode;
	w->unique = kept->unique;
	w->pid = kept->pid;
	w->lock = kept->lock;
	w->known = true;
	local_locks_wait_init(&w->local, w->inode, &w->lock, told_here);
	wait_enlist(w);
	return local_locks_are_kept(thread->fs) ? local_locks_adopt_wait(&w->local) : 0;
}
