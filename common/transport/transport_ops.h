/* transport_ops.h - the contract of an implementation of transport.h: the table, and the base
 * structs that come first in its own structs.
 *
 * transport.c checks the arguments and states, keeps the base structs' common fields, and calls the
 * table. So an implementation may rely on what transport.h demands of its callers. Only transport.c
 * and the implementations include this.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_TRANSPORT_OPS_H
#define RMEMFS_COMMON_TRANSPORT_TRANSPORT_OPS_H

#include <stdatomic.h>

#include "common/transport/transport.h"

enum channel_state {
	CH_INCOMING,   /* server: EV_INCOMING was given, no answer yet */
	CH_CONNECTING, /* connect or accept in progress */
	CH_OPEN,
	CH_CLOSED, /* EV_CLOSED was returned by evq_poll */
	CH_FENCING,
	CH_FENCED,
};

struct transport {
	const struct transport_ops *ops;
	struct transport_address address;
	struct transport_config config; /* device limits applied by ops->open */
	char device[64];
};

struct buffer {
	struct transport *transport;
	void *addr;
	size_t len;
	struct buffer *also; /* buffer_register_also(): the registration with another transport */
};

/* The registration with the channel's transport; NULL: it has none. */
static inline const struct buffer *buffer_at(const struct buffer *b, const struct transport *t)
{
	if (b->transport == t)
		return b;
	return b->also && b->also->transport == t ? b->also : NULL;
}

struct region {
	struct transport *transport;
	int fd, rofd;
	void *addr;
	uint64_t len;
};

struct evq {
	struct transport *transport;
};

struct listener {
	struct evq *q;
	struct transport_address address; /* the bound one, if the implementation sets it */
};

struct channel {
	struct transport *transport;
	struct evq *q;
	enum channel_state
		state; /* kept by transport.c from the calls and the events it passes on */
	bool server;
	bool ending;                      /* channel_disconnect was called */
	struct channel_limits limits;     /* set by the implementation before EV_OPEN */
	struct channel_counters counters; /* reads, writes, their bytes and doorbells are counted by
					   * the implementation, the others by transport.c */
	struct region_key *keys;          /* client: [config.max_regions], len 0: no key */
	unsigned is_protected;            /* enum protect_direction: kept by transport.c */
	bool asks_messages_only;          /* client */
	bool messages_only;               /* set by the implementation before EV_OPEN */
	uint32_t held; /* messages that evq_poll gave, and the caller has not given back */
	/* The hellos as they were sent, by the client and by the server; set before EV_OPEN. */
	uint8_t hellos[2][CHANNEL_HELLO_BYTES];
	char peer[128]; /* set by the implementation before EV_INCOMING or EV_OPEN */
	struct sockaddr_storage peer_address; /* tcp and verbs, server: set with peer */
	int peer_pid;
	bool peer_uid_known; /* shm, server */
	uid_t peer_uid;
	/* Client: what it asks for, set by channel_base_init(). Server: the client's, set by the
	 * implementation before EV_INCOMING. */
	uint32_t version;
	uint32_t peer_version; /* client: set by the implementation before EV_OPEN or EV_CLOSED */
	_Atomic uint64_t progress; /* server: channel_progress() */
	_Atomic uint64_t refused;  /* server: channel_refused() */
	void *user;
};

/* Each member implements the function of transport.h with the same name. Constructors allocate the
 * implementation's struct, zeroed, with the base first. Right after, transport.c fills the base's
 * fields that the arguments give (transport, q, addr, len, ...). Channels differ:
 * channel_base_init() sets their base before the implementation uses them. */
struct transport_ops {
	enum transport_kind kind;

	/* Fills transport->config with the values asked for, cut to the device's limits. */
	int (*open)(const struct transport_address *address, const struct transport_config *config,
		int timeout_ms, struct transport **out);
	void (*close)(struct transport *t);

	int (*buffer_register)(struct transport *t, void *addr, size_t len, struct buffer **out);
	void (*buffer_deregister)(struct buffer *b);
	int (*region_register)(struct transport *t, int fd, int rofd, void *addr, uint64_t len,
		struct region **out);
	void (*region_deregister)(struct region *r);

	int (*evq_new)(struct transport *t, struct evq **out);
	void (*evq_delete)(struct evq *q);
	int (*evq_poll)(struct evq *q, struct event *events, int max);
	bool (*evq_pending)(const struct evq *q); /* NULL: always */
	int (*evq_fd)(const struct evq *q);
	int (*evq_arm)(struct evq *q);

	int (*probe)(struct transport *t, const struct transport_address *address);
	int (*listen)(
		struct evq *q, const struct transport_address *address, struct listener **out);
	void (*listener_delete)(struct listener *l);

	int (*connect)(
		struct evq *q, const struct transport_address *address, struct channel **out);
	int (*accept)(struct channel *ch);
	void (*reject)(struct channel *ch); /* frees the channel */
	void (*disconnect)(struct channel *ch);
	void (*delete)(struct channel *ch);
	int (*fence)(struct channel *ch);
	void (*fence_at_once)(struct channel *ch); /* NULL: nothing is waited for */

	void *(*send_buffer)(struct channel *ch);
	void (*send_cancel)(struct channel *ch, void *buf);
	int (*send)(struct channel *ch, void *buf, uint32_t len, unsigned flags, uint32_t imm);
	void (*recv_done)(struct channel *ch, const void *data);

	int (*publish)(
		struct channel *ch, struct region *r, unsigned access, struct region_key *key);
	/* See transport_keys_left(). NULL: no limit. */
	uint64_t (*keys_left)(const struct transport *t);
	/* The key has been checked and stored in ch->keys[index]. NULL: nothing more to do. */
	int (*set_key)(struct channel *ch, uint32_t index, const struct region_key *key);
	/* Within ch->limits; SGEs within their buffers, which buffer_at() finds; ranges within
	 * ch->keys[region].len and allowed by its access; nworks at least 1. */
	int (*post)(struct channel *ch, enum io_dir dir, const struct work *works, uint32_t nworks,
		void *cookie);
	/* NULL: the kind has no pipes, and post does it. */
	int (*post_piped)(struct channel *ch, const struct work *works, uint32_t nworks,
		const void *head, uint32_t headlen, void *cookie);
	/* Only after an EV_DONE of its own that said piped. */
	int (*pipe)(const struct channel *ch);
	/* NULL: nothing leaves this machine. */
	int (*protect)(struct channel *ch, unsigned directions, const struct channel_keys *keys);
	enum channel_protection protection;     /* the most that protect() gives */
	bool (*worn)(const struct channel *ch); /* client; NULL: never */
	/* The range is within ch->keys[region].len and allowed by its access. NULL: the kind maps
	 * nothing. */
	void *(*mapped)(struct channel *ch, enum io_dir dir, uint32_t region, uint64_t offset,
		uint32_t len);
};

/* Opens a transport by one implementation. transport_open() calls it when it has found the
 * implementation (kinds.h). */
int transport_open_with(const struct transport_ops *ops, const struct transport_address *address,
	const struct transport_config *config, int timeout_ms, struct transport **out);

/* Whether it can be an address and a length of memory. */
bool transport_memory_ok(const void *addr, uint64_t len);

extern const struct transport_ops verbs_transport_ops;
extern const struct transport_ops tcp_transport_ops;
extern const struct transport_ops shm_transport_ops;

/* Sets the base of a new channel: its state, queue, counters and keys. -ENOMEM. */
int channel_base_init(struct channel *ch, struct evq *q, bool server, enum channel_state state);
void channel_base_fini(struct channel *ch);

/* The bytes of all SGEs of a work. */
uint64_t work_bytes(const struct work *work);

/* The first bytes on every new channel, in both directions: private data in verbs, the first frame
 * on sockets. 32 bytes, little-endian; see transport_hello_encode(). Another magic, or a version
 * that is not spoken (transport_hello_judge()), ends the channel: EV_CLOSED -EPROTO. The listener's
 * side tells the peer so where the kind can. */
struct transport_hello {
	/* Of the wire protocol. Client: the one that it speaks. Server: the same; where it refuses
	 * the client's, its own. */
	uint32_t version;
	uint32_t msg_bytes;
	uint32_t nrecv;
	uint32_t nwork;
	int32_t status; /* of an answer: 0, or -errno if the channel is refused */
	uint32_t flags; /* others than these are ignored */
};
enum { HELLO_MESSAGES_ONLY = 1 };
enum { TRANSPORT_HELLO_BYTES = CHANNEL_HELLO_BYTES };
/* Keeps the hello of one side; `server` says of which. */
void channel_keep_hello(
	struct channel *ch, bool server, const uint8_t hello[TRANSPORT_HELLO_BYTES]);
void transport_hello_encode(
	const struct transport_hello *hello, uint8_t out[TRANSPORT_HELLO_BYTES]);
/* -EPROTO: not the magic. Says nothing of the version. */
int transport_hello_decode(const uint8_t in[TRANSPORT_HELLO_BYTES], struct transport_hello *hello);
/* Server: whether it speaks with this client. *version: what its answer has. -EPROTO: not the
 * magic. -EPROTONOSUPPORT: a version that it does not speak, which the answer's status calls
 * -EPROTO, too. `why` says it for the log. A client that can't connect asks again each second, so
 * the log has HELLO_LOG_BURST refused versions at once, and then one each HELLO_LOG_MS. */
enum { HELLO_WHY_BYTES = 128, HELLO_LOG_BURST = 8, HELLO_LOG_MS = 10000 };
int transport_hello_judge(
	const uint8_t in[TRANSPORT_HELLO_BYTES], uint32_t *version, char why[HELLO_WHY_BYTES]);

#endif
