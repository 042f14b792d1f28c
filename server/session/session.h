/* session.h - who is mounted: sessions, what they ask outside slots, their end.
 *
 * A session ends in this order: all its channels are fenced, then it is forgotten by the store,
 * then whoever waits is served: no page of it is given away while anything of it can still reach
 * memory. How it begins, and comes back, is attach.h's.
 *
 * OWNERSHIP  Sessions belong to server.sessions; their conns end by conn.h's rules.
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_SESSION_H
#define RMEMFS_SERVER_SESSION_SESSION_H

#include "server/session/conn.h"
#include "server/base/retry.h"
#include "server/session/context.h"

/* Pages that it was granted and does not use: what it was asked for (page_recall.h). */
struct page_recall {
	uint64_t asked;    /* the number of the ask that is not answered; 0: none */
	int64_t since_ms;  /* of that */
	bool late;         /* it is not waited for any more */
	bool none;         /* it had none, and nothing of it was executed since */
	unsigned nlacking; /* its requests that wait for pages by GRANT */
};

struct client_session {
	struct list link; /* server.sessions */
	struct server *server;
	struct export *export;
	struct meta_session stored;
	struct list conns;   /* all that are not fenced yet */
	struct list recalls; /* see recall.h: what others wait for */
	struct list turn;    /* server.turns, or alone */
	struct list asked;   /* struct client_request: received, in the order of arrival */
	unsigned nparked;    /* of its requests those that wait for pages, see dispatch.h */
	uint64_t requests;   /* that came in slots, in this run of the server */
	uint64_t attached;   /* bit of each channel that has ever been attached */
	uint64_t live;       /* bit of each that was attached in this run of the server, and did not
			      * end by hanging up since */
	uint64_t serial;     /* of the connection that made it; 0: in an earlier run */
	uint64_t *last_seq;  /* [slots] of this run of the server */
	int64_t heard_ms;    /* the last message, or when a channel was attached */
	int64_t lost_ms;     /* without conns: since when */
	int64_t silent_ms;   /* and how long the last one had been silent, if it was closed for that
			      */
	uint64_t frozen;     /* the snapshot that it has ended its writes for */
	int64_t wanted_ms;   /* when somebody found a lock of it in his way last; 0: never */
	int64_t looked_ms;   /* when it was found out last whether somebody waits for one */
	struct page_recall spare;
	bool restored;     /* of an earlier run of the server, and not resumed yet */
	bool process_gone; /* shm: its process has ended */
	bool said_bye;
	bool clean;             /* and had nothing that was not committed */
	bool fell_silent;       /* told once, until a channel is attached again */
	bool ending;            /* all channels are being fenced */
	struct retry end_retry; /* the store did not take its end */
	const char *why;        /* has ended, for the log; NULL: it is said already */
	bool ring_wanted;       /* could not be sent, or was lost: sessions_tick() tries again */
	bool locks_first;       /* what PING told of first */
	bool counted_before;    /* with an earlier run of the server, and not said yet how much */
	struct rpc_counters counters, before; /* in this run of the server; what to leave out */
};

/* Takes over what the store has from earlier runs. */
int sessions_restore(struct server *s);
/* The server can be reached from now on (start_ms): before, nobody could come back, however long
 * its memory took to be registered. */
void sessions_expect(struct server *s);
void sessions_delete(struct server *s);

/* One that begins, from what the store has of it; NULL: no memory. The caller stores it, or deletes
 * it. */
struct client_session *client_session_new(
	struct server *s, const struct meta_session *stored, struct export *export);
void client_session_delete(struct client_session *session);
struct client_session *client_session_find(struct server *s, uint64_t id);

/* The requests that are outside slots. */
void client_session_regions(struct client_request *req);
void client_session_bye(struct client_request *req);
/* Takes what a PING says has been done: less what an earlier run of the server has counted. */
void client_session_count(struct client_session *session, const struct rpc_counters *said);

/* PING's reply says something else than before: rings on one of the session's channels, so that the
 * client asks. Not while one is rung and no PING has come there since: that one will bring it.
 * Nothing is lost: where it can't be sent, or the channel is lost with it, it is sent as soon as it
 * can be, on whatever channel there is; any PING that comes first does as well. */
void client_session_ring(struct client_session *session);
/* A channel is lost, perhaps with answers to PINGs: the next ones tell it all again. */
void client_session_news_lost(struct client_session *session);

/* Whether nobody has heard of it for as long as a lease lasts. On shm a process that lives may use
 * its mappings: then only its own BYE ends the session. */
bool client_session_expired(const struct client_session *session);
/* How long until it is; 0: it is expired, or that is not known, since its process has memory
 * mapped. */
int64_t client_session_expires_in_ms(const struct client_session *session);
/* Fences its channels, and forgets it as soon as none can reach memory; it may be gone after this.
 * What the store does not take is tried again. why: for the log, of static storage; NULL: that has
 * it already. */
void client_session_end(struct client_session *session, const char *why);
/* Whether it is what a process has left behind that ended: its peer has hung up all its channels,
 * or its process is known to have ended (shm). Not one that fell silent, that the server itself has
 * cut off, or that has not come back since the server was restarted: its process may live. A peer
 * that claims the same owner can bring no session into this state. */
bool client_session_is_left(const struct client_session *session);
/* Why one that is expired is ended. */
const char *client_session_why_expired(const struct client_session *session);
/* Whether it has had its time to be heard, and to come back: a lease may be shorter than that. */
bool client_session_is_missed(const struct client_session *session);
/* And is expired. */
bool client_session_overdue(const struct client_session *session);
/* Whether another one of its export is. */
bool client_session_others_overdue(const struct client_session *session);
/* Whether another one of its export is being ended, so that what it had comes soon: as long as its
 * process has memory mapped (shm) that is not known. */
bool client_session_others_ending(const struct client_session *session);
/* Ends those of the export that are overdue, but for one (or NULL). */
void sessions_end_overdue(
	struct server *s, const struct export *export, const struct client_session *but);

/* Whether another one, or itself, writes the export of this one. */
bool client_session_writes_beside(
	const struct client_session *other, const struct client_session *session);
/* How many sessions do so. */
unsigned client_session_sharers(const struct client_session *session);

/* What the session is told of its export's snapshot: the number of the one on its way, 0: none; and
 * whether it is to end its writes for it. */
uint64_t client_session_snapshot(const struct client_session *session, bool *frozen);

/* Whether anything that it writes can still arrive. */
bool client_session_reaches_memory(const struct client_session *session);
/* A channel of it that has been fenced. */
struct lost_conn {
	unsigned index;
	bool hung_up;
	bool process_gone; /* shm: its process has ended */
	int64_t silent_ms; /* it was fenced since it was silent for so long, or 0 */
};
void client_session_lost_conn(struct client_session *session, const struct lost_conn *lost);
/* A process of an earlier run of the server, which had its memory mapped, has ended. */
void client_session_lost_process(struct server *s, uint64_t id);
void client_session_retry_stalled(struct server *s);

/* What is due: late attaches, silent channels, ends that the store did not take, rings that could
 * not be sent. Returns when to ask next in ms, or -1. */
int64_t sessions_tick(struct server *s, int64_t now);

#endif
