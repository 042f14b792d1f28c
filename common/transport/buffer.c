/* buffer.c - a client's registered memory: transport.h. */
#include <assert.h>
#include <errno.h>

#include "common/base/util.h"
#include "common/transport/transport_ops.h"

int buffer_register(struct transport *t, void *addr, size_t len, struct buffer **out)
{
	struct buffer *b = NULL;
	int err;

	if (!transport_memory_ok(addr, len))
		return -EINVAL;
	err = t->ops->buffer_register(t, addr, len, &b);
	if (err)
		return err;
	b->transport = t;
	b->addr = addr;
	b->len = len;
	*out = b;
	return 0;
}

void buffer_deregister(struct buffer *b)
{
	if (!b)
		return;
	assert(!b->also);
	b->transport->ops->buffer_deregister(b);
}

int buffer_register_also(struct buffer *b, struct transport *t)
{
	if (b->also || b->transport == t)
		return -EEXIST;
	return buffer_register(t, b->addr, b->len, &b->also);
}

void buffer_deregister_also(struct buffer *b)
{
	struct buffer *also = b->also;

	b->also = NULL;
	buffer_deregister(also);
}
