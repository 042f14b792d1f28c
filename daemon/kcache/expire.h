/* expire.h - makes the kernel ask anew for what an operation may have changed, when its own answer
 * could not tell it.
 *
 * Whoever was told that his operation is over, though it went on (abandoned.h), has had his answer:
 * what it has done in the end, the kernel knows nothing of. It would go on for the rest of the
 * lease with a name that is no more, or with the one it has noted as missing, and with attributes
 * of the inodes that were concerned. So when such an operation has ended, whatever came of it, both
 * expire. What the kernel has of them is compared with the next answer and not thrown away: mounts
 * and working directories below a name that is what it was stay what they are.
 *
 * A name's parent is locked for that, which others may have locked who wait for our answers. So it
 * is done by a thread of its own, which nobody waits for, and not before the server is back to
 * answer them.
 *
 * THREADS    expire_changed(): any I/O thread.
 */
#ifndef RMEMFS_DAEMON_KCACHE_EXPIRE_H
#define RMEMFS_DAEMON_KCACHE_EXPIRE_H

#include <pthread.h>

#include "common/base/list.h"

struct fs;
struct request;

/* What is under way. */
struct expiries {
	pthread_mutex_t lock;
	struct list all;
};

void expiries_init(struct expiries *x);
/* When no notifier runs any more: what is left is not done. */
void expiries_fini(struct expiries *x);

/* The names that the request is about, if it changes names, and the attributes of the inodes that
 * it is about. They are copied; without memory they stay until the lease ends, which is logged. */
void expire_changed(struct request *req);

/* Makes the kernel ask anew for the inode's attributes; then(req, 0) goes on. */
void op_expire_attr(struct request *req, void (*then)(struct request *req, int status));
/* The same, when it has been told all that kernel_pages.h has to tell it by now. */
void op_expire_attr_behind_drops(
	struct request *req, void (*then)(struct request *req, int status));

#endif
