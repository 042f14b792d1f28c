/* permission.h - the station on a request's way where an export's squash is applied.
 *
 * The kernel has checked the caller already, by its own ids and capabilities (default_permissions).
 * So it lets root through, whatever an inode's mode says. Here a squashed caller is checked again,
 * as the anonymous user: without other groups, without capabilities (rules.h). From here on the
 * request says the anonymous ids, so all that comes after it goes by these: the owner of what is
 * made, the rights that the server is told, the names of attributes that only root sees.
 *
 * The station stands before that of the leases. So a request that waits here for attributes, or for
 * an access control list, keeps nothing that another client may wait for.
 *
 * Without squash it costs one load and one branch, and no message. With squash a caller that is not
 * squashed costs the same. For one that is, the attributes are those known here. A message each is
 * needed for:
 *
 *     an access control list
 *     attributes on a sharing mount without a lease
 *     a name that is to go from a directory with the sticky bit, or to another directory
 *
 * Some calls are not seen here, since the kernel answers them by itself: names and attributes that
 * it has cached, access(2), chdir(2), open(2) with O_PATH. Requests by an open file pass.
 *
 * THREADS    The request's own.
 */
#ifndef RMEMFS_DAEMON_SQUASH_PERMISSION_H
#define RMEMFS_DAEMON_SQUASH_PERMISSION_H

#include <stdbool.h>

struct request;

/* True: the request may go on. False: then(req) follows, or the request was answered with an
 * error. */
bool permission_enter(struct request *req, void (*then)(struct request *req));

#endif
