/* lock.c - LOCK and GETLK. */
#include <errno.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "server/record/lock.h"
#include "server/namespace/ns.h"

static int ns_lock_refuse(struct ns_call *c, int err, const char *text)
{
	c->rep->text = (struct rpc_str){text, (uint16_t)strlen(text)};
	return err;
}

static struct lock ns_lock_wanted(const struct ns_call *c)
{
	const struct rpc_lock *req = &c->req->lock;
	bool whole = req->kind == LOCK_KIND_FLOCK;

	return (struct lock){
		.session = c->ctx->session,
		.owner = req->owner,
		.start = whole ? 0 : req->start,
		.end = whole ? LOCK_END_MAX : req->end,
		.pid = req->pid,
		.kind = req->kind,
		.type = req->type,
		.read_only = c->ctx->read_only,
	};
}

/* An unlock may be of an inode that has gone. */
static int ns_lock_check(struct ns_call *c)
{
	const struct rpc_lock *req = &c->req->lock;
	struct stored_inode inode;

	if (!c->ctx->shared && !(c->ctx->flags & ATTACH_CONVERTS))
		return ns_lock_refuse(c, -EINVAL, "locks are for sessions at a shared export");
	if (req->ino >> INO_BITS)
		return -ESTALE;
	return req->type == LOCK_FREE ? 0 : inode_load(c->v, req->ino, &inode);
}

static int ns_lock_set(struct ns_call *c, uint64_t key, const struct lock *lock)
{
	bool grows;
	int err = lock_grows(c->v, key, lock, &grows);

	if (!err)
		err = ns_room(c, ROOM_PAGES + LOCK_ROOM_PAGES, grows);
	if (err)
		return err == -ENOSPC ? -ENOLCK : err;
	err = lock_set(c->v, key, lock, c->ctx->lock_limit);
	if (err)
		return err;
	CRASH_POINT("lock.stored");
	lock_waits_changed(&c->m->lock_waits, key);
	if (lock->kind != LOCK_KIND_POSIX || lock->type == LOCK_FREE)
		return 0;
	return lock_waits_granted(&c->m->lock_waits, lock);
}

/* As the kernel does: of two owners that both want more than they have, one can get it. */
static int give_up_own(struct ns_call *c, uint64_t key, const struct lock *want)
{
	struct lock none = *want;

	none.type = LOCK_FREE;
	return ns_lock_set(c, key, &none);
}

/* holder NULL: it is only behind other waits. */
static int wait_for(
	struct ns_call *c, uint64_t key, const struct lock *want, const struct lock *holder)
{
	struct lock_waits *ws = &c->m->lock_waits;
	bool deadlock = false;
	int err = 0;

	if (holder && want->kind == LOCK_KIND_POSIX)
		err = lock_waits_deadlock(ws, c->v, key, want, &deadlock);
	if (err || deadlock)
		return err ? err : -EDEADLK;
	err = lock_waits_add(ws, c->v, key, want, c->req->lock.wait);
	if (!err && want->kind == LOCK_KIND_FLOCK)
		err = give_up_own(c, key, want);
	return err ? err : -EINPROGRESS;
}

static struct lock_waiter *find_wait(struct ns_call *c, uint64_t key)
{
	return lock_waits_find(&c->m->lock_waits, key, c->ctx->session, c->req->lock.wait);
}

static void drop_wait(struct ns_call *c, uint64_t key)
{
	struct lock_waiter *wait = find_wait(c, key);

	if (wait)
		lock_waits_drop(&c->m->lock_waits, wait);
}

static int refuse_or_wait(
	struct ns_call *c, uint64_t key, const struct lock *want, const struct lock *holder)
{
	int err = 0;

	c->m->lock_holder = holder->session;
	if (c->req->lock.wait)
		return wait_for(c, key, want, holder);
	if (want->kind == LOCK_KIND_FLOCK)
		err = give_up_own(c, key, want);
	return err ? err : -EAGAIN;
}

static int ns_lock_lock(struct ns_call *c, uint64_t key, const struct lock *want)
{
	struct lock holder;
	bool behind = false;
	int err = lock_find_conflict(c->v, key, want, &holder);

	if (!err)
		return refuse_or_wait(c, key, want, &holder);
	if (err == -ENOENT && c->req->lock.wait)
		err = lock_waits_behind(
			&c->m->lock_waits, c->v, key, want, find_wait(c, key), &behind);
	if (err && err != -ENOENT)
		return err;
	return behind ? wait_for(c, key, want, NULL) : ns_lock_set(c, key, want);
}

int ns_lock(struct ns_call *c)
{
	const struct rpc_lock *req = &c->req->lock;
	uint64_t key = inode_key(c->v, req->ino);
	struct lock want = ns_lock_wanted(c);
	int err = ns_lock_check(c);

	if (!err && !(req->wait && req->type == LOCK_FREE))
		err = ns_lock_lock(c, key, &want);
	if (req->wait && err != -EINPROGRESS)
		drop_wait(c, key);
	return err;
}

int ns_getlk(struct ns_call *c)
{
	struct rpc_getlk_reply *rep = &c->rep->getlk;
	struct lock want = ns_lock_wanted(c), holder;
	int err = ns_lock_check(c);

	if (!err)
		err = lock_find_conflict(c->v, inode_key(c->v, c->req->lock.ino), &want, &holder);
	if (err)
		return err == -ENOENT ? 0 : err;
	c->m->lock_holder = holder.session;
	*rep = (struct rpc_getlk_reply){holder.type, 0, holder.start, holder.end};
	/* On another machine the pid is nobody's number, or another process's. */
	if (holder.session == c->ctx->session)
		rep->pid = holder.pid;
	return 0;
}
