/* transport.h - one-sided access to another machine's memory, and messages, over verbs, tcp or shm.
 *
 * A server opens a transport, registers its regions with it and listens. A client opens one,
 * registers its buffers (targets of READs and sources of WRITEs), and connects channels. Events of
 * a channel come out of the event queue that it was made on: a new peer, a message, an I/O or a
 * connection that ended.
 *
 *     server: transport_open, region_register.., evq_new, transport_listen
 *             EV_INCOMING -> channel_accept -> EV_OPEN -> EV_RECV.., channel_publish, channel_send
 *             EV_CLOSED -> channel_fence -> EV_FENCED -> channel_delete
 *     client: transport_open, buffer_register.., evq_new
 *             channel_connect -> EV_OPEN -> channel_send, EV_RECV.., channel_set_key
 *             channel_post -> EV_DONE; EV_CLOSED -> channel_delete
 *
 * OWNERSHIP  The maker deletes its objects in the reverse order: channels and listeners, then
 *            queues, then regions and buffers, then the transport.
 * THREADS    An event queue, its listeners and its channels belong to one thread; no call on them
 *            may come from another. Open before such threads start. Different threads
 *            may use different queues of one transport at once. Nothing here blocks unless its
 *            comment says so.
 * ORDER      On one channel: a message sent after a WRITE was posted arrives after the WRITE's
 *            bytes; messages arrive in order; batches complete in the order they were posted.
 *            Nothing is promised across channels.
 * ERRORS     0 or -errno; out-parameters are unchanged on failure.
 *
 * This header is the whole contract. transport.c does its checks (states, bounds, registered
 * memory, limits) once; the three implementations are behind the table in transport_ops.h.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_TRANSPORT_H
#define RMEMFS_COMMON_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct transport;
struct evq;
struct listener;
struct channel;
struct buffer;
struct region;

enum transport_kind { TRANSPORT_VERBS, TRANSPORT_TCP, TRANSPORT_SHM };
enum { TRANSPORT_NKINDS = 3 };

/* "verbs", "tcp", "shm". */
const char *transport_kind_name(enum transport_kind kind);

/* A place to listen at or to connect to. For shm: AF_UNIX with an absolute path. */
struct transport_address {
	enum transport_kind kind;
	struct sockaddr_storage addr;
	socklen_t addrlen;
};

/* Sizes that both sides settle when a channel opens. Each side asks and the smaller value counts;
 * only nrecv each side states for itself. The device may grant less. */
struct transport_config {
	uint32_t msg_bytes;   /* the longest message */
	uint32_t nrecv;       /* messages in flight to us, or not yet returned here */
	uint32_t nsend;       /* messages of ours in flight */
	uint32_t nwork;       /* works (see channel_post) outstanding on one channel; client */
	uint32_t max_regions; /* regions that a channel may publish or hold keys to */
	unsigned
		io_threads; /* threads that serve the peers' READs and WRITEs: tcp server; else 0 */
	unsigned ack_timeout; /* verbs: local ACK timeout, 4.096 us * 2^n; 14 is 67 ms */
};

/* Sensible values for the above: 16 KiB messages, 64 receives and sends, 256 works. */
void transport_config_default(struct transport_config *config);

void transport_close(struct transport *t);
enum transport_kind transport_kind_of(const struct transport *t);
/* The device's name ("rxe0", "mlx5_0"), or the kind's. */
const char *transport_device(const struct transport *t);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Registers a client's local memory as source of WRITEs and target of READs. The caller keeps the
 * memory until buffer_deregister(). -ENOMEM: refused; the reason (RLIMIT_MEMLOCK) is logged.
 */
int buffer_register(struct transport *t, void *addr, size_t len, struct buffer **out);
void buffer_deregister(struct buffer *b);

/* Registers the same memory with a second transport, so that works which name the buffer may be
 * posted to channels of either. No other thread may post works of the buffer to channels of t
 * before it knows of the registration, nor after buffer_deregister_also() was called.
 * buffer_deregister() comes last. -EEXIST: it has a second one. Else as buffer_register(). */
int buffer_register_also(struct buffer *b, struct transport *t);
void buffer_deregister_also(struct buffer *b);

/* Registers a region of a server: len bytes mapped at addr, backed by fd. shm hands fd to its
 * peers, or rofd, the same file opened O_RDONLY, to those that may only read. The memory and the
 * descriptors stay the caller's and outlive the registration. Several threads may register
 * different regions at once (registration of large memory is slow). */
int region_register(
	struct transport *t, int fd, int rofd, void *addr, uint64_t len, struct region **out);
void region_deregister(struct region *r);

/* ---- events ---------------------------------------------------------------------------------- */

enum event_type {
	EV_INCOMING, /* listener: a peer wants a channel: channel_accept or channel_reject it */
	EV_OPEN,     /* the channel is up for keys, messages and I/O */
	EV_RECV,     /* a message: data, len; imm if has_imm. Valid until channel_recv_done */
	EV_DONE,     /* the batch posted with cookie ended with status */
	EV_CLOSED,   /* the channel is down: status says why; all its EV_DONE came before */
	EV_FENCED,   /* channel_fence has finished; the channel's last event */
};

struct event {
	enum event_type type;
	int status; /* 0 or -errno. EV_CLOSED: -ECONNRESET peer gone, -ECONNREFUSED nobody listens,
		     * -ENOENT no such socket, so nobody ever listened, -EAGAIN the listener's queue
		     * is full, -EHOSTUNREACH, -ETIMEDOUT, -EPROTO another protocol or version,
		     * -EACCES a refused access, 0 closed by the peer in order */
	struct channel *channel;
	/* EV_CLOSED, server: the peer's side ended the connection without channel_disconnect. Its
	 * kernel does that when the process ends; a living process disconnects a channel before it
	 * deletes it. Never set where the connection failed, the peer fell silent, or this side
	 * ended it. */
	bool hung_up;
	void *cookie; /* EV_DONE */
	bool piped;   /* EV_DONE, status 0: the bytes are in the channel_pipe(), not in memory */
	const void *data;
	uint32_t len;
	bool has_imm;
	uint32_t imm;
};

int evq_new(struct transport *t, struct evq **out);
void evq_delete(struct evq *q);

/* Does pending work on the queue's channels and takes up to max events. Returns how many (0: none),
 * or -errno if the queue itself is broken. Never blocks. */
int evq_poll(struct evq *q, struct event *events, int max);

/* Whether evq_poll may have work that the descriptor does not announce. False after evq_arm tells
 * the same as an evq_poll without events, and is cheaper. */
bool evq_pending(const struct evq *q);

/* Once armed, the descriptor becomes readable when evq_poll has something to do. To sleep: evq_arm,
 * then evq_poll once more; only if that gave nothing poll(2) on the descriptor. Arming holds until
 * an event was seen on the descriptor. */
int evq_fd(const struct evq *q);
int evq_arm(struct evq *q);

/* ---- channels -------------------------------------------------------------------------------- */

/* Server. Whether transport_listen() could have the address now; same errors. It makes nothing,
 * nobody can connect, and a present listener notices nothing. */
int transport_probe(struct transport *t, const struct transport_address *address);
/* Server. -EADDRINUSE: somebody listens there. shm replaces a stale socket, and only a live one is
 * an error; -EEXIST: a file that is no socket. Other errors as from bind(2). */
int transport_listen(struct evq *q, const struct transport_address *address, struct listener **out);
/* The bound address; where port 0 was asked for it has the port that the system chose. */
const struct transport_address *listener_address(const struct listener *l);
void listener_delete(struct listener *l);

/* Answer EV_INCOMING, at once or later. EV_OPEN or EV_CLOSED follows channel_accept(); a rejected
 * channel is gone. */
int channel_accept(struct channel *ch);
void channel_reject(struct channel *ch);

/* Client. Starts to connect; EV_OPEN or EV_CLOSED follows. There is no time limit here: the caller
 * keeps its own and deletes the channel when the time is over. */
int channel_connect(struct evq *q, const struct transport_address *address, struct channel **out);

/* Client, before the queue is polled again: asks the server that channel_protect() protects
 * messages alone, where it could do more (tcp). A server of this version does. channel_protection()
 * tells. */
void channel_ask_messages_only(struct channel *ch);

/* Client, before the queue is polled again: asks for this version of the protocol instead of
 * wire_version(). */
void channel_ask_version(struct channel *ch, uint32_t version);
/* The version of the protocol that both sides speak on this channel: the one that the client asked
 * for. Server: from EV_INCOMING on. */
uint32_t channel_version(const struct channel *ch);

/* The caller's own pointer, NULL at first. */
void channel_set_user(struct channel *ch, void *user);
void *channel_user(const struct channel *ch);

/* "tcp 127.0.0.1:40022", "verbs 10.9.0.1:53211 on rxe0", "shm pid 311": for logs and status. */
const char *channel_peer(const struct channel *ch);
/* Server, tcp and verbs: the address that the peer connected from. False: shm. */
bool channel_peer_address(const struct channel *ch, struct sockaddr_storage *address);
/* shm: the peer's process, else 0. */
int channel_peer_pid(const struct channel *ch);
/* shm, server: the user id of the peer's process. False: not known. */
bool channel_peer_uid(const struct channel *ch, uid_t *uid);
/* Client: the protocol version in the server's hello; 0: no hello of our protocol came. Where the
 * server refuses ours, its own. */
uint32_t channel_peer_version(const struct channel *ch);

/* The first bytes that either side sent, after EV_OPEN. The keys that protect the channel are bound
 * to them, so nobody can have changed them on the way. */
enum { CHANNEL_HELLO_BYTES = 32 };
const uint8_t *channel_client_hello(const struct channel *ch);
const uint8_t *channel_server_hello(const struct channel *ch);

/* Server: the value changes whenever bytes pass to or from the peer. Transfers by the device
 * (verbs) or by the peer itself (shm) do not count. */
uint64_t channel_progress(const struct channel *ch);

/* Server: how many READs and WRITEs of the peer failed, since it had no right to the range or the
 * fence cut them off. With verbs the device does the transfers, and a fence ends the connection
 * without a refusal; on shm nothing is refused. */
uint64_t channel_refused(const struct channel *ch);

/* Starts to end the channel in order: sent messages still go out, the peer gets EV_CLOSED with
 * status 0, and we get ours. Harmless on a closed channel. With channel_delete right after it the
 * peer gets that status if it can be sent at once, which fails only if the connection is blocked;
 * over verbs the device may drop it. */
void channel_disconnect(struct channel *ch);

/* Ends the channel at once, if it is still up, and frees it. Client: after the return nothing
 * writes to memory posted for READ any more. Server: not between channel_fence and its EV_FENCED.
 * Events of this channel still in the queue are dropped. */
void channel_delete(struct channel *ch);

/* Server: makes certain that the peer can no longer touch a region through this channel; then
 * EV_FENCED comes. Ends the channel if it is up (no EV_CLOSED then). The peer's channel and all it
 * had posted end with -ECONNRESET, as if we had died: a fence is no refusal. verbs: windows and
 * queue pair are destroyed. tcp: the socket is closed, and its I/O thread has finished with it.
 * shm: the peer's process has ended, since a mapping can't be revoked. That may take for ever,
 * unless the peer says that it has unmapped all (channel_fence_at_once). */
int channel_fence(struct channel *ch);

/* Server, after channel_fence: the peer has said that it can no longer reach a region through this
 * channel, and the caller believes it. If EV_FENCED waits for that (shm), it comes now. */
void channel_fence_at_once(struct channel *ch);

/* The limits that the connection grants. */
struct channel_limits {
	uint32_t msg_bytes;    /* longest message either way */
	uint32_t peer_nrecv;   /* messages that may be in flight to the peer */
	uint32_t max_sge_read; /* SGEs in one READ work */
	uint32_t max_sge_write;
	uint32_t max_work_bytes; /* bytes in one work */
	uint32_t max_works_read; /* works outstanding at once (READ depth), so also in one batch */
	uint32_t max_works_write;
};
const struct channel_limits *channel_limits(const struct channel *ch);

/* Counted since the channel opened. */
struct channel_counters {
	uint64_t reads, writes; /* works completed well */
	uint64_t read_bytes, write_bytes;
	uint64_t batches,
		doorbells; /* posted batches; calls that rang the device or socket for them */
	uint64_t sends, recvs, send_bytes, recv_bytes;
};
const struct channel_counters *channel_counters(const struct channel *ch);

/* ---- protection ------------------------------------------------------------------------------ */

struct channel_keys; /* common/auth/channel_keys.h */

enum protect_direction { PROTECT_IN = 1, PROTECT_OUT = 2 };

enum channel_protection {
	CHANNEL_PLAIN,    /* all can be read, and changed, on the path */
	CHANNEL_MESSAGES, /* messages are encrypted and proven; READs and WRITEs are plain */
	CHANNEL_ALL,      /* all bytes are encrypted and proven */
	CHANNEL_LOCAL,    /* no byte leaves this machine */
};

/* From here on all that comes in, or goes out, is protected by keys that both sides have; tcp: all
 * bytes, or messages if the client asked for no more; verbs: messages; shm: nothing is to be done.
 * The sides begin at the same point of their conversation, where nothing is on its way. The client
 * sends its last plain message, protects what comes in, and sends nothing more. The server gets
 * that message, protects both directions, and answers. When the answer has come, the client
 * protects what goes out. The keys are copied.
 *
 * A message that came plain is never given after its direction was protected. A caller that holds
 * one beside the peer's last, or has its event still to handle, gets -EPROTO.
 *
 * -EPROTO: something plain is still to be sent, or came behind the last message: the peer, or
 * somebody between, does not keep to this. -ENOMEM, -ENOTCONN. After an error delete the channel.
 * From now on bytes that are not the peer's end the channel: EV_CLOSED with -EBADMSG. */
int channel_protect(struct channel *ch, unsigned directions, const struct channel_keys *keys);
/* Of both directions together. */
enum channel_protection channel_protection(const struct channel *ch);
/* Client: whether the keys have protected as much as they should, in either direction (RFC 8446,
 * section 5.5). Soon make another channel, with other keys: at 1.5 times that this one ends. */
bool channel_is_worn(const struct channel *ch);
/* "plain", "messages", "all", "local". */
const char *channel_protection_name(enum channel_protection protection);
/* For a log line that has named the peer: ", all bytes protected"; "" for CHANNEL_LOCAL. */
const char *channel_protection_note(enum channel_protection protection);

/* ---- messages -------------------------------------------------------------------------------- */

/* A registered buffer of msg_bytes to write a message into; NULL when nsend messages are in flight.
 * channel_send or channel_send_cancel gives it back. */
void *channel_send_buffer(struct channel *ch);
void channel_send_cancel(struct channel *ch, void *buf);

enum { SEND_IMM = 1 };

/* Sends the first len bytes of a buffer from channel_send_buffer; with SEND_IMM also imm. It takes
 * the buffer, also on failure. No event tells that a message is out; if one can't go out, EV_CLOSED
 * follows. The caller must keep within peer_nrecv. More messages in flight are its bug: they wait
 * there, or the peer closes the channel (its EV_CLOSED: -EPROTO). */
int channel_send(struct channel *ch, void *buf, uint32_t len, unsigned flags, uint32_t imm);

/* Gives back the memory of an EV_RECV, in any order. Not required before channel_delete. */
void channel_recv_done(struct channel *ch, const void *data);

/* ---- one-sided I/O --------------------------------------------------------------------------- */

enum { REGION_READ = 1, REGION_WRITE = 2 };

/* A client's key to reach a region through one channel. Travels in messages. */
struct region_key {
	uint64_t addr; /* of the region's first byte, in the peer's terms */
	uint64_t len;
	uint32_t rkey;
	uint32_t access; /* REGION_READ | REGION_WRITE */
};

/* Server: opens a region to this channel's peer and fills the key. If a message is sent after this,
 * the key is in force when it arrives. -EAGAIN: try again after other events were polled. One key
 * per channel and region: -EEXIST to a second one; -ENOSPC beyond max_regions. */
int channel_publish(struct channel *ch, struct region *r, unsigned access, struct region_key *key);

/* How many more keys channel_publish() can make on all channels of the transport, as far as is
 * known: others may use the device, too. UINT64_MAX: the kind has no limit. The channels' thread.
 */
uint64_t transport_keys_left(const struct transport *t);

/* Client: from now on works of this channel may name region index. */
int channel_set_key(struct channel *ch, uint32_t index, const struct region_key *key);

struct sge {
	void *addr;
	uint32_t len;
	const struct buffer *buffer; /* addr .. addr + len lies within it */
};

/* One work request: local pieces, in order, against one contiguous remote range. */
struct work {
	const struct sge *sge;
	uint32_t nsge;   /* 1 .. max_sge_read or max_sge_write */
	uint32_t region; /* index given to channel_set_key */
	uint64_t offset; /* in the region; the length is the sum of the SGEs' */
};

enum io_dir { IO_READ, IO_WRITE };

/* Posts a batch of works with one doorbell. One EV_DONE with cookie tells that all are done, or
 * that one failed. The call copies the works and SGEs; the memory they name is the transport's
 * until EV_DONE. -EAGAIN: no room now, nothing was posted; try again after an EV_DONE. -EINVAL:
 * beyond the limits, unregistered memory, no such key, or outside the region: a bug of the caller,
 * caught before anything is sent. -ENOTCONN: not open (any more).
 *
 * After an EV_DONE with an error the outcome is open. Some, all or no bytes of a WRITE may have
 * landed, and bytes may still land until the server has confirmed the channel fenced. A READ's
 * memory is undefined. An access that the peer refuses ends the channel, on all kinds. */
int channel_post(struct channel *ch, enum io_dir dir, const struct work *works, uint32_t nworks,
	void *cookie);

enum { CHANNEL_HEAD_MAX = 64 };

/* Posts a batch of READs whose bytes the caller wants to splice, behind a head of its own (1 ..
 * CHANNEL_HEAD_MAX bytes, which stay the caller's until EV_DONE). Where a kind can save a copy
 * (tcp), head and bytes come in the channel's pipe, and EV_DONE says piped; the works' memory is
 * undefined then. But now and then, or always, the bytes come in memory as all others do, without
 * the head. */
int channel_post_piped(struct channel *ch, const struct work *works, uint32_t nworks,
	const void *head, uint32_t headlen, void *cookie);

/* After an EV_DONE that said piped: the pipe's read end, which has the head, the bytes and nothing
 * else. Bytes left there by the next evq_poll are lost. */
int channel_pipe(const struct channel *ch);

/* Whether channels of this kind map the regions into this process (shm), so that it reaches their
 * bytes without a transfer. */
bool transport_maps_regions(const struct transport *t);

/* Client: where a range of a region is mapped in this process. The caller may read there or, with
 * IO_WRITE, write: a READ or WRITE without a copy. NULL: the kind maps nothing, the channel is not
 * open, or the key does not allow it; the range may still be posted. It stays mapped until
 * channel_delete and is never the caller's alone: others write there at any time. If another
 * process cuts the file short, an access finds zeros (cut_guard.h), and system calls EFAULT. From
 * the access on the region is not mapped for the caller. */
void *channel_mapped(
	struct channel *ch, enum io_dir dir, uint32_t region, uint64_t offset, uint32_t len);
/* Counts bytes that were read or written there as one work. */
void channel_count_mapped(struct channel *ch, enum io_dir dir, uint64_t bytes);

#endif
