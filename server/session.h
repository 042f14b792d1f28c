/* session.h - who is mounted: making, resuming, changing and ending sessions.
 *
 * Until leases exist an export serves one session at a time. Another owner's ATTACH waits for it; a
 * newer instance of the same owner ends it at once. A session ends in this order: all its channels
 * are fenced, then it is forgotten by the store, then whoever waits is served: no page of it is
 * given away while anything of it can still reach memory.
 *
 * A channel of a session that is attached again counts as the confirmation that its predecessor is
 * fenced, on which clients repeat I/O whose outcome they don't know; so the answer waits for that.
 * On shm a mapping lasts as long as the process, but then the same process asks, whose copies are
 * over when it does.
 *
 * A channel that is attached with another ATTACH_READ_ONLY than the session has changes it, once
 * the one before it in its place is fenced: that is stored first, then all the session's channels
 * are fenced, whose keys are of the other kind. One that is refused has changed nothing. So what is
 * mounted read-only has no key that writes, from the answer to the last channel's ATTACH on.
 *
 * OWNERSHIP  Sessions belong to server.sessions; their conns end by conn.h's rules.
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_H
#define RMEMFS_SERVER_SESSION_H

#include "server/conn.h"
#include "server/server.h"

struct session {
	struct list link; /* server.sessions */
	struct server *server;
	struct export *export;
	struct meta_session stored;
	struct list conns;  /* all that are not fenced yet */
	uint64_t attached;  /* bit of each channel that has ever been attached */
	uint64_t *last_seq; /* [slots] of this run of the server */
	int64_t heard_ms;   /* the last message, or when a channel was attached */
	int64_t lost_ms;    /* without conns: since when */
	uint64_t frozen;    /* the snapshot that it has ended its writes for */
	bool restored;      /* of an earlier run of the server, and not resumed yet */
	bool process_gone;  /* shm: its process has ended */
	bool said_bye;
	bool fell_silent; /* told once, until a channel is attached again */
	bool ending;      /* all channels are being fenced */
	struct rpc_counters counters;
};

/* Takes over what the store has from earlier runs. */
int sessions_restore(struct server *s);
/* The server can be reached from now on (start_ms): before, nobody could come back, however long
 * its memory took to be registered. */
void sessions_expect(struct server *s);
void sessions_delete(struct server *s);

/* The requests that are outside slots. */
void session_attach(struct request *req);
void session_regions(struct request *req);
void session_ping(struct request *req);
void session_bye(struct request *req);

/* Ends those of the export that nobody has heard of for as long as a lease lasts, and RETURN_MS. */
void sessions_end_expired(struct server *s, const struct export *export);

/* Whether anything that it writes can still arrive. */
bool session_reaches_memory(const struct session *session);
/* A channel of it has been fenced. */
void session_lost_conn(struct session *session, bool process_gone);
/* A process of an earlier run of the server, which had its memory mapped, has ended. */
void session_lost_process(struct server *s, uint64_t id);
/* Looks again at what waits for a session's or channel's end. */
void session_retry_waiting(struct server *s);
void session_retry_stalled(struct server *s);

/* What is due: late attaches, silent channels, pages that may be reused. Returns how long until
 * there is something next, in ms; -1: nothing is to come. */
int sessions_tick(struct server *s);

#endif
