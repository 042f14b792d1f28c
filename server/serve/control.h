/* control.h - the requests outside slots, and what is due as time passes: what takes several parts
 * of the server.
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

/* What is due in all parts. Returns how long until there is something next, in ms; -1: nothing is
 * to come. */
int control_tick(struct server *s);

/* What sessions and channels tell of, passed on to the parts above them. */
extern const struct client_session_events control_events;

#endif
