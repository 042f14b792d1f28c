/* unix.h - what is particular to a Unix listener: its file, and knowing the peer's process.
 *
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_SOCK_UNIX_H
#define RMEMFS_COMMON_TRANSPORT_SOCK_UNIX_H

#include <sys/types.h>

#include "common/transport/transport.h"

/* Binds fd to the path, with mode 0600. A socket that nobody listens on is replaced; -EADDRINUSE:
 * somebody does; -EEXIST: the file is no socket. dev and ino tell our file from another's. */
int sock_unix_bind(int fd, const struct transport_address *address, dev_t *dev, ino_t *ino);
/* Whether it could, without making anything. -ENOENT: no such directory. */
int sock_unix_probe(const struct transport_address *address);
/* Removes the file if it is still ours. */
void sock_unix_unbind(const struct transport_address *address, dev_t dev, ino_t ino);

/* The process at the other end: its id, whose it is, and a pidfd of the caller's. */
int sock_unix_peer(int fd, int *pid, uid_t *uid, int *pidfd);

#endif
