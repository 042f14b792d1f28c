/* auth.h - AUTH: a channel's peer proves that it has a key, and the server proves the same.
 *
 *     AUTH 1 -> authenticator -> reply with a flight;  AUTH 2 -> authenticator -> reply, proven
 *
 * A channel proves one key, before ATTACH. The handshakes run in the authenticator's thread. The
 * peer sends nothing more until the last flight is answered: that answer is the first message of
 * the protected channel. To each refusal the peer gets the same answer, and loses the channel. The
 * log has the reason.
 *
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_AUTH_H
#define RMEMFS_SERVER_SESSION_AUTH_H

#include "server/session/conn.h"

/* Hands the flight on; the answer comes by auth_event(). */
void auth_request(struct client_request *req);
/* The authenticator's descriptor is readable. */
void auth_event(struct server *s);

/* Begins handshakes that had to wait (auth_budget.h). Returns when to call it next, in now_ms();
 * -1: none waits. */
int64_t auth_tick(struct server *s, int64_t now);

/* Whether the channel's handshake has begun, and is not over. */
bool auth_is_proving(const struct conn *c);

#endif
