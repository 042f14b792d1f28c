/* remount.h - an existing mount becomes read-only, or may be written again, or keeps other access
 * times, while its files stay open.
 *
 * The kernel tells its filesystem nothing of mount -o remount. So the process that remounts
 * (mountpoint.h) tells us by an ioctl on the root directory, whose argument is flags of mount(2):
 *
 *     to write       ioctl -> all threads attach anew, with keys that write -> answer -> the kernel
 *                    (or the server refuses that, since others read: they attach as before)
 *     to read only   the kernel, which writes back what it has and lets nobody write from then on
 *                    -> ioctl -> writes that are on their way end, and all threads commit what is
 *                    dirty -> they attach anew, with keys that only read -> answer
 *
 * So in either case the server enforces that a read-only mount writes nothing, and refuses no write
 * that the kernel has let in. Without the server the ioctl waits as any operation does. A signal
 * ends the wait, and on a soft mount the time does. A session that was to become read-only then
 * goes on as it was if not all is committed yet. Else it becomes read-only when the server is back,
 * and a session that was to write may write then.
 *
 * THREADS    The lock is taken inside no other one. Each thread tells for itself that it is clean.
 */
#ifndef RMEMFS_DAEMON_BARRIER_REMOUNT_H
#define RMEMFS_DAEMON_BARRIER_REMOUNT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"

struct fs;
struct io_thread;
struct request;

/* REMOUNT. -EPERM: only root may, with CAP_SYS_ADMIN as for mount(2), in the daemon's user
 * namespace, and where the daemon sees that process in its /proc. -EBUSY: another remount waits for
 * the opposite. -EUSERS: other clients read the export that this one would write. Without a flag
 * about access times they stay as they are. */
void op_remount(struct request *req);

enum remount_phase {
	REMOUNT_DONE,
	REMOUNT_COMMITS, /* on the way to read-only */
	REMOUNT_ATTACHES,
};

struct remount {
	struct fs *fs;
	pthread_mutex_t lock;
	_Atomic enum remount_phase phase; /* changed under the lock */
	bool read_only;                   /* as it is, or is going to be */
	uint32_t clean;                   /* COMMITS: threads with nothing left, a bit each */
	struct list waiters;              /* struct waiter */
};

void remount_init(struct remount *r, struct fs *fs, bool read_only);
void remount_fini(struct remount *r);

/* Does what is due, after events and about every 100 ms. */
void remount_step(struct io_thread *thread);

#endif
