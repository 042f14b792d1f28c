/* progress.h - how far something is that takes long while nobody is served: for the log, and for
 * systemd, which then does not take the server for one that hangs.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_PROGRESS_H
#define RMEMFS_SERVER_PROGRESS_H

#include <stdint.h>

struct progress {
	int64_t told_ms, logged_ms; /* 0: not yet */
};

enum { PROGRESS_MS = 1000 }; /* how often it is to be called, at least every few of these */

/* what: "export 'data': writing its snapshot". done, total: pages. */
void progress_tell(struct progress *p, const char *what, uint64_t done, uint64_t total);

#endif
