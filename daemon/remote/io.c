/* io.c - one-sided transfers, cut into batches that fit into the channel's free depth.
 *
 * READs and WRITEs queue apart, since their limits are apart. In each queue calls are posted in
 * order. A call without a failed batch is done with its last EV_DONE. A call that lost a batch
 * stays. When its channel is gone, it goes to the head of the queue as a whole. It is safe to
 * repeat only on the next channel, whose ATTACH was answered after the server had fenced this one.
 * Until then its outcome is open, and it can't be taken back.
 */
#include <assert.h>
#include <errno.h>

#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/util.h"
#include "daemon/remote/remote_private.h"

static void batches_reset(struct remote *r)
{
	r->free_batches = NULL;
	for (unsigned i = BATCHES_MAX; i-- > 0;) {
		r->batches[i].next_free = r->free_batches;
		r->free_batches = &r->batches[i];
	}
}

void transfers_init(struct remote *r)
{
	for (unsigned dir = 0; dir < ARRAY_SIZE(r->io); dir++) {
		list_init(&r->io[dir].waiting);
		list_init(&r->io[dir].posted);
	}
	list_init(&r->io_refused);
	batches_reset(r);
}

static bool call_broken(const struct io_call *call)
{
	return call->status == -EIO;
}

/* ---- posting --------------------------------------------------------------------------------- */

static uint32_t depth(const struct remote *r, enum io_dir dir)
{
	const struct channel_limits *limits = channel_limits(r->ch);

	return dir == IO_READ ? limits->max_works_read : limits->max_works_write;
}

/* The number of works that the next batch of a call may have now. */
static uint32_t batch_size(const struct remote *r, const struct io_call *call)
{
	uint32_t room = depth(r, call->dir) - r->io[call->dir].nworks;

	return (uint32_t)min_u64(call->nworks - call->nposted, room);
}

/* Bytes can follow a head only if they are the whole call. */
static int post_works(struct remote *r, const struct io_call *call, uint32_t nworks, void *cookie)
{
	const struct work *works = call->works + call->nposted;

	if (call->head && nworks == call->nworks)
		return channel_post_piped(r->ch, works, nworks, call->head, call->headlen, cookie);
	return channel_post(r->ch, call->dir, works, nworks, cookie);
}

/* Whether the next works of a call name a region that the channel has not got to know yet. */
static bool has_unknown(const struct remote *r, const struct io_call *call, uint32_t nworks)
{
	const struct work *works = call->works + call->nposted;

	for (uint32_t i = 0; i < nworks; i++)
		if (works[i].region >= r->next_region)
			return true;
	return false;
}

static int batch_post(struct remote *r, struct io_call *call, uint32_t nworks)
{
	struct io_batch *batch = r->free_batches;
	int err;

	if (has_unknown(r, call, nworks))
		return region_table_want(r, &call->answer) ? -EAGAIN : -EINVAL;
	if (!batch)
		return -EAGAIN;
	*batch = (struct io_batch){.call = call, .nworks = nworks, .next_free = batch->next_free};
	err = post_works(r, call, nworks, batch);
	if (err)
		return err;
	r->free_batches = batch->next_free;
	r->io[call->dir].nworks += nworks;
	call->nposted += nworks;
	call->nbatches++;
	call->tried = true;
	return 0;
}

static void call_refuse(struct remote *r, struct io_call *call, int err)
{
	static struct log_ratelimit limit;
	const struct work *work = &call->works[call->nposted];

	/* Each call that reaches for a lost region comes here. */
	if (log_ratelimit_ok(&limit, 1000))
		log_error("%s of region %u at %llu can't be posted: %s",
			call->dir == IO_READ ? "READ" : "WRITE", work->region,
			(unsigned long long)work->offset, errno_text(err));
	call->status = -EIO;
	list_del(&call->link);
	list_add_tail(call->nbatches ? &r->io[call->dir].posted : &r->io_refused, &call->link);
}

static void queue_pump(struct remote *r, struct io_queue *q)
{
	while (!list_empty(&q->waiting) && !remote_channel_is_away(r)) {
		struct io_call *call = list_entry(q->waiting.next, struct io_call, link);
		uint32_t n = batch_size(r, call);
		int err = n ? batch_post(r, call, n) : -EAGAIN;

		if (err == -EAGAIN || err == -ENOTCONN)
			return;
		if (err) {
			call_refuse(r, call, err);
		} else if (call->nposted == call->nworks) {
			list_del(&call->link);
			list_add_tail(&q->posted, &call->link);
		}
	}
}

void transfers_pump(struct remote *r)
{
	if (r->state != REMOTE_READY)
		return;
	for (unsigned dir = 0; dir < ARRAY_SIZE(r->io); dir++)
		queue_pump(r, &r->io[dir]);
}

void io_start(struct io_thread *thread, struct io_call *call)
{
	struct remote *r = thread->remote;
	struct io_queue *q = &r->io[call->dir];

	assert(call->nworks && (!call->head || call->dir == IO_READ));
	call->nposted = call->nbatches = 0;
	call->status = 0;
	call->refused_by = 0;
	call->answer = 0;
	call->tried = false;
	call->piped = false;
	list_add_tail(&q->waiting, &call->link);
	if (r->state == REMOTE_READY)
		queue_pump(r, q);
}

bool io_cancel(struct io_thread *thread, struct io_call *call)
{
	if (call->tried || call->status)
		return false;
	list_del(&call->link);
	return true;
}

int io_pipe(const struct io_thread *thread)
{
	return channel_pipe(thread->remote->ch);
}

bool io_maps(const struct io_thread *thread)
{
	const struct remote *r = thread->remote;

	return r->state == REMOTE_READY && !remote_channel_is_away(r) &&
	       transport_maps_regions(r->path->transport);
}

void *io_mapped(
	struct io_thread *thread, enum io_dir dir, uint32_t region, uint64_t offset, uint32_t len)
{
	struct remote *r = thread->remote;
	void *mapped = io_maps(thread) ? channel_mapped(r->ch, dir, region, offset, len) : NULL;

	if (mapped && thread->shared->revivable)
		map_populate(mapped, len, dir == IO_WRITE);
	return mapped;
}

void io_count_mapped(struct io_thread *thread, enum io_dir dir, uint64_t bytes)
{
	channel_count_mapped(thread->remote->ch, dir, bytes);
}

const struct io_limits *io_limits(const struct io_thread *thread)
{
	return &thread->remote->session->limits;
}

/* ---- completions ----------------------------------------------------------------------------- */

static struct io_call *batch_take(struct remote *r, struct io_batch *batch)
{
	struct io_call *call = batch->call;

	assert(call && call->nbatches);
	r->io[call->dir].nworks -= batch->nworks;
	batch->call = NULL;
	batch->next_free = r->free_batches;
	r->free_batches = batch;
	call->nbatches--;
	return call;
}

/* A peer that refuses an access ends the channel. All batches behind end in the same way, so the
 * first is the refused one. A dying peer may refuse, too, since its memory windows may go before
 * its queue pairs. But if the same server refuses a call on a second channel, the fault is the
 * call's, and the call must not end channel after channel. */
static void call_failed(const struct remote *r, struct io_call *call, int status)
{
	bool refused = status == -EACCES && r->state != REMOTE_DROPPING;

	if (refused && call->refused_by == r->server)
		call->status = -EIO;
	else if (refused && !call_broken(call))
		call->status = -EACCES;
	else if (!call->status)
		call->status = -EAGAIN;
}

/* No batch of the call is on its way any more, and the last one ended well. */
static void call_settle(struct remote *r, struct io_call *call)
{
	if (call_broken(call)) {
		list_del(&call->link);
		list_add_tail(&r->io_refused, &call->link);
	} else if (!call->status && call->nposted == call->nworks) {
		list_del(&call->link);
		call->done(call, 0);
	}
}

void transfers_done(struct remote *r, const struct event *ev)
{
	struct io_batch *batch = ev->cookie;
	uint32_t nworks = batch->nworks;
	struct io_call *call = batch_take(r, batch);

	if (ev->status) {
		r->nfailed += nworks;
		call_failed(r, call, ev->status);
		remote_channel_drop(r, "a transfer ended in error: %s", errno_text(ev->status));
	} else if (call->nbatches == 0) {
		call->piped = ev->piped;
		call_settle(r, call);
	}
	transfers_pump(r);
}

/* Puts the posted calls before the waiting ones again, and the broken ones aside. */
static void queue_rewind(struct remote *r, struct io_queue *q)
{
	struct list calls;
	struct list *node;

	list_init(&calls);
	list_splice_tail(&calls, &q->posted);
	list_splice_tail(&calls, &q->waiting);
	q->nworks = 0;
	while ((node = list_pop(&calls)) != NULL) {
		struct io_call *call = list_entry(node, struct io_call, link);

		call->nposted = call->nbatches = 0;
		if (call->status == -EACCES)
			call->refused_by = r->server;
		if (!call_broken(call))
			call->status = 0;
		list_add_tail(call_broken(call) ? &r->io_refused : &q->waiting, &call->link);
	}
}

/* It is not known here whether any of these transfers has happened. */
static void tell_open(struct remote *r)
{
	uint32_t nopen = r->nfailed + r->io[IO_READ].nworks + r->io[IO_WRITE].nworks;

	if (nopen)
		log_info("server %s: transfers that did not end before their connection: %u",
			r->session->server, nopen);
	r->nfailed = 0;
}

void transfers_channel_lost(struct remote *r)
{
	tell_open(r);
	for (unsigned dir = 0; dir < ARRAY_SIZE(r->io); dir++)
		queue_rewind(r, &r->io[dir]);
	batches_reset(r);
}

static void calls_end(struct list *calls, int status)
{
	struct list *node;

	while ((node = list_pop(calls)) != NULL) {
		struct io_call *call = list_entry(node, struct io_call, link);

		call->done(call, status);
	}
}

void transfers_tick(struct remote *r)
{
	struct list refused;

	list_init(&refused);
	if (r->state == REMOTE_READY)
		list_splice_tail(&refused, &r->io_refused);
	calls_end(&refused, -EIO);
	transfers_pump(r);
}

void transfers_fail_all(struct remote *r)
{
	struct list failed;

	list_init(&failed);
	for (unsigned dir = 0; dir < ARRAY_SIZE(r->io); dir++)
		list_splice_tail(&failed, &r->io[dir].waiting);
	list_splice_tail(&failed, &r->io_refused);
	calls_end(&failed, -ESTALE);
}

bool transfers_are_idle(const struct remote *r)
{
	for (unsigned dir = 0; dir < ARRAY_SIZE(r->io); dir++)
		if (!list_empty(&r->io[dir].waiting) || !list_empty(&r->io[dir].posted))
			return false;
	return list_empty(&r->io_refused);
}
