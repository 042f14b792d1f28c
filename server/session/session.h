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

#include "server/session/conn.h"
#include "server/base/retry.h"
#include "server/session/context.h"

/* Asks for pages that the session was granted and does not use (page_recall.h). */
struct page_recall {
	uint64_t asked;    /* the number of the ask that is not answered; 0: none */
	int64_t since_ms;  /* when it was asked */
	bool late;         /* requests do not wait for it any more */
	bool none;         /* it said that it has none, and nothing of it was executed since */
	unsigned nlacking; /* its GRANTs that wait for pages */
};

struct client_session {
	struct list link; /* server.sessions */
	struct server *server;
	struct export *export;
	struct meta_session stored;
	struct list conns;   /* those that are not fenced yet */
	struct list recalls; /* its leases that others want, see recall.h */
	struct list turn;    /* server.turns, or alone */
	struct list asked;   /* struct client_request: received, in the order of arrival */
	unsigned nparked;    /* its requests that wait for pages, see dispatch.h */
	uint64_t requests;   /* in slots, in this run of the server */
	uint64_t attached;   /* a bit for each channel that was ever attached */
	/* A bit for each channel that was attached in this run of the server and has not hung up
	 * since. */
	uint64_t live;
	uint64_t serial;    /* of the connection that made it; 0: an earlier run's */
	uint64_t *last_seq; /* [slots], in this run of the server */
	int64_t heard_ms;   /* time of the last message, or when a channel was attached */
	int64_t lost_ms;    /* when it lost its last conn */
	/* How long that conn had been silent, if it was closed for that. */
	int64_t silent_ms;
	uint64_t frozen;   /* the snapshot for which it has ended its writes */
	int64_t wanted_ms; /* when another client last found a lock of it in its way; 0: never */
	int64_t looked_ms; /* when the server last checked whether a client waits for one */
	struct page_recall spare;
	bool restored;     /* of an earlier run of the server, and not resumed yet */
	bool process_gone; /* shm: its process has ended */
	bool said_bye;
	bool clean;             /* it said BYE, and everything was committed */
	bool fell_silent;       /* logged once, until a channel is attached again */
	bool ending;            /* all channels are being fenced */
	struct retry end_retry; /* while the store fails to take its end */
	const char *why;        /* why it ends, for the log; NULL: logged already */
	bool ring_wanted; /* a ring could not be sent, or was lost: sessions_tick() tries again */
	bool locks_first; /* the last PING's reply had locks before recalls */
	/* It comes from an earlier run of the server, and the client has not told its counters
	 * yet. */
	bool counted_before;
	struct rpc_counters counters, before; /* of this run of the server; those of runs before */
};

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
/* A channel is lost, perhaps with replies to PINGs: the next ones tell everything again. */
void client_session_news_lost(struct client_session *session);

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
/* How many sessions write it. */
unsigned client_session_sharers(const struct client_session *session);

/* The number of the snapshot that is under way at its export, 0: none. *frozen: whether the session
 * is to end its writes for it. Notes when the first client was told so. */
uint64_t client_session_snapshot(const struct client_session *session, bool *frozen);

/* Whether anything that it writes can still arrive. */
bool client_session_reaches_memory(const struct client_session *session);
/* A channel of the session that has been fenced. */
struct lost_conn {
	unsigned index;
	bool hung_up;
	bool process_gone; /* shm: its process has ended */
	int64_t silent_ms; /* it was fenced because it was silent for so long, or 0 */
};
void client_session_lost_conn(struct client_session *session, const struct lost_conn *lost);
/* A process of an earlier run of the server, which had the session's memory mapped, has ended. */
void client_session_lost_process(struct server *s, uint64_t id);
void client_session_retry_stalled(struct server *s);

/* Does what is due. sessions_judge(): late ATTACHes, silent channels, ATTACHes that wait; before
 * other ticks, which the ends of sessions let go on. sessions_tick(): ends that the store did not
 * take, rings that could not be sent; after them. Both return when to call them next in ms, or
 * -1. */
int64_t sessions_judge(struct server *s, int64_t now);
int64_t sessions_tick(struct server *s, int64_t now);

#endif
