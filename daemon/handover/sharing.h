/* sharing.h - the part of a description that a mount has which shares its export: leases and pins
 * with their numbers, locks with their owners, and callers that wait for locks. The kernel keeps
 * things under leases, and has messages under way that were read while the mount was paused: these
 * are told, too.
 *
 * Nothing of it goes back to the server before another daemon takes it. So no other client gets
 * something meanwhile that is described, unless the server ends the session. A recall that comes
 * meanwhile is not described: the server repeats it until it is served. Not handed over are names
 * that were looked up, of which the server is asked anew, and when a lease was used last.
 *
 * OWNERSHIP  As describe.h.
 * THREADS    Likewise. Between sharing_count() and sharing_describe() the mount stands.
 */
#ifndef RMEMFS_DAEMON_HANDOVER_SHARING_H
#define RMEMFS_DAEMON_HANDOVER_SHARING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/handover/sharing_state.h"

struct fs;
struct inode;
struct io_thread;

/* The numbers of a description. Returns 0, or an inode that has a lease, a pin or a lock and is not
 * to be described, or has something under way. */
uint64_t sharing_count(struct fs *fs, struct sharing_state *state);
/* Puts sharing_state_bytes() of it. -ENOMEM. */
int sharing_describe(struct fs *fs, struct wire_out *w, const struct sharing_state *state);

/* The inodes are there, with their handles. -ENOMEM; -EPROTO, -EINVAL: it makes no sense. */
int sharing_adopt(struct fs *fs, struct io_thread *threads, struct wire_in *r);

#endif
