/* status.h - the server's state as JSON, in answer to STATUS.
 *
 * The request for the first piece takes a snapshot of the state; the further ones read on in it.
 * The answer depends on the peer:
 *
 *     over shm                     all
 *     over tcp and verbs, clients  access_view() decides about each export. A client that may see
 *                                  all of all exports also gets the server's own state. No client
 *                                  gets names of files
 *     others: strangers            the version and that of the protocol: a constant text
 *
 * Strangers together get STATUS_PER_S answers a second, and clients as many.
 * Further ones wait for their turn, so that the server spends no time on refusals. At most
 * STATUS_WAITING of each kind wait, and STATUS_WAITING_OF_KEY of clients with one key or without
 * one; one more loses its channel.
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

enum { STATUS_PER_S = 10, STATUS_WAITING = 30, STATUS_WAITING_OF_KEY = 6 };

void status_answer(struct client_request *req);
/* Answers those whose turn has come. Returns when the next one's turn comes; -1: none waits. */
int64_t status_tick(struct server *s, int64_t now);

/* The state of a session, as all answers name it. NULL: it has ended. */
const char *status_state_name(const struct client_session *session);
/* Processes that must go on or end before others get what the session had; [] unless it is to
 * end. */
json_t *status_waits_for(const struct client_session *session);

#endif
