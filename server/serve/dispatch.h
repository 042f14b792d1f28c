/* dispatch.h - executes received requests: many in one transaction, answered after its commit.
 *
 * A request is parked while the store has no pages for it, and runs again when pages were freed. It
 * has changed nothing, and can be withdrawn.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_SERVE_DISPATCH_H
#define RMEMFS_SERVER_SERVE_DISPATCH_H

#include <stdbool.h>

#include "server/session/context.h"

struct client_request;

/* Runs some of the ready requests, and a piece of the reclaiming. True: there is more to do now. */
bool dispatch_run(struct server *s);

/* The request is parked no more: it was answered, or dropped, or waits for a lease. */
void dispatch_leave(struct client_request *req);

/* Whether a request has arrived that was not run yet. */
bool dispatch_pending(const struct server *s);

#endif
