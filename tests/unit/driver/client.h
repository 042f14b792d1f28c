/* client.h - for tests: a real rmemfs-server in a process of its own, and a client that speaks
 * its protocol message by message.
 *
 * Failures end the running cmocka test. Nothing here sleeps: every wait is for an event and has a
 * limit of WAIT_MS.
 *
 * OWNERSHIP  A server's directory, process and descriptors end with server_fini(); a client's
 *            channel, queue and transport with client_fini().
 */
#ifndef RMEMFS_TESTS_RPC_CLIENT_H
#define RMEMFS_TESTS_RPC_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/auth/auth_key.h"
#include "common/rpc/rpc.h"
#include "common/transport/transport.h"

enum { WAIT_MS = 20000, CLIENT_SLOTS = 16, CLIENT_MEMORY = 1 << 20, CLIENT_REGIONS = 8 };

/* ---- the server ------------------------------------------------------------------------------ */

struct test_server {
	enum transport_kind kind;
	char dir[64], memory[96], config[96], log[96], notify[96];
	char listen[128]; /* "tcp:127.0.0.1:40123" */
	char socket[128]; /* "shm:/...": for admins; over shm the same as `listen` */
	char listen_too[128];
	char export[64]; /* "default:64MiB" */
	char export_too[64];
	unsigned mib;                      /* of the export, where it is configured */
	unsigned lease_time, peer_timeout; /* seconds */
	bool configured;                   /* the file names the export and its client */
	struct auth_key key;
	char key_file[96];
	pid_t pid; /* 0: not running */
	int notify_fd;
	int port_fd, port_too_fd; /* reserve its ports; -1: none */
};

/* Makes the directory and starts the server, with a lease_time of one second. These clients send no
 * pings by themselves. Only with the second function does the server close silent clients, after
 * peer_timeout seconds. */
void server_init(struct test_server *s, enum transport_kind kind);
void server_init_timed(struct test_server *s, enum transport_kind kind, unsigned lease_time,
	unsigned peer_timeout);
/* The same without the start. */
void server_prepare(struct test_server *s, enum transport_kind kind, unsigned lease_time,
	unsigned peer_timeout);
/* Returns when the server is ready. */
void server_start(struct test_server *s);
void server_kill(struct test_server *s);
/* From the next start or reload on the configuration file has the export "default" with the client
 * "test", who has the key. settings: more of it, such as "squash = \"root\";". */
void server_configure(struct test_server *s, const char *settings);
/* Returns when the server has read its clients anew. */
void server_reload(struct test_server *s);
/* Starts it again with a second listener, on tcp. */
void server_listen_too(struct test_server *s, struct transport_address *address);
/* Starts it again with a second export, NAME:SIZE. */
void server_export_too(struct test_server *s, const char *export);
/* Takes what it has told the service manager. It waits for room there. */
void server_heard(struct test_server *s);
/* Stops it, demands that its memory has no damage, and starts it again. */
void server_check(struct test_server *s);
/* The address where it listens. */
void server_address(const struct test_server *s, struct transport_address *address);
/* Sends SIGTERM; the second function only waits for the end after one. Both demand exit status
 * 0. */
void server_stop(struct test_server *s);
void server_wait(struct test_server *s);
/* Reads the server's log, as far as there is room. */
enum { LOG_BYTES = 8192 };
void server_read_log(const struct test_server *s, char *log_text, size_t size);
/* Has the server logged these words? The second function waits for them, and fails without: the
 * server may answer one channel before it has looked at another. */
bool server_logged(const struct test_server *s, const char *words);
void server_logs(const struct test_server *s, const char *words);
void server_fini(struct test_server *s);
/* Runs another server on the same directory. It must fail, and its message must have these
 * words. */
void server_refuses(struct test_server *s, const char *export, const char *words);

/* ---- the client ------------------------------------------------------------------------------ */

struct rpc_client {
	struct test_server *server;
	struct transport *transport;
	struct evq *q;
	struct channel *channel; /* NULL: none */
	struct buffer *buffer;
	uint8_t *memory; /* CLIENT_MEMORY, registered */
	uint8_t owner[OWNER_BYTES];
	uint64_t instance;
	uint16_t index, nchannels;
	uint32_t flags;
	uint32_t version; /* of the protocol; 0: this release's */
	bool proven;      /* the server's key, on the present channel */
	struct rpc_attach_reply attached;
	uint64_t ended; /* field of ATTACH */
	bool loses;     /* flag of BYE */
	struct rpc_region regions[CLIENT_REGIONS];
	uint64_t seq[CLIENT_SLOTS];
	uint8_t reply[RPC_MSG_BYTES]; /* the last one, as received */
	size_t reply_len;
};

void client_init(struct rpc_client *c, struct test_server *s, const char *owner, uint64_t instance);
void client_fini(struct rpc_client *c);

void client_connect(struct rpc_client *c);
/* Drops the channel without BYE. */
void client_drop(struct rpc_client *c);
/* Waits until the server has closed the channel. */
void client_wait_closed(struct rpc_client *c);

/* Returns the next event of any of the queue's channels. */
void client_event(struct rpc_client *c, struct event *event);

/* Sends the bytes as they are. Receives the channel's next message of any kind and decodes it;
 * skips events of the queue's other channels, and rings if the client shares the export. */
void client_send(struct rpc_client *c, const struct rpc_request *req);
void client_send_bytes(struct rpc_client *c, const void *data, size_t len);
void client_receive(struct rpc_client *c, struct rpc_reply *rep);

/* STATUS from this byte of its text on. */
void client_ask_status(struct rpc_client *c, uint32_t offset);
struct rpc_reply client_status(struct rpc_client *c, uint32_t offset);

/* Proves a key on the connected channel. Returns the status of the reply that refuses it, or 0. */
int client_prove(struct rpc_client *c, const struct auth_key *key);
/* ATTACH on the connected channel; over tcp and verbs the server's key is proven first. Returns the
 * status, and the text if it was refused. */
int client_attach(struct rpc_client *c, const char *export, uint64_t session, uint32_t wait_ms,
	char text[RPC_TEXT_MAX + 1]);
/* Returns the STATUS that the server gives an admin at its socket. */
void server_status(struct test_server *s, char json[RPC_MSG_BYTES]);
/* For a client that attaches to a session that it has not made itself. */
void client_know_store(struct rpc_client *c);
/* Connects and attaches, and must succeed: to a new session, or to the one that it had. */
void client_begin(struct rpc_client *c);
void client_resume(struct rpc_client *c);
/* Fetches the region table and sets the keys. */
void client_regions(struct rpc_client *c);
void client_bye(struct rpc_client *c);

/* Sends a request in a slot of this channel with the slot's next number. Returns the reply's
 * status. */
int client_call(
	struct rpc_client *c, unsigned slot, struct rpc_request *req, struct rpc_reply *rep);
/* Only sets slot and number, for client_send(). */
void client_number(struct rpc_client *c, unsigned slot, struct rpc_request *req);

/* Transfers between the client's memory and a region by one work. */
int client_transfer(
	struct rpc_client *c, enum io_dir dir, uint32_t region, uint64_t offset, uint32_t len);

#endif
