/* refusal.h - why a start fails: for systemd's status, and as the last line of the log.
 *
 * A function that fails logs the reason where all is known. This module keeps the first error line
 * of a start. Other lines may follow it, about remedies and leftovers. So the end of the start logs
 * that first line again.
 *
 * THREADS  The main thread calls refusal_watch() and refusal_end(); any thread may log between.
 */
#ifndef RMEMFS_SERVER_BASE_REFUSAL_H
#define RMEMFS_SERVER_BASE_REFUSAL_H

#include "server/base/exit_status.h"

/* A start begins; log_init() was called before. */
void refusal_watch(void);
/* The start has ended with err: 0 or -errno. If it failed, tells systemd and the log why. */
enum server_status refusal_end(int err);

/* The exit status of a start that failed with -errno. */
enum server_status refusal_status(int err);
/* Tells systemd, if systemd started the server. */
void refusal_tell_systemd(int err, const char *why);

#endif
