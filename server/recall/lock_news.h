/* lock_news.h - tells sessions of the locks that they wait for. Ends sessions that are gone and
 * have locks that others want.
 *
 *     (something changed) -> lock_news_look -> client_session_ring -> PING's tail -> LOCK again
 *
 * A client that is present may keep a lock as long as it likes. A session is gone when its process
 * has ended, or when nobody has heard of it for the lease time, even if its channels are up. When
 * another client wants one of its locks then, it loses its locks, and all else. On shm a session is
 * present while its process lives.
 *
 * THREADS    The metadata thread, outside batches, except for lock_news_wanted().
 */
#ifndef RMEMFS_SERVER_RECALL_LOCK_NEWS_H
#define RMEMFS_SERVER_RECALL_LOCK_NEWS_H

#include "common/rpc/wire.h"
#include "server/session/context.h"

struct client_session;

/* A LOCK or GETLK was executed. */
void lock_news_wanted(struct server *s);
/* Rings the sessions that may now have the lock for which they wait. */
void lock_news_look(struct server *s);
/* For PING's reply: as much as fits, in turn. False: something is left that no PING has told. */
bool lock_news_put(const struct client_session *session, struct wire_out *w);
/* Ends sessions that are gone. Returns when to call it next in ms, or -1. */
int64_t lock_news_tick(struct server *s, int64_t now);

#endif
