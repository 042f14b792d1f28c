/* access_time.h - when files, directories and links were last read: the kernel leaves that to us.
 *
 * By default (relatime) reading sets the access time when it is not later than the last change, or
 * older than a day. The server is told with the inode's next COMMIT. If there is none within some
 * seconds, an own COMMIT tells it. So reading costs no RPC, and a mount that only reads has its
 * times kept, too. Nobody waits for it or hears of a failure.
 *
 * THREADS    Fields belong to the inode's lock, but for the list, which is its thread's.
 */
#ifndef RMEMFS_DAEMON_FILE_ACCESS_TIME_H
#define RMEMFS_DAEMON_FILE_ACCESS_TIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "daemon/op/fs_options.h"

struct inode;
struct io_thread;
struct request;

struct access {
	bool dirty;       /* attr.atime is newer than what the server knows */
	unsigned held;    /* SETATTRs of it on their way; reading does not set it meanwhile */
	int64_t until_ms; /* until then, by the thread's clock, it is less than a day old */
	struct list link; /* in fs_thread.accessed since since_ms, with a reference */
	bool listed;
	int64_t since_ms;
};

static inline void access_time_init(struct access *a)
{
	list_init(&a->link);
}

/* The mount's options, which may change while it is there. */
struct access_policy {
	_Atomic enum access_mode mode;
	atomic_bool nodiratime, read_only;
};
/* By flags of mount(2): without one about access times nothing changes. */
void access_time_set(struct access_policy *policy, unsigned long flags);
void access_time_set_read_only(struct access_policy *policy, bool read_only);

/* The request reads its inode. */
void access_time_mark(struct request *req);
void access_time_mark_locked(struct request *req);

/* Around a change of the access time by hand. No mark that was made before reaches the server after
 * the change. The caller also waits for a COMMIT on its way (commit_wait). */
void access_time_hold(struct inode *inode);
/* atime: the new one; NULL: not changed. */
void access_time_release(struct inode *inode, const int64_t *atime);

/* Commits inodes that have waited long enough, or all, if the thread is to stop or the mount
 * becomes read-only. Returns whether none is left. */
bool access_time_tick(struct io_thread *thread);

#endif
