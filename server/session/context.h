/* context.h - the server process: the state that its parts share, and its life from start to end.
 *
 *     main ── server_run ── evq_poll ── conn (receive) ── dispatch (batches) ── meta
 *                                         └ session (ATTACH, BYE, fencing)
 *
 * One thread, the metadata thread, runs all of it. It polls the event queues of all listeners,
 * executes the requests that have arrived in one transaction, answers, and sleeps when nothing is
 * left.
 *
 * OWNERSHIP  struct server owns everything below it.
 * THREADS    The metadata thread. Start-up uses more (regions.h), the tcp transport and the
 *            scrubber have their own.
 */
#ifndef RMEMFS_SERVER_SESSION_CONTEXT_H
#define RMEMFS_SERVER_SESSION_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cpu_wait.h"
#include "common/base/list.h"
#include "common/rpc/rpc.h"
#include "common/transport/transport.h"
#include "server/access/access_current.h"
#include "server/config/config.h"
#include "server/memory/exports.h"
#include "server/session/auth_budget.h"
#include "server/session/key_uses.h"
#include "server/memory/memdir.h"
#include "server/meta/meta.h"
#include "server/session/penalty.h"
#include "server/session/refusals.h"

enum {
	CHANNEL_SLOTS = 16,   /* of each channel */
	CHANNEL_RESERVED = 2, /* the last of them, for COMMIT and RETURN */
	CHANNEL_CONTROLS = 4, /* requests outside slots that may be outstanding */
	CHANNEL_REQUESTS = CHANNEL_SLOTS + CHANNEL_CONTROLS,
	/* At most so many messages are on the way to a peer: replies and rings. */
	CHANNEL_SENDS = CHANNEL_REQUESTS + RPC_RINGS,
	SESSION_CHANNELS = 64, /* of one session at most */
	EXPORT_SESSIONS = 256, /* of one export at most */
	UNATTACHED_MAX = 256,  /* channels that have not attached; of strangers: places.h */
	UNATTACHED_MS = 10000, /* the time in which they have to attach */
	ATTACH_WAIT_MAX_MS = 300000,
	/* ATTACHes that wait for another owner's session: in all, and of one holder. */
	ATTACH_WAITING_MAX = UNATTACHED_MAX / 2,
	ATTACH_WAITING_OF_HOLDER = 4,
};

struct client_request;
struct client_session;

/* One address of `listen`. */
struct port {
	struct server *server;
	struct transport *transport;
	struct evq *q;
	struct listener *listener;
	unsigned index; /* of region_file.registered */
	char name[160]; /* "tcp:127.0.0.1:7470" */
};

/* A channel of the session that has been fenced. */
struct lost_conn {
	unsigned index;
	bool hung_up;
	bool process_gone; /* shm: its process has ended */
	int64_t silent_ms; /* it was fenced because it was silent for so long, or 0 */
};

/* The last look at how full the exports are: see admin/fullness.h. */
struct fullness {
	bool looked;
	uint64_t version; /* of the store then */
	int64_t next_ms;
};

/* Events of channels, processes and sessions, for the parts above them. */
struct client_session_events {
	void (*channel_fenced)(struct client_session *session, const struct lost_conn *lost);
	/* A process of an earlier run of the server does not have the memory of this session mapped
	 * any more. */
	void (*process_gone)(struct server *s, uint64_t session);
	/* A request was answered, or dropped: it waits for nothing any more. */
	void (*request_left)(struct client_request *req);
	/* A session is about to be freed. */
	void (*deleted)(struct client_session *session);
	/* A session has ended. Others may have waited for that. */
	void (*ended)(struct server *s);
	/* ATTACHes in server.waiting may go on: a session, channel or process has ended, or their
	 * time is up. */
	void (*retry_attaches)(struct server *s);
	/* A channel of the session is lost, perhaps with replies to PINGs: the next ones have to
	 * tell everything again. */
	void (*news_lost)(struct client_session *session);
};

/* Requests for the status by peers of one kind, which are answered at a limited rate. */
struct status_queue {
	struct list waiting; /* struct client_request */
	/* Up to this time they have used their share of answers. */
	int64_t told_until_ms;
};

struct server {
	const struct server_config *config;
	const struct client_session_events *events;
	struct memdir dir;
	struct exports *exports;
	struct meta *meta;
	struct port *ports; /* [config->listen.n] */
	unsigned nports;
	int epoll_fd, signal_fd;

	struct access_current access;        /* the clients of the exports */
	struct authenticator *authenticator; /* see auth.h */
	struct auth_budget auth_budget;

	struct recalls *recalls;    /* see recall.h */
	struct snapshot *snapshot;  /* see snapshot.h */
	struct snapshot_sets *sets; /* in snapshot_dir; NULL: nothing needs it */

	struct reload *reload; /* see reload.h */

	/* Last snapshots are taken before the end, see stop.h. */
	struct stop *stop;
	bool leaving;

	uint64_t incarnation; /* this run of the process */
	int64_t start_ms;
	uint32_t lease_ms, lease_limit;
	uint32_t peer_timeout_ms;    /* silence after which a channel is closed */
	int64_t running_ms;          /* time in which this process ran, up to judged_ms */
	int64_t judged_ms, judge_ms; /* when silence was judged last, and is to be next */
	int64_t look_ms;             /* see lost_memory.h */
	struct fullness fullness;
	struct cpu_wait cpu; /* see lateness.h */
	int64_t due_ms;      /* the next tick; 0: none */
	bool starved_told;   /* to the service manager */
	bool stopping;
	bool reclaim;            /* meta_reclaim has something to do */
	bool rings_wanted;       /* by some session */
	uint64_t nasks;          /* see page_recall.h */
	int64_t pages_ticked_ms; /* the same */

	struct list sessions;   /* struct client_session */
	struct list peers;      /* see peers.h */
	struct list conns;      /* struct conn: all of them */
	struct list unattached; /* those without a session, oldest first */
	unsigned nconns, nunattached, nsessions, nsessions_told;
	struct list visitors; /* channels without an answer to their hello: places.h */
	unsigned nvisitors;
	int64_t visitors_ms; /* when they are looked at again; 0: now, since a place became free */
	uint64_t nserials;   /* the last conn's serial */
	uint64_t refused;    /* channel_refused() of channels that are gone */
	struct rpc_counters ended; /* of exports that were removed */
	struct penalties penalties;
	struct refusals refusals;
	struct key_uses key_uses;
	struct list turns; /* struct client_session: have asked for something, see turns.h */
	/* struct client_request; each is in one of these, or its session's, or in a batch, or
	 * free. */
	struct list ready;        /* to be run again, or of no session: before all others */
	struct list parked;       /* waiting for pages */
	struct list waiting;      /* ATTACHes that wait for another session or channel to end */
	struct list auth_waiting; /* AUTHs whose handshakes wait for their turn */
	struct status_queue strangers, clients; /* see status.h */
	struct list stalled; /* REGIONS that wait for the transport to make keys */
};

/* 0 or -errno; the reason is logged. -EINTR: it was asked to end before it served. Exports that
 * were removed go out of config, which the server borrows. */
int server_new(struct server_config *config, struct server **out);
/* Serves until it is asked to end: 0. -errno: it can't go on, or its last snapshots were to be
 * taken and were not. */
int server_run(struct server *s);
void server_delete(struct server *s);

#endif
