#include "daemon/lock/lock_owner.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/file/inode_path.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/op/op.h"
#include "daemon/lock/local_locks.h"
#include "daemon/file/inode.h"

void inode_locks_init(struct inode_locks *locks)
{
	list_init(&locks->owners);
	list_init(&locks->leaving);
	locks->local = NULL;
}

void inode_locks_fini(struct inode_locks *locks)
{
	struct list *link;

	while ((link = list_pop(&locks->owners)))
		free(list_entry(link, struct lock_owner, link));
	local_locks_delete(locks->local);
}

static struct lock_owner *lock_owner_owner_of(struct list *pos)
{
	return list_entry(pos, struct lock_owner, link);
}

/* ---- owners ---------------------------------------------------------------------------------- */

static struct lock_owner *find_records_locked(const struct inode *inode, uint64_t kernel)
{
	list_for_each (pos, &inode->locks->owners) {
		struct lock_owner *o = lock_owner_owner_of(pos);

		if (o->kind == LOCK_KIND_POSIX && o->kernel == kernel)
			return o;
	}
	return NULL;
}

static struct lock_owner *find_whole_locked(const struct inode *inode, const struct handle *handle)
{
	list_for_each (pos, &inode->locks->owners) {
		struct lock_owner *o = lock_owner_owner_of(pos);

		if (o->kind == LOCK_KIND_FLOCK && o->handle == handle)
			return o;
	}
	return NULL;
}

static struct lock_owner *find_number_locked(const struct inode *inode, uint64_t number)
{
	list_for_each (pos, &inode->locks->owners)
		if (lock_owner_owner_of(pos)->number == number)
			return lock_owner_owner_of(pos);
	return NULL;
}

static struct lock_owner *lock_owner_find_locked(
	const struct inode *inode, const struct request *req)
{
	return req->args.lock.kind == LOCK_KIND_FLOCK
		       ? find_whole_locked(inode, handle_of(req))
		       : find_records_locked(inode, req->args.lock_owner);
}

static struct lock_owner *make_locked(struct inode *inode, uint64_t kernel, uint8_t kind)
{
	struct lock_owner *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->kernel = kernel;
	o->kind = kind;
	/* The kernel scrambles its names, so the last bits tell processes apart. */
	o->number = locks_number(inode->fs->locks) << LOCK_PROCESS_BITS;
	if (o->kind == LOCK_KIND_POSIX)
		o->number |= lock_process(o->kernel);
	list_add_tail(&inode->locks->owners, &o->link);
	return o;
}

static void forget_unused_locked(struct lock_owner *o)
{
	if (o->has || o->nasked)
		return;
	list_del(&o->link);
	free(o);
}

int lock_owner_asks(const struct request *req, struct inode *inode, struct rpc_lock *lock)
{
	const struct request_args *args = &req->args;
	bool may_get = req->op == OP_SETLK && args->lock.type != LOCK_FREE;
	struct lock_owner *o;

	*lock = (struct rpc_lock){
		.ino = inode->ino,
		.start = args->lock.start,
		.end = args->lock.end,
		.pid = args->lock.pid,
		.kind = args->lock.kind,
		.type = args->lock.type,
	};
	pthread_mutex_lock(&inode->lock);
	o = lock_owner_find_locked(inode, req);
	if (!o && may_get)
		o = make_locked(inode, req->args.lock_owner, req->args.lock.kind);
	if (o && may_get) {
		o->handle = handle_of(req);
		o->nasked++;
	}
	if (o)
		lock->owner = o->number;
	pthread_mutex_unlock(&inode->lock);
	return o || !may_get ? 0 : -ENOLCK;
}

void lock_owner_answered(struct inode *inode, uint64_t number, bool got)
{
	pthread_mutex_lock(&inode->lock);
	list_for_each_safe (pos, &inode->locks->owners) {
		struct lock_owner *o = lock_owner_owner_of(pos);

		if (o->number != number)
			continue;
		o->nasked--;
		o->has |= got;
		o->freed &= !got;
		forget_unused_locked(o);
	}
	pthread_mutex_unlock(&inode->lock);
}

/* Any range may have been the last that its owner had here. */
static bool has_freed_all_locked(const struct inode *inode, const struct rpc_lock *lock)
{
	if (local_locks_are_kept(inode->fs))
		return !local_locks_has_locked(inode, lock->owner);
	return !lock->start && lock->end >= INT64_MAX;
}

void lock_owner_freed(struct inode *inode, const struct rpc_lock *lock)
{
	struct lock_owner *o;

	pthread_mutex_lock(&inode->lock);
	o = find_number_locked(inode, lock->owner);
	if (o && has_freed_all_locked(inode, lock))
		o->freed = true;
	pthread_mutex_unlock(&inode->lock);
}

void lock_owner_lost_locked(struct inode *inode, uint64_t number)
{
	const struct lock_owner *o = find_number_locked(inode, number);

	if (o && o->handle)
		atomic_store(&o->handle->unlocked, true);
}

static void look_for_owner(struct inode *inode, void *arg)
{
	bool *any = arg;

	pthread_mutex_lock(&inode->lock);
	*any |= !list_empty(&inode->locks->leaving);
	list_for_each (pos, &inode->locks->owners) {
		const struct lock_owner *o = lock_owner_owner_of(pos);

		*any |= (o->has && !o->freed) || o->nasked;
	}
	pthread_mutex_unlock(&inode->lock);
}

bool lock_owners_any(struct fs *fs)
{
	bool any = false;

	inode_each(fs, look_for_owner, &any);
	return any;
}

bool lock_owners_forget_locked(struct inode *inode)
{
	struct list *link;
	bool any = false;

	while ((link = list_pop(&inode->locks->owners))) {
		struct lock_owner *o = lock_owner_owner_of(link);

		if (o->has && !o->freed && o->handle) {
			atomic_store(&o->handle->unlocked, true);
			any = true;
		}
		free(o);
	}
	local_locks_forget_locked(inode);
	return any;
}

/* ---- another daemon -------------------------------------------------------------------------- */

unsigned lock_owners_describe_locked(
	const struct inode *inode, struct lock_owner_kept *v, unsigned n)
{
	unsigned i = 0;

	list_for_each (pos, &inode->locks->owners) {
		const struct lock_owner *o = lock_owner_owner_of(pos);

		if (i++ >= n)
			continue;
		v[i - 1] = (struct lock_owner_kept){
			.number = o->number,
			.kernel = o->kernel,
			.handle = o->handle ? handle_number(o->handle) : 0,
			.kind = o->kind,
			.has = o->has,
			.freed = o->freed,
		};
	}
	return i;
}

static struct handle *find_handle_locked(const struct inode *inode, uint64_t number)
{
	list_for_each (pos, &inode->handles) {
		struct handle *handle = list_entry(pos, struct handle, link);

		if (handle_number(handle) == number)
			return handle;
	}
	return NULL;
}

int lock_owner_adopt_locked(struct inode *inode, const struct lock_owner_kept *kept)
{
	struct handle *handle = kept->handle ? find_handle_locked(inode, kept->handle) : NULL;
	struct lock_owner *o;

	if (!kept->number || (kept->handle && !handle) || find_number_locked(inode, kept->number) ||
		(kept->kind != LOCK_KIND_POSIX && kept->kind != LOCK_KIND_FLOCK))
		return -EINVAL;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->number = kept->number;
	o->kernel = kept->kernel;
	o->handle = handle;
	o->kind = kept->kind;
	o->has = kept->has;
	o->freed = kept->freed;
	list_add_tail(&inode->locks->owners, &o->link);
	return 0;
}

int lock_owner_revive_locked(
	struct inode *inode, const struct lock_owner_kept *recorded, uint64_t *number)
{
	struct handle *handle = find_handle_locked(inode, recorded->handle);
	struct lock_owner *o;

	if (!handle)
		return -ENOENT;
	o = recorded->kind == LOCK_KIND_FLOCK ? find_whole_locked(inode, handle)
					      : find_records_locked(inode, recorded->kernel);
	if (!o)
		o = make_locked(inode, recorded->kernel, recorded->kind);
	if (!o)
		return -ENOMEM;
	o->handle = handle;
	o->has = true;
	*number = o->number;
	return 0;
}

int lock_owner_waits_locked(struct inode *inode, uint64_t number)
{
	struct lock_owner *o = find_number_locked(inode, number);

	if (!o)
		return -EINVAL;
	o->nasked++;
	return 0;
}

/* ---- what is leaving ------------------------------------------------------------------------- */

static void leaving_begin_locked(struct inode *inode, struct lock_leaving *leaving)
{
	inode_ref(inode);
	list_init(&leaving->waiters);
	list_add_tail(&inode->locks->leaving, &leaving->link);
}

void lock_leaving_begin(struct inode *inode, struct lock_leaving *leaving)
{
	pthread_mutex_lock(&inode->lock);
	leaving_begin_locked(inode, leaving);
	pthread_mutex_unlock(&inode->lock);
}

/* Waiters of the one that has left go on to wait for those that began before it. */
void lock_leaving_end(struct inode *inode, struct lock_leaving *leaving)
{
	struct list *before;

	pthread_mutex_lock(&inode->lock);
	before = leaving->link.prev;
	if (before == &inode->locks->leaving)
		waiters_wake(&leaving->waiters, 0);
	else
		list_splice_tail(
			&list_entry(before, struct lock_leaving, link)->waiters, &leaving->waiters);
	list_del(&leaving->link);
	pthread_mutex_unlock(&inode->lock);
	inode_put(inode);
}

static void wait_locked(
	struct request *req, struct inode *inode, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);

	waiter_init(&op->waiter, req, then);
	op_waits(op, OP_AT_INODE, &inode->lock);
	list_add_tail(&list_entry(inode->locks->leaving.prev, struct lock_leaving, link)->waiters,
		&op->waiter.link);
}

bool lock_leaving_wait(struct request *req, void (*then)(struct request *req, int status))
{
	struct inode *inode = op_of(req)->inode;
	bool none;

	pthread_mutex_lock(&inode->lock);
	none = list_empty(&inode->locks->leaving);
	if (!none)
		wait_locked(req, inode, then);
	pthread_mutex_unlock(&inode->lock);
	return none;
}

/* ---- giving up ------------------------------------------------------------------------------- */

/* Goes on by itself, whatever becomes of the request that waits for it. */
struct release {
	struct rpc_call call;
	struct inode *inode;
	struct lock_leaving leaving;
};

static void released(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct release *r = container_of(call, struct release, call);
	char text[PATH_INODE_BYTES];

	if (rep->status && rep->status != -ESTALE)
		log_error("%s: the server refused to take a lock back: %s",
			path_name_inode(r->inode, text), errno_text(rep->status));
	lock_leaving_end(r->inode, &r->leaving);
	free(r);
}

/* To be sent by release_start(). NULL: no memory. */
static struct release *release_new_locked(struct inode *inode, const struct rpc_lock *lock)
{
	struct release *r = calloc(1, sizeof(*r));

	if (!r) {
		log_error("inode %llu: no memory to give a lock back",
			(unsigned long long)inode->ino);
		return NULL;
	}
	r->inode = inode;
	list_init(&r->call.link);
	r->call.done = released;
	r->call.nested = true;
	r->call.req.op = RPC_LOCK;
	r->call.req.lock = *lock;
	r->call.req.lock.type = LOCK_FREE;
	leaving_begin_locked(inode, &r->leaving);
	return r;
}

static void release_start(struct io_thread *thread, struct release *r)
{
	if (r)
		rpc_start(thread, &r->call);
}

void lock_give_up(const struct request *req, struct inode *inode, const struct rpc_lock *lock)
{
	struct release *r;

	if (local_locks_are_kept(inode->fs)) {
		struct rpc_lock none = *lock;

		none.type = LOCK_FREE;
		local_locks_set(inode, &none);
		return;
	}
	pthread_mutex_lock(&inode->lock);
	r = release_new_locked(inode, lock);
	pthread_mutex_unlock(&inode->lock);
	release_start(req->thread, r);
}

/* Gives up all locks of the owner. NULL: it has none, or has none any more, or there is no memory,
 * and it is remembered. */
static struct release *release_all_locked(struct inode *inode, struct lock_owner *o)
{
	struct rpc_lock all = {
		.ino = inode->ino, .owner = o->number, .end = LOCK_END_MAX, .kind = o->kind};
	bool here = local_locks_are_kept(inode->fs);
	struct release *r = o->has && !here ? release_new_locked(inode, &all) : NULL;

	if (o->has && here)
		local_locks_free_locked(inode, o->number, o->kind);
	if (r || here) {
		o->has = false;
		forget_unused_locked(o);
	}
	return r;
}

bool lock_owner_has_records(struct inode *inode, uint64_t kernel)
{
	const struct lock_owner *o;
	bool has;

	pthread_mutex_lock(&inode->lock);
	o = find_records_locked(inode, kernel);
	has = o && o->has;
	pthread_mutex_unlock(&inode->lock);
	return has;
}

bool lock_flush(struct request *req, void (*then)(struct request *req, int status))
{
	struct inode *inode = op_of(req)->inode;
	struct release *r = NULL;
	struct lock_owner *o;

	if (!fs_may_share(inode->fs))
		return true;
	pthread_mutex_lock(&inode->lock);
	o = find_records_locked(inode, req->args.lock_owner);
	if (o)
		r = release_all_locked(inode, o);
	if (r)
		wait_locked(req, inode, then);
	pthread_mutex_unlock(&inode->lock);
	release_start(req->thread, r);
	return !r;
}

/* An owner that still asks, but was told that it failed, has closed the handle, too. */
static struct release *close_next_locked(struct inode *inode, const struct handle *handle)
{
	list_for_each_safe (pos, &inode->locks->owners) {
		struct lock_owner *o = lock_owner_owner_of(pos);
		struct release *r;

		if (o->handle != handle)
			continue;
		o->handle = NULL;
		r = release_all_locked(inode, o);
		if (r)
			return r;
	}
	return NULL;
}

void lock_handle_closed(struct request *req, struct inode *inode, const struct handle *handle)
{
	struct release *r;

	/* On other mounts the kernel has the locks. */
	if (!fs_may_share(inode->fs))
		return;
	do {
		pthread_mutex_lock(&inode->lock);
		r = close_next_locked(inode, handle);
		pthread_mutex_unlock(&inode->lock);
		release_start(req->thread, r);
	} while (r);
}
