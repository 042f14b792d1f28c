/* control.h - the control socket of a mount's daemon, by which rmemfsctl asks what the mount does.
 *
 *     question   one line: "status" or "log LEVEL"
 *     answer     one JSON text until the end of the stream: report.h's; or {"error": "..."}
 *
 * After "handover" the stream is main's: handover/talk.h.
 *
 * The socket lies where common/base/mount_socket.h says. Its folder decides who may connect. Root's
 * folder has mode 2750 and the group rmemfs-monitor where the package has made it: a socket there
 * belongs to that group, and has mode 0660. Elsewhere a socket is its user's alone (0600). Any peer
 * that has connected may ask for the status; the daemon's user and root (SO_PEERCRED of unix(7))
 * may do all.
 *
 * A daemon without the socket serves its mount all the same; one line in the log says why it has
 * none.
 *
 * A peer that sends nothing, or takes nothing, is closed after PEER_MS, so that it keeps no other
 * away for longer. CONTROL_PEERS are served side by side; others wait in the socket's queue.
 *
 * THREADS    A thread of its own serves it: neither a mount that waits for its server nor an I/O
 *            thread that stands still keeps the answer back. main starts and stops it.
 */
#ifndef RMEMFS_DAEMON_ADMIN_CONTROL_H
#define RMEMFS_DAEMON_ADMIN_CONTROL_H

#include "daemon/admin/report.h"

enum { CONTROL_PEERS = 8, CONTROL_PEER_MS = 1000, CONTROL_LOOK_MS = 300 };

struct socket_id; /* mount_socket.h */

struct control;

/* The strings of facts live as long as the control. NULL: there is none, and the log says why. */
struct control *control_start(const struct mount_facts *facts);
/* The file of its socket, for the guard. */
const struct socket_id *control_socket_id(const struct control *c);
/* Readable once a peer, which may change the mount, has asked for a hand-over. */
int control_offer_fd(const struct control *c);
/* Its stream, which is the caller's, or -1. Until the caller has called control_end_offer() other
 * peers that ask the same are refused. main. */
int control_take_offer(struct control *c);
void control_end_offer(struct control *c);

/* When the I/O threads have ended, and before the filesystem is closed. NULL is fine. */
void control_stop(struct control *c);
/* After control_stop(), when no mailbox of the I/O threads is used any more: there may still be
 * calls of ours in them. NULL is fine. */
void control_delete(struct control *c);

#endif
