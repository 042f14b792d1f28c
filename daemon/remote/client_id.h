/* client_id.h - which mount this is to a server.
 *
 * An owner's id is made of the machine's boot, the machine, the host's name, the network namespace,
 * the mount point, and a number. The number tells mounts apart that agree in all of that: mounts of
 * two mount namespaces (containers on the host's network), and one that lives on after umount -l
 * beside the next one. While a mount lives, its process holds a name of its id in the kernel: an
 * abstract Unix address that it is bound to and never listens at. The kernel frees the name when
 * the process ends, however it ends. So two processes that live on one kernel never have the same
 * id. A mount at the place of a dead process gets that process's id, by which the server knows what
 * it has left behind (see server/session/attach.h).
 *
 * OWNERSHIP  The process that calls client_id_take() owns the name's descriptor. No fork may come
 *            between that and its end, or the child holds the name, too.
 * THREADS    client_id_release() from any thread, the others before there are any.
 */
#ifndef RMEMFS_DAEMON_REMOTE_CLIENT_ID_H
#define RMEMFS_DAEMON_REMOTE_CLIENT_ID_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/types.h"

struct owner {
	uint8_t id[OWNER_BYTES];
	unsigned number; /* from 1 on; 0: no name was free, and the id is a random one */
	atomic_int fd;   /* bound to the id's name; -1: none is held */
};

/* Takes the first number whose name is free. Waits for a moment for the name of number 1, which a
 * process that is about to end frees soon. */
void client_id_take(struct owner *owner, const char *mountpoint);
/* Takes a lower number, where a name has become free since. False: none has. */
bool client_id_take_lower(struct owner *owner, const char *mountpoint);
/* The mount is gone: the next one may become this owner, and the server tells them apart. Harmless
 * when it was called before. */
void client_id_release(struct owner *owner);

#endif
