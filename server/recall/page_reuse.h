/* page_reuse.h - when pages that an earlier run of the server has left are reused.
 *
 * What was not free then may still be written to: by sessions that have not come back, and by
 * connections of a process that was dying. So it stays dirty until each stored session has come
 * back or ended, and one lease time has passed.
 *
 *     a request finds no page -> page_reuse_await -> sessions that are overdue are ended -> reuse
 *
 * Over shm a process that lives may write for as long as it does. One that has not come back in its
 * time, since it is stopped, is not waited for: then there is no room before it goes on or ends.
 *
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_RECALL_PAGE_REUSE_H
#define RMEMFS_SERVER_RECALL_PAGE_REUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/session/context.h"

struct client_session;

/* Whether what is dirty gets free in time. */
bool page_reuse_comes(const struct server *s, const struct export *export);

/* A request of a shared export waits for that; all that wait are run again when it comes, and when
 * it turns out that it does not. */
void page_reuse_await(struct server *s, struct export *export);
/* Whether one of the session does. */
bool page_reuse_is_awaited(const struct client_session *session);

/* Returns when to ask next in ms, or -1. */
int64_t page_reuse_tick(struct server *s, int64_t now);

#endif
