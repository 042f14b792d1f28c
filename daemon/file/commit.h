/* commit.h - telling the server what was written: new extents, size and times of data that is
 * remote already; and mode and owners that were set meanwhile.
 *
 * This is done at FLUSH, FSYNC and RELEASE, before a change of size or times, and once a second for
 * dirty inodes. An inode has one COMMIT on its way at most. A file with many new extents takes
 * several, and the last one carries the size. It comes behind the names that were changed before
 * anything that it tells (name_queue.h).
 *
 * ERRORS     A failure is told to the requests that wait for the COMMIT. It is also told once to
 *            the user of each handle that was open then, by the next fsync, or by close if the
 *            handle may write. While nobody has been told, users that open the file later are told,
 *            too. So fsync(2) does not say that all is well because another process has asked
 *            before. A request that waits for a COMMIT for other reasons changes nothing of this.
 *            Pages that the kernel could not write back from its cache are told to each handle by
 *            the kernel, by fsync and msync. But its close tells the first handle only
 *            (mm/filemap.c: filemap_check_errors()), so ours tells the others.
 *
 * THREADS    Fields belong to the inode's lock, but for those of the dirty list, which are its
 *            thread's. A COMMIT is sent by the thread that wants it; waiters are woken in theirs.
 */
#ifndef RMEMFS_DAEMON_FILE_COMMIT_H
#define RMEMFS_DAEMON_FILE_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "daemon/file/make_batch.h"
#include "daemon/file/name_queue.h"
#include "daemon/remote/remote.h"

struct handle;
struct inode;
struct request;

struct commit {
	struct rpc_call call;
	struct make_entry making; /* of a file that is made by it: a MAKE tells call.req.commit */
	struct io_thread *thread; /* that sent the COMMIT on its way */
	struct name_behind behind;
	uint64_t waited; /* `changes` when it began to wait behind names */
	bool running;
	bool size_dirty, times_dirty;
	/* SET_MODE, SET_UID, SET_GID: newer here than in any reply. The COMMIT on its way tells
	 * those of `telling`; the next one will tell those of `set`. */
	uint32_t set, telling;
	/* Counts changes. The COMMIT on its way covers those up to `covers`. Clean: changes ==
	 * done. */
	uint64_t changes, covers, done;
	uint64_t sent_size;
	int error; /* of the last failure */
	uint64_t nfailures;
	bool told;      /* somebody was told of the last failure */
	int page_error; /* of pages that were not written back; the last one */
	uint64_t npage_failures;
	bool lost_pages;     /* some, since the session has ended */
	bool refused;        /* the last one failed: not tried again before the next change */
	uint8_t *tail;       /* of the extents on their way */
	struct list waiters; /* struct waiter */
	struct list dirty;   /* in fs_thread.dirty of the thread that listed it */
	bool listed;
	/* Called, without the inode's lock, when a COMMIT of an inode without a name is answered.
	 * inode_return.c sets it when the last name goes. */
	void (*ended)(struct inode *inode, struct io_thread *thread);
};

/* Of SET_MODE, SET_UID and SET_GID, those that the server has not confirmed. */
static inline uint32_t commit_sets_locked(const struct commit *c)
{
	return c->set | c->telling;
}

static inline void commit_init(struct commit *c)
{
	list_init(&c->waiters);
	list_init(&c->dirty);
}

/* This thread has changed something of the inode: it is committed within about a second. Takes a
 * reference where it lists the inode. */
void commit_dirty_locked(struct inode *inode, struct io_thread *thread);
bool commit_is_clean_locked(const struct inode *inode);
/* Whether bytes, or a mode or owners that were set, would be lost if the server were told no more.
 * Times alone don't count: the server sets them by itself in part. */
bool commit_is_at_risk_locked(const struct inode *inode);

/* Tells the record (record.h) what would be lost with this process. Each change of that calls it,
 * before a program is told of the change. */
void commit_mark_locked(struct inode *inode);

/* Whether the server does not know the size or the extents that bytes are found by. O_DSYNC,
 * O_DIRECT and fdatasync(2) wait for these, and not for times. */
bool commit_lacks_data(struct inode *inode);

/* A write's data did not get where it belongs. */
void commit_failed_locked(struct inode *inode, int status);
/* The kernel is about to be told that a page of its cache was not written back. Closes tell EIO, or
 * that there is no room. */
void commit_pages_failed(struct inode *inode, int status);
/* The handle is opened: its user is to be told of failures from now on. */
void commit_handle_opened_locked(struct inode *inode, struct handle *handle);
/* Returns the error that the handle's user has not been told of, and counts it as told; or 0. */
int commit_tell(struct inode *inode, struct handle *handle);
/* The same of pages of the kernel's cache, at close. An FSYNC that comes here was preceded by what
 * the kernel has to tell. */
int commit_tell_pages(struct inode *inode, struct handle *handle, enum request_op op);
/* The user's operation is answered by the last failure. If that is all there is to tell, it is not
 * told again. */
void commit_told_by_answer(struct inode *inode, struct handle *handle);
bool commit_has_to_tell_locked(const struct inode *inode, const struct handle *handle);
bool commit_has_to_tell(struct inode *inode, const struct handle *handle);

/* Waits until all that has been written so far is committed, then calls then(req, status). True:
 * nothing is to be done, *status is 0, and then() is not called. */
bool commit_wait(struct request *req, struct inode *inode, int *status,
	void (*then)(struct request *req, int status));

/* The same, but only if the server does not know of a mode or owners that were set. Called before a
 * request whose result depends on them. */
bool commit_wait_set(struct request *req, struct inode *inode, int *status,
	void (*then)(struct request *req, int status));

/* Starts a COMMIT if something is dirty; nobody waits for it. */
void commit_start(struct inode *inode, struct io_thread *thread);

void commit_start_locked(struct inode *inode, struct io_thread *thread);
/* The server won't take the changes, and the right to them goes: nothing is dirty any more. The
 * failure was told. A file that the server does not know will never be there. */
void commit_forget_locked(struct inode *inode);

/* Of each thread's make_batch. */
extern const struct make_hooks commit_make_hooks;

/* Commits the inodes of the thread's dirty list, and sends the names that were changed
 * (name_queue.h). Returns whether the list is empty now, and no such name is left. */
bool commit_tick(struct io_thread *thread);

#endif
