/* channel.c - makes and ends a channel: its queue pair, its completion queue and its message
 * buffers. It also makes certain that none of them is alive any more. */
#include "common/transport/verbs/internal.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/nodump.h"
#include "common/base/util.h"

int verbs_channel_new(
	struct evq *q, bool server, enum channel_state state, struct verbs_channel **out)
{
	struct verbs_channel *ch = calloc(1, sizeof(*ch));
	int err;

	if (!ch)
		return -ENOMEM;
	list_init(&ch->ready_node);
	list_init(&ch->hot_node);
	list_init(&ch->dying_node);
	err = channel_base_init(&ch->base, q, server, state);
	if (err) {
		free(ch);
		return err;
	}
	*out = ch;
	return 0;
}

/* ---- building -------------------------------------------------------------------------------- */

static uint32_t slot_count(const struct verbs_channel *ch)
{
	return ch->nrecv + ch->nsend;
}

/* One more than the peer may use, for its bye. */
static uint32_t receives_needed(const struct verbs_channel *ch)
{
	return ch->base.transport->config.nrecv + 1;
}

/* Allocates the messages that the caller may have. Memory that is never used is never touched,
 * since the place given back last is taken first. */
static int build_kept(struct verbs_channel *ch)
{
	ch->nkept = receives_needed(ch);
	ch->free_kept = calloc(ch->nkept, sizeof(*ch->free_kept));
	ch->kept = nodump_alloc((size_t)ch->nkept * verbs_slot_bytes(ch->base.transport));
	if (!ch->free_kept || !ch->kept)
		return -ENOMEM;
	for (uint32_t i = ch->nkept; i-- > 0;)
		ch->free_kept[ch->nfree_kept++] = i;
	return 0;
}

static bool join_shared(struct verbs_channel *ch)
{
	static struct log_ratelimit limit;
	struct verbs_srq *srq = ch->base.server ? verbs_evq(ch->base.q)->srq : NULL;
	int err = srq ? verbs_srq_join(srq, ch) : 0;

	if (err && log_ratelimit_ok(&limit, VERBS_LOG_MS))
		log_info("%s gets receives of its own: %s", ch->base.peer,
			err == -EAGAIN ? "too many others share theirs, or may have gone with one"
				       : errno_text(err));
	return ch->srq;
}

static int build_receives(struct verbs_channel *ch)
{
	if (join_shared(ch))
		return build_kept(ch);
	ch->nrecv = receives_needed(ch);
	return 0;
}

static int build_messages(struct verbs_channel *ch)
{
	struct verbs_transport *t = verbs_transport(ch->base.transport);
	const struct transport_config *config = &t->base.config;
	size_t len;
	int err = build_receives(ch);

	if (err)
		return err;
	ch->nsend = config->nsend + verbs_send_slack(config);
	len = (size_t)slot_count(ch) * verbs_slot_bytes(&t->base);
	ch->free_slots = calloc(ch->nsend, sizeof(*ch->free_slots));
	if (!ch->free_slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < ch->nsend; i++)
		ch->free_slots[ch->nfree++] = slot_count(ch) - 1 - i;
	ch->messages = nodump_map(len);
	if (!ch->messages)
		return -ENOMEM;
	ch->messages_len = len;
	ch->messages_mr = verbs_mr_new(t, ch->pd ? ch->pd : t->pd, ch->messages, len,
		IBV_ACCESS_LOCAL_WRITE, "a channel's messages", &err);
	return ch->messages_mr ? 0 : err;
}

/* Makes the largest queue pair that the device grants. A device may refuse several of its own
 * maximum values together. */
static int create_qp(struct verbs_channel *ch, uint32_t sq_depth)
{
	struct verbs_transport *t = verbs_transport(ch->base.transport);
	uint32_t sge = ch->base.server ? 1 : t->max_sge_write, max_inline = VERBS_INLINE;
	struct ibv_qp_init_attr attr;

	for (;;) {
		attr = (struct ibv_qp_init_attr){
			.qp_context = ch,
			.send_cq = ch->cq,
			.recv_cq = ch->cq,
			.srq = ch->srq ? verbs_srq_queue(ch->srq) : NULL,
			.qp_type = IBV_QPT_RC,
			.cap = {.max_send_wr = sq_depth,
				.max_recv_wr = ch->nrecv,
				.max_send_sge = sge,
				.max_recv_sge = ch->srq ? 0 : 1,
				.max_inline_data = max_inline},
		};
		if (rdma_create_qp(ch->id, ch->pd ? ch->pd : t->pd, &attr) == 0)
			break;
		if (errno != EINVAL && errno != ENOMEM)
			return -errno;
		if (max_inline)
			max_inline = 0;
		else if (sge > 1)
			sge /= 2;
		else
			return -errno;
	}
	ch->max_inline = attr.cap.max_inline_data;
	sge = (uint32_t)min_u64(sge, attr.cap.max_send_sge);
	ch->base.limits.max_sge_write = sge;
	ch->base.limits.max_sge_read = (uint32_t)min_u64(sge, t->max_sge_read);
	ch->base.limits.max_work_bytes = t->max_work_bytes;
	return 0;
}

/* The completion queue has room for every work request that can be posted. After an error all of
 * them complete, unsignalled ones too, and a full queue would lose completions. If a peer fills it
 * with more messages than allowed, the peer loses its queue pair, and takes no more receives from
 * others.
 */
static int build_queues(struct verbs_channel *ch)
{
	struct verbs_transport *t = verbs_transport(ch->base.transport);
	const struct transport_config *config = &t->base.config;
	uint32_t sq_depth = ch->nsend + 1 + (ch->base.server ? VERBS_NBIND : config->nwork);
	int err = verbs_io_init(ch, sq_depth);

	if (err)
		return err;
	ch->cq = ibv_create_cq(t->context, (int)(sq_depth + receives_needed(ch)), ch,
		verbs_evq(ch->base.q)->comp, 0);
	if (!ch->cq)
		return errno ? -errno : -ENOMEM;
	err = create_qp(ch, sq_depth);
	if (err)
		return err;
	for (uint32_t slot = 0; slot < ch->nrecv; slot++) {
		err = verbs_recv_post(ch, slot);
		if (err)
			return err;
	}
	return 0;
}

int verbs_channel_build(struct verbs_channel *ch)
{
	struct verbs_transport *t = verbs_transport(ch->base.transport);
	int err = -ENOMEM;

	if (ch->base.server) {
		ch->grants = calloc(t->base.config.max_regions, sizeof(*ch->grants));
		if (!ch->grants)
			goto err_unbuild;
		if (!t->windows) {
			ch->pd = ibv_alloc_pd(t->context);
			if (!ch->pd)
				goto err_unbuild;
		}
	}
	err = build_messages(ch);
	if (err)
		goto err_unbuild;
	err = build_queues(ch);
	if (err)
		goto err_unbuild;
	return 0;

err_unbuild:
	verbs_channel_unbuild(ch);
	return err;
}

/* Afterwards the peer reaches nothing through the channel, and nothing of it lands here. Some
 * devices discard a queue pair's completions with it, so those of shared receives are taken
 * before. */
static int destroy_qp(struct verbs_channel *ch)
{
	int err = verbs_windows_free(ch);

	if (err || !ch->id || !ch->id->qp)
		return err;
	if (ch->srq)
		verbs_io_drain(ch);
	/* Not rdma_destroy_qp, which does not report failure. */
	err = ibv_destroy_qp(ch->id->qp);
	if (err) {
		log_error("%s: the queue pair cannot be destroyed: %s", ch->base.peer,
			errno_text(err));
		return -err;
	}
	ch->id->qp = NULL;
	if (ch->srq) {
		verbs_io_drain(ch);
		verbs_srq_leave(ch->srq, ch, atomic_load(&ch->last_receive) && !ch->overrun);
	}
	verbs_grants_free(ch);
	return 0;
}

void verbs_channel_unbuild(struct verbs_channel *ch)
{
	destroy_qp(ch);
	/* Either there is no queue pair, or it could not be destroyed. */
	if (ch->srq)
		verbs_srq_leave(ch->srq, ch, !ch->id->qp);
	if (ch->cq) {
		ibv_ack_cq_events(ch->cq, ch->cq_events);
		ch->cq_events = 0;
		ibv_destroy_cq(ch->cq);
		ch->cq = NULL;
	}
	if (ch->messages_mr)
		ibv_dereg_mr(ch->messages_mr);
	if (ch->pd)
		ibv_dealloc_pd(ch->pd);
	ch->messages_mr = NULL;
	ch->pd = NULL;
	verbs_io_fini(ch);
	nodump_unmap(ch->messages, ch->messages_len);
	free(ch->free_slots);
	nodump_free(ch->kept);
	free(ch->free_kept);
	free(ch->grants);
	ch->messages = NULL;
	ch->free_slots = NULL;
	ch->nfree = 0;
	ch->kept = NULL;
	ch->free_kept = NULL;
	ch->nfree_kept = 0;
	ch->grants = NULL;
}

void verbs_channel_free(struct verbs_channel *ch)
{
	sealed_out_fini(&ch->seal_out);
	sealed_in_fini(&ch->seal_in);
	verbs_evq_forget(ch);
	verbs_channel_unbuild(ch);
	if (ch->id)
		rdma_destroy_id(ch->id);
	channel_base_fini(&ch->base);
	free(ch);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The connection manager leaves the timer at 0, which means 655 ms. */
static void set_rnr_timer(struct verbs_channel *ch)
{
	struct ibv_qp_attr attr = {.min_rnr_timer = VERBS_RNR_TIMER};
	int err = ibv_modify_qp(ch->id->qp, &attr, IBV_QP_MIN_RNR_TIMER);

	if (err)
		log_debug("%s: the RNR timer stays: %s", ch->base.peer, errno_text(err));
}

void verbs_channel_opened(struct verbs_channel *ch)
{
	struct channel_limits *limits = &ch->base.limits;

	set_rnr_timer(ch);
	limits->max_works_write = ch->max_works;
	limits->max_works_read = (uint32_t)min_u64(ch->max_works, ch->read_depth_out);
	ch->phase = PHASE_OPEN;
	ch->pending |= PENDING_OPEN;
	verbs_evq_ready(ch);
	verbs_evq_hot(ch);
}

/* ---- ending ---------------------------------------------------------------------------------- */

static bool qp_in_error(const struct verbs_channel *ch)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(ch->id->qp, &attr, IBV_QP_STATE, &init) == 0 &&
	       attr.qp_state == IBV_QPS_ERR;
}

static void die(struct verbs_channel *ch)
{
	ch->phase = PHASE_DYING;
	/* This also puts our queue pair into error, on the side that the peer disconnects, too. If
	 * it fails, only freeing the windows keeps the peer out. */
	if (rdma_disconnect(ch->id) != 0 && !qp_in_error(ch))
		verbs_windows_free(ch);
	if (ch->srq) {
		ch->last_ms = now_ms() + VERBS_LAST_MS;
		verbs_evq_await(ch);
	}
	verbs_evq_hot(ch);
}

void verbs_channel_last_receive(struct verbs_channel *ch)
{
	atomic_store(&ch->last_receive, true);
}

bool verbs_channel_may_finish(const struct verbs_channel *ch)
{
	return ch->phase == PHASE_DYING &&
	       (!ch->srq || atomic_load(&ch->last_receive) || now_ms() >= ch->last_ms);
}

void verbs_channel_fail(struct verbs_channel *ch, int cause)
{
	if (ch->phase >= PHASE_DYING) {
		if (!ch->cause)
			ch->cause = cause;
		return;
	}
	ch->cause = cause;
	if (ch->phase != PHASE_OPEN) {
		verbs_channel_finish(ch);
		return;
	}
	ch->qp_failed = qp_in_error(ch);
	die(ch);
}

static int final_status(const struct verbs_channel *ch)
{
	if (ch->peer_bye || ch->own_bye)
		return 0;
	if (ch->cause)
		return ch->cause;
	/* A server's queue pair goes into error by itself only when it refuses a request. */
	return ch->base.server && ch->qp_failed ? -EACCES : -ECONNRESET;
}

void verbs_channel_finish(struct verbs_channel *ch)
{
	int err = destroy_qp(ch);

	ch->status = final_status(ch);
	if (ch->base.server && ch->status == -EACCES)
		ch->base.refused++;
	ch->phase = PHASE_DEAD;
	if (!ch->fencing)
		ch->pending |= PENDING_CLOSED;
	else
		/* If the queue pair stays, the channel is never known to be fenced. */
		ch->pending = err ? 0 : PENDING_FENCED;
	list_del(&ch->hot_node);
	list_del(&ch->dying_node);
	verbs_evq_ready(ch);
}

int verbs_channel_events(struct verbs_channel *ch, struct event *events, int max)
{
	int n = 0;

	if (n < max && (ch->pending & PENDING_INCOMING)) {
		ch->pending &= ~(unsigned)PENDING_INCOMING;
		events[n++] = (struct event){.type = EV_INCOMING, .channel = &ch->base};
	}
	if (n < max && (ch->pending & PENDING_OPEN)) {
		ch->pending &= ~(unsigned)PENDING_OPEN;
		events[n++] = (struct event){.type = EV_OPEN, .channel = &ch->base};
	}
	if (ch->pending & PENDING_CLOSED) {
		while (n < max && verbs_io_abort_next(ch, ch->status, &events[n]))
			n++;
		if (n < max) {
			ch->pending &= ~(unsigned)PENDING_CLOSED;
			events[n++] = (struct event){.type = EV_CLOSED,
				.channel = &ch->base,
				.status = ch->status,
				.hung_up = ch->base.server && ch->hung_up &&
					   ch->status == -ECONNRESET};
		}
	}
	if (n < max && (ch->pending & PENDING_FENCED)) {
		ch->pending &= ~(unsigned)PENDING_FENCED;
		events[n++] = (struct event){.type = EV_FENCED, .channel = &ch->base};
	}
	return n;
}

void verbs_disconnect(struct channel *base)
{
	struct verbs_channel *ch = verbs_channel(base);

	if (ch->phase == PHASE_CONNECTING) {
		ch->own_bye = true;
		verbs_channel_fail(ch, 0);
	} else if (ch->phase == PHASE_OPEN) {
		int err = verbs_bye_post(ch);

		if (err)
			verbs_channel_fail(ch, err);
	}
}

void verbs_delete(struct channel *base)
{
	struct verbs_channel *ch = verbs_channel(base);

	if (ch->phase == PHASE_OPEN)
		rdma_disconnect(ch->id);
	verbs_channel_free(ch);
}

/* The windows go only when the queue pair takes no more requests. Else the peer would get a refusal
 * of its access instead of a lost connection. */
int verbs_fence(struct channel *base)
{
	struct verbs_channel *ch = verbs_channel(base);
	int err;

	ch->fencing = true;
	if (ch->phase == PHASE_OPEN && ch->srq) {
		die(ch);
		return 0;
	}
	if (ch->phase == PHASE_DYING)
		return 0;
	if (ch->phase == PHASE_OPEN)
		rdma_disconnect(ch->id);
	err = destroy_qp(ch);
	if (err)
		return err;
	ch->phase = PHASE_DEAD;
	ch->pending = PENDING_FENCED;
	list_del(&ch->hot_node);
	verbs_evq_ready(ch);
	return 0;
}
