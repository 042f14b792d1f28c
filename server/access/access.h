/* access.h - which peer may do what at which export. All of it is pure: the caller logs, counts
 * sessions and ends channels.
 *
 * Over tcp and verbs the export's clients decide:
 *
 *     the peer                                 gets
 *     has proven a key                         what the first client gives that has this key and
 *                                              whose hosts have the peer's address
 *     has none, or no client gave it anything  what the first insecure client gives whose hosts
 * have the peer's address
 *
 * So an insecure client takes nothing from a key, wherever it stands. A client without hosts is for
 * any address. The order of clients matters only if one key is in two of them, which
 * access_report.h warns of.
 *
 * Over shm keys and clients don't count. A peer that may open the socket, by the mode of its file,
 * gets local_access, and may always ask for the state. That is root and the server's user, unless
 * the admin has changed the mode.
 *
 * A peer must not learn which exports there are. So it gets the same answer for an export that is
 * not there, one that its key is not for, and one that is not for its address. The text for the log
 * has the reason and the remedy.
 *
 * A peer that would be let in is refused on a channel which protects less than the export demands
 * (protection.h). The answer has the remedy.
 *
 * THREADS    Any that has a reference to the table.
 * ERRORS     0 or -errno: -EACCES; -EROFS: it may read, and wants to write; -EPROTONOSUPPORT: on
 *            another channel; over shm also -ENOENT.
 */
#ifndef RMEMFS_SERVER_ACCESS_ACCESS_H
#define RMEMFS_SERVER_ACCESS_ACCESS_H

#include "common/transport/transport.h"
#include "server/access/access_table.h"

/* A channel's other end, as the transport and the handshake know it. */
struct access_peer {
	enum transport_kind kind;
	const struct sockaddr *address;   /* NULL: it has none, as over shm */
	const struct access_proof *proof; /* NULL: it has proven no key */
	enum channel_protection protection;
};

/* A peer's wish. */
struct access_wish {
	const char *export_name; /* any bytes */
	size_t len;
	enum access_level level; /* not ACCESS_NONE */
};

struct access_decision {
	/* Allowed: */
	char holder[CLIENT_NAME_MAX + 1]; /* the client's name, or CLIENT_LOCAL */
	enum access_level level;          /* the most that it may, at least the wish */
	unsigned sessions;                /* of this holder at this export, at a time */
	struct squash squash;             /* of its users; over shm: none */
	bool keyed;                       /* by a key; else anybody at its address is the holder */
	/* Refused: */
	char log[384], answer[384]; /* for the log, behind the peer's address; for the peer */
};

int access_decide(const struct access_table *table, const struct access_peer *peer,
	const struct access_wish *wish, struct access_decision *decision);

/* The terms on which a channel was let in: a decision's. */
struct access_terms {
	const char *holder;
	struct squash squash;
};

/* Whether a channel that was let in on these terms may go on under another table. False: reason
 * says why not, for the log. A key that another client of the export has now is no longer this
 * holder's. A client learns its squash by ATTACH alone, so one that is squashed in another way has
 * to attach again. A lower number of sessions ends none of those that are there. */
bool access_still(const struct access_table *table, const struct access_peer *peer,
	const struct access_wish *wish, const struct access_terms *terms, char *reason, size_t len);

/* The part of an export's state that a channel may see. */
enum access_view {
	ACCESS_SEES_NOTHING,
	ACCESS_SEES_OWN, /* the part for mounts, and its own holder's sessions */
	ACCESS_SEES_ALL,
};

/* A client of access "status" sees all. Another one that has keys sees its own, and `holder`
 * becomes its name; one that is insecure sees nothing, since it can be anybody. Over shm: all. */
enum access_view access_view(const struct access_table *table, const struct access_peer *peer,
	const char *export_name, char holder[CLIENT_NAME_MAX + 1]);

#endif
