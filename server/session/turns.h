/* turns.h - sessions take turns: which request is run next.
 *
 * A request that has arrived is put behind those of its own session. In each round every session
 * that has some gives one. So a client that asks for much at once, over many channels, waits behind
 * itself. Others wait behind at most one of its requests a round.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_TURNS_H
#define RMEMFS_SERVER_SESSION_TURNS_H

#include "server/session/client_request.h"
#include "server/session/client_session.h"

/* The request came over a channel of the session. */
void turns_add(struct client_session *session, struct client_request *req);

/* The next request that is, or is not, a control; it is in no list then. NULL: no session has such
 * a one next. Sessions whose next one is of the other kind keep their turn. */
struct client_request *turns_take(struct server *s, bool control);

/* Whether the request has nothing to do with the store: outside slots; or FROZEN, although it has a
 * slot. */
bool turns_is_control(const struct client_request *req);

#endif
