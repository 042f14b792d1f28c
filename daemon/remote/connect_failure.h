/* connect_failure.h - why a channel could not be connected, or was lost, and what can be done.
 *
 * THREADS    The I/O thread.
 */
#ifndef RMEMFS_DAEMON_REMOTE_CONNECT_FAILURE_H
#define RMEMFS_DAEMON_REMOTE_CONNECT_FAILURE_H

#include "daemon/remote/remote_private.h"

/* In words: why EV_CLOSED came with this status. */
void connect_failure_why(const struct remote *r, int status, char *buf, size_t len);

/* While remote_connect() waits: another attempt follows if the failure may pass and there is time.
 * Else this is its result. */
void connect_failure_tell(const struct remote *r, int status);

#endif
