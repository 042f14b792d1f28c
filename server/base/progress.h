/* progress.h - how far something is that takes long while nobody is served: for the log, and for
 * systemd, which then does not take the server for one that hangs.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_BASE_PROGRESS_H
#define RMEMFS_SERVER_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	int64_t told_ms, logged_ms; /* 0: not yet */
	int64_t moved_ms;           /* when it had done so many steps; 0: none was looked at */
	uint64_t steps;
};

enum {
	PROGRESS_MS = 1000, /* how often it is to be called, at least every few of these */
	PROGRESS_HANG_MS = 600000,
};

/* what: "export 'data': writing its snapshot". done, total: pages. */
void progress_tell(struct progress *p, const char *what, uint64_t done, uint64_t total);
/* steps: any number that changes as it goes on. True: it has not for PROGRESS_HANG_MS. */
bool progress_hangs(struct progress *p, uint64_t steps, int64_t now);

#endif
