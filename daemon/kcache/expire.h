/* expire.h - makes the kernel ask anew for what an operation may have changed, if the operation's
 * own answer could not tell it.
 *
 * A caller that was told that its operation is over, though it went on (abandoned.h), has had its
 * answer. So the kernel does not know what the operation has done in the end. For the rest of the
 * lease time it would keep a name that is gone, or one that it noted as missing, and old attributes
 * of the inodes concerned. So when such an operation has ended, whatever came of it, both expire.
 * The kernel compares what it has with the next answer and does not throw it away: mounts and
 * working directories below an unchanged name stay as they are.
 *
 * To expire a name the kernel locks its parent, and others may hold that lock while they wait for
 * our answers. So a thread of its own does it, which nobody waits for, and only when the server is
 * back to answer them.
 *
 * THREADS    expire_changed(): any I/O thread.
 */
#ifndef RMEMFS_DAEMON_KCACHE_EXPIRE_H
#define RMEMFS_DAEMON_KCACHE_EXPIRE_H

#include <pthread.h>

#include "common/base/list.h"

struct fs;
struct request;

/* The expiries that are under way. */
struct expiries {
	pthread_mutex_t lock;
	struct list all;
};

void expiries_init(struct expiries *x);
/* When no notifier runs any more: expiries that are left are not done. */
void expiries_fini(struct expiries *x);

/* Expires the names that the request is about, if it changes names, and the attributes of the
 * inodes that it is about. They are copied. Without memory the kernel keeps them until the lease
 * ends, which is logged. */
void expire_changed(struct request *req);

/* Makes the kernel ask anew for the inode's attributes; then(req, 0) goes on. */
void op_expire_attr(struct request *req, void (*then)(struct request *req, int status));
/* The same, after the kernel was told all that kernel_pages.h has to tell it by now. */
void op_expire_attr_behind_drops(
	struct request *req, void (*then)(struct request *req, int status));

#endif
