/* commit.h - telling the server what was written: new extents, size and times of data that is
 * remote already; and mode and owners that were set meanwhile.
 *
 * Done at FLUSH, FSYNC and RELEASE, before a change of size or times, and once a second for what is
 * dirty. An inode has one COMMIT on its way at most; a file with many new extents takes several,
 * the last of which carries the size.
 *
 * ERRORS     What fails is told to whoever waits for it, and once to the user of each handle that
 *            was open then, at the next fsync, or close if it may write; while nobody has been
 *            told, whoever opens the file later is, too. So fsync(2) does not say that all is well
 *            because another process has asked before. What waits for a COMMIT for other reasons
 *            changes nothing of this.
 *
 * THREADS    Fields belong to the inode's lock, but for those of the dirty list, which are its
 *            thread's. A COMMIT is sent by the thread that wants it; waiters are woken in theirs.
 */
#ifndef RMEMFS_DAEMON_FILE_COMMIT_H
#define RMEMFS_DAEMON_FILE_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "daemon/remote/remote.h"

struct handle;
struct inode;
struct request;

struct commit {
	struct rpc_call call;
	struct io_thread *thread; /* that sent the one on its way */
	bool running;
	bool size_dirty, times_dirty;
	uint32_t set; /* SET_MODE, SET_UID, SET_GID: newer here than in any reply */
	/* Counts changes; what is on its way covers those up to `covers`. Clean: changes == done.
	 */
	uint64_t changes, covers, done;
	uint64_t sent_size;
	int error; /* of the last failure */
	uint64_t nfailures;
	bool told;           /* somebody, of the last one */
	bool refused;        /* the last one failed: not tried again before the next change */
	uint8_t *tail;       /* of the extents on their way */
	struct list waiters; /* struct waiter */
	struct list dirty;   /* in fs_thread.dirty of the thread that listed it */
	bool listed;
};

void commit_init(struct commit *c);

/* Something of the inode was changed in this thread: it is committed within about a second. Takes
 * a reference where it lists the inode. */
void commit_dirty_locked(struct inode *inode, struct io_thread *thread);
bool commit_is_clean_locked(const struct inode *inode);
/* Whether bytes, or a mode or owners that were set, would be lost if the server were told no more.
 * Times alone, which it sets by itself in part, are not meant. */
bool commit_is_at_risk_locked(const struct inode *inode);

/* What was written did not get where it belongs. */
void commit_failed_locked(struct inode *inode, int status);
/* From when the handle is opened its user is to be told. */
void commit_handle_opened_locked(struct inode *inode, struct handle *handle);
/* The error that its user has not been told of yet, which he is now; or 0. */
int commit_tell(struct inode *inode, struct handle *handle);
/* The last failure is what his operation is answered by: if it is all that he has to be told of, he
 * is not again. */
void commit_told_by_answer(struct inode *inode, struct handle *handle);
bool commit_has_to_tell_locked(const struct inode *inode, const struct handle *handle);
bool commit_has_to_tell(struct inode *inode, const struct handle *handle);

/* Waits until all that has been written so far is committed, then calls then(req, status). True:
 * nothing is to be done, and then() is not called; *status is 0. */
bool commit_wait(struct request *req, struct inode *inode, int *status,
	void (*then)(struct request *req, int status));

/* Before the server is asked for what depends on mode or owners: the same if it does not know how
 * they were set. */
bool commit_wait_set(struct request *req, struct inode *inode, int *status,
	void (*then)(struct request *req, int status));

/* Starts one if something is dirty, for nobody in particular. */
void commit_start(struct inode *inode, struct io_thread *thread);

void commit_start_locked(struct inode *inode, struct io_thread *thread);
/* The server won't take what there is, and the right to it goes: nothing is dirty any more. Its
 * failure was told. */
void commit_forget_locked(struct inode *inode);

/* Commits what is on the thread's dirty list. Returns whether the list is empty now. */
bool commit_tick(struct io_thread *thread);

#endif
