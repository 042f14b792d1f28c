/* session_private.h - what session.c shares with the threads' ends of the session.
 *
 * THREADS    remote_connect()'s thread writes the facts settled by the first ATTACH before the
 *            others run. The atomics and the fields under the lock change at any time. The lock is
 *            held for a few assignments and log lines, never on the data path.
 */
#ifndef RMEMFS_DAEMON_REMOTE_SESSION_PRIVATE_H
#define RMEMFS_DAEMON_REMOTE_SESSION_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/transport/address.h"
#include "daemon/remote/lingering.h"
#include "daemon/record/record.h"
#include "daemon/remote/client_id.h"
#include "daemon/remote/replay.h"
#include "daemon/remote/session.h"
#include "daemon/request/io_thread.h"

enum {
	SESSION_WHY_BYTES = RPC_TEXT_MAX + LINGERING_BYTES + 112,
	/* Of a channel. */
	SLOTS_MAX = 64,
	/* Messages outside the slots: one PING, one CANCEL, and ATTACH, REGIONS or BYE. */
	UNSLOTTED_MAX = 3,
};

/* A transport that leads to the server: paths.h. */
struct session_path {
	struct transport *transport; /* NULL: it is not open */
	struct transport_address address;
	char server[160]; /* "tcp 127.0.0.1:7470" */
	unsigned nusers;  /* threads whose event queue is of it; under session.lock */
};

/* scout.h */
struct scout {
	pthread_t thread;
	atomic_bool started;
	int event_fd;
	atomic_bool stopping;
	atomic_uint nlosses; /* scout_channel_lost() */
	unsigned nseen;      /* of these, by the last look */
	unsigned nunsteady;  /* looks that saw new ones since unsteady_ms */
	int64_t unsteady_ms; /* when the first of them did */
	int64_t bad_ms;      /* since when channels over verbs are missing; 0: none is */
	/* Others may read these. Verbs is not tried before; and the last wait after verbs led
	 * there, but channels did not last. */
	_Atomic int64_t again_ms, penalty_ms;
};

/* A thread's end of the session tells all threads this. */
struct session_thread {
	_Atomic(const struct session_path *) ready; /* the path of its channel; NULL: it is down */
	/* Totals for PING, which another thread may send. */
	_Atomic uint64_t reads, writes, read_bytes, write_bytes, rpcs, rpc_data_bytes;
	atomic_uint keys_ready; /* session.keys of the last channel that was ready */
};

struct session {
	struct session_options options;
	struct transport_config config;
	struct session_path paths[TRANSPORT_NKINDS]; /* by kind */
	_Atomic(struct session_path *) path;         /* where channels are to be */
	_Atomic(const char *) server;                /* its text */
	bool moves;                                  /* between tcp and verbs */
	bool verbs_refused;                          /* by the export; under lock */
	char no_verbs[VERBS_WHY_BYTES]; /* not used; "": it is, or may not; under lock */
	struct buffer *memory[IO_THREADS_MAX];
	struct scout scout;
	bool chosen;      /* we chose the transport: a hint in errors */
	bool may_be_here; /* pick_transport_may_be_here() */

	/* For AUTH: NULL, or the file of the mount's keys, and what handshakes need. */
	char *key_file;
	enum protection wanted;        /* of a channel */
	atomic_bool export_wants_more; /* than PROTECTION_MESSAGES */
	struct handshake_context *handshakes;

	/* For ATTACH: this client. */
	char export_name[EXPORT_NAME_MAX + 1];
	char client[160];
	char mountpoint[4096];
	struct owner owner;
	uint64_t instance;
	unsigned nchannels;
	bool exclusive, converts, exit_when_lost;
	atomic_bool sharing;
	atomic_bool read_only;
	atomic_uint keys; /* counts changes of read_only: channels have the keys of one of them */
	unsigned connect_timeout_ms;
	unsigned peer_timeout_ms, soft_ms;

	/* While remote_connect() runs, its failure goes here. A failure that may pass before
	 * connect_until_ms is only logged, once. */
	bool connecting, told_waiting;
	int connect_error;
	int64_t connect_until_ms;
	bool waits; /* other clients have the export, which was logged */
	char connect_why[SESSION_WHY_BYTES];

	_Atomic uint64_t id;        /* 0: none yet, or none any more; set by thread 0 */
	uint64_t ended_id;          /* the session before; 0: there was none */
	atomic_bool ended;          /* by the server, and session_begin_anew() was not called yet */
	struct rpc_counters before; /* the threads' counts when it began */
	struct rpc_counters earlier; /* of the processes that had it before this one */

	/* Settled by the first ATTACH. */
	uint8_t store_id[16];
	uint8_t token[TOKEN_BYTES]; /* of the session; thread 0 changes it while there is none */
	struct session_info info;
	struct io_limits limits;

	struct record *record; /* NULL: nothing is recorded */
	struct replays replays;
	const struct session_events *events;
	struct session_thread threads[IO_THREADS_MAX];
	atomic_uint nrunning; /* threads that have not called remote_stop() */

	atomic_int protection; /* enum channel_protection: of the channel attached last */
	atomic_bool lost;
	atomic_bool unsafe;              /* BYE says so */
	_Atomic int64_t clock_offset_ns; /* the server's time less our BOOTTIME */
	_Atomic int64_t renewed_ms;      /* when the last renewal that was answered left */
	_Atomic uint64_t quotas;         /* session_quotas() */
	_Atomic uint32_t lease_ms, lease_limit;
	/* session_squash(): the kind is stored last. Beside a change a request may see the kind
	 * before with the ids after. */
	_Atomic uint64_t squash_ids; /* anonuid, above anongid */
	_Atomic uint8_t squash_kind;
	_Atomic uint32_t server_timeout_ms; /* the server closes a channel that is silent for so
					     * long; 0: never */

	_Atomic uint32_t nregions;
	_Atomic uint64_t region_bytes; /* of all regions but the last */
	atomic_bool loss_told;         /* the log says that a region has lost bytes */
	_Atomic uint64_t snapshot;     /* on its way; 0: none */
	_Atomic uint64_t freezing;     /* the snapshot that waits for us; 0: none does */

	pthread_mutex_t lock; /* a leaf: nothing is locked under it */
	int64_t clock_error_ns, clock_sampled_ns;
	uint64_t incarnation;
	uint64_t thawed;     /* the last snapshot that does not wait any more */
	int64_t snapshot_ns; /* when we learned of the snapshot */
	bool restarted;      /* since the loss that is being mended */
	unsigned ndown;      /* channels that were ready, and are to become so again */
	int64_t down_ms, complain_ms;
	uint64_t nlosses;
	char down_why[256];  /* of the last loss */
	char again_why[256]; /* the last attempt to connect since the loss failed; "": none has */
	bool refusal_told;   /* since the loss */
};

/* The body of an ATTACH for one channel; wait_ms 0 where a session is resumed or joined. While
 * remote_connect() runs the first one waits for a moment only. */
void session_attach_request(struct session *s, unsigned channel, struct rpc_attach *attach);

/* ATTACH was refused, since the export has other mounts already. True: the session shares it with
 * them, and ATTACH is to be sent again. */
bool session_joins(struct session *s);
/* The server refused remote_connect(), since other clients have the export. True: it may wait for
 * them, which is logged once, and ATTACH is to be sent again. */
bool session_waits(struct session *s, const char *why);

/* Takes the answer to the first ATTACH, or compares a later one with the session. The session is
 * lost if the answer is about another one. -EPROTO, -E2BIG, -ESTALE. */
int session_attached(struct session *s, const struct rpc_attach_reply *reply,
	const struct channel_limits *limits, char *why, size_t whylen);

/* The time between two pings of a channel: short enough that neither side takes the other for
 * silent. */
uint32_t session_ping_ms(const struct session *s);

/* The server has answered: the lease counts from when the request left. The server's clock was at
 * server_time at some moment between then and now. */
void session_renew(struct session *s, int64_t sent_ns, int64_t server_time);

/* The reply to a request that left at sent_ns tells of snapshots. */
void session_told_snapshot(struct session *s, uint64_t snapshot, bool frozen, int64_t sent_ns);

/* The server has ended a sharing session, and has the same store: see session_has_ended(). */
void session_end(struct session *s, const char *why);

/* While remote_connect() waits, the first failure that may not pass is its result. */
void session_connect_failed(struct session *s, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A channel has keys to so many regions: the export may have grown. */
void session_has_regions(struct session *s, uint32_t nregions);
/* The server has no key for a region, since bytes of it are lost. Logged once. */
void session_lost_region(struct session *s, uint32_t region);

/* remote_connect() goes on trying, because of `why`. Logged once. */
void session_tell_waiting(struct session *s, const char *why);

/* A ready channel went down, came back, could not be brought back. They log one line for a loss and
 * one for its end, whatever the number of channels and attempts. */
void session_channel_down(struct session *s, const char *why);
void session_channel_back(struct session *s);
/* refused: by a server that is there. Someone has to act, so the first such line of a loss is
 * logged at once. */
void session_complain(struct session *s, const char *why, bool refused);

/* The sum over all threads, since the session began. */
void session_totals(struct session *s, struct rpc_counters *totals);

#endif
