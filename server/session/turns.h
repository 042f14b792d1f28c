/* turns.h - whose request is run next: sessions take turns.
 *
 * A request that has arrived is put behind those of its own session. In each round every session
 * that has some gives one: so who asks for much at once, over many channels, waits behind himself,
 * and others behind at most one request of his a round.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_TURNS_H
#define RMEMFS_SERVER_SESSION_TURNS_H

#include "server/session/conn.h"
#include "server/session/context.h"

/* Of an attached channel. */
void turns_add(struct client_request *req);

/* The next request that is, or is not, one outside the store; it is in no list then. NULL: of no
 * session is such a one the next. Sessions whose next one is of the other kind keep their turn. */
struct client_request *turns_take(struct server *s, bool control);

/* FROZEN has a slot, but nothing to do with the store. */
bool turns_is_control(const struct client_request *req);

#endif
