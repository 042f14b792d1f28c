/* session.h - sessions: one for each mounted client. Their requests outside slots, their end.
 *
 * A session ends in this order: all its channels are fenced, then the store forgets it, then
 * requests that wait are served. So no page of it is given away while anything of it can still
 * reach memory. attach.h has how it begins and comes back.
 *
 * OWNERSHIP  Sessions belong to server.sessions; their conns end by conn.h's rules.
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_SESSION_H
#define RMEMFS_SERVER_SESSION_SESSION_H

#include "server/session/client_session.h"
#include "server/session/conn.h"
#include "server/session/context.h"

/* Takes over what the store has from earlier runs. */
int sessions_restore(struct server *s);
/* The server can be reached from now on (start_ms). Before, no client could come back, however long
 * the registration of memory took. */
void sessions_expect(struct server *s);
void sessions_delete(struct server *s);

/* A session that begins, or that the store has; NULL: no memory. The caller stores it, or deletes
 * it. */
struct client_session *client_session_new(
	struct server *s, const struct meta_session *stored, struct export *export);
void client_session_delete(struct client_session *session);
/* Its client, for penalty.h. */
struct penalty_client client_session_penalized(const struct client_session *session);
struct client_session *client_session_find(struct server *s, uint64_t id);

/* The requests that are outside slots. */
void client_session_regions(struct client_request *req);
void client_session_bye(struct client_request *req);
/* Takes the counters that a PING tells, less those that an earlier run of the server has
 * counted. */
void client_session_count(struct client_session *session, const struct rpc_counters *said);

/* PING's reply has something new: rings on one of the session's channels, so that the client sends
 * a PING. Not while one is rung and no PING has come there since: that PING will bring the news.
 * Nothing is lost: a ring that can't be sent, or that is lost with its channel, is sent as soon as
 * possible, on any channel. Any PING that comes first does as well. */
void client_session_ring(struct client_session *session);

/* Whether nobody has heard of it for the lease time. On shm a process that lives may use its
 * mappings: then only its own BYE ends the session. */
bool client_session_expired(const struct client_session *session);
/* How long until it is expired; 0: it is, or that is not known, since its process has memory
 * mapped. */
int64_t client_session_expires_in_ms(const struct client_session *session);
/* Fences its channels, and forgets it as soon as none can reach memory. It may be freed after this.
 * If the store fails to take the end, that is tried again. why: for the log, of static storage;
 * NULL: logged already. */
void client_session_end(struct client_session *session, const char *why);
/* Whether a process that has ended left it behind: its peer has hung up all its channels, or its
 * process is known to have ended (shm). False if it fell silent, if the server itself has cut it
 * off, or if it has not come back after a restart of the server: its process may live. A peer that
 * claims the same owner can bring no session into this state. */
bool client_session_is_left(const struct client_session *session);
/* Why an expired session is ended. */
const char *client_session_why_expired(const struct client_session *session);
/* Whether it has had its time to be heard, and to come back. A lease may be shorter than that. */
bool client_session_is_missed(const struct client_session *session);
/* Whether it is expired, and has had its time to come back. */
bool client_session_overdue(const struct client_session *session);
/* Whether another session of its export is overdue. */
bool client_session_others_overdue(const struct client_session *session);
/* Whether another session of its export is being ended, so that what it had comes soon. False while
 * its process has memory mapped (shm): then the time is not known. */
bool client_session_others_ending(const struct client_session *session);
/* Ends the overdue sessions of the export, except one (or NULL). */
void sessions_end_overdue(
	struct server *s, const struct export *export, const struct client_session *but);

/* Whether `other`, which may be the same, writes the export of this one. */
bool client_session_writes_beside(
	const struct client_session *other, const struct client_session *session);
/* How many sessions write it; 0: this one has the export for itself. */
unsigned client_session_sharers(const struct client_session *session);

/* The number of the snapshot that is under way at its export, 0: none. *frozen: whether the session
 * is to end its writes for it. Notes when the first client was told so. */
uint64_t client_session_snapshot(const struct client_session *session, bool *frozen);

/* Whether anything that it writes can still arrive. */
bool client_session_reaches_memory(const struct client_session *session);
/* For client_session_events: a channel was fenced; a process does not have its memory mapped any
 * more. */
void client_session_lost_conn(struct client_session *session, const struct lost_conn *lost);
void client_session_lost_process(struct server *s, uint64_t id);
void client_session_retry_stalled(struct server *s);

/* Does what is due. sessions_judge(): late ATTACHes, silent channels, ATTACHes that wait; before
 * other ticks, which the ends of sessions let go on. sessions_tick(): ends that the store did not
 * take, rings that could not be sent; after them. Both return when to call them next in ms, or
 * -1. */
int64_t sessions_judge(struct server *s, int64_t now);
int64_t sessions_tick(struct server *s, int64_t now);

#endif
