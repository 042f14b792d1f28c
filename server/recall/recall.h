/* recall.h - who waits for a lease that others have, and who is told to give it back.
 *
 *     OUTCOME_WAIT -> recall_wait -> (look) -> holders: PING's tail, client_session_ring
 *     -> RETURN, or the end of the session -> (look) -> run again, before all that came later
 *
 * A request waits for one inode at a time. It keeps its place among those that wait for it until it
 * is answered or dropped, also while it is run again, and while it waits for the next one: what
 * comes after it and conflicts with what it wants is behind it (recall_wanted), so that nobody who
 * keeps coming keeps others out, be it of several inodes by turns.
 *
 * Only a LEASE is ever behind others; and who holds one lease while he asks for the next, as COPY
 * does, asks for the one with the higher number. So places are kept in this order, too, and given
 * up when an inode of a lower number is to be waited for: no two wait for each other. What is
 * wanted of whom is found out anew whenever something changed: who waits for an inode, what is
 * stored of it, who is there. A recall is told in each PING until nobody wants it any more; what
 * one has no room for by the next ones, in turn.
 *
 * A holder that doesn't give back within the lease time, or hasn't been heard of for so long, is
 * ended; time in which this process stood still, or the holder's writes stood still for a
 * snapshot or for pages that are not yet to be reused (page_reuse.h), does not count. On shm others
 * are served when its process goes on or has ended. A recall that takes long is told in the log
 * with the inode's path, which is looked for then (path_search.h).
 *
 * OWNERSHIP  server.recalls; what waits belongs to its channel, as every request.
 * THREADS    The metadata thread, outside batches.
 */
#ifndef RMEMFS_SERVER_RECALL_RECALL_H
#define RMEMFS_SERVER_RECALL_RECALL_H

#include "server/session/conn.h"
#include "server/session/context.h"

struct client_session;

/* Memory of an inode that is waited for, but for its path, and of each session that is to give
 * something of it back: see rmemfs-server(8). */
enum { RECALL_INODE_BYTES = 256, RECALL_SESSION_BYTES = 128 };

int recalls_new(struct server *s);
/* When all requests and sessions are gone. */
void recalls_delete(struct server *s);

/* Has it wait for req->wants, which it found when it was run; behind those who do so already. */
void recall_wait(struct client_request *req);
/* It waits no more: it was answered, or dropped, or waits for something else. */
void recall_leave(struct client_request *req);
/* Whether it does so now, and is not being run again. */
bool recall_waits(const struct client_request *req);
/* The types that are waited for of an inode by others, who came before it: lease_bit(). */
uint8_t recall_wanted(const struct client_request *req, uint64_t ino);
/* Whether the inode is taken away from sessions so often that it had better not be given unasked.
 */
bool recall_is_restless(const struct client_request *req, uint64_t ino);

/* It was executed. After LEASE, RETURN and COMMIT somebody may have less than before; and what one
 * has by a new number has to be asked for by that. */
void recall_changed(const struct client_request *req);
/* Something of sessions that have ended has gone. */
void recall_look_again(struct server *s);
/* The session is deleted. */
void recall_lost_session(struct client_session *session);

/* What has changed since it was called last: tells holders, and makes requests ready that nothing
 * is in the way of any more. False: nothing had changed. */
bool recalls_look(struct server *s);

/* For PING: as many as fit, by turns. False: one that no PING has told of is left. */
bool recalls_put(struct client_session *session, struct wire_out *w);
/* What PINGs have told may be lost with their channel. */
void recalls_untold(struct client_session *session);

/* Ends who is late. Returns when to ask next in ms, or -1. */
int64_t recalls_tick(struct server *s, int64_t now);

/* Goes on to look for the paths of inodes whose recalls take long. True: there is more to do. */
bool recalls_search(struct server *s);

/* For status. */
unsigned recalls_waiting(const struct server *s, const struct export *export);
unsigned recalls_of(const struct client_session *session);

/* An inode that requests wait for. */
struct recall_view {
	uint64_t ino;
	const char *path; /* NULL: nobody has looked for it */
	unsigned waiting; /* requests */
	unsigned recalls; /* sessions that are to give something back */
	int64_t since_ms; /* of the one that waits longest */
};
void recalls_each(const struct server *s, const struct export *export,
	void (*fn)(const struct recall_view *view, void *arg), void *arg);
/* Calls fn for each request that has a place there, in the order they came. */
void recalls_each_waiter(const struct server *s, const struct export *export, uint64_t ino,
	void (*fn)(const struct lease_place *place, void *arg), void *arg);
/* False: nobody wants anything of the inode back from that session. */
bool recall_find(const struct server *s, const struct export *export, uint64_t ino,
	uint64_t session, int64_t *since_ms, uint8_t *keep);

#endif
