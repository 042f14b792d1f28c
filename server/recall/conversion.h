/* conversion.h - sessions that had an export for themselves share it from now on, since another
 * client has come.
 *
 *     ATTACH waits (attach.h) -> the session is rung -> PING's tail: RECALL_SHARE ->
 *     its client ends and commits what is under way -> CONVERT_SHARES: it goes by leases ->
 *     its kernel forgets -> CONVERT_FORGOT -> the ATTACH that waits is tried again
 *
 * A client that can't now, for files that are open there, sends CONVERT_NOT_NOW. Its session goes
 * on as it was, and is asked again while somebody waits.
 *
 * In between nobody else is let in, also by a server that was started again: the session is stored
 * with SESSION_FORGETS. A session that takes more than the lease time for the first step, or twice
 * that for its kernel to forget, is ended, by the rules of a recall (recall.h). A session that
 * nobody waits for any more goes on: it has begun.
 *
 * When a session that converts has shared its export with nobody for three times the lease time,
 * PING's tail says RECALL_ALONE. Its client gives all leases back when it likes, and sends
 * CONVERT_ALONE. If another one has come meanwhile, nothing changes.
 *
 * THREADS    The metadata thread, outside batches.
 */
#ifndef RMEMFS_SERVER_RECALL_CONVERSION_H
#define RMEMFS_SERVER_RECALL_CONVERSION_H

#include "common/rpc/wire.h"
#include "server/session/conn.h"

/* The request was a CONVERT, and its change is stored. */
void conversion_executed(const struct client_request *req);
/* For PING's reply: it fits, as the first one. */
void conversion_put(const struct client_session *session, struct wire_out *w);
/* Before recalls_tick(): ends sessions that are late. Returns when to call it next in ms, or -1. */
int64_t conversion_tick(struct server *s, int64_t now);

#endif
