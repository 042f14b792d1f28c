/* status.h - what the server tells about itself, as JSON, in answer to STATUS.
 *
 * The first piece takes a snapshot; the further ones read on in it. A stranger (conn.h) is told the
 * version and that of the protocol alone: a constant text, for which nothing is looked at. All
 * strangers together get STRANGERS_PER_S of those a second: who asks above that waits for its turn,
 * so that nobody's time goes into refusals. So many may wait, for 3 s at most; one more loses its
 * channel.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_ADMIN_STATUS_H
#define RMEMFS_SERVER_ADMIN_STATUS_H

#include <jansson.h>
#include <stdint.h>

struct client_request;
struct server;
struct client_session;

enum { STRANGERS_PER_S = 10, STRANGERS_WAITING = 30 };

void status_answer(struct client_request *req);
/* Answers strangers whose turn has come. Returns when that of the next one comes; -1: none waits.
 */
int64_t status_tick(struct server *s, int64_t now);

/* Of one session, as all answers have it; NULL: it has ended. */
const char *status_state_name(const struct client_session *session);
/* Processes that must go on or end before others get what it had; [] unless it is to end. */
json_t *status_waits_for(const struct client_session *session);

#endif
