/* unix.h - a Unix listener's socket file, and the identity of the peer's process.
 *
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_SOCK_UNIX_H
#define RMEMFS_COMMON_TRANSPORT_SOCK_UNIX_H

#include <sys/types.h>

#include "common/transport/transport.h"

/* Binds fd to the path, with mode 0600. Replaces a socket that nobody listens on; -EADDRINUSE:
 * somebody does; -EEXIST: the file is no socket. dev and ino identify our file. */
int sock_unix_bind(int fd, const struct transport_address *address, dev_t *dev, ino_t *ino);
/* Whether sock_unix_bind() could bind the path; makes nothing. -ENOENT: no such directory. */
int sock_unix_probe(const struct transport_address *address);
/* Removes the file if it is still ours. */
void sock_unix_unbind(const struct transport_address *address, dev_t dev, ino_t ino);

/* The process at the other end: its pid, its user id, and a pidfd, which the caller closes. */
int sock_unix_peer(int fd, int *pid, uid_t *uid, int *pidfd);

#endif
