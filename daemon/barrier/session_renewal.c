#include "daemon/barrier/session_renewal.h"

#include <errno.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/barrier/conversion.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/op/op.h"
#include "daemon/file/inode_path.h"
#include "daemon/lock/local_locks.h"
#include "daemon/lock/lock_owner.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/kcache/kernel_attr.h"
#include "daemon/file/inode_return.h"
#include "daemon/file/make_first.h"
#include "daemon/file/name_queue.h"
#include "daemon/file/unmade.h"
#include "daemon/barrier/snapshot_freeze.h"
#include "daemon/file/dir_names.h"
#include "daemon/pages/quota_allowance.h"
#include "daemon/file/inode.h"
#include "daemon/lease/lease.h"
#include "daemon/lease/local_answer.h"
#include "daemon/file/commit.h"
#include "daemon/pages/grants.h"

/* The number of files that the log names. */
enum { NAMED_MAX = 100 };

static bool is_running(const struct fs *fs)
{
	return fs_is_renewing(fs);
}

void session_renewal_init(
	struct session_renewal *r, struct fs *fs, void (*begin)(struct request *req, int status))
{
	*r = (struct session_renewal){.begin = begin, .next = 1};
	pthread_mutex_init(&r->lock, NULL);
	barrier_init(&r->hold, fs, OP_AT_RENEWAL, is_running);
}

void session_renewal_fini(struct session_renewal *r)
{
	pthread_mutex_destroy(&r->lock);
}

static enum renewal_phase phase_of(const struct fs *fs)
{
	return atomic_load_explicit(&fs->renewal->phase, memory_order_acquire);
}

/* ---- what is forgotten ----------------------------------------------------------------------- */

struct lost_files {
	struct inode *named[NAMED_MAX]; /* referenced */
	unsigned n;
};

struct lost {
	struct fs *fs;
	struct lost_files written, locked;
};

static void note_lost(struct lost_files *files, struct inode *inode)
{
	if (files->n < NAMED_MAX)
		files->named[files->n] = inode_ref(inode);
	files->n++;
}

/* Whether a writer is yet to be told of a write that did not arrive. */
static bool is_to_tell_locked(const struct commit *c)
{
	return c->nfailures && !c->told && c->error == -EIO;
}

/* Bytes that were written in place are not lost; the server sets their times. */
static bool is_lost_locked(const struct inode *inode)
{
	return is_to_tell_locked(&inode->commit) || commit_is_at_risk_locked(inode);
}

static void forget_inode(struct inode *inode, void *arg)
{
	struct lost *lost = arg;

	pthread_mutex_lock(&inode->lock);
	if (is_lost_locked(inode) || inode->unmade) {
		if (!inode->commit.refused && !is_to_tell_locked(&inode->commit))
			commit_failed_locked(inode, -EIO);
		note_lost(&lost->written, inode);
	} else if (inode->commit.lost_pages) {
		note_lost(&lost->written, inode);
	}
	inode->commit.lost_pages = false;
	commit_forget_locked(inode);
	inode->access.dirty = false;
	inode_unlease_locked(inode);
	dir_names_forget(&inode->names, &lost->fs->inodes->names);
	lease_forget_locked(inode);
	kernel_attr_forget_locked(inode);
	kernel_pages_drop_locked(inode, lost->fs->threads[0].thread, LEASE_NONE);
	if (lock_owners_forget_locked(inode))
		note_lost(&lost->locked, inode);
	pthread_mutex_unlock(&inode->lock);
}

static void log_lost(struct lost_files *files, const char *what)
{
	char text[PATH_INODE_BYTES];

	for (unsigned i = 0; i < files->n && i < NAMED_MAX; i++) {
		log_error("%s: %s", path_name_inode(files->named[i], text), what);
		inode_put(files->named[i]);
	}
	if (files->n > NAMED_MAX)
		log_error("%u more files: %s", files->n - NAMED_MAX, what);
}

/* Before Linux 6.9 a file that is written through the kernel's cache can't be shared
 * (conversion.h). Requests are held, so none is opened. */
static bool can_share(struct fs *fs)
{
	if (!kernel_pages_writers(fs))
		return true;
	session_lose(fs->session,
		"others have had the export, and files are open for writing, which this kernel "
		"can't share (Linux 6.9 can)");
	return false;
}

static void forget(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	struct lost lost = {.fs = fs};

	if (!can_share(fs)) {
		conversion_is_over(fs);
		return;
	}
	make_first_lost(fs);
	if (name_queue_take_loss(fs->name_queue))
		atomic_store(&fs->renewal->lost_names, atomic_load(&fs->renewal->session));
	inode_each(fs, forget_inode, &lost);
	grants_forget(fs->grants);
	for (unsigned i = 0; i < fs->options.session.io_threads; i++)
		__atomic_store_n(&fs->threads[i].taken, 0, __ATOMIC_RELAXED);
	quota_allowance_forget(fs->allowances);
	snapshot_freeze_forget(fs->freeze);
	log_lost(&lost.written, "what was written last is lost with the session");
	log_lost(&lost.locked,
		"its locks are lost with the session; it fails with EIO until it is closed");
	/* One that was alone, and did not share in time, comes back as one of several. */
	unmade_forget_numbers(fs->unmade);
	local_answer_forget_alone(fs->looks);
	session_share(fs->session);
	conversion_note_renewal(fs);
	fs_begin_sharing(fs);
	local_locks_end(fs);
	conversion_is_over(fs);
	session_begin_anew(fs->session);
	/* Operations that waited for room go on, in the new session. */
	inode_return_forget(thread);
}

/* ---- the end of what has begun --------------------------------------------------------------- */

/* Whether it waits for a session, and knows nothing of the old one. */
static bool is_held(const struct op *op)
{
	return op->wait == OP_AT_RENEWAL || op->wait == OP_AT_CONVERSION ||
	       op->wait == OP_AT_REMOUNT;
}

/* An operation that has sent something ends with its calls. */
static void end_one(struct request *req, void *arg)
{
	const struct op *op = op_of(req);

	if (op->wait != OP_RUNS && !is_held(op))
		op_cancel(req, -EIO);
}

static void count_one(struct request *req, void *arg)
{
	fs_thread_of(req->thread)->nrunning += !is_held(op_of(req));
}

static bool session_renewal_is_idle(struct io_thread *thread)
{
	struct fs_thread *ft = fs_thread_of(thread);

	ft->nrunning = 0;
	request_each(thread, count_one, NULL);
	/* Names that were removed here are there again. */
	name_queue_flush(thread->fs->name_queue, thread);
	return !ft->nrunning && list_empty(&ft->lock_waits) && remote_is_idle(thread) &&
	       !name_queue_any(thread->fs->name_queue);
}

/* Unless another thread was first. A thread that sees that the session ends sees that it is
 * renewed, too. */
static void change_phase(struct fs *fs, enum renewal_phase from, enum renewal_phase to)
{
	struct session_renewal *r = fs->renewal;

	pthread_mutex_lock(&r->lock);
	if (phase_of(fs) == from) {
		if (to == RENEWAL_ENDS) {
			r->idle = 0;
			atomic_fetch_add(&r->session, 1);
		}
		if (to != RENEWAL_NONE)
			atomic_store_explicit(&fs->renewing, true, memory_order_release);
		atomic_store_explicit(&r->phase, to, memory_order_release);
		if (to == RENEWAL_NONE) {
			atomic_store(&r->next, atomic_load(&r->session) + 1);
			atomic_store_explicit(&fs->renewing, false, memory_order_release);
		}
		barrier_wake(&r->hold);
	}
	pthread_mutex_unlock(&r->lock);
}

/* True: all threads are idle, and this one was the last. Nothing makes a thread busy again. */
static bool say_idle(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	struct session_renewal *r = fs->renewal;
	uint32_t bit = UINT32_C(1) << thread->index, before;

	pthread_mutex_lock(&r->lock);
	before = r->idle;
	r->idle |= bit;
	pthread_mutex_unlock(&r->lock);
	return !(before & bit) &&
	       (before | bit) == (UINT32_C(1) << fs->options.session.io_threads) - 1;
}

static void end_all(struct io_thread *thread)
{
	struct fs *fs = thread->fs;

	request_each(thread, end_one, NULL);
	if (!session_renewal_is_idle(thread))
		return;
	remote_begin_anew(thread);
	if (!say_idle(thread))
		return;
	forget(thread);
	change_phase(fs, RENEWAL_ENDS, RENEWAL_ATTACHES);
}

void session_renewal_step(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	enum renewal_phase phase = phase_of(fs);

	if (session_lost(fs->session))
		change_phase(fs, phase, RENEWAL_NONE);
	else if (phase == RENEWAL_NONE && session_has_ended(fs->session))
		change_phase(fs, phase, RENEWAL_ENDS);
	else if (phase == RENEWAL_ENDS)
		end_all(thread);
	else if (phase == RENEWAL_ATTACHES && session_is_made(fs->session))
		change_phase(fs, phase, RENEWAL_NONE);
}

/* ---- what comes meanwhile -------------------------------------------------------------------- */

/* A program that closes a file may be about to end, and no signal tells of that. */
static bool is_looked_after(const struct request *req)
{
	return req->op == OP_FLUSH || req->op == OP_FSYNC;
}

static void hold(struct request *req)
{
	struct session_renewal *r = req->thread->fs->renewal;

	barrier_hold(&r->hold, req, r->begin);
	if (is_looked_after(req))
		op_watch(req);
}

void session_renewal_note_arrival(struct request *req)
{
	if (req->op == OP_FSYNC || req->op == OP_FSYNCDIR || req->op == OP_FLUSH)
		op_of(req)->renewal = atomic_load(&req->thread->fs->renewal->next);
}

bool session_renewal_has_lost_names(struct request *req)
{
	const struct fs *fs = req->thread->fs;
	unsigned renewal = op_of(req)->renewal;

	if (session_lost(fs->session) && name_queue_has_lost(fs->name_queue))
		return true;
	return renewal && (int)(atomic_load(&fs->renewal->lost_names) - renewal) >= 0;
}

/* Others go on: the kernel closes a handle whatever the answer is, and asks for attributes by it,
 * too. */
static bool is_about_data(const struct request *req)
{
	switch (req->op) {
	case OP_READ:
	case OP_WRITE:
	case OP_FSYNC:
	case OP_LSEEK:
	case OP_FALLOCATE:
	case OP_COPY:
	case OP_GETLK:
	case OP_SETLK:
		return true;
	case OP_SETATTR:
		return req->args.set.valid & SET_SIZE;
	default:
		return false;
	}
}

static struct handle *handle_for_data(const struct request *req)
{
	return req->args.has_fh && is_about_data(req) ? handle_of(req) : NULL;
}

void session_renewal_handle_opened(struct fs *fs, struct handle *handle)
{
	handle->session = atomic_load_explicit(&fs->renewal->session, memory_order_relaxed);
}

static bool is_unlocked(const struct handle *handle)
{
	return atomic_load_explicit(&handle->unlocked, memory_order_relaxed);
}

bool session_renewal_handle_is_stale(const struct fs *fs, const struct handle *handle)
{
	return atomic_load_explicit(&handle->session, memory_order_relaxed) !=
	       atomic_load_explicit(&fs->renewal->session, memory_order_relaxed);
}

void session_renewal_handle_adopted(struct fs *fs, struct handle *handle, bool stale)
{
	session_renewal_handle_opened(fs, handle);
	if (stale)
		atomic_fetch_sub(&handle->session, 1);
}

static bool is_stale(const struct fs *fs, const struct handle *handle)
{
	return is_unlocked(handle) || session_renewal_handle_is_stale(fs, handle);
}

/* The answer to this request tells the handle's user of the loss. */
static void session_renewal_tell(const struct request *req, struct handle *handle)
{
	unsigned session = atomic_load(&req->thread->fs->renewal->session);

	if (request_is_for_cache(req))
		return;
	atomic_store(&handle->session, session);
	if (req->op == OP_COPY)
		atomic_store(&handle_of_target(req)->session, session);
	if (req->op == OP_FSYNC) {
		commit_tell(handle->inode, handle);
		commit_tell_pages(handle->inode, handle, req->op);
	}
}

/* FSYNC waits: what is lost is known when the old session is forgotten. Pages in the kernel's cache
 * go with their lease (kernel_pages.h), so later requests for the cache belong to the new
 * session. */
static bool is_refused(const struct request *req, const struct handle *handle, bool running)
{
	bool stale = is_stale(req->thread->fs, handle);

	if (request_is_for_cache(req))
		return running || (req->op == OP_READ && is_unlocked(handle));
	if (req->op == OP_FSYNC && running)
		return false;
	if (req->op == OP_FSYNC && stale)
		return is_unlocked(handle) || commit_has_to_tell(handle->inode, handle);
	return stale;
}

static bool is_refused_by_target(const struct request *req)
{
	return req->op == OP_COPY && is_stale(req->thread->fs, handle_of_target(req));
}

bool session_renewal_enter(struct request *req)
{
	struct fs *fs = req->thread->fs;
	struct handle *handle = handle_for_data(req);
	bool running = fs_is_renewing(fs);

	if (handle && (is_refused(req, handle, running) || is_refused_by_target(req))) {
		session_renewal_tell(req, handle);
		op_watch_begin(req);
		fs->renewal->begin(req, -EIO);
		return false;
	}
	/* STATFS is answered from memory meanwhile. */
	if (!running || req->op == OP_STATFS)
		return true;
	hold(req);
	return false;
}

/* Operations that are yet to end may need the payload's buffer. */
static bool can_begin_anew(const struct request *req)
{
	return req->op != OP_WRITE && req->op != OP_SETXATTR;
}

bool session_renewal_takes_back(struct request *req, int *error)
{
	bool knows_later = req->op == OP_FSYNC && !op_of(req)->changing;
	unsigned renewal = op_of(req)->renewal;
	struct handle *handle = knows_later ? NULL : handle_for_data(req);

	/* There may be no other session to begin anew in. */
	if (session_lost(req->thread->fs->session) || !op_ends_with_session(req, *error))
		return false;
	*error = -EIO;
	if (handle)
		session_renewal_tell(req, handle);
	if (handle || op_of(req)->changing || !can_begin_anew(req))
		return false;
	request_return_buffer(req);
	memset(req->state, 0, sizeof(req->state));
	op_of(req)->renewal = renewal;
	hold(req);
	return true;
}
