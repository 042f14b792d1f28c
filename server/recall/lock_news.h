/* lock_news.h - what sessions are told of the locks that they wait for, and the end of those that
 * are gone and have locks that others want.
 *
 *     (something changed) -> lock_news_look -> client_session_ring -> PING's tail -> LOCK again
 *
 * Who has a lock may keep it for as long as he likes, while he is there. A session that nobody has
 * heard of for the lease time, whether its channels are still up or not, or whose process has
 * ended, loses its locks, and all else, to whoever wants one of them. On shm a process that lives
 * is there.
 *
 * THREADS    The metadata thread, outside batches, but for lock_news_wanted().
 */
#ifndef RMEMFS_SERVER_RECALL_LOCK_NEWS_H
#define RMEMFS_SERVER_RECALL_LOCK_NEWS_H

#include "common/rpc/wire.h"
#include "server/session/context.h"

struct client_session;

/* A LOCK or GETLK was run. */
void lock_news_wanted(struct server *s);
/* Rings those that may have now what they wait for. */
void lock_news_look(struct server *s);
/* For PING: as much as fits, by turns. False: something is left that no PING has told of. */
bool lock_news_put(const struct client_session *session, struct wire_out *w);
/* Ends who is gone. Returns when to ask next in ms, or -1. */
int64_t lock_news_tick(struct server *s, int64_t now);

#endif
