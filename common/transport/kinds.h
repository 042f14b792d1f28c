/* kinds.h - the table of transports. The only module that knows all of them.
 *
 * THREADS    Any.
 * ERRORS     -errno.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_KINDS_H
#define RMEMFS_COMMON_TRANSPORT_KINDS_H

#include "common/transport/transport.h"

/* Opens a transport for one address: a server's own, or the one a client will connect to. With
 * verbs the address decides the device; with tcp and shm only its kind counts. Blocks while a route
 * is resolved, no longer than timeout_ms. -ENODEV: no device serves the address. -EOPNOTSUPP: the
 * device lacks what we need; the reason is logged. */
int transport_open(const struct transport_address *address, const struct transport_config *config,
	int timeout_ms, struct transport **out);

#endif
