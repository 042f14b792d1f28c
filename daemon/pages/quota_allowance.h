/* quota_allowance.h - how much of the quotas of files' owners this client may fill before it asks
 * again.
 *
 *     server --QUOTA--> an owner's pool --share--> an inode's own --fill--> COMMIT makes it usage
 *
 * A page that is filled costs the file's user one and its group one. Pools and shares are reserved
 * at the server, as are pages that were filled and not committed yet. So data that was accepted is
 * never refused later. A share grows with the inode's appetite, so writers meet at the pools' lock
 * only once a share. If nothing limits an owner, the server says so once, and is asked again after
 * its restart.
 *
 * When an owner's quota has nothing left, the writers that wait get -EDQUOT. They try once more
 * after all shares were emptied into the pools and nameless inodes were returned (last_resort.h).
 * So the last page is found, wherever it is.
 *
 * An export without quotas costs the test of session_quotas().
 *
 * THREADS    Pools have one lock, taken inside inodes' locks. A share belongs to its inode's lock.
 *            Requests to the server are sent by the thread that noticed the need, one at a time for
 *            each owner.
 */
#ifndef RMEMFS_DAEMON_PAGES_QUOTA_ALLOWANCE_H
#define RMEMFS_DAEMON_PAGES_QUOTA_ALLOWANCE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/base/types.h"
#include "daemon/remote/remote.h"

struct fs;
struct request;

enum { ALLOWANCE_BUCKETS = 64 };
enum { ALLOWANCE_ASK_MIN = 256, ALLOWANCE_ASK_MAX = 16384 };
enum { SHARE_PAGES_MIN = 16, SHARE_PAGES_MAX = 2048 };

struct quota_allowances {
	pthread_mutex_t lock;
	struct list buckets[ALLOWANCE_BUCKETS]; /* struct allowance */
	unsigned ngiving;                       /* requests on their way that give back */
	void (*given)(
		struct io_thread *thread); /* quota_allowance_give_back()'s; NULL: nobody waits */
};

void quota_allowance_init(struct quota_allowances *a);
void quota_allowance_fini(struct quota_allowances *a);

/* Of one inode. */
struct share {
	uint32_t npages;
	uint32_t appetite;
	bool user, group; /* the one of the two, or both, that is limited and gave them */
	uint64_t epoch;   /* session_quotas() at that time */
};

/* _ready: how many of `want` pages of a file with this share and these owners (uid and gid of its
 * attributes) may be filled now; 0: see quota_allowance_wait(). _use: so many were filled. */
uint32_t quota_allowance_ready_locked(
	struct fs *fs, struct share *s, const struct attr *owners, uint32_t want);
void quota_allowance_use_locked(struct share *s, uint32_t npages);
/* The rest of a share goes back to its owners' pools. */
void quota_allowance_return_locked(struct fs *fs, struct share *s, const struct attr *owners);

/* Nothing was ready for a file of these owners. True: try again. False: then(req, status) follows;
 * 0: try again; -EDQUOT: the server has nothing for them. */
bool quota_allowance_wait(struct request *req, uint32_t uid, uint32_t gid,
	void (*then)(struct request *req, int status));

/* Gives the pools, without the shares, back to the server. given() is called when the server has
 * answered, in the thread that got the last answer, or at once if there is nothing. One call at a
 * time. */
void quota_allowance_give_back(struct io_thread *thread, void (*given)(struct io_thread *thread));

/* While nobody writes, and after shares were returned: gives all pools back. True: the server has
 * all of them. False: to be called again when no RPC of this thread is on its way. */
bool quota_allowance_give_all(struct io_thread *thread);

/* No reserved page is this session's any more; shares were returned before. */
void quota_allowance_forget(struct quota_allowances *as);

/* Gives back pools that were not used for some seconds. */
void quota_allowance_tick(struct io_thread *thread, int64_t now);

#endif
