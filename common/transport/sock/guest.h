/* guest.h - guests of a listener of the socket transports: connections that have not said hello
 * yet.
 *
 * A guest costs one or two descriptors and a few hundred bytes. It has GUEST_MS to say hello. There
 * may be GUESTS_MAX of them, but only a small part of the process's descriptors; then the oldest is
 * dropped. So silent connections keep nobody else out, neither from a listener nor from a file. A
 * client says hello as soon as it is connected, so it is never the oldest guest for long.
 *
 * OWNERSHIP  A guest's descriptors become the channel's when admit takes them.
 * THREADS    The queue's thread.
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_SOCK_GUEST_H
#define RMEMFS_COMMON_TRANSPORT_SOCK_GUEST_H

#include "common/transport/sock/channel.h"

struct sock_guests;

struct sock_guest {
	struct list node; /* in guests->list */
	struct sock_source source;
	struct sock_guests *guests;
	struct transport_address peer;
	int64_t since_ms;
	int fd;
	int pidfd; /* shm: the peer's process, else -1 */
	int pid;
	uid_t uid; /* shm */
	uint8_t hello[TRANSPORT_HELLO_BYTES];
	uint32_t hello_got;
	uint32_t version; /* of a hello that was taken: to be spoken */
};

/* Makes a channel of a guest whose hello is whole and of our version. It takes the guest's
 * descriptors (sets them to -1), also on failure. */
typedef int sock_admit_fn(struct sock_guest *guest, struct sock_channel **out);

struct sock_guests {
	struct sock_evq *q;
	sock_admit_fn *admit;
	struct list list; /* the oldest first */
	unsigned n;
	struct sock_source timer; /* runs while there are guests */
	int timer_fd;
};

int sock_guests_init(struct sock_guests *guests, struct sock_evq *q, sock_admit_fn *admit);
/* Drops all guests. */
void sock_guests_fini(struct sock_guests *guests);

/* Takes the descriptor of a new connection, also if it can't become a guest. */
void sock_guest_new(struct sock_guests *guests, int fd, const struct transport_address *peer);
/* Drops a guest to free descriptors; false: there is no guest. */
bool sock_guests_drop_oldest(struct sock_guests *guests);

/* The common part of admitting: initialises ch, and moves descriptor, name and hello into it. */
int sock_guest_move(struct sock_guest *guest, struct sock_channel *ch,
	const struct channel_limits *limits,
	int (*poll)(struct sock_source *s, struct event *events, int max));

#endif
