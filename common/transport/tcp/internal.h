/* internal.h - the tcp transport's own structs; only the files of this folder include it.
 *
 * A channel is one socket. tcp.c is the table, client.c a client's channel, which its queue's
 * thread does by itself. A server's channel has two sides. server.c is the work of the queue's
 * thread: accept, publish, send, fence. io.c is the I/O threads: they read the socket, move bytes
 * between it and the regions, and pass messages on. output.c is sending, which both do.
 *
 * LOCKS      tcp_io.lock, then tcp_server.lock, then sock_evq.lock. No thread holds one of them
 *            over a system call that could block.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_TCP_INTERNAL_H
#define RMEMFS_COMMON_TRANSPORT_TCP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/transport/sock/arena.h"
#include "common/transport/sock/channel.h"
#include "common/transport/sock/listen.h"
#include "common/transport/tcp/messages.h"
#include "common/transport/tcp/pipe.h"
#include "common/auth/channel_keys.h"
#include "common/transport/tcp/stream.h"

/* One I/O thread and its epoll set. */
struct tcp_io {
	pthread_t thread;
	bool running;
	int epfd, wakefd;
	pthread_mutex_t lock;
	pthread_cond_t dropped; /* some channel's dropped became true */
	struct list drops;      /* under lock: channels to give up */
	_Atomic bool stopping;
};

struct tcp_transport {
	struct transport base;
	pthread_mutex_t lock; /* guards the start of I/O threads */
	struct tcp_io *io;
	unsigned nio; /* started; 0 until the first transport_listen */
	_Atomic unsigned next_io;
};

/* ---- client ---------------------------------------------------------------------------------- */

/* A posted batch, in the arena with its header, ranges and vectors behind it. */
struct tcp_batch {
	struct list node;        /* in client->batches until it is answered */
	struct sock_piece piece; /* in client->out until it is sent */
	struct iovec *iov;       /* header and ranges, then all SGEs */
	uint32_t niov;
	uint32_t nworks;
	size_t arena_bytes;
	uint64_t bytes;
	enum io_dir dir;
	int status;
	void *cookie;
	const void *head; /* for an answer through the pipe; NULL: to memory */
	uint32_t headlen;
	bool piped; /* its answer is in the pipe, or will be */
};

struct tcp_client {
	struct sock_channel sock;
	struct sock_arena arena;
	struct list batches;        /* the oldest first: they are answered in order */
	struct tcp_batch *arriving; /* the oldest one, whose answer is arriving */
	struct sock_msg *message;   /* arriving */
	uint32_t nworks;            /* in batches */
	struct tcp_in in;
	struct tcp_seal_in seal_in;
	struct tcp_pipe pipe; /* of the answer arriving, or of the last event */
	struct tcp_out out;
	struct tcp_seal_out seal_out;
	struct tcp_messages messages;
	bool out_dead; /* the peer takes no more; its own bytes tell why */
	bool bye_sent; /* or queued */
	struct sock_piece bye;
	struct iovec bye_iov;
	uint8_t bye_header[FRAME_BYTES];
};

int tcp_connect(struct evq *q, const struct transport_address *address, struct channel **out);
void tcp_client_disconnect(struct channel *base);
void tcp_client_delete(struct channel *base);
int tcp_client_send(struct tcp_client *ch, struct sock_msg *msg);
int tcp_post(struct channel *base, enum io_dir dir, const struct work *works, uint32_t nworks,
	void *cookie);
int tcp_post_piped(struct channel *base, const struct work *works, uint32_t nworks,
	const void *head, uint32_t headlen, void *cookie);
int tcp_client_pipe(const struct channel *base);
bool tcp_client_worn(const struct tcp_client *ch);
int tcp_client_protect(struct tcp_client *ch, unsigned directions, const struct channel_keys *keys);

/* ---- server ---------------------------------------------------------------------------------- */

struct tcp_published {
	const struct region *region;
	uint32_t rkey;
	uint32_t access;
};

/* The kind of payload that the I/O thread is reading. */
enum tcp_stage { TCP_HEADER, TCP_RANGES, TCP_DATA, TCP_MESSAGE };

struct tcp_server {
	struct sock_channel sock;     /* its phase and source are the queue thread's */
	struct tcp_io *io;            /* NULL until it is accepted */
	bool fencing;                 /* used by the queue's thread only */
	struct tcp_messages messages; /* the same */
	_Atomic bool stopped;         /* the I/O thread shall begin nothing new */
	struct list drop;             /* in io->drops, under io->lock */
	bool dropped;                 /* the I/O thread has finished; under io->lock */

	/* The queue's thread writes an element, then counts it; so the I/O thread may read it. */
	struct tcp_published *published; /* [config.max_regions] */
	_Atomic uint32_t npublished;

	pthread_mutex_t lock; /* the following, and sock.send, sock.recv, sock.blocked, .stalled */
	struct tcp_out out;
	struct tcp_seal_out seal_out; /* of the thread that sends */
	bool protect_in;              /* the I/O thread shall read by key_in from here on */
	struct direction_key key_in;
	bool sending;  /* a thread is in sendmsg for out's pieces; only it takes them out */
	bool out_dead; /* as in the client */
	bool replying; /* reply is in out: no further request is read */
	bool bye_sent; /* or queued */
	bool faulted;  /* memory of a region could not be read */
	bool closed;   /* EV_CLOSED with closed_status is due */
	int closed_status;
	struct list received; /* messages for the queue's thread */
	uint32_t watched;     /* interest in io->epfd; 0: not in it */
	struct sock_piece bye;
	struct iovec bye_iov;
	uint8_t bye_header[FRAME_BYTES];

	/* Used by the I/O thread only. */
	struct tcp_in in;
	struct tcp_seal_in seal_in;
	enum tcp_stage stage;
	struct sock_frame request;
	struct sock_msg *message; /* arriving */
	bool refused;             /* the reply is a refusal; then the channel ends */
	uint8_t *ranges;          /* those behind the header, still encoded */
	struct iovec ranges_iov;
	struct iovec *reply_iov; /* [1 + works]: the reply's header, then the request's memory */
	struct sock_piece reply;
	uint8_t reply_header[FRAME_BYTES];
};

static inline struct tcp_server *tcp_server_of(struct channel *ch)
{
	return container_of(ch, struct tcp_server, sock.base);
}

static inline struct tcp_client *tcp_client_of(struct channel *ch)
{
	return container_of(ch, struct tcp_client, sock.base);
}

static inline void tcp_server_passed(struct tcp_server *ch, ssize_t bytes)
{
	atomic_fetch_add_explicit(&ch->sock.base.progress, (uint64_t)bytes, memory_order_relaxed);
}

static inline void tcp_server_refused(struct tcp_server *ch)
{
	atomic_fetch_add_explicit(&ch->sock.base.refused, 1, memory_order_relaxed);
}

extern const struct channel_limits tcp_limits;

/* Fills a BYE and the piece that sends it. */
void tcp_bye_piece(struct sock_piece *piece, struct iovec *iov, uint8_t header[FRAME_BYTES]);

int tcp_admit(struct sock_guest *guest, struct sock_channel **out);
int tcp_accept(struct channel *base);
void tcp_reject(struct channel *base);
int tcp_publish(struct channel *base, struct region *r, unsigned access, struct region_key *key);
void tcp_server_disconnect(struct channel *base);
int tcp_fence(struct channel *base);
void tcp_server_delete(struct channel *base);
void *tcp_server_send_buffer(struct tcp_server *ch);
void tcp_server_send_cancel(struct tcp_server *ch, void *buf);
int tcp_server_send(struct tcp_server *ch, struct sock_msg *msg);
void tcp_server_recv_done(struct tcp_server *ch, const void *data);
int tcp_server_protect(struct tcp_server *ch, unsigned directions, const struct channel_keys *keys);

/* Queues a piece; the caller sends afterwards. */
void tcp_output_add_locked(struct tcp_server *ch, struct sock_piece *piece);
/* Sends by the queue's thread: once, what is there; it leaves the rest to the I/O thread. */
void tcp_output_once(struct tcp_server *ch);
/* Sends by the I/O thread, until nothing is left or the socket is full. */
void tcp_output_all(struct tcp_server *ch);
/* Makes the I/O thread wait for what it can do next. */
void tcp_watch_locked(struct tcp_server *ch);

/* Starts t's I/O threads if they don't run. */
int tcp_io_start(struct tcp_transport *t);
void tcp_io_stop(struct tcp_transport *t);
/* Gives the channel to one of the I/O threads. */
void tcp_io_add(struct tcp_transport *t, struct tcp_server *ch);
/* Asks the I/O thread to give up the channel. Then dropped becomes true and the channel's source is
 * notified. */
void tcp_io_drop(struct tcp_server *ch);
bool tcp_io_dropped(struct tcp_server *ch);
/* Waits until dropped is true. The I/O thread never waits for a peer, so this is short. */
void tcp_io_wait_dropped(struct tcp_server *ch);

#endif
