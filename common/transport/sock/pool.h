/* pool.h - the message buffers of one channel, all allocated when it opens.
 *
 * OWNERSHIP  sock_pool_get lends a message, sock_pool_put takes it back; sock_pool_fini frees all,
 *            lent or not. Buffers never used are never touched, so an idle channel costs no memory.
 * THREADS    None of its own: one thread, or the caller's lock.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_SOCK_POOL_H
#define RMEMFS_COMMON_TRANSPORT_SOCK_POOL_H

#include <sys/uio.h>

#include "common/base/list.h"
#include "common/transport/sock/frame.h"

/* Bytes that go out together, in a send queue. */
struct sock_piece {
	struct list node;
	const struct iovec *iov;
	uint32_t niov;
	bool is_message; /* it is the first member of a sock_msg */
};

struct sock_msg {
	struct sock_piece piece; /* its node: in a queue of its user, or in the pool */
	struct iovec iov[2];
	struct sock_frame frame;
	uint8_t header[FRAME_BYTES];
	_Alignas(64) uint8_t data[];
};

struct sock_pool {
	uint8_t *memory;
	size_t stride;
	uint32_t fresh, count;
	struct list free;
};

/* -ENOMEM */
int sock_pool_init(struct sock_pool *pool, uint32_t count, uint32_t msg_bytes);
void sock_pool_fini(struct sock_pool *pool);

/* NULL: all are lent. */
struct sock_msg *sock_pool_get(struct sock_pool *pool);
void sock_pool_put(struct sock_pool *pool, struct sock_msg *msg);

/* Makes the message's piece of the frame and the first len bytes of data. */
void sock_msg_seal(struct sock_msg *msg, uint32_t len);

static inline struct sock_msg *sock_msg_at(struct list *node)
{
	return list_entry(node, struct sock_msg, piece.node);
}

static inline struct sock_msg *sock_msg_of(const void *data)
{
	return container_of((uint8_t *)data, struct sock_msg, data[0]);
}

#endif
