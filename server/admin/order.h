/* order.h - an admin's orders to the running server, by root or the server's own user over its socket.
 *
 * EVICT  ends a session at once: its channels are fenced, its leases, locks and pages go to others.
 *        Bytes that its client has not committed are lost. A mount that shares begins another
 *        session, after a pause (penalty.h); a mount of its own has lost its session.
 * LOG    sets the log level until the process ends, or the next order.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_ADMIN_ORDER_H
#define RMEMFS_SERVER_ADMIN_ORDER_H

struct client_request;

void order_evict(struct client_request *req);
void order_log(struct client_request *req);

#endif
