/* page_recall.h - pages that sessions of a shared export have been granted and do not use: asked for when
 * somebody finds none.
 *
 *     a request finds no page -> page_recall_may_come -> the batch is stored -> page_recall_wait ->
 * the others are rung; PING tells the ask's number -> RETURN of all that is not used, which names
 * that number -> the request is run again
 *
 * A request asks once, and waits for those who have not answered what they were asked until then:
 * for each at most page_recall_give_ms(). Who is late is not waited for again before it has been
 * heard; its ask stays, and PING goes on to tell it, until it is answered. Not asked are
 *
 * - who has none: that has been said, and nothing of the session was executed since. What arrived
 *   before that and is run later may bring it some.
 * - who waits for pages by GRANT: a client that lets the server take its time for that has released
 *   all that it could.
 *
 * A client answers whatever else it waits for, but for its own GRANT. So nobody waits in a circle,
 * and that there is no page is said when everybody who could have had one has none, or is late.
 *
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_RECALL_PAGE_RECALL_H
#define RMEMFS_SERVER_RECALL_PAGE_RECALL_H

#include <stdbool.h>
#include <stdint.h>

struct client_request;
struct server;

enum { GIVE_PAGES_MS = 1000, GIVE_PAGES_SHARE = 4 };

/* How long a session has for an answer. Whoever waits for it may have to give a lease back that
 * others want, which he does not before: it is a share of the time that he has for that, and he may
 * ask twice. */
int64_t page_recall_give_ms(const struct server *s);

/* Whether a request of a shared session that lacks pages (meta_lacks_pages()) is to wait for some;
 * a GRANT is one that waits. Nothing is changed by the question, for the batch may come to nothing.
 */
bool page_recall_may_come(const struct client_request *req);
/* It waits, and is run again when server.reclaim has brought pages, or nothing more. The others are
 * asked, unless they were. */
void page_recall_wait(struct client_request *req);
/* It was executed, and its change is stored. */
void page_recall_executed(const struct client_request *req);
/* It waits no more. */
void page_recall_leave(struct client_request *req);

/* Who is late. Returns when to ask next in ms, or -1. */
int64_t page_recall_tick(struct server *s, int64_t now);

#endif
