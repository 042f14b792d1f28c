/* status.h - what the server tells about itself, as JSON, in answer to STATUS.
 *
 * The first piece takes a snapshot; the further ones read on in it. A stranger (conn.h) is told the
 * version and that of the protocol alone: a constant text, for which nothing is looked at. All
 * strangers together get STRANGERS_PER_S of those a second; above that the answer is -EAGAIN, which
 * is not logged.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_STATUS_H
#define RMEMFS_SERVER_STATUS_H

#include <jansson.h>

struct request;
struct session;

enum { STRANGERS_PER_S = 10 };

void status_answer(struct request *req);

/* Of one session, as all answers have it; NULL: it has ended. */
const char *status_state_name(const struct session *session);
/* Processes that must go on or end before others get what it had; [] unless it is to end. */
json_t *status_waits_for(const struct session *session);

#endif
