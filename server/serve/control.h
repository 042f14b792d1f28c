/* control.h - the requests outside slots, and the work that is due as time passes. Both concern
 * several parts of the server.
 *
 * THREADS  The metadata thread, outside batches.
 */
#ifndef RMEMFS_SERVER_SERVE_CONTROL_H
#define RMEMFS_SERVER_SERVE_CONTROL_H

#include <stdint.h>

#include "server/session/context.h"

struct client_request;

/* Answers it, refuses it, or keeps it until it can be answered. */
void control_run(struct client_request *req);

/* Does what is due in all parts. Returns how long until something is due next, in ms; -1: nothing
 * is. */
int control_tick(struct server *s);

/* Tells the service manager how much is served. control_tick() does so when that changes. */
void control_tell_status(struct server *s);

/* Passes events of sessions and channels on to the parts above them. */
extern const struct client_session_events control_events;

#endif
