/* OPEN, RELEASE and those of directories. No RPC, unless the file is to be cut.
 *
 * file/cache_policy.c decides whether a file uses the kernel's cache. Files that use it keep it,
 * since nobody else changes them, or since pages go before a lease does (kernel_pages.h). After
 * writes past the cache the kernel drops its old pages itself, when the file is opened cached the
 * next time.
 */
#include <errno.h>
#include <fcntl.h>

#include "common/base/crash_point.h"
#include "daemon/file/cache_policy.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/op/op.h"
#include "daemon/ops/open.h"
#include "daemon/ops/ops.h"
#include "daemon/lock/lock_owner.h"
#include "daemon/kcache/stale_pages.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/kcache/kernel_attr.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/barrier/session_renewal.h"
#include "daemon/file/inode_return.h"
#include "daemon/file/op_inode.h"
#include "daemon/file/inode.h"
#include "daemon/ops/change_attr.h"
#include "daemon/file/commit.h"
#include "daemon/kcache/expire.h"
#include "daemon/file/inode_path.h"
#include "daemon/ops/finish.h"
#include "daemon/lease/lease.h"

/* Where the kernel maps no file that goes past the cache, a mount does not begin to share while a
 * file is open for writing: conversion.h. */
static enum cache_mode mode_now(const struct fs *fs)
{
	if (fs->sharing)
		return CACHE_NONE;
	return fs_may_share(fs) && fs->options.cache == CACHE_SHARED &&
			       fs->features.direct_io_allow_mmap
		       ? CACHE_READERS
		       : fs->options.cache;
}

static enum open_kind kind_locked(const struct inode *inode, uint32_t flags)
{
	const struct fs *fs = inode->fs;
	struct cache_handles handles = {inode->nopen, inode->nopen_cached};

	return cache_open_kind(mode_now(fs), &fs->features, handles, flags);
}

/* The answer to the kernel. A directory has no handle. */
struct opened {
	enum open_kind kind;
	unsigned flags;
	struct handle *handle;
	bool sent_back; /* there is no handle: kernel_pages_sends_back_locked() */
};

static unsigned flags_locked(const struct inode *inode, enum open_kind kind)
{
	if (kind == OPENED_CACHED)
		return inode->stale ? 0 : OPEN_KEEP_CACHE;
	return OPEN_DIRECT |
	       (inode->fs->features.parallel_direct_writes ? OPEN_PARALLEL_WRITES : 0);
}

/* -ESTALE makes the kernel look the name up again: the file has lost its last name, or the kernel
 * has to learn where it ends. */
static int open_count(struct inode *inode, uint32_t flags, uint32_t pid, struct opened *opened)
{
	bool by_end;
	int r = 0;

	pthread_mutex_lock(&inode->lock);
	opened->kind = kind_locked(inode, flags);
	by_end = flags & O_APPEND || (opened->kind == OPENED_CACHED && fs_may_share(inode->fs));
	opened->sent_back = by_end && kernel_pages_sends_back_locked(inode, pid);
	if (inode->returned || opened->sent_back) {
		r = -ESTALE;
	} else {
		opened->flags = flags_locked(inode, opened->kind);
		if (!inode->nopen && opened->kind == OPENED_DIRECT)
			stale_pages_forget_reads_locked(inode);
		if (!inode->nopen)
			kernel_pages_closed_locked(inode);
		inode->nopen++;
		kernel_attr_try_take_back_locked(inode);
		inode->nopen_cached += opened->kind == OPENED_CACHED;
		inode->cached->nappenders += !!(flags & O_APPEND);
	}
	pthread_mutex_unlock(&inode->lock);
	return r;
}

static void close_count(struct inode *inode, bool cached, struct io_thread *thread)
{
	bool commit, orphan;

	pthread_mutex_lock(&inode->lock);
	inode->nopen--;
	/* This is not done at the open: the kernel drops the pages only when it has our answer. */
	if (cached && !inode->nopen_cached)
		inode->stale = false;
	if (!inode->nopen)
		inode_return_unused_locked(inode);
	orphan = inode->orphan;
	commit = !orphan && !commit_is_clean_locked(inode);
	pthread_mutex_unlock(&inode->lock);
	if (commit)
		commit_start(inode, thread);
	if (inode->fs->sharing)
		lease_settle(inode, thread);
	if (orphan)
		inode_return_settle(inode, thread);
}

static void close_handle(struct inode *inode, struct handle *handle, struct io_thread *thread)
{
	/* This comes first. Otherwise a SETATTR could count on this close for its COMMIT, when the
	 * close has already looked for changes. */
	pthread_mutex_lock(&inode->lock);
	inode->nwriters -= handle->writes;
	inode->cached->nstorers -= handle->stores;
	inode->cached->nappenders -= handle->appends;
	inode->nopen_cached -= handle->kind == OPENED_CACHED;
	/* Other handles have the file open still. */
	if (handle->appends && inode->nopen > 1)
		kernel_pages_append_ended_locked(inode, thread);
	if (handle->kind == OPENED_CACHED && inode->nopen > 1)
		kernel_pages_reader_closed_locked(inode, thread);
	list_del(&handle->link);
	pthread_mutex_unlock(&inode->lock);
	close_count(inode, handle->kind == OPENED_CACHED, thread);
	handle_delete(inode->fs, handle);
}

/* The daemon before this one may have opened the file for the same request. The kernel has not got
 * that handle. */
static void close_unanswered(struct request *req, struct inode *inode)
{
	struct handle *found = NULL;

	pthread_mutex_lock(&inode->lock);
	list_for_each (pos, &inode->handles) {
		struct handle *handle = list_entry(pos, struct handle, link);

		if (handle->opened_by == request_number(req))
			found = handle;
	}
	pthread_mutex_unlock(&inode->lock);
	if (found)
		close_handle(inode, found, req->thread);
}

static int open_handle(struct request *req, struct opened *opened)
{
	struct inode *inode = op_of(req)->inode;
	uint32_t flags = req->args.flags;

	struct handle *handle = handle_new(inode->fs);
	int r = handle ? open_count(inode, flags, req->pid, opened) : -ENOMEM;

	if (r) {
		if (handle)
			handle_delete(inode->fs, handle);
		return r;
	}
	if (request_is_resent(req))
		close_unanswered(req, inode);
	pthread_mutex_lock(&inode->lock);
	handle->inode = inode;
	handle->kind = opened->kind;
	handle->writes = (flags & O_ACCMODE) != O_RDONLY;
	handle->stores = handle_may_store(req);
	handle->appends = flags & O_APPEND;
	session_renewal_handle_opened(inode->fs, handle);
	inode->nwriters += handle->writes;
	inode->cached->nstorers += handle->stores;
	/* On a sharing mount FLUSH gives up record locks. */
	if (!handle->writes && !fs_may_share(inode->fs))
		opened->flags |= OPEN_NO_FLUSH;
	commit_handle_opened_locked(inode, handle);
	list_add_tail(&inode->handles, &handle->link);
	handle_record(handle, request_number(req));
	pthread_mutex_unlock(&inode->lock);
	opened->handle = handle;
	CRASH_POINT("open.recorded");
	return 0;
}

/* ---- OPEN ------------------------------------------------------------------------------------ */

static void open_reply(struct request *req, struct inode *inode, struct opened opened)
{
	struct ttl ttl = op_ttl(req);
	struct attr attr;

	if (req->op == OP_OPEN) {
		op_end(req);
		reply_open(req, handle_number(opened.handle), opened.flags);
		return;
	}
	inode_see(inode, &op_of(req)->seen, &attr);
	inode_remember(inode);
	kernel_owner_tell(inode, &attr);
	if (req->args.name)
		path_note(inode, req->node, req->args.name);
	op_end(req);
	reply_create(
		req, inode_node(inode), &attr, ttl, handle_number(opened.handle), opened.flags);
}

static void open_failed(struct request *req, int status)
{
	/* If TMPFILE made the file for this, nobody wants it any more. */
	inode_return_settle(op_of(req)->inode, req->thread);
	op_finish(req, status);
}

static void open_sent_back(struct request *req, int status)
{
	kernel_pages_sent_back(op_of(req)->inode, req->pid);
	open_failed(req, -ESTALE);
}

static void open_done(struct request *req, int status)
{
	struct inode *inode = op_of(req)->inode;
	struct opened opened = {0};
	/* A caller that was told of a failure does not close the file. */
	bool wanted = !req->replied;

	if (!status && wanted)
		status = open_handle(req, &opened);
	if (!status && wanted)
		open_reply(req, inode, opened);
	else if (opened.sent_back)
		op_expire_attr_behind_drops(req, open_sent_back);
	else
		open_failed(req, status);
}

/* The kernel does not learn from the answer that the mode has changed. */
static void open_truncated(struct request *req, int status)
{
	if (!status)
		kernel_pages_end_is_answered(op_of(req)->inode, 0);
	if (!status && (op_of(req)->set.valid & SET_NO_PRIVILEGES))
		op_expire_attr(req, open_done);
	else
		open_done(req, status);
}

static void open_cut(struct request *req)
{
	struct inode *inode = op_of(req)->inode;
	struct rpc_setattr set = {.valid = SET_SIZE};

	if (req->args.kill_priv)
		op_takes_privileges(req, inode, &set);
	op_set_attr(req, &set, open_truncated);
}

void open_inode(struct request *req, bool truncate)
{
	if (truncate && inode_is_regular(op_of(req)->inode))
		open_cut(req);
	else
		open_done(req, 0);
}

void open_refuse(struct request *req, int status)
{
	open_done(req, status);
}

void op_open(struct request *req)
{
	op_begin(req);
	open_inode(req, req->args.flags & O_TRUNC);
}

void op_release(struct request *req)
{
	struct op *op = op_begin(req);

	lock_handle_closed(req, op->inode, handle_of(req));
	close_handle(op->inode, handle_of(req), req->thread);
	op_finish(req, 0);
}

/* ---- directories ----------------------------------------------------------------------------- */

void op_opendir(struct request *req)
{
	struct op *op = op_begin(req);
	struct opened opened;
	int r = open_count(op->inode, O_DIRECT, req->pid, &opened);

	op_end(req);
	if (r)
		reply_error(req, r);
	else
		reply_open(req, 0, 0);
}

void op_releasedir(struct request *req)
{
	struct op *op = op_begin(req);

	close_count(op->inode, false, req->thread);
	op_finish(req, 0);
}
