/* quota_allowance.h - what this client may fill of the quotas of files' owners before it has to ask
 * again.
 *
 *     server --QUOTA--> an owner's pool --share--> an inode's own --fill--> COMMIT makes it usage
 *
 * A page that is filled costs the file's user one and its group one. What is in pools and shares is
 * reserved at the server, as are pages that were filled and not committed yet; so data that was
 * accepted is never refused later. A share grows with the inode's appetite, so that writers meet at
 * the pools' lock once a share only. Whom nothing limits, the server says once, and is asked again
 * when it was restarted.
 *
 * Where an owner's quota has nothing left the writers that wait get -EDQUOT, and try once more
 * after all shares were emptied into the pools and nameless inodes were returned (last_resort.h).
 * So the last page is found, wherever it is.
 *
 * An export without quotas costs the test of session_quotas().
 *
 * THREADS    Pools have one lock, taken inside inodes' locks. A share belongs to its inode's lock.
 *            Requests to the server are sent by the thread that noticed, one at a time for each
 *            owner.
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
	bool user, group; /* which of the two is limited, and gave them */
	uint64_t epoch;   /* session_quotas() at that time */
};

/* How many of `want` pages may be filled now of a file with this share and these owners (uid and
 * gid of its attributes); 0: see quota_allowance_wait(). Then, how many were. */
uint32_t quota_allowance_ready_locked(
	struct fs *fs, struct share *s, const struct attr *owners, uint32_t want);
void quota_allowance_use_locked(struct share *s, uint32_t npages);
/* What is left of a share goes back to its owners. */
void quota_allowance_return_locked(struct fs *fs, struct share *s, const struct attr *owners);

/* Nothing was ready for a file of these owners. True: try again. False: then(req, status) follows;
 * 0: try again, -EDQUOT: the server has nothing for them. */
bool quota_allowance_wait(struct request *req, uint32_t uid, uint32_t gid,
	void (*then)(struct request *req, int status));

/* Gives back to the server what is in no share; given() is called when it has answered, in the
 * thread that got the last answer, at once if there is nothing. One at a time. */
void quota_allowance_give_back(struct io_thread *thread, void (*given)(struct io_thread *thread));

/* Nothing of it is this session's any more; shares were returned. */
void quota_allowance_forget(struct quota_allowances *as);

/* Gives back what was not used for some seconds. */
void quota_allowance_tick(struct io_thread *thread, int64_t now);

#endif
