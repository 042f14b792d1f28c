/* trace.h - lines about single requests.
 *
 * The data path's debug switch: a line for each request when it ends, at log level debug, with the
 * question, the result and the time it took.
 *
 * THREADS    The request's own.
 */
#ifndef RMEMFS_DAEMON_REQUEST_TRACE_H
#define RMEMFS_DAEMON_REQUEST_TRACE_H

#include <stddef.h>

#include "daemon/request/request.h"

/* The request begins; only where the switch is on. */
void trace_begin(struct request *req, uint64_t ino);
/* It ends, after trace_begin(), with error or with len bytes of an answer. */
void trace_end(const struct request *req, int error, size_t len);

/* The answer goes to the kernel after ns, and the log has said that the caller waits. */
void trace_slow(const struct request *req, int error, int64_t ns);

#endif
