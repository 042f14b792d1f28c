/* FLUSH, FSYNC, FSYNCDIR: [record locks go] -> [acknowledged writes are remote] -> COMMIT -> [names
 * that were changed before] -> reply. */
#include <errno.h>

#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/lock/lock_owner.h"
#include "daemon/barrier/session_renewal.h"
#include "daemon/file/op_inode.h"
#include "daemon/file/inode.h"
#include "daemon/lease/lease.h"
#include "daemon/file/commit.h"
#include "daemon/file/make_first.h"
#include "daemon/file/name_queue.h"
#include "daemon/file/gate_pass.h"

struct sync_state {
	union {
		struct op op;
		struct shared_op shared;
	};
	int pages;      /* the error to be told of pages that were not written back */
	uint64_t names; /* the number of the last one that was changed before; 0: none */
};

/* After the session's end, and tells then. */
static bool begins_anew(const struct request *req)
{
	const struct fs *fs = req->thread->fs;

	return fs_may_share(fs) && !session_lost(fs->session) && op_ends_with_session(req, -EIO);
}

/* An abandoned request has no caller to tell, and its handle may be gone. */
static int sync_tell(struct request *req)
{
	struct inode *inode = op_of(req)->inode;

	if (req->replied)
		return 0;
	if (begins_anew(req))
		return commit_has_to_tell(inode, handle_of(req)) ? -EIO : 0;
	return commit_tell(inode, handle_of(req));
}

/* The kernel has looked before it sent this, so pages that fail later count for the next one. */
static int sync_tell_pages(struct request *req)
{
	if (req->replied || begins_anew(req))
		return 0;
	return commit_tell_pages(op_of(req)->inode, handle_of(req), req->op);
}

/* A failure that is told goes before an interruption of this call. Names that were changed before
 * may be lost with a session. While that ends it is not known yet, so the request begins anew. */
static void synced(struct request *req, int status)
{
	int failed = sync_tell(req);

	if (!failed)
		failed = status;
	if (!failed && (session_renewal_has_lost_names(req) || begins_anew(req)))
		failed = -EIO;
	op_finish(req, failed);
}

/* fdatasync(2) does not wait for times alone. */
static bool is_synced(const struct request *req, struct inode *inode)
{
	return req->op == OP_FSYNC && req->args.datasync && !commit_lacks_data(inode);
}

/* Names that were changed before are durable with it, also if the file itself is clean. A COMMIT or
 * MAKE comes behind them, or takes them along. */
static void committed(struct request *req, int status)
{
	uint64_t until = op_state(req, struct sync_state)->names;

	if (status || name_queue_wait(req, until, synced))
		synced(req, status);
}

static void sync_commit(struct request *req, int status)
{
	static const struct op_about all = {.all = true};
	struct inode *inode = op_of(req)->inode;
	int failed = sync_tell(req);

	if (!failed)
		failed = op_state(req, struct sync_state)->pages;
	op_state(req, struct sync_state)->names =
		name_queue_before(req->thread->fs->name_queue, &all);
	if (req->op == OP_FLUSH && inode->fs->sharing && !req->replied)
		lease_note_closing(inode, handle_of(req));
	if (failed || status)
		op_finish(req, failed ? failed : status);
	else if (is_synced(req, inode) || commit_wait(req, inode, &status, committed))
		committed(req, status);
}

static void sync_file(struct request *req)
{
	op_state(req, struct sync_state)->pages = sync_tell_pages(req);
	if (op_wait_acknowledged(req, sync_commit))
		sync_commit(req, 0);
}

static void flush_unlocked(struct request *req, int status)
{
	if (status || req->replied || !handle_of(req)->writes)
		op_finish(req, status);
	else
		sync_file(req);
}

/* A handle that only reads closes at once: failed writes of other handles are not told to it. The
 * kernel sends FLUSH for such a handle only with a writeback cache, or on a sharing mount
 * (OPEN_NO_FLUSH). */
void op_flush(struct request *req)
{
	op_begin(req);
	if (lock_flush(req, flush_unlocked))
		flush_unlocked(req, 0);
}

void op_fsync(struct request *req)
{
	op_begin(req);
	sync_file(req);
}

/* A name that the server has refused to remove is told once. */
static int names_tell(struct inode *dir)
{
	int error;

	pthread_mutex_lock(&dir->lock);
	error = dir->names_error;
	dir->names_error = 0;
	pthread_mutex_unlock(&dir->lock);
	return error;
}

static void directory_synced(struct request *req, int status)
{
	/* It is begun anew, and tells then. */
	if (!status && begins_anew(req))
		status = -EIO;
	if (!status)
		status = names_tell(op_of(req)->inode);
	if (!status)
		status = make_first_refusal(req);
	if (!status && session_renewal_has_lost_names(req))
		status = -EIO;
	op_finish(req, status);
}

/* Directories change at the server only, but for the names that are made and removed here. */
void op_fsyncdir(struct request *req)
{
	struct op_about about = {.ino = {req->node}, .changes = true};

	op_begin(req);
	if (make_first(req, &about, directory_synced))
		directory_synced(req, 0);
}
