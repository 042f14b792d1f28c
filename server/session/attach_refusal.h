/* attach_refusal.h - tells a client which session keeps it out, and what can be done.
 *
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_ATTACH_REFUSAL_H
#define RMEMFS_SERVER_SESSION_ATTACH_REFUSAL_H

#include "server/session/client_session.h"
#include "server/session/conn.h"

/* Answers -EBUSY: the export is in use by the session `holder` and n - 1 more. A client that is
 * kept out has to know by which one, on whatever machine. */
void attach_refuse_busy(
	struct client_request *req, const struct client_session *holder, unsigned n);

#endif
