/* contract.h - shared by the cases of the transport contract suite.
 *
 * Three regions are memfds that this process and its peer both map, so either side can compare
 * bytes. Region 0 may be read and written, 1 only read, 2 both. The peer is this program again,
 * started by posix_spawn (verbs devices don't survive fork) and driven over a control socket. As a
 * server it publishes the regions and obeys messages; as a client it writes without end.
 *
 * Helpers assert by themselves; a wait without an answer fails after WAIT_MS.
 */
#ifndef RMEMFS_TESTS_CONTRACT_H
#define RMEMFS_TESTS_CONTRACT_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "common/auth/channel_keys.h"
#include "common/transport/transport.h"
#include "common/base/util.h"

enum { WAIT_MS = 20000, NREGIONS = 3, MSG_BYTES = 4096, NRECV = 8, NSEND = 8, NWORK = 32 };
enum { REGION_BYTES = 8 << 20, BUFFER_BYTES = 16 << 20 };

extern enum transport_kind contract_kind;
/* Applies to transports opened from now on; MSG_BYTES at first. */
extern uint32_t contract_msg_bytes;
/* Channels that setup_channel() makes from now on are protected. */
extern bool contract_protected;
/* tcp: they ask that messages alone are protected. */
extern bool contract_messages_only;

/* ---- the peer process ------------------------------------------------------------------------ */

/* Sent over the control socket. */
enum peer_op {
	PEER_READY,   /* from a server: address: it listens there */
	PEER_OPEN,    /* from either: the channel is up */
	PEER_CLOSED,  /* from either: EV_CLOSED with status; value: batches that ended before */
	PEER_FENCED,  /* from a server */
	PEER_WROTE,   /* from a client: its first WRITE is done */
	PEER_RELEASE, /* to a server: give back held messages; to a client: disconnect */
	PEER_EXIT,    /* to either */
};

struct peer_note {
	enum peer_op op;
	int status;
	uint64_t value;
	struct transport_address address;
};

/* A message to a server peer begins with one of these requests. */
enum ask_op {
	ASK_ECHO,    /* send the message back, with its immediate */
	ASK_COMPARE, /* value: 1 if count bytes of region at offset are all byte */
	ASK_FLOOD,   /* send count messages, numbered in value */
	ASK_HOLD,    /* keep the message until PEER_RELEASE, then echo it */
	ASK_HANG_UP, /* disconnect */
	ASK_NALLOCS, /* value: allocations in the peer so far */
	ASK_PROTECT, /* protect the channel by contract_keys(value); count: 0, or why it can't */
};

struct ask {
	uint32_t op;
	uint32_t region;
	uint64_t offset;
	uint64_t count;
	uint64_t value;
	uint8_t byte;
};

enum peer_role { ROLE_SERVER, ROLE_REJECTING_SERVER, ROLE_CLIENT, NROLES };

struct peer {
	pid_t pid;
	int ctl;
};

/* memory: the region files. address: a client connects there, else NULL. */
void peer_start(struct peer *peer, enum peer_role role, const int *memory,
	const struct transport_address *address);
struct peer_note peer_expect(struct peer *peer, enum peer_op op);
void peer_tell(struct peer *peer, enum peer_op op);
/* Tells it to exit and checks that it exits with status 0. */
void peer_stop(struct peer *peer);
void peer_kill(struct peer *peer);
void peer_freeze(struct peer *peer);
/* The peer's own main. */
int peer_main(char **argv);

/* ---- this process ---------------------------------------------------------------------------- */

struct memory {
	int fd, rofd;
	uint8_t *addr;
};

struct fixture {
	struct memory memory[NREGIONS];
	struct transport *t;
	struct evq *q;
	struct peer peer;
	struct transport_address address; /* of the server, on either side */
	/* as a client */
	struct channel *ch;
	struct region_key keys[NREGIONS];
	uint8_t *buf; /* BUFFER_BYTES, registered */
	struct buffer *buffer;
	/* as a server */
	struct region *regions[NREGIONS];
	struct listener *l;
};

/* cmocka's setup and teardown: a client with an open channel to a server peer and keys set, a
 * client without a channel and peer, a server without a peer. */
int setup_channel(void **state);
int setup_client(void **state);
int setup_server(void **state);
int teardown(void **state);

struct transport_config contract_config(void);
/* An address to listen at. */
struct transport_address contract_address(void);
void memory_create(struct memory *memory);
void memory_map(struct memory *memory, int fd);
void memory_free(struct memory *memory);

struct event next_event(struct evq *q);
struct event expect_event(struct evq *q, enum event_type type, int status);
/* Takes pending events; there must be none. */
void expect_silence(struct evq *q, int ms);

struct channel *connect_channel(struct fixture *f);
/* Waits for the keys that a server peer sends, and sets them. */
void take_keys(struct fixture *f, struct channel *ch, struct region_key keys[NREGIONS]);
/* The keys of a number, the same in both processes. */
struct channel_keys contract_keys(uint64_t number);
/* Asks the server peer to protect the channel by the keys of a number, and protects what comes in
 * by those of another one. The answer is on its way then. */
void begin_protection(struct channel *ch, uint64_t server_number, uint64_t number);
/* The same, by the keys of one number, and takes the answer. Both directions are protected. */
void protect_channel(struct fixture *f, struct channel *ch);
/* For server fixtures: waits for a peer's channel, and publishes the regions to it. */
struct channel *accept_channel(struct fixture *f);
void publish_all(struct channel *ch, struct region *const regions[NREGIONS]);
/* Waits for EV_FENCED, then deletes the channel. */
void fence_delete(struct fixture *f, struct channel *ch);

void send_message(struct channel *ch, const void *data, uint32_t len, unsigned flags, uint32_t imm);
void send_ask(struct channel *ch, struct ask ask);
/* Waits for a message that is an ask, and returns it. */
struct ask expect_ask(struct evq *q);

/* One work of one SGE: buf + at against the region. */
struct sge sge_at(const struct fixture *f, uint64_t at, uint32_t len);
int post_one(struct fixture *f, enum io_dir dir, uint64_t at, uint32_t len, uint32_t region,
	uint64_t offset, void *cookie);
/* post_one and its EV_DONE with status 0. */
void do_one(struct fixture *f, enum io_dir dir, uint64_t at, uint32_t len, uint32_t region,
	uint64_t offset);

/* Fills with bytes that differ by place and by seed. */
void fill_pattern(uint8_t *at, size_t len, unsigned seed);
void assert_pattern(const uint8_t *at, size_t len, unsigned seed);

/* Calls of malloc and the like in this process; -1 where a sanitizer owns them. */
long nallocs(void);

/* ---- cases ----------------------------------------------------------------------------------- */

struct cases {
	const char *name;
	const struct CMUnitTest *tests;
	size_t ntests;
	unsigned kinds; /* bit per transport_kind */
};

enum { ALL_KINDS = 7, SOCKET_KINDS = 1 << TRANSPORT_TCP | 1 << TRANSPORT_SHM };

extern const struct cases protect_cases, protect_network_cases, protect_tcp_cases, connect_cases,
	message_cases, io_cases, refusal_cases, end_cases, socket_cases, pipe_cases, tcp_pipe_cases,
	shm_cases, verbs_cases, srq_cases;

#define CHANNEL_CASE(test) cmocka_unit_test_setup_teardown(test, setup_channel, teardown)
#define CLIENT_CASE(test)  cmocka_unit_test_setup_teardown(test, setup_client, teardown)
#define SERVER_CASE(test)  cmocka_unit_test_setup_teardown(test, setup_server, teardown)

#endif
