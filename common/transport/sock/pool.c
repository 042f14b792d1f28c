/* pool.c - see pool.h. */
#include "common/transport/sock/pool.h"

#include <errno.h>

#include "common/base/nodump.h"

int sock_pool_init(struct sock_pool *pool, uint32_t count, uint32_t msg_bytes)
{
	size_t align = _Alignof(struct sock_msg);
	size_t stride = div_round_up(sizeof(struct sock_msg) + msg_bytes, align) * align;
	void *memory = nodump_map(stride * count);

	if (!memory)
		return -ENOMEM;
	*pool = (struct sock_pool){.memory = memory, .stride = stride, .count = count};
	list_init(&pool->free);
	return 0;
}

void sock_pool_fini(struct sock_pool *pool)
{
	nodump_unmap(pool->memory, pool->stride * pool->count);
	pool->memory = NULL;
}

struct sock_msg *sock_pool_get(struct sock_pool *pool)
{
	struct sock_msg *msg;

	if (!list_empty(&pool->free))
		return sock_msg_at(list_pop(&pool->free));
	if (pool->fresh == pool->count)
		return NULL;
	msg = (struct sock_msg *)(pool->memory + pool->stride * pool->fresh++);
	list_init(&msg->piece.node);
	return msg;
}

void sock_pool_put(struct sock_pool *pool, struct sock_msg *msg)
{
	/* In front: the buffer used last is in the cache. */
	list_add_head(&pool->free, &msg->piece.node);
}

void sock_msg_seal(struct sock_msg *msg, uint32_t len)
{
	sock_frame_encode(&msg->frame, msg->header);
	msg->iov[0] = (struct iovec){.iov_base = msg->header, .iov_len = FRAME_BYTES};
	msg->iov[1] = (struct iovec){.iov_base = msg->data, .iov_len = len};
	msg->piece.iov = msg->iov;
	msg->piece.niov = len ? 2 : 1;
	msg->piece.is_message = true;
}
