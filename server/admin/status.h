/* status.h - the server's state as JSON, in answer to STATUS.
 *
 * The request for the first piece takes a snapshot of the state; the further ones read on in it. A
 * stranger (conn.h) is told only the version and that of the protocol: a constant text, for which
 * the server looks at nothing. All strangers together get STRANGERS_PER_S answers a second. Further
 * ones wait for their turn, so that the server spends no time on refusals. At most
 * STRANGERS_WAITING wait, for 3 s at most; one more loses its channel.
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
/* Answers strangers whose turn has come. Returns when the next one's turn comes; -1: none waits. */
int64_t status_tick(struct server *s, int64_t now);

/* The state of a session, as all answers name it. NULL: it has ended. */
const char *status_state_name(const struct client_session *session);
/* Processes that must go on or end before others get what the session had; [] unless it is to
 * end. */
json_t *status_waits_for(const struct client_session *session);

#endif
