/* client.h - asks a server for its status, for who has a file, for a snapshot, gives it
 * orders, and follows a connection step by step.
 *
 * ERRORS     0 or -errno with a line in why, which is printable: a server may have written it.
 */
#ifndef RMEMFS_DAEMON_CTL_CLIENT_H
#define RMEMFS_DAEMON_CTL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/auth_key.h"
#include "common/rpc/rpc.h"
#include "common/transport/transport.h"

/* Reads what the user wrote as HOST. *named: it says the transport, also as a socket's path. Blocks
 * for the resolver. -EINVAL, -ENAMETOOLONG: it has no form of these; others: see address.h. */
int ctl_parse_where(const char *where, struct transport_address *address, bool *named, char *why,
	size_t whylen);

/* where: a socket's path, HOST[:PORT], HOST:/EXPORT, or TRANSPORT:ADDRESS as the server's --listen
 * takes it. key_file: the keys to prove to the server, or NULL. *text: JSON, malloced; over tcp and
 * verbs a server tells what the key may see, and without one only its versions. *round_trip_ns:
 * from the first question to its answer. Takes at most timeout_ms, and the resolver's time. */
int ctl_fetch_status(const char *where, const char *key_file, int timeout_ms, char **text,
	int64_t *round_trip_ns, char *why, size_t whylen);

/* The same for one file of an export: a path in it, or an inode's number. */
int ctl_fetch_who(const char *where, int timeout_ms, const char *export_name, const char *path,
	char **text, char *why, size_t whylen);

struct ctl_snapshot_state {
	enum rpc_snapshot_state state;
	uint64_t done, total, pause_ns; /* pages */
	char text[RPC_TEXT_MAX + 1];    /* as the server has sent it */
};

/* dir: of SNAPSHOT_START; else "". */
int ctl_ask_snapshot(const char *where, int timeout_ms, enum rpc_snapshot_command command,
	const char *export_name, const char *dir, struct ctl_snapshot_state *state, char *why,
	size_t whylen);

enum ctl_end {
	CTL_DONE,
	CTL_REFUSED, /* the server has said why, and what is done all the same */
	CTL_UNASKED, /* it was not reached */
	CTL_UNKNOWN, /* it was asked and has not answered: it may have done it */
};
/* A reload has the server allocate and register memory, if there are new exports: minutes for large
 * ones. */
enum { RELOAD_TIMEOUT_MS = 15 * 60 * 1000 };
/* Has the server do something that its answer says is done: RELOAD, EVICT, LOG. It does so for root
 * and its own user, by its socket. slot: RPC_NO_SLOT. *end is always set. */
int ctl_order(const char *where, int timeout_ms, const struct rpc_request *order, enum ctl_end *end,
	char *why, size_t whylen);

/* RELOAD, as an order. *text: what has changed, as JSON, which the caller frees; may be empty. */
int ctl_reload(const char *where, char **text, enum ctl_end *end, char *why, size_t whylen);

/* The steps of a connection, in their order. */
enum ctl_step { CTL_STEP_OPEN, CTL_STEP_CONNECT, CTL_STEP_PROVE, CTL_STEP_ASK };
enum { CTL_ROUNDS_MAX = 8 };

/* How far a connection came, and how long its steps took. */
struct ctl_course {
	enum ctl_step step;               /* the last one that began */
	uint32_t peer_version;            /* in the server's hello; 0: none came */
	int64_t connect_ns, prove_ns;     /* 0: that step was not completed */
	int64_t round_ns[CTL_ROUNDS_MAX]; /* from a question to its answer */
	unsigned nrounds;
	enum channel_protection protection; /* when it was asked */
	char key_id[AUTH_KEY_ID_MAX + 1];   /* the proven key; "": none */
};

/* Asks for the status as ctl_fetch_status() does, `rounds` times on one channel. *text: the first
 * answer, malloced; it is no error if later ones do not come. course is filled as far as the
 * connection came, also after an error; with several keys it is that of the last one. */
int ctl_follow(const struct transport_address *address, const char *key_file, int timeout_ms,
	unsigned rounds, struct ctl_course *course, char **text, char *why, size_t whylen);

#endif
