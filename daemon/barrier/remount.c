#include "daemon/barrier/remount.h"

#include <errno.h>
#include <sys/mount.h>
#include <linux/capability.h>

#include "daemon/request/caller.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/barrier/snapshot_freeze.h"
#include "daemon/file/commit.h"
#include "daemon/file/op_inode.h"
#include "daemon/lock/local_locks.h"

void remount_init(struct remount *r, struct fs *fs, bool read_only)
{
	*r = (struct remount){.fs = fs, .read_only = read_only};
	list_init(&r->waiters);
	pthread_mutex_init(&r->lock, NULL);
}

void remount_fini(struct remount *r)
{
	pthread_mutex_destroy(&r->lock);
}

/* ---- the way there --------------------------------------------------------------------------- */

static void attach_locked(struct remount *r)
{
	atomic_store(&r->phase, REMOUNT_ATTACHES);
	atomic_store(&r->fs->committing_all, false);
	session_set_read_only(r->fs->session, r->read_only);
}

static void remount_begin_locked(struct remount *r, bool read_only)
{
	r->read_only = read_only;
	if (!read_only) {
		attach_locked(r);
		return;
	}
	access_time_set_read_only(r->fs->access, true);
	r->clean = 0;
	atomic_store(&r->phase, REMOUNT_COMMITS);
	atomic_store(&r->fs->committing_all, true);
}

static void remount_settle_locked(struct remount *r, int status)
{
	atomic_store(&r->phase, REMOUNT_DONE);
	atomic_store(&r->fs->committing_all, false);
	access_time_set_read_only(r->fs->access, r->read_only);
	waiters_wake(&r->waiters, status);
}

/* Whether the server refused to let this mount write, since other clients read. */
static bool was_refused(struct remount *r)
{
	return !r->read_only && session_is_read_only(r->fs->session);
}

static void refused_locked(struct remount *r)
{
	r->read_only = true;
	remount_settle_locked(r, -EUSERS);
}

/* WRITEs may still be on their way: kernels before 6.16 take pages for written back once they are
 * sent. */
static bool writes(const struct fs_thread *ft)
{
	return ft->freeze->nwriting || !list_empty(&ft->freeze->held);
}

/* The kernel lets nobody write by now, so a clean thread stays clean. Locks that the mount keeps by
 * itself are told to the server first: conversion.h. */
static bool is_clean(struct io_thread *thread)
{
	const struct fs_thread *ft = fs_thread_of(thread);
	bool committed = commit_tick(thread), told = access_time_tick(thread);

	return committed && told && !ft->nbackground && !writes(ft) &&
	       !local_locks_are_kept(thread->fs);
}

void remount_step(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	struct remount *r = fs->remount;
	bool clean;

	if (atomic_load(&r->phase) == REMOUNT_DONE)
		return;
	clean = atomic_load(&r->fs->committing_all) && is_clean(thread);
	pthread_mutex_lock(&r->lock);
	if (clean && atomic_load(&r->fs->committing_all)) {
		r->clean |= UINT32_C(1) << thread->index;
		if (r->clean == (UINT32_C(1) << fs->options.session.io_threads) - 1)
			attach_locked(r);
	}
	if (atomic_load(&r->phase) == REMOUNT_ATTACHES && was_refused(r))
		refused_locked(r);
	else if (atomic_load(&r->phase) == REMOUNT_ATTACHES && session_has_keys(fs->session))
		remount_settle_locked(r, 0);
	else if (atomic_load(&r->phase) != REMOUNT_DONE && session_lost(fs->session))
		remount_settle_locked(r, -ESTALE);
	pthread_mutex_unlock(&r->lock);
}

/* ---- who asks for it ------------------------------------------------------------------------- */

static void remount_ended(struct request *req, int status)
{
	op_end(req);
	if (status)
		reply_error(req, status);
	else
		reply_ioctl(req);
}

/* The last request that waits for a change to read-only takes it back. */
static bool remount_leave(struct request *req)
{
	struct remount *r = req->thread->fs->remount;
	struct op *op = op_of(req);
	bool waiting;

	pthread_mutex_lock(&r->lock);
	waiting = !list_empty(&op->waiter.link);
	list_del(&op->waiter.link);
	if (waiting && list_empty(&r->waiters) && atomic_load(&r->fs->committing_all)) {
		r->read_only = false;
		remount_settle_locked(r, 0);
	}
	pthread_mutex_unlock(&r->lock);
	return waiting;
}

/* True: there is nothing to wait for. */
static bool remount_change(struct request *req, bool read_only, int *status)
{
	struct remount *r = req->thread->fs->remount;
	struct op *op = op_of(req);
	bool done;

	pthread_mutex_lock(&r->lock);
	done = r->read_only == read_only && atomic_load(&r->phase) == REMOUNT_DONE;
	*status = 0;
	if (r->read_only != read_only && !list_empty(&r->waiters))
		*status = -EBUSY;
	else if (r->read_only != read_only)
		remount_begin_locked(r, read_only);
	if (!done && !*status) {
		waiter_init(&op->waiter, req, remount_ended);
		op_waits_by(op, OP_AT_REMOUNT, remount_leave);
		list_add_tail(&r->waiters, &op->waiter.link);
	}
	pthread_mutex_unlock(&r->lock);
	return done || *status;
}

/* The root of a container may have the directory, but must not change what others have mounted. A
 * caller that can't be seen is refused. */
static bool may_remount(const struct request *req)
{
	return caller_root(req) == CALLER_IS_ROOT && caller_is_capable(req, CAP_SYS_ADMIN) &&
	       caller_is_in_our_user_namespace(req);
}

void op_remount(struct request *req)
{
	unsigned long flags = req->args.flags;
	int status = -EPERM;
	bool may = may_remount(req);

	op_begin(req);
	if (may)
		access_time_set(req->thread->fs->access, flags);
	if (!may || remount_change(req, flags & MS_RDONLY, &status))
		remount_ended(req, status);
}
