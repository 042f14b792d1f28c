/* listen.h - listeners of the socket transports. Who connects is a guest first.
 *
 * Out of descriptors, the oldest guest makes room, and if there is none, the newcomer is refused.
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
	int spare_fd; /* given up for a moment to refuse a connection when there are no others */
	dev_t dev;    /* shm: the socket file that is ours */
	ino_t ino;
};

int sock_probe(struct transport *t, const struct transport_address *address);
int sock_listen(struct evq *base, const struct transport_address *address, sock_admit_fn *admit,
	struct listener **out);
void sock_listener_delete(struct listener *base);

#endif
