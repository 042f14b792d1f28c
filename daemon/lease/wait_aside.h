/* wait_aside.h - requests that wait for other clients are set aside (request.h), or end.
 *
 * THREADS    The request's own.
 */
#ifndef RMEMFS_DAEMON_LEASE_WAIT_ASIDE_H
#define RMEMFS_DAEMON_LEASE_WAIT_ASIDE_H

#include "daemon/op/op.h"

/* After append_order_enter(), lease_admit() or lease_take() have returned false. The request gives
 * up what others may need (request.h), or ends. */
void wait_aside(struct request *req);

#endif
