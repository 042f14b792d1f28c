/* fetch_map.h - extents of a file that are not known here yet.
 *
 * THREADS    The request's own.
 */
#ifndef RMEMFS_DAEMON_FILE_FETCH_MAP_H
#define RMEMFS_DAEMON_FILE_FETCH_MAP_H

#include "daemon/file/inode.h"
#include "daemon/op/op.h"

/* Fetches the inode's extents until all is known below page `end`. The caller is inside the gate.
 * True: it is known. False: then(req, status) follows, and asks again. */
bool op_know_map(struct request *req, uint64_t end, void (*then)(struct request *req, int status));

#endif
