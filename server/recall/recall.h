/* recall.h - requests that wait for leases that other sessions have, and sessions that are told to
 * return them.
 *
 *     OUTCOME_WAIT -> recall_wait -> (look) -> holders: PING's tail, client_session_ring
 *     -> RETURN, or the end of the session -> (look) -> run again, before all that came later
 *
 * A request waits for one inode at a time. It keeps its place among the waiters of an inode until
 * it is answered or dropped. It keeps it also while it is run again, and while it waits for the
 * next inode. A later request that conflicts with it is behind it (recall_wanted). So clients that
 * keep coming keep nobody out, not even with several inodes by turns.
 *
 * Only a LEASE is ever behind others. A client that holds one lease while it asks for the next, as
 * COPY does, asks for the one with the higher number. So a request keeps its places in this order,
 * too. It gives them up to wait for an inode of a lower number: no two requests wait for each
 * other.
 *
 * Whenever something has changed, the server looks anew which session has to return something: the
 * waiters of an inode, its records, or the sessions may have changed. Each PING tells a recall
 * until nobody wants it any more. Recalls that one PING has no room for come with the next ones, in
 * turn.
 *
 * The server ends a holder that does not return within the lease time, or was not heard of for so
 * long. Time in which this process stood still does not count. Nor does time in which the holder's
 * writes stood still for a snapshot, or for pages that are not yet to be reused (page_reuse.h). On
 * shm others are served when the holder's process goes on or has ended. A recall that takes long is
 * logged with the inode's path, which is looked for then (path_search.h).
 *
 * OWNERSHIP  server.recalls; a request that waits belongs to its channel, as every request.
 * THREADS    The metadata thread, outside batches.
 */
#ifndef RMEMFS_SERVER_RECALL_RECALL_H
#define RMEMFS_SERVER_RECALL_RECALL_H

#include "server/session/conn.h"
#include "server/session/context.h"

struct client_session;

/* Memory for each inode that is waited for, without its path, and for each session that is to
 * return something of it: see rmemfs-server(8). */
enum { RECALL_INODE_BYTES = 256, RECALL_SESSION_BYTES = 128 };

int recalls_new(struct server *s);
/* Call it when all requests and sessions are gone. */
void recalls_delete(struct server *s);

/* The request waits for req->wants, which it found when it was run, behind those that wait
 * already. */
void recall_wait(struct client_request *req);
/* The request waits no more: it was answered or dropped, or waits for something else. */
void recall_leave(struct client_request *req);
/* Whether the request waits now, and is not being run again. */
bool recall_waits(const struct client_request *req);
/* The types of an inode that earlier requests of others wait for: lease_bit(). */
uint8_t recall_wanted(const struct client_request *req, uint64_t ino);
/* Whether the inode's leases are recalled so often that none should be given unasked. */
bool recall_is_restless(const struct client_request *req, uint64_t ino);

/* The request was executed. After LEASE, RETURN and COMMIT a session may have less than before. A
 * lease that has a new number has to be recalled by that number. */
void recall_changed(const struct client_request *req);
/* Records of sessions that have ended are gone. */
void recall_look_again(struct server *s);
/* The session is deleted. */
void recall_lost_session(struct client_session *session);

/* Looks at inodes that have changed since the last call: tells holders, and makes requests ready
 * that can go on. False: nothing had changed. */
bool recalls_look(struct server *s);

/* For PING's reply: as many as fit, in turn. False: one is left that no PING has told. */
bool recalls_put(struct client_session *session, struct wire_out *w);
/* A channel is lost, perhaps with replies to PINGs: all recalls are told again. */
void recalls_untold(struct client_session *session);

/* Ends sessions that are late. Returns when to call it next in ms, or -1. */
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
	int64_t since_ms; /* when the first of the waiters came */
};
void recalls_each(const struct server *s, const struct export *export,
	void (*fn)(const struct recall_view *view, void *arg), void *arg);
/* Calls fn for each request that has a place there, in the order in which they came. */
void recalls_each_waiter(const struct server *s, const struct export *export, uint64_t ino,
	void (*fn)(const struct lease_place *place, void *arg), void *arg);
/* False: nobody wants anything of the inode back from that session. */
bool recall_find(const struct server *s, const struct export *export, uint64_t ino,
	uint64_t session, int64_t *since_ms, uint8_t *keep);

#endif
