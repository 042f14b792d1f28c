/* permit.h - what the peer of a channel may do, by the configuration's clients.
 *
 * The rules are in access.h. Here they meet a channel, and what is refused meets the log.
 *
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_PERMIT_H
#define RMEMFS_SERVER_SESSION_PERMIT_H

#include "server/access/access.h"
#include "server/session/conn.h"

/* Whether the peer may attach as its ATTACH asks. Fills the decision, with the holder. False: the
 * request was refused, and the log has the reason and the remedy. */
bool permit_attach(struct client_request *req, struct access_decision *decision);

/* The part of the export's state that the peer may see now; see access.h for `holder`. */
enum access_view permit_view(
	const struct conn *c, const struct export *export, char holder[CLIENT_NAME_MAX + 1]);

/* The export's demand, by the table in force. */
enum protection permit_protection(struct server *s, const struct export *export);

/* Closes each attached channel that the table in force would not let in any more. Its client
 * connects again, and learns there what it may. Returns how many. */
unsigned permit_judge(struct server *s);

#endif
