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

/* Puts another table in force. Closes each attached channel that it would not let in any more; its
 * client connects again, and learns there what it may. Returns how many, or -ENOMEM, and the table
 * of before stays in force. Takes over the reference in any case. */
int permit_renew(struct server *s, struct access_table *table);

#endif
