/* progress.h - tells the log how far a long step is, while the server serves nobody. It tells
 * systemd, too, which would otherwise take the server for one that hangs.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_BASE_PROGRESS_H
#define RMEMFS_SERVER_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	int64_t told_ms, logged_ms; /* 0: not yet */
	/* The time at which steps changed last; 0: progress_hangs() has not been called. */
	int64_t moved_ms;
	uint64_t steps;
};

enum {
	PROGRESS_MS = 1000, /* progress_tell() is to be called every few of these at least */
	PROGRESS_HANG_MS = 600000,
};

/* For example, what is "export 'data': writing its snapshot". done, total: pages. */
void progress_tell(struct progress *p, const char *what, uint64_t done, uint64_t total);
/* steps: any number that changes while the work goes on. True: it has not changed for
 * PROGRESS_HANG_MS. */
bool progress_hangs(struct progress *p, uint64_t steps, int64_t now);

#endif
