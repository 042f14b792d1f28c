/* listen.h - listeners of the socket transports. A new connection is a guest first.
 *
 * When no descriptor is left, the listener drops the oldest guest; without guests it refuses the
 * new connection.
 *
 * THREADS    The queue's thread.
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_SOCK_LISTEN_H
#define RMEMFS_COMMON_TRANSPORT_SOCK_LISTEN_H

#include <sys/types.h>

#include "common/transport/sock/guest.h"

struct sock_listener {
	struct listener base;
	struct sock_source source;
	struct sock_guests guests;
	int fd;
	int spare_fd; /* closed for a moment to refuse a connection when no other is left */
	dev_t dev;    /* shm: our socket file */
	ino_t ino;
};

int sock_probe(struct transport *t, const struct transport_address *address);
int sock_listen(struct evq *base, const struct transport_address *address, sock_admit_fn *admit,
	struct listener **out);
void sock_listener_delete(struct listener *base);

#endif
