/* request.c - an I/O thread's requests and data buffers: fixed pools, made once. Nothing is
 * allocated while requests run, except for one that waits for another client: its payload, and the
 * request that the thread gets in its place.
 *
 * Each buffer has a page before its data, and the kernel's headers are read into the end of that
 * page. So a WRITE's payload lies on a page boundary, and the buffer goes on with the request.
 * Small requests are copied out, and the next message is read into the same buffer.
 */
#include "daemon/request/request.h"

#include <errno.h>
#include <malloc.h>
#include <sys/mman.h>

#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/nodump.h"
#include "common/base/util.h"
#include "daemon/request/io_thread_private.h"

enum { BUFFER_STRIDE = PAGE_BYTES + IO_BYTES_MAX };
/* So much memory the heap would keep; for so long it is likely to be wanted again. */
enum { TRIM_BYTES = 32 << 20, TRIM_MS = 1000 };

static_assert(
	(int)PAYLOAD_HEAD_BYTES <= (int)PAGE_BYTES, "the headers lie in the page before the data");

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
	/* One stride more: the spare, which is touched only when it is needed. */
	priv->arena_bytes = (size_t)n * BUFFER_STRIDE;
	priv->map_bytes = HUGE_PAGE_BYTES + priv->arena_bytes + BUFFER_STRIDE;
	map = nodump_map(priv->map_bytes);
	if (!map)
		return -ENOMEM;
	priv->map = map;
	/* The first buffers are used most: they get whole huge pages. */
	priv->arena = (uint8_t *)map + (-(uintptr_t)map & (HUGE_PAGE_BYTES - 1));
	priv->spare = priv->arena + priv->arena_bytes + PAGE_BYTES;
	madvise(priv->arena, priv->arena_bytes, MADV_HUGEPAGE);
	for (unsigned i = 0; i < n; i++) {
		priv->buffers[i].data = priv->arena + (size_t)i * BUFFER_STRIDE + PAGE_BYTES;
		list_add_tail(&priv->free_buffers, &priv->buffers[i].link);
	}
	return 0;
}

static bool make_request(struct io_thread *thread)
{
	struct request *req = calloc(1, sizeof(*req));

	if (!req)
		return false;
	req->thread = thread;
	list_init(&req->all);
	list_add_tail(&thread->priv->free_requests, &req->link);
	return true;
}

static int make_requests(struct io_thread *thread)
{
	for (unsigned i = 0; i < THREAD_REQUESTS; i++)
		if (!make_request(thread))
			return -ENOMEM;
	return 0;
}

int request_pools_init(struct io_thread *thread, unsigned nbuffers)
{
	int err;

	err = make_requests(thread);
	if (!err)
		err = make_buffers(thread->priv, nbuffers);
	if (err)
		request_pools_fini(thread);
	return err;
}

static void delete_request(struct request *req)
{
	nodump_free(req->stowed);
	free(req);
}

void request_pools_fini(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	struct list *link;

	if (priv->map)
		munmap(priv->map, priv->map_bytes);
	free(priv->buffers);
	while ((link = list_pop(&priv->used_requests)))
		delete_request(list_entry(link, struct request, all));
	while ((link = list_pop(&priv->free_requests)))
		delete_request(list_entry(link, struct request, link));
	priv->map = NULL;
	priv->arena = NULL;
	priv->buffers = NULL;
}

/* ---- waiting for other clients --------------------------------------------------------------- */

bool request_much_is_aside(const struct io_thread_private *priv)
{
	return priv->aside_bytes >= priv->stuck_bytes + ASIDE_BYTES;
}

bool request_may_set_aside(const struct request_shared *shared)
{
	return atomic_load_explicit(&shared->aside_bytes, memory_order_relaxed) < shared->aside_max;
}

static void count_aside(struct io_thread *thread, size_t bytes)
{
	struct io_thread_private *priv = thread->priv;

	priv->aside_bytes += bytes;
	if (priv->aside_bytes >= TRIM_BYTES)
		priv->trim_ms = priv->now + TRIM_MS;
	atomic_fetch_add_explicit(&thread->shared->aside_bytes, bytes, memory_order_relaxed);
}

static void uncount_aside(struct io_thread *thread, size_t bytes)
{
	struct io_thread_private *priv = thread->priv;

	/* It becomes less by itself, so the thread waits on. */
	if (priv->starved_since && request_much_is_aside(priv))
		priv->starved_since = priv->now;
	priv->aside_bytes -= bytes;
	if (priv->stuck_bytes > priv->aside_bytes)
		priv->stuck_bytes = priv->aside_bytes;
	atomic_fetch_sub_explicit(&thread->shared->aside_bytes, bytes, memory_order_relaxed);
}

void request_trim(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;

	if (!priv->trim_ms || priv->now < priv->trim_ms || priv->aside_bytes >= TRIM_BYTES)
		return;
	priv->trim_ms = 0;
	malloc_trim(0);
}

bool request_set_aside(struct request *req)
{
	if (req->aside)
		return true;
	if (!make_request(req->thread))
		return false;
	req->thread->priv->nused--;
	req->aside = true;
	count_aside(req->thread, sizeof(*req));
	return true;
}

static void end_aside(struct request *req)
{
	uncount_aside(req->thread, sizeof(*req));
	list_del(&req->link);
	list_del(&req->all);
	free(req);
}

/* SETXATTR's name lies in the buffer, too. */
bool request_stow(struct request *req)
{
	bool named = req->op == OP_SETXATTR;
	size_t len = req->args.size, namelen = named ? strlen(req->args.name) + 1 : 0;

	if (!req->buf)
		return true;
	req->stowed = nodump_alloc(len + namelen);
	if (!req->stowed)
		return false;
	memcpy(req->stowed, named ? req->args.value : req->buf->data, len);
	if (named) {
		req->args.value = req->stowed;
		req->args.name = memcpy(req->stowed + len, req->args.name, namelen);
	}
	req->stowed_bytes = len + namelen;
	count_aside(req->thread, req->stowed_bytes);
	request_return_buffer(req);
	return true;
}

static void forget_stowed(struct request *req)
{
	if (!req->stowed)
		return;
	nodump_free(steal_ptr(&req->stowed));
	uncount_aside(req->thread, req->stowed_bytes);
}

bool request_lacks_buffer(const struct request *req)
{
	return req->stowed && req->op == OP_WRITE;
}

void request_unstow(struct request *req)
{
	assert(request_lacks_buffer(req));
	memcpy(req->buf->data, req->stowed, req->args.size);
	forget_stowed(req);
}

/* ---- requests -------------------------------------------------------------------------------- */

bool request_signals_are_untold(const struct request *req)
{
	return req->op == OP_FLUSH ||
	       ((req->op == OP_READ || req->op == OP_WRITE) && !req->args.cached);
}

struct request *request_new(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	struct list *link = list_pop(&priv->free_requests);
	struct request *req;

	if (!link)
		return NULL;
	req = list_entry(link, struct request, link);
	req->process = 0;
	req->interrupted = false;
	req->squashed = false;
	req->since_ms = priv->now;
	req->read_ns = priv->now_ns;
	req->replied = false;
	req->slow_seen = req->slow_told = false;
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

/* Whether its end gives room to messages that wait: they lacked a buffer, or a request of its
 * kind. */
static bool gives_room(const struct io_thread_private *priv, const struct request *req)
{
	return (req->buf && !priv->recv) ||
	       (!req->aside &&
		       (priv->nused == UNRESERVED_REQUESTS || priv->nused == THREAD_REQUESTS));
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
	forget_stowed(req);
	if (req->aside)
		end_aside(req);
	else
		request_unmake(req);
	/* The missing thing comes back, so messages that wait for room will get it. */
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

void request_each(struct io_thread *thread, void (*fn)(struct request *req, void *arg), void *arg)
{
	list_for_each_safe (pos, &thread->priv->used_requests)
		fn(list_entry(pos, struct request, all), arg);
}

/* ---- buffers --------------------------------------------------------------------------------- */

static struct data_buffer *pop_buffer(struct io_thread_private *priv)
{
	struct list *link = list_pop(&priv->free_buffers);

	return link ? list_entry(link, struct data_buffer, link) : NULL;
}

bool request_refill_recv(struct io_thread_private *priv)
{
	/* Requests that were read come before messages that are yet to be read. */
	if (!priv->recv && list_empty(&priv->buffer_waiters))
		priv->recv = pop_buffer(priv);
	return priv->recv != NULL;
}

/* FUSE_MESSAGE_BYTES_MAX, from the page before the payload on. */
static void touch(uint8_t *payload)
{
	volatile uint8_t *page = payload - PAGE_BYTES;

	for (size_t off = 0; off < BUFFER_STRIDE; off += PAGE_BYTES)
		page[off] = 0;
}

uint8_t *request_room(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	uint8_t *payload = priv->recv ? priv->recv->data : priv->spare;
	bool *present = priv->recv ? &priv->recv->present : &priv->spare_present;

	if (thread->shared->revivable && !*present) {
		touch(payload);
		*present = true;
	}
	return payload - PAYLOAD_HEAD_BYTES;
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

/* The buffer that was used last is in the CPU's cache, so it is the next. */
void request_return_buffer(struct request *req)
{
	if (req->buf)
		list_add_head(&req->thread->priv->free_buffers, &req->buf->link);
	req->buf = NULL;
}

/* Called by the loop and not by request_end(), whose caller may be in the middle of anything. */
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
