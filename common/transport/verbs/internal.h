/* internal.h - the parts that the files of the verbs transport share. Only they include it.
 *
 *     open.c     the device: opening, limits, protection domain; the operation table
 *     memory.c   registration; keys: windows, or registrations of the channel's own
 *     evq.c      event queues: descriptors, arming, which channels have something to say
 *     connect.c  connection management: listening, connecting, accepting, its events
 *     channel.c  a channel's making and ending: queue pair, message buffers, fence
 *     srq.c      a server's receives, which its channels share where the device can do that
 *     io.c       posting and completions
 *
 * A channel's life has phases of its own, since the end of a connection shows in two places, the
 * connection manager and the completion queue, in any order. The first sign ends the channel. Its
 * queue pair goes into error (PHASE_DYING), and the successful completions are drained. Then the
 * queue pair is destroyed (PHASE_DEAD). Only now do EV_DONE with errors and EV_CLOSED go out, since
 * only now can no READ land in the caller's memory any more. A fence goes the same way, to
 * EV_FENCED; shared receives have to come back first.
 *
 * A side announces an orderly end by a last message, a WRITE of no bytes with the immediate
 * VERBS_BYE. A disconnect request alone looks the same whether a process closes or is killed.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_VERBS_INTERNAL_H
#define RMEMFS_COMMON_TRANSPORT_VERBS_INTERNAL_H

#include <stdatomic.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "common/auth/channel_keys.h"
#include "common/auth/sealed.h"
#include "common/base/list.h"
#include "common/base/log.h"
#include "common/transport/verbs/receives.h"
#include "common/transport/transport_ops.h"

/* Marks the wr_id of a receive, beside its slot. */
#define VERBS_RECV_FLAG (UINT64_C(1) << 63)

enum {
	VERBS_MAX_SGE = 32,       /* 128 KiB of page-sized SGEs in a work */
	VERBS_MAX_WORK = 1 << 20, /* bytes: longer works delay the others of their queue pair */
	VERBS_INLINE = 220,       /* requested; devices grant it or less */
	VERBS_NBIND = 64,         /* window binds that may be in flight */
	VERBS_BYE = 0x62796521,   /* "bye!" */
	VERBS_RESOLVE_MS = 2000,  /* for each of address and route */
	VERBS_RETRIES = 6,        /* 7 means for ever on Soft-RoCE */
	VERBS_RNR_RETRIES = 7,    /* for ever: the peer may be stopped for long and still live */
	VERBS_RNR_TIMER = 12,     /* 0.64 ms; the kernel's 0 means 655 ms */
	VERBS_LAST_MS = 100,      /* wait for a dying queue pair's last receives */
	VERBS_LOG_MS = 1000,      /* between lines that a peer can provoke, */
	VERBS_LOG_BURST = 10,     /* after so many */
};

struct verbs_transport {
	struct transport base;
	struct rdma_event_channel *cm;
	struct rdma_cm_id *id; /* holds the device open */
	struct ibv_context *context;
	struct ibv_device_attr device;
	struct ibv_pd *pd;
	bool windows;   /* keys are type 2 windows; else registrations in a channel's own domain */
	uint64_t nkeys; /* windows, or registrations, of all channels */
	bool shares_receives;
	uint32_t max_sge_read, max_sge_write, max_work_bytes;
	uint8_t read_depth_out, read_depth_in; /* READs in flight from us, to us */
};

struct verbs_buffer {
	struct buffer base;
	struct ibv_mr *mr;
};

struct verbs_region {
	struct region base;
	struct ibv_mr *mr; /* NULL without windows */
};

struct verbs_evq {
	struct evq base;
	struct rdma_event_channel *cm;
	struct ibv_comp_channel *comp;
	int epoll;
	int timer;             /* for the first channel in dying */
	struct verbs_srq *srq; /* a server's, if the device has any */
	struct list ready;     /* channels with pending events */
	struct list hot;       /* channels whose completion queue to poll */
	struct list dying;     /* channels that wait for their last receives, the oldest first */
	unsigned polls;
	struct log_ratelimit strangers; /* peers with a wrong hello */
	bool idle;                      /* the last poll found nothing */
	bool armed;                     /* the caller may sleep on the descriptor */
};

struct verbs_listener {
	struct listener base;
	struct rdma_cm_id *id;
};

enum verbs_phase { PHASE_INCOMING, PHASE_CONNECTING, PHASE_OPEN, PHASE_DYING, PHASE_DEAD };

enum { PENDING_INCOMING = 1, PENDING_OPEN = 2, PENDING_CLOSED = 4, PENDING_FENCED = 8 };

/* One posted send work request. */
enum verbs_sq_kind { SQ_READ, SQ_WRITE, SQ_MESSAGE, SQ_BIND, SQ_BYE };
struct verbs_sq_entry {
	void *cookie;   /* of the batch, kept in its last work */
	uint32_t value; /* works: bytes; messages: slot */
	uint8_t kind;
	bool last; /* of its batch */
};

/* A region published to the channel's peer. */
struct verbs_grant {
	struct region *region;
	struct ibv_mw *mw; /* either mw or mr */
	struct ibv_mr *mr;
};

struct verbs_channel {
	struct channel base;
	struct rdma_cm_id *id;
	struct rdma_cm_id *listen_id; /* of the listener that brought it */
	struct list ready_node, hot_node, dying_node;
	enum verbs_phase phase;
	unsigned pending;
	bool fencing;
	int64_t last_ms;                       /* it waits for its last receives until then */
	atomic_bool last_receive;              /* the device has reported the last one */
	uint8_t read_depth_out, read_depth_in; /* settled with the peer */

	int cause;      /* the reason of its end; 0: not known (yet) */
	bool peer_bye;  /* the peer announced an orderly end */
	bool own_bye;   /* our own bye has arrived */
	bool hung_up;   /* the peer's side has ended the connection */
	bool qp_failed; /* the queue pair was in error before we put it there */
	int status;     /* of EV_CLOSED, once dead */

	struct ibv_pd *pd; /* without windows: the channel's own, else NULL */
	struct ibv_cq *cq;
	bool armed;
	unsigned cq_events; /* seen, not acknowledged */

	/* Messages: slots of verbs_slot_bytes(), first those for receiving. */
	uint8_t *messages;
	size_t messages_len;
	struct ibv_mr *messages_mr;
	uint32_t nrecv, nsend; /* slots of either kind: more than the configuration's numbers */
	uint32_t *free_slots, nfree;

	/* With shared receives the channel has none of its own. Messages of the caller are kept
	 * here: nkept places, of which the caller has those that are not free. */
	struct verbs_srq *srq;
	struct receives_user receives;
	uint32_t burst; /* receives since the completion queue was empty */
	bool overrun;   /* completions may be lost */
	uint8_t *kept;
	uint32_t nkept, *free_kept, nfree_kept;
	uint32_t nlent; /* send slots with the caller */
	uint32_t max_inline;

	/* Send queue. Completions are in order, so two counters tell what is in flight. */
	struct verbs_sq_entry *sq;
	uint64_t sq_posted, sq_completed;
	uint32_t sq_mask, unsignalled, signal_every;
	uint32_t nworks, nreads, nbinds; /* in flight */
	uint32_t max_works;

	/* Messages are sealed; READs, WRITEs and byes are not. */
	bool seals_out, seals_in;
	struct sealed_out seal_out;
	struct sealed_in seal_in;

	/* Client: channel_post builds a chain here. */
	struct ibv_send_wr *wrs;
	struct ibv_sge *sges;

	/* Server */
	struct verbs_grant *grants; /* [config.max_regions] */
	uint32_t ngrants;
};

static inline struct verbs_transport *verbs_transport(const struct transport *t)
{
	return container_of(t, struct verbs_transport, base);
}

/* A message of msg_bytes, and the seal around it; a multiple of a cache line. */
static inline uint32_t verbs_slot_bytes(const struct transport *t)
{
	return (t->config.msg_bytes + SEALED_OVERHEAD + 63) & ~UINT32_C(63);
}

static inline struct verbs_evq *verbs_evq(const struct evq *q)
{
	return container_of(q, struct verbs_evq, base);
}

static inline struct verbs_channel *verbs_channel(const struct channel *ch)
{
	return container_of(ch, struct verbs_channel, base);
}

static inline bool verbs_channel_up(const struct verbs_channel *ch)
{
	return ch->phase == PHASE_OPEN;
}

/* memory.c */
int verbs_buffer_register(struct transport *t, void *addr, size_t len, struct buffer **out);
void verbs_buffer_deregister(struct buffer *b);
int verbs_region_register(
	struct transport *t, int fd, int rofd, void *addr, uint64_t len, struct region **out);
void verbs_region_deregister(struct region *r);
int verbs_publish(struct channel *base, struct region *r, unsigned access, struct region_key *key);
/* The two functions free the keys on either side of destroying the queue pair. Windows go before
 * it, since Soft-RoCE keeps a queue pair while a window is bound to it; registrations of the
 * channel's own go after it. */
uint64_t verbs_keys_left(const struct transport *base);
int verbs_windows_free(struct verbs_channel *ch);
void verbs_grants_free(struct verbs_channel *ch);
/* Calls ibv_reg_mr; NULL and *err on failure. It logs the reason; with `what` NULL the caller
 * reports it. */
struct ibv_mr *verbs_mr_new(struct verbs_transport *t, struct ibv_pd *pd, void *addr, uint64_t len,
	int access, const char *what, int *err);

/* evq.c */
int verbs_evq_new(struct transport *t, struct evq **out);
void verbs_evq_delete(struct evq *q);
int verbs_evq_poll(struct evq *q, struct event *events, int max);
int verbs_evq_fd(const struct evq *q);
int verbs_evq_arm(struct evq *q);
/* Make evq_poll take the channel's pending events, or poll its completion queue. */
void verbs_evq_ready(struct verbs_channel *ch);
void verbs_evq_hot(struct verbs_channel *ch);
/* Makes evq_poll poll a dying channel when there is news of its last receives, or at last_ms. */
void verbs_evq_await(struct verbs_channel *ch);
void verbs_evq_forget(struct verbs_channel *ch);
/* Makes evq_poll look at the device's asynchronous events. */
int verbs_evq_watch_device(struct verbs_evq *q);

/* connect.c */
int verbs_probe(struct transport *t, const struct transport_address *address);
int verbs_listen(struct evq *q, const struct transport_address *address, struct listener **out);
void verbs_listener_delete(struct listener *l);
int verbs_connect(struct evq *q, const struct transport_address *address, struct channel **out);
int verbs_accept(struct channel *base);
void verbs_reject(struct channel *base);
/* Takes the connection manager's events; 0 or -errno. */
int verbs_connect_poll(struct verbs_evq *q);

/* channel.c */
int verbs_channel_new(
	struct evq *q, bool server, enum channel_state state, struct verbs_channel **out);
/* Makes queue pair, completion queue and message buffers, and posts receives. The id must have a
 * device. */
int verbs_channel_build(struct verbs_channel *ch);
void verbs_channel_unbuild(struct verbs_channel *ch);
/* The connection is established: EV_OPEN follows. */
void verbs_channel_opened(struct verbs_channel *ch);
/* The channel ends, for this cause or, if that is 0, for the one that the completion queue will
 * show. The first known cause counts. */
void verbs_channel_fail(struct verbs_channel *ch, int cause);
/* The drain of a dying channel found nothing more. */
void verbs_channel_finish(struct verbs_channel *ch);
/* Frees everything, whatever the phase. */
void verbs_channel_free(struct verbs_channel *ch);
/* The device takes no more receives for its queue pair, and has completed those it took. Any thread
 * may call this.
 */
void verbs_channel_last_receive(struct verbs_channel *ch);
/* Whether the channel waits for nothing but completions that are there already. */
bool verbs_channel_may_finish(const struct verbs_channel *ch);
/* Takes up to max pending events. */
int verbs_channel_events(struct verbs_channel *ch, struct event *events, int max);
void verbs_disconnect(struct channel *base);
void verbs_delete(struct channel *base);
int verbs_fence(struct channel *base);

/* io.c */
/* verbs_signal_every(): at least one of so many send work requests is signalled.
 * verbs_send_slack(): send slots needed beyond config->nsend, since the arrival of a message is
 * known only later. */
uint32_t verbs_signal_every(const struct transport_config *config);
uint32_t verbs_send_slack(const struct transport_config *config);
/* Allocates the send queue's records and the arrays in which works are built. */
int verbs_io_init(struct verbs_channel *ch, uint32_t sq_depth);
void verbs_io_fini(struct verbs_channel *ch);
int verbs_recv_post(struct verbs_channel *ch, uint32_t slot);
int verbs_bye_post(struct verbs_channel *ch);
int verbs_bind_post(struct verbs_channel *ch, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr,
	uint64_t len, unsigned access);
/* Takes up to max events from the completion queue. */
int verbs_io_poll(struct verbs_channel *ch, struct event *events, int max);
/* Takes only the shared receives from the completion queue. */
void verbs_io_drain(struct verbs_channel *ch);
/* Fills the next EV_DONE of a dead channel; false: there is none. */
bool verbs_io_abort_next(struct verbs_channel *ch, int status, struct event *event);
void *verbs_send_buffer(struct channel *base);
void verbs_send_cancel(struct channel *base, void *buf);
int verbs_send(struct channel *base, void *buf, uint32_t len, unsigned flags, uint32_t imm);
bool verbs_worn(const struct channel *base);
int verbs_protect(struct channel *base, unsigned directions, const struct channel_keys *keys);
void verbs_recv_done(struct channel *base, const void *data);
int verbs_post(struct channel *base, enum io_dir dir, const struct work *works, uint32_t nworks,
	void *cookie);

/* srq.c */
bool verbs_srq_usable(const struct verbs_transport *t);
int verbs_srq_new(struct verbs_transport *t, struct verbs_srq **out);
/* Its channels must be gone. */
void verbs_srq_delete(struct verbs_srq *s);
/* Valid while a channel has joined. */
struct ibv_srq *verbs_srq_queue(const struct verbs_srq *s);
/* verbs_srq_size(): number of receives. verbs_srq_doubts(): destroyed queue pairs that may still
 * hold one.
 */
uint32_t verbs_srq_size(const struct verbs_srq *s);
unsigned verbs_srq_doubts(const struct verbs_srq *s);
/* Before the queue pair is made: makes sure of enough receives for one more channel. -EAGAIN:
 * impossible, since too many channels are there or too many receives may be lost; else the device's
 * error. Then the channel needs receives of its own. */
int verbs_srq_join(struct verbs_srq *s, struct verbs_channel *ch);
/* The queue pair is destroyed, and its completions are taken. sure: it holds no other receive. */
void verbs_srq_leave(struct verbs_srq *s, struct verbs_channel *ch, bool sure);
/* The channel's completion queue was found empty. */
void verbs_srq_emptied(struct verbs_srq *s, struct verbs_channel *ch);
const void *verbs_srq_message(const struct verbs_srq *s, uint32_t slot);
/* The channel has completed this receive, and its message is not needed any more. */
void verbs_srq_completed(struct verbs_srq *s, struct verbs_channel *ch, uint32_t slot);

#endif
