/* page_reuse.h - when pages that an earlier run of the server has left are reused.
 *
 * Sessions that have not come back, and connections of a process that was dying, may still write to
 * pages that were not free at the restart. So these pages stay dirty until each stored session has
 * come back or ended, and one lease time has passed.
 *
 *     a request finds no page -> page_reuse_await -> sessions that are overdue are ended -> reuse
 *
 * Over shm a process may write for as long as it lives. If it is stopped and has not come back in
 * its time, no request waits for it: then there is no room before it goes on or ends.
 *
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_RECALL_PAGE_REUSE_H
#define RMEMFS_SERVER_RECALL_PAGE_REUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/session/context.h"

struct client_session;

/* Whether dirty pages become free in time. */
bool page_reuse_comes(const struct server *s, const struct export *export);

/* A request of a shared export waits for reuse. All that wait are run again when reuse begins, or
 * when it turns out that it does not. */
void page_reuse_await(struct server *s, struct export *export);
/* Whether a request of the session waits for reuse. */
bool page_reuse_is_awaited(const struct client_session *session);

/* Returns when to call it next in ms, or -1. */
int64_t page_reuse_tick(struct server *s, int64_t now);

#endif
