/* status.h - what the server tells about itself, as JSON, in answer to STATUS.
 *
 * The first piece takes a snapshot; the further ones read on in it.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_STATUS_H
#define RMEMFS_SERVER_STATUS_H

#include <jansson.h>

struct request;
struct session;

void status_answer(struct request *req);

/* Of one session, as all answers have it; NULL: it has ended. */
const char *status_state_name(const struct session *session);
/* Processes that must go on or end before others get what it had; [] unless it is to end. */
json_t *status_waits_for(const struct session *session);

#endif
