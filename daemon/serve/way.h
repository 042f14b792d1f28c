/* way.h - the way of a request through the folders, from its decoding to its operation.
 *
 *     barrier -> (an export that squashes: permission) -> (a sharing mount: turn -> lease) ->
 *     operation
 *
 * Each station goes on to the next one at once, or has the request wait and goes on later. The
 * operation itself calls the stations after it: gate, transfer, leave, reply. README.md draws the
 * whole way.
 *
 * THREADS    The request's own.
 */
#ifndef RMEMFS_DAEMON_SERVE_WAY_H
#define RMEMFS_DAEMON_SERVE_WAY_H

#include <stdbool.h>

#include "daemon/request/request.h"

/* A request that was decoded begins its way. */
void way_barrier(struct request *req);
/* The barrier that held the request is over; -errno: the request was taken back. */
void way_barrier_over(struct request *req, int status);
/* The same for a conversion, which is before the barriers. */
void way_conversion_over(struct request *req, int status);

/* fuse_ops.begins_anew */
bool way_begins_anew(struct request *req, int *error);

#endif
