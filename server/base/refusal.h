/* refusal.h - why a start fails: for systemd's status, and as the last line of the log.
 *
 * What fails logs its reason where all is known. The first such line of a start is kept here. Lines
 * may follow it, of remedies and of what was left; so the end of the start says it once more.
 *
 * THREADS  refusal_watch() and refusal_end() are the main thread's; any thread may log between.
 */
#ifndef RMEMFS_SERVER_BASE_REFUSAL_H
#define RMEMFS_SERVER_BASE_REFUSAL_H

#include "server/base/exit_status.h"

/* After log_init(): a start begins. */
void refusal_watch(void);
/* It has ended, err: 0 or -errno. Tells systemd and the log why, if it failed. */
enum server_status refusal_end(int err);

/* Which status a start has that failed with -errno. */
enum server_status refusal_status(int err);
/* Tells systemd, where it has started us. */
void refusal_tell_systemd(int err, const char *why);

#endif
