/* conn.h - the server's side of one channel: its messages, its outstanding requests, its end.
 *
 * Requests are decoded where they were received. That memory goes back to the transport when the
 * request is answered. A peer that breaks the protocol loses this channel and nothing else.
 *
 *     EV_INCOMING -> conn_new -> unattached -> conn_attach -> (session) -> conn_fence -> EV_FENCED
 *
 * OWNERSHIP  A conn is its channel's user pointer, and is freed after EV_FENCED.
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_CONN_H
#define RMEMFS_SERVER_SESSION_CONN_H

#include "common/transport/address.h"
#include "server/access/access_table.h"
#include "server/namespace/kept_values.h"
#include "server/session/client_request.h"
#include "server/session/context.h"

struct client_session;

/* Peers can provoke lines of the log. Anybody may connect, but can't fill it, nor use up the lines
 * of clients that have a session. */
enum { CONN_LOG_MS = 1000, STRANGERS_LOG_BURST = 10, CLIENTS_LOG_BURST = 64 };

enum conn_state {
	CONN_OPENING,
	CONN_OPEN,
	CONN_CLOSING, /* after conn_disconnect(): nothing more is received */
	CONN_FENCING,
};

struct conn {
	struct list all;  /* server.conns */
	struct list link; /* server.unattached, or session.conns */
	struct server *server;
	struct port *port;
	struct channel *channel;
	struct client_session *session; /* NULL: unattached */
	struct attempt *attempt;        /* its handshake, see auth.h; NULL: none, or it is over */
	bool auth_waits;                /* its handshake waits for its turn */
	bool has_proof;                 /* the peer has proven the key of: */
	struct access_proof proof;
	/* The configuration's client that it is, since its last ATTACH was permitted; how many
	 * sessions that may have at the export; how its users are squashed; and whether a key let
	 * it in. */
	char holder[CLIENT_NAME_MAX + 1];
	unsigned holder_sessions;
	struct squash squash;
	bool keyed;
	enum conn_state state;
	uint16_t index; /* within the session */
	int64_t since_ms;
	int64_t heard_ms;  /* the last sign of life, in server.running_ms */
	uint64_t progress; /* channel_progress() when it was judged last */
	int64_t silent_ms; /* how long it was silent, if it is closed for that */
	bool hung_up;      /* its peer has ended it, as the end of a process does */
	bool left;         /* its peer has ended it in order, and so uses it no more */
	uint64_t serial;   /* a later connection has a higher one */
	/* Of places.h: the peer's network, and since when its step is due. */
	uint8_t network[ADDRESS_NETWORK_BYTES];
	int64_t step_ms;
	bool rung; /* a ring was sent, and no PING has come since */
	struct client_request slots[CHANNEL_SLOTS], controls[CHANNEL_CONTROLS];
	/* [keys_room], of the export's regions, the first nkeys of them: it may have grown since */
	struct region_key *keys;
	uint32_t nkeys, keys_room;
	struct kept_values kept;
	char *status_text; /* the text that STATUS reads from */
	uint32_t status_len;
};

/* Accepts the channel of an EV_INCOMING, whose hello came at since_ms; or rejects it, if too many
 * channels have not attached or memory is short. */
void conn_admit(struct port *port, struct channel *ch, int64_t since_ms);
/* Every other event of a channel. EV_FENCED ends it. */
void conn_event(struct conn *c, const struct event *event);

/* Moves an unattached conn into a session's list. */
void conn_attach(struct conn *c, struct client_session *session, uint16_t index);

/* How long it may be silent once it is attached; 0: for ever, since shm knows a peer by its
 * process. A client sends something at least four times as often, over every channel. Transfers may
 * hold up its messages; they count as a sign of life where the transport sees them. */
uint32_t conn_timeout_ms(const struct conn *c);
/* Closes the attached channels that have been silent for so long. Returns when to call it next;
 * INT64_MAX: after the next message. */
int64_t conns_judge(struct server *s, int64_t now);

/* How long it has given no sign of life, in time in which this process ran. -1: it need not
 * (shm). */
int64_t conn_silence_ms(const struct conn *c, int64_t now);

/* The outstanding request in a slot of the session, with this number; or NULL. */
struct client_request *conn_find_request(struct conn *c, unsigned slot, uint64_t seq);

/* Unattached: whether the next step to a session is its peer's. Questions for the status are none.
 */
bool conn_owes_step(const struct conn *c);
/* Unattached: whether its time to attach runs now. It does not for an ATTACH that waits, nor, over
 * shm, for another request. */
bool conn_is_timed(const struct conn *c);

/* Whether it has nothing outstanding outside slots. An unattached one then asks for nothing. */
bool conn_is_silent(const struct conn *c);

/* Whether the peer is root or the server's own user, on this machine. Others are told no names of
 * files, and can't have snapshots written. */
bool conn_is_admin(const struct conn *c);

/* Whether anybody who reaches an address of the server may be behind it: over tcp and verbs,
 * attached or not. Such a peer is told only what a mount needs, and of the state what access_view()
 * shows. */
bool conn_is_stranger(const struct conn *c);

/* Forgets the text of which further pieces could be asked for. */
void conn_drop_text(struct conn *c);

/* Begins the channel's end in order: answers still go out, other requests are dropped. */
void conn_disconnect(struct conn *c);
/* Begins the channel's end at once, and drops its requests. Harmless when it has begun. */
void conn_fence(struct conn *c);
/* The same, with a line in the log that names the peer and the reason. */
void conn_breach(struct conn *c, const char *reason);

/* At the end of the process. conns_disconnect() disconnects all; conns_open() counts those that are
 * not closed yet. conns_delete() frees all except those that are being fenced: only the end of the
 * process can end these. */
void conns_disconnect(struct server *s);
unsigned conns_open(const struct server *s);
void conns_delete(struct server *s);

/* Sends RPC_RING on an attached channel that is not rung. -ENOTCONN: it has ended, or is about to;
 * -EAGAIN: it has no send buffer now. */
int conn_ring(struct conn *c);

/* Sends the send buffer, which the caller has filled, and frees the request. */
void client_request_reply(struct client_request *req, void *buf, uint32_t len);
/* Frees the request without an answer. */
void client_request_drop(struct client_request *req);
/* Encodes rep, with the request's op, slot and sequence number, and sends it. */
void client_request_answer(struct client_request *req, struct rpc_reply *rep);
/* The export of that name; NULL: there is none, and the request was refused. Strangers are not told
 * the names of the others. */
struct export *client_request_export(struct client_request *req, const struct rpc_str *name);
/* Answers with an error and a line for people, which is made printable. The log has the same
 * line. */
void client_request_refuse(struct client_request *req, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, where the log may have more than the peer: `log` and `answer` are lines. log NULL: the
 * log has had it already. */
void client_request_deny(struct client_request *req, int err, const char *log, const char *answer);

#endif
