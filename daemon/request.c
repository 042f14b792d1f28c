/* request.c - an I/O thread's requests and data buffers: fixed pools, made once, so that nothing is
 * allocated while requests run, but for the payload of what waits for another client.
 *
 * Each buffer has a page before its data, into whose end the kernel's headers are read; a WRITE's
 * payload then lies on a page boundary and the buffer goes on with the request. Small requests are
 * copied out, and the buffer stays the one that is read into.
 */
#include "daemon/request.h"

#include <errno.h>
#include <sys/mman.h>

#include "common/log.h"
#include "common/map.h"
#include "common/util.h"
#include "daemon/fuse_decode.h"
#include "daemon/io_thread_private.h"

enum { BUFFER_STRIDE = PAGE_BYTES + IO_BYTES_MAX };

static_assert((int)FUSE_WRITE_HEAD_BYTES <= (int)PAGE_BYTES,
	"the headers lie in the page before the data");

/* ---- making the pools ------------------------------------------------------------------------ */

static int make_buffers(struct io_thread_private *priv, unsigned n)
{
	void *map;

	list_init(&priv->free_buffers);
	list_init(&priv->buffer_waiters);
	priv->buffers = calloc(n, sizeof(*priv->buffers));
	if (!priv->buffers)
		return -ENOMEM;
	priv->nbuffers = n;
	/* One stride more: the spare, which is touched in need only. */
	priv->arena_bytes = (size_t)n * BUFFER_STRIDE;
	priv->map_bytes = HUGE_PAGE_BYTES + priv->arena_bytes + BUFFER_STRIDE;
	map = mmap(
		NULL, priv->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	priv->map = map;
	/* The first buffers are the ones used most: they get whole huge pages. */
	priv->arena = (uint8_t *)map + (-(uintptr_t)map & (HUGE_PAGE_BYTES - 1));
	priv->spare = priv->arena + priv->arena_bytes + PAGE_BYTES;
	madvise(priv->arena, priv->arena_bytes, MADV_HUGEPAGE);
	for (unsigned i = 0; i < n; i++) {
		priv->buffers[i].data = priv->arena + (size_t)i * BUFFER_STRIDE + PAGE_BYTES;
		list_add_tail(&priv->free_buffers, &priv->buffers[i].link);
	}
	return 0;
}

static int make_requests(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;

	list_init(&priv->free_requests);
	list_init(&priv->used_requests);
	priv->requests = calloc(THREAD_REQUESTS, sizeof(*priv->requests));
	if (!priv->requests)
		return -ENOMEM;
	for (unsigned i = 0; i < THREAD_REQUESTS; i++) {
		priv->requests[i].thread = thread;
		list_init(&priv->requests[i].all);
		list_add_tail(&priv->free_requests, &priv->requests[i].link);
	}
	return 0;
}

int request_pools_init(struct io_thread *thread, unsigned nbuffers)
{
	int err;

	err = make_requests(thread);
	if (err)
		return err;
	err = make_buffers(thread->priv, nbuffers);
	if (err)
		request_pools_fini(thread);
	return err;
}

void request_pools_fini(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;

	if (priv->map)
		munmap(priv->map, priv->map_bytes);
	free(priv->buffers);
	free(priv->requests);
	priv->map = NULL;
	priv->arena = NULL;
	priv->buffers = NULL;
	priv->requests = NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

struct request *request_new(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	struct list *link = list_pop(&priv->free_requests);
	struct request *req;

	if (!link)
		return NULL;
	req = list_entry(link, struct request, link);
	req->interrupted = false;
	req->reserved = false;
	req->replied = false;
	req->taken_back = 0;
	req->trace.begun_ns = 0;
	req->args = (struct request_args){0};
	req->buf = NULL;
	req->stowed = NULL;
	memset(req->state, 0, sizeof(req->state));
	list_add_tail(&priv->used_requests, &req->all);
	priv->nused++;
	return req;
}

/* To what waits for room: there was no buffer, or no request of its kind. */
static bool gives_room(const struct io_thread_private *priv, const struct request *req)
{
	return (req->buf && !priv->recv) || priv->nused == UNRESERVED_REQUESTS ||
	       priv->nused == THREAD_REQUESTS;
}

void request_unmake(struct request *req)
{
	struct io_thread_private *priv = req->thread->priv;

	list_del(&req->link);
	list_del(&req->all);
	list_add_head(&priv->free_requests, &req->link);
	priv->nused--;
}

void request_end(struct request *req)
{
	struct io_thread_private *priv = req->thread->priv;
	bool gives = gives_room(priv, req);

	request_return_buffer(req);
	free(steal_ptr(&req->stowed));
	request_unmake(req);
	/* What lacks comes back, so those that wait for room will get it. */
	if (priv->starved_since && gives)
		priv->starved_since = priv->now;
}

struct request *request_find(struct io_thread *thread, uint64_t unique)
{
	list_for_each (pos, &thread->priv->used_requests) {
		struct request *req = list_entry(pos, struct request, all);

		if (req->unique == unique)
			return req;
	}
	return NULL;
}

void request_each(struct io_thread *thread, void (*fn)(struct request *req))
{
	list_for_each_safe (pos, &thread->priv->used_requests)
		fn(list_entry(pos, struct request, all));
}

/* ---- buffers --------------------------------------------------------------------------------- */

static struct data_buffer *pop_buffer(struct io_thread_private *priv)
{
	struct list *link = list_pop(&priv->free_buffers);

	return link ? list_entry(link, struct data_buffer, link) : NULL;
}

bool request_refill_recv(struct io_thread_private *priv)
{
	/* What was read comes before what is yet to be read. */
	if (!priv->recv && list_empty(&priv->buffer_waiters))
		priv->recv = pop_buffer(priv);
	return priv->recv != NULL;
}

bool request_take_buffer(struct request *req, void (*then)(struct request *req))
{
	struct io_thread_private *priv = req->thread->priv;

	assert(!req->buf);
	if (list_empty(&priv->buffer_waiters))
		req->buf = pop_buffer(priv);
	if (req->buf)
		return true;
	req->buffer_then = then;
	list_add_tail(&priv->buffer_waiters, &req->link);
	return false;
}

void request_leave_buffers(struct request *req)
{
	list_del(&req->link);
}

/* The one used last is the one in the cache. */
void request_return_buffer(struct request *req)
{
	if (req->buf)
		list_add_head(&req->thread->priv->free_buffers, &req->buf->link);
	req->buf = NULL;
}

/* SETXATTR's name lies in the buffer, too. */
bool request_stow(struct request *req)
{
	bool named = req->op == OP_SETXATTR;
	size_t len = req->args.size, namelen = named ? strlen(req->args.name) + 1 : 0;

	if (!req->buf)
		return true;
	req->stowed = malloc(len + namelen);
	if (!req->stowed)
		return false;
	memcpy(req->stowed, named ? req->args.value : req->buf->data, len);
	if (named) {
		req->args.value = req->stowed;
		req->args.name = memcpy(req->stowed + len, req->args.name, namelen);
	}
	request_return_buffer(req);
	return true;
}

void request_unstow(struct request *req)
{
	memcpy(req->buf->data, req->stowed, req->args.size);
	free(steal_ptr(&req->stowed));
}

/* From the loop and not from request_end(), whose caller may be in the middle of anything. */
unsigned request_serve_waiters(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	unsigned n = 0;

	while (!list_empty(&priv->buffer_waiters) && !list_empty(&priv->free_buffers)) {
		struct list *link = list_pop(&priv->buffer_waiters);
		struct request *req = list_entry(link, struct request, link);

		req->buf = pop_buffer(priv);
		req->buffer_then(req);
		n++;
	}
	return n;
}
