/* client_session.h - the server's knowledge of one mounted client. session.h has what is done with
 * it.
 *
 * OWNERSHIP  Sessions belong to server.sessions.
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_CLIENT_SESSION_H
#define RMEMFS_SERVER_SESSION_CLIENT_SESSION_H

#include "common/base/recent.h"
#include "server/base/retry.h"
#include "server/session/context.h"

/* Asks for pages that the session was granted and does not use (page_recall.h). */
struct page_recall {
	uint64_t asked;    /* the number of the ask that is not answered; 0: none */
	int64_t since_ms;  /* when it was asked */
	bool late;         /* requests do not wait for it any more */
	bool none;         /* it said that it has none, and nothing of it was executed since */
	unsigned nlacking; /* its GRANTs that wait for pages */
	/* Granted pages that it had when others lacked some; 0: none are to be gone. `left` counts
	 * those that have gone since it began, and was kept_left then. */
	uint64_t kept, kept_left;
	int64_t kept_ms;
};

/* Recalls that a session answered late, so that others waited: see recall_late.c. */
struct late_recalls {
	uint64_t count;
	struct recent recent;
	int64_t longest_ms;
};

struct client_session {
	struct list link; /* server.sessions */
	struct server *server;
	struct export *export;
	struct meta_session stored;
	/* Of its users, by the configuration in force: each channel that is attached brings it, and
	 * a reload that changes it ends all channels. Not stored. Until the first channel of this
	 * run of the server it means nothing, and no request of the session runs. */
	struct squash squash;
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
	int64_t began_ms;   /* in this run of the server */
	bool keyed;         /* a key let its client in, on the channel attached last */
	uint64_t *last_seq; /* [slots], in this run of the server */
	int64_t heard_ms;   /* time of the last message, or when a channel was attached */
	int64_t lost_ms;    /* when it lost its last conn */
	/* How long that conn had been silent, if it was closed for that. */
	int64_t silent_ms;
	/* How often its channel 0 was attached again, in this run of the server. */
	uint64_t nreconnects;
	struct recent reconnects;
	struct late_recalls late;
	char key[AUTH_KEY_ID_MAX + 1]; /* on the channel attached last; "": none */
	uint64_t frozen;               /* the snapshot for which it has ended its writes */
	int64_t wanted_ms; /* when another client last found a lock of it in its way; 0: never */
	int64_t looked_ms; /* when the server last checked whether a client waits for one */
	struct page_recall spare;
	/* Another client waits until this session shares the export, or its kernel has forgotten
	 * (conversion.h): since when, plus the time that does not count. 0: nobody has come. */
	int64_t convert_ms;
	bool convert_slow; /* the log has told that it takes long */
	/* It last said that it can't, for files that are open there; 0: it has not. */
	int64_t not_now_ms;
	int64_t lonely_ms; /* it shares, and nobody else is there since then; 0: others are */
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

#endif
