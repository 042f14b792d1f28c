/* grants.h - the pages that the server has granted to this session and that no file has yet.
 *
 *     server --GRANT--> pool --window--> an inode's own --fill--> its extents
 *
 * An inode takes its pages from a window. This is a run cut from the pool; it grows with the
 * inode's appetite. So files grow in long extents, and writers of different files meet at the
 * pool's lock only once a window. Granted pages are zero. A page goes back into the pool only while
 * nothing was written to it, or when it is zero again (landing.h).
 *
 * THREADS    The pool has a lock of its own, taken inside inodes' locks. A window belongs to its
 *            inode's lock.
 */
#ifndef RMEMFS_DAEMON_PAGES_GRANTS_H
#define RMEMFS_DAEMON_PAGES_GRANTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/types.h"

/* Windows begin with 64 KiB and grow to 8 MiB. */
enum { WINDOW_PAGES_MIN = 16, WINDOW_PAGES_MAX = 2048 };

struct grants {
	pthread_mutex_t lock;
	struct extent *runs; /* sorted by target, region, page; neighbours merged; fpage 0 */
	size_t nruns, cap;
	uint64_t npages;
	uint64_t windowed; /* pages that went into windows, and did not come back */
};

void grants_init(struct grants *g);
void grants_fini(struct grants *g);

/* Without memory for the entry the pages stay unused until the session ends. */
void grants_add(struct grants *g, const struct extent *run);

/* Takes up to want pages in one run: those at goal (its target, region, page) if they are there.
 * Otherwise it takes the smallest run that has want, or else the longest one. False: the pool is
 * empty. */
bool grants_take(struct grants *g, uint32_t want, const struct extent *goal, struct extent *out);

/* The pages are not this session's any more; windows were returned before. */
void grants_forget(struct grants *g);

/* Pages of the pool without windows, for tests. */
uint64_t grants_count(struct grants *g);
/* Pages of the pool and of windows. taken: pages ever taken from windows. */
uint64_t grants_count_unused(struct grants *g, uint64_t taken);

struct window {
	struct extent rest; /* npages 0: used up; region and page are then where it ended */
	uint32_t appetite;
	bool begun; /* rest has been set */
};

/* Takes up to want pages, in one run. False: the window and the pool are empty. */
bool window_take(struct window *w, struct grants *g, uint32_t want, struct extent *out);

/* The rest of the window goes back into the pool. */
void window_return(struct window *w, struct grants *g);

#endif
