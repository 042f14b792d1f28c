/* page_recall.h - asks sessions of a shared export for granted pages that they do not use, when a
 * request finds none.
 *
 *     a request finds no page -> page_recall_may_come -> the batch is stored -> page_recall_wait ->
 *     the others are rung; PING tells the ask's number -> RETURN of all that is not used, with
 *     that number -> the request is run again
 *
 * A request asks once. It waits for each session that has not answered an ask up to this one, for
 * at most page_recall_give_ms(). After that the session is late. No request waits for it again
 * before it has been heard. Its ask stays, and each PING tells it until it is answered. Not asked
 * are
 *
 * - a session that has none: it has said so, and nothing of it was executed since. A request that
 *   arrived before that and runs later may bring it some.
 * - a session that waits for pages by GRANT: a client that lets a GRANT wait has released all that
 *   it could.
 *
 * A client answers even while it waits for something else, except for its own GRANT. So no clients
 * wait in a circle. A request is told that there is no page when each session that could have had
 * one has none or is late.
 *
 * A client's word that it has none is not checked at once: pages that it has written to are granted
 * until their COMMIT, which comes within a second or so. But from the first time that others lack
 * pages it has a lease time for all pages that it has then. If it has neither put them into files
 * nor returned them, and others lack pages again, its session is ended like that of a client which
 * keeps a lease, and it waits for the next one (penalty.h). So a client that says nothing, or not
 * the truth, keeps pages from others for a lease time.
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

/* How long a session has for an answer. A client that waits for it may have to return a lease that
 * others want, and does not before. So this is a share of the time that it has for that, and it may
 * ask twice. */
int64_t page_recall_give_ms(const struct server *s);

/* Whether a request of a shared session that lacks pages (meta_lacks_pages()) is to wait for some;
 * a GRANT is one that may wait. Changes nothing, since the batch may still be undone. */
bool page_recall_may_come(const struct client_request *req);
/* The request waits, and is run again when server.reclaim has brought pages, or brings none. Asks
 * the other sessions, unless they were asked. */
void page_recall_wait(struct client_request *req);
/* The request was executed, and its change is stored. */
void page_recall_executed(const struct client_request *req);
/* The request waits no more. */
void page_recall_leave(struct client_request *req);

/* Notes which sessions are late. Returns when to call it next in ms, or -1. */
int64_t page_recall_tick(struct server *s, int64_t now);

#endif
