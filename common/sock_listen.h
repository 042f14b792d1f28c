/* sock_listen.h - listeners of the socket transports, and their guests: connections that have not
 * said hello yet.
 *
 * A guest costs a descriptor or two and a few hundred bytes. There may be GUESTS_MAX of them, but
 * no more than a small part of the descriptors that the process may have; then the oldest goes. So
 * connections that stay silent keep nobody else out, be it from this listener, another one or a
 * file. Out of descriptors, the oldest guest goes too, and if there is none, the newcomer.
 *
 * OWNERSHIP  A guest's descriptors become the channel's when admit takes them.
 * THREADS    The queue's thread.
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_COMMON_SOCK_LISTEN_H
#define RMEMFS_COMMON_SOCK_LISTEN_H

#include <sys/types.h>

#include "common/sock_channel.h"

struct sock_listener;

struct sock_guest {
	struct list node; /* in listener->guests */
	struct sock_source source;
	struct sock_listener *listener;
	int fd;
	int pidfd; /* shm: the peer's process, else -1 */
	int pid;
	uint8_t hello[TRANSPORT_HELLO_BYTES];
	uint32_t hello_got;
};

/* Makes a channel of a guest whose hello is whole and of our version. It takes the guest's
 * descriptors (sets them to -1), also on failure. */
typedef int sock_admit_fn(struct sock_guest *guest, struct sock_channel **out);

struct sock_listener {
	struct listener base;
	struct sock_source source;
	sock_admit_fn *admit;
	int fd;
	int spare_fd; /* given up for a moment to refuse a connection when there are no others */
	struct list guests; /* the oldest first */
	unsigned nguests;
	dev_t dev; /* shm: the socket file that is ours */
	ino_t ino;
};

int sock_listen(struct evq *base, const struct transport_address *address, sock_admit_fn *admit,
	struct listener **out);
void sock_listener_delete(struct listener *base);

/* The common part of admitting: initialises ch, and moves descriptor, name and hello into it. */
int sock_guest_move(struct sock_guest *guest, struct sock_channel *ch,
	const struct channel_limits *limits,
	int (*poll)(struct sock_source *s, struct event *events, int max));

#endif
