/* io.c - posting work requests and taking their completions.
 *
 * Every posted send work request gets the channel's next number, which is its wr_id; an entry in a
 * ring describes it. Work requests of one queue pair complete in order, so a completion speaks for
 * all before it, and only some need to be signalled. These are the last of each batch, which shows
 * the batch's end, and at least one in each quarter of the smallest kind's number, so that places
 * become free in time.
 *
 * Receives carry their slot, with VERBS_RECV_FLAG, as wr_id. A message in a shared receive is
 * copied, and the caller gets the copy. Nothing here allocates after verbs_io_init.
 */
#include "common/transport/verbs/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "common/base/util.h"

enum { POLL_CHUNK = 16, LATE_ACKS = 4 };

static uint32_t round_up_pow2(uint32_t n)
{
	return n <= 1 ? 1 : UINT32_C(1) << (32 - __builtin_clz(n - 1));
}

uint32_t verbs_signal_every(const struct transport_config *config)
{
	return (uint32_t)max_u64(min_u64(config->nsend, VERBS_NBIND) / 4, 1);
}

/* Slots for unsignalled messages, and for those whose acknowledgement comes after the peer's
 * answer. */
uint32_t verbs_send_slack(const struct transport_config *config)
{
	return verbs_signal_every(config) + LATE_ACKS;
}

int verbs_io_init(struct verbs_channel *ch, uint32_t sq_depth)
{
	const struct verbs_transport *t = verbs_transport(ch->base.transport);
	uint32_t nwork = ch->base.server ? 0 : t->base.config.nwork;
	uint32_t entries = round_up_pow2(sq_depth);

	ch->sq = calloc(entries, sizeof(*ch->sq));
	if (!ch->sq)
		return -ENOMEM;
	ch->sq_mask = entries - 1;
	ch->signal_every = verbs_signal_every(&t->base.config);
	if (!nwork)
		return 0;
	ch->wrs = calloc(nwork, sizeof(*ch->wrs));
	ch->sges = calloc((size_t)nwork * t->max_sge_write, sizeof(*ch->sges));
	return ch->wrs && ch->sges ? 0 : -ENOMEM;
}

void verbs_io_fini(struct verbs_channel *ch)
{
	free(ch->sq);
	free(ch->wrs);
	free(ch->sges);
	ch->sq = NULL;
	ch->wrs = NULL;
	ch->sges = NULL;
}

/* ---- the send queue's records ---------------------------------------------------------------- */

/* Takes the next number for a work request and decides whether it is signalled. */
static uint64_t sq_push(struct verbs_channel *ch, enum verbs_sq_kind kind, uint32_t value,
	bool signal, unsigned *flags)
{
	uint64_t seq = ch->sq_posted++;

	ch->sq[seq & ch->sq_mask] = (struct verbs_sq_entry){.kind = (uint8_t)kind, .value = value};
	if (++ch->unsignalled >= ch->signal_every)
		signal = true;
	if (signal)
		ch->unsignalled = 0;
	*flags = signal ? IBV_SEND_SIGNALED : 0;
	ch->nworks += kind == SQ_READ || kind == SQ_WRITE;
	ch->nreads += kind == SQ_READ;
	ch->nbinds += kind == SQ_BIND;
	return seq;
}

static struct verbs_sq_entry *sq_last(struct verbs_channel *ch)
{
	return &ch->sq[(ch->sq_posted - 1) & ch->sq_mask];
}

/* The oldest work request has ended, well or not. */
static const struct verbs_sq_entry *sq_pop(struct verbs_channel *ch)
{
	const struct verbs_sq_entry *entry = &ch->sq[ch->sq_completed++ & ch->sq_mask];

	ch->nworks -= entry->kind == SQ_READ || entry->kind == SQ_WRITE;
	ch->nreads -= entry->kind == SQ_READ;
	ch->nbinds -= entry->kind == SQ_BIND;
	if (entry->kind == SQ_MESSAGE)
		ch->free_slots[ch->nfree++] = entry->value;
	return entry;
}

static void sq_count(struct verbs_channel *ch, const struct verbs_sq_entry *entry)
{
	struct channel_counters *counters = &ch->base.counters;

	if (entry->kind == SQ_READ) {
		counters->reads++;
		counters->read_bytes += entry->value;
	} else if (entry->kind == SQ_WRITE) {
		counters->writes++;
		counters->write_bytes += entry->value;
	}
}

bool verbs_io_abort_next(struct verbs_channel *ch, int status, struct event *event)
{
	while (ch->sq_completed != ch->sq_posted) {
		const struct verbs_sq_entry *entry = sq_pop(ch);

		if (!entry->last)
			continue;
		*event = (struct event){.type = EV_DONE,
			.channel = &ch->base,
			.cookie = entry->cookie,
			.status = status ? status : -ECONNRESET};
		return true;
	}
	return false;
}

/* ---- posting --------------------------------------------------------------------------------- */

static uint8_t *slot_memory(const struct verbs_channel *ch, uint32_t slot)
{
	return ch->messages + (size_t)slot * verbs_slot_bytes(ch->base.transport);
}

static uint32_t slot_of(const struct verbs_channel *ch, const void *data)
{
	size_t off = (size_t)((const uint8_t *)data - ch->messages);

	return (uint32_t)(off / verbs_slot_bytes(ch->base.transport));
}

static uint8_t *kept_memory(const struct verbs_channel *ch, uint32_t place)
{
	return ch->kept + (size_t)place * verbs_slot_bytes(ch->base.transport);
}

static uint32_t kept_of(const struct verbs_channel *ch, const void *data)
{
	size_t off = (size_t)((const uint8_t *)data - ch->kept);

	return (uint32_t)(off / verbs_slot_bytes(ch->base.transport));
}

int verbs_recv_post(struct verbs_channel *ch, uint32_t slot)
{
	if (rdma_post_recv(ch->id, (void *)(uintptr_t)(VERBS_RECV_FLAG | slot),
		    slot_memory(ch, slot), verbs_slot_bytes(ch->base.transport), ch->messages_mr))
		return -errno;
	return 0;
}

void verbs_recv_done(struct channel *base, const void *data)
{
	struct verbs_channel *ch = verbs_channel(base);
	int err;

	if (ch->kept) {
		ch->free_kept[ch->nfree_kept++] = kept_of(ch, data);
		return;
	}
	if (!verbs_channel_up(ch))
		return;
	err = verbs_recv_post(ch, slot_of(ch, data));
	if (err)
		verbs_channel_fail(ch, err);
}

/* Posts one work request whose number was just taken. The ring has room for all that can be in
 * flight, so a refusal means that the queue pair can't be used any more. */
static int post_one(struct verbs_channel *ch, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err;

	if (wr->opcode == IBV_WR_SEND)
		err = rdma_post_sendv(ch->id, (void *)(uintptr_t)wr->wr_id, wr->sg_list,
			      wr->num_sge, (int)wr->send_flags)
			      ? errno
			      : 0;
	else
		err = ibv_post_send(ch->id->qp, wr, &bad);
	if (err) {
		ch->sq_posted--;
		verbs_channel_fail(ch, -err);
	}
	return -err;
}

int verbs_bye_post(struct verbs_channel *ch)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htobe32(VERBS_BYE)};

	wr.wr_id = sq_push(ch, SQ_BYE, 0, true, &wr.send_flags);
	return post_one(ch, &wr);
}

int verbs_bind_post(struct verbs_channel *ch, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr,
	uint64_t len, unsigned access)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info =
				{.mr = mr, .addr = addr, .length = len, .mw_access_flags = access}},
	};
	int err;

	if (ch->nbinds == VERBS_NBIND)
		return -EAGAIN;
	wr.wr_id = sq_push(ch, SQ_BIND, 0, false, &wr.send_flags);
	err = post_one(ch, &wr);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	else
		ch->nbinds--;
	return err;
}

/* ---- messages -------------------------------------------------------------------------------- */

void *verbs_send_buffer(struct channel *base)
{
	struct verbs_channel *ch = verbs_channel(base);

	if (!ch->nfree || ch->nlent == base->transport->config.nsend)
		return NULL;
	ch->nlent++;
	return slot_memory(ch, ch->free_slots[--ch->nfree]);
}

void verbs_send_cancel(struct channel *base, void *buf)
{
	struct verbs_channel *ch = verbs_channel(base);

	ch->nlent--;
	ch->free_slots[ch->nfree++] = slot_of(ch, buf);
}

/* The buffer has room for what is added. */
static int seal_message(struct verbs_channel *ch, void *buf, uint32_t *len, const uint32_t *imm)
{
	int err;

	if (!ch->seals_out)
		return 0;
	err = sealed_seal(&ch->seal_out, buf, *len, imm);
	if (!err)
		*len += SEALED_OVERHEAD;
	return err;
}

int verbs_protect(struct channel *base, unsigned directions, const struct channel_keys *keys)
{
	struct verbs_channel *ch = verbs_channel(base);
	int err = 0;

	if (directions & PROTECT_OUT) {
		err = sealed_out_init(&ch->seal_out, base->server ? &keys->server : &keys->client);
		ch->seals_out = !err;
	}
	if (!err && directions & PROTECT_IN) {
		err = sealed_in_init(&ch->seal_in, base->server ? &keys->client : &keys->server);
		ch->seals_in = !err;
	}
	return err;
}

bool verbs_worn(const struct channel *base)
{
	const struct verbs_channel *ch = container_of(base, struct verbs_channel, base);

	return (ch->seals_out && sealed_out_worn(&ch->seal_out)) ||
	       (ch->seals_in && sealed_in_worn(&ch->seal_in));
}

int verbs_send(struct channel *base, void *buf, uint32_t len, unsigned flags, uint32_t imm)
{
	struct verbs_channel *ch = verbs_channel(base);
	struct ibv_sge sge = {.addr = (uintptr_t)buf, .lkey = ch->messages_mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
		.opcode = flags & SEND_IMM ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.imm_data = htobe32(imm)};
	int err;

	if (!verbs_channel_up(ch)) {
		verbs_send_cancel(base, buf);
		return -ENOTCONN;
	}
	err = seal_message(ch, buf, &len, flags & SEND_IMM ? &imm : NULL);
	if (err) {
		verbs_channel_fail(ch, err);
		verbs_send_cancel(base, buf);
		return err;
	}
	sge.length = len;
	/* To some devices a length of 0 in an SGE means 2 GiB: then use no SGE. */
	wr.num_sge = len ? 1 : 0;
	wr.wr_id = sq_push(ch, SQ_MESSAGE, slot_of(ch, buf), false, &wr.send_flags);
	if (len <= ch->max_inline)
		wr.send_flags |= IBV_SEND_INLINE;
	err = post_one(ch, &wr);
	if (err)
		verbs_send_cancel(base, buf);
	else
		ch->nlent--;
	return err;
}

/* ---- batches --------------------------------------------------------------------------------- */

static uint32_t lkey_of(const struct verbs_channel *ch, const struct sge *sge)
{
	const struct buffer *b = buffer_at(sge->buffer, ch->base.transport);

	return container_of(b, struct verbs_buffer, base)->mr->lkey;
}

static uint32_t fill_sges(
	const struct verbs_channel *ch, struct ibv_sge *out, const struct work *work)
{
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < work->nsge; i++) {
		const struct sge *sge = &work->sge[i];

		out[i] = (struct ibv_sge){
			.addr = (uintptr_t)sge->addr,
			.length = sge->len,
			.lkey = lkey_of(ch, sge),
		};
		bytes += sge->len;
	}
	return bytes;
}

/* Posts a batch of one work by librdmacm's calls. */
static int post_single(struct verbs_channel *ch, enum io_dir dir, const struct work *work)
{
	const struct region_key *key = &ch->base.keys[work->region];
	uint64_t remote = key->addr + work->offset;
	uint32_t bytes = fill_sges(ch, ch->sges, work);
	unsigned flags;
	uint64_t seq = sq_push(ch, dir == IO_READ ? SQ_READ : SQ_WRITE, bytes, true, &flags);
	void *context = (void *)(uintptr_t)seq;
	int err;

	ch->base.counters.doorbells++;
	if (dir == IO_READ)
		err = rdma_post_readv(
			ch->id, context, ch->sges, (int)work->nsge, (int)flags, remote, key->rkey);
	else
		err = rdma_post_writev(
			ch->id, context, ch->sges, (int)work->nsge, (int)flags, remote, key->rkey);
	return err ? errno : 0;
}

/* Links all works and rings the doorbell once. *nposted: how many were posted; all of them unless
 * it fails. */
static int post_chain(struct verbs_channel *ch, enum io_dir dir, const struct work *works,
	uint32_t nworks, uint32_t *nposted)
{
	struct ibv_sge *sges = ch->sges;
	struct ibv_send_wr *bad = NULL;
	int err;

	for (uint32_t i = 0; i < nworks; i++) {
		const struct region_key *key = &ch->base.keys[works[i].region];
		struct ibv_send_wr *wr = &ch->wrs[i];
		uint32_t bytes = fill_sges(ch, sges, &works[i]);
		bool last = i == nworks - 1;

		wr->next = last ? NULL : wr + 1;
		wr->sg_list = sges;
		wr->num_sge = (int)works[i].nsge;
		wr->opcode = dir == IO_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
		wr->wr.rdma.remote_addr = key->addr + works[i].offset;
		wr->wr.rdma.rkey = key->rkey;
		wr->wr_id = sq_push(
			ch, dir == IO_READ ? SQ_READ : SQ_WRITE, bytes, last, &wr->send_flags);
		sges += works[i].nsge;
	}
	ch->base.counters.doorbells++;
	err = ibv_post_send(ch->id->qp, ch->wrs, &bad);
	*nposted = err && bad ? (uint32_t)(bad - ch->wrs) : nworks;
	return err;
}

/* Takes back the numbers of works that did not go out. */
static void sq_unpush(struct verbs_channel *ch, enum io_dir dir, uint32_t n)
{
	ch->sq_posted -= n;
	ch->nworks -= n;
	ch->nreads -= dir == IO_READ ? n : 0;
}

static bool batch_fits(const struct verbs_channel *ch, enum io_dir dir, uint32_t nworks)
{
	return ch->nworks + nworks <= ch->max_works &&
	       (dir == IO_WRITE || ch->nreads + nworks <= ch->base.limits.max_works_read);
}

int verbs_post(struct channel *base, enum io_dir dir, const struct work *works, uint32_t nworks,
	void *cookie)
{
	struct verbs_channel *ch = verbs_channel(base);
	uint32_t nposted = 1;
	int err;

	if (!verbs_channel_up(ch))
		return -ENOTCONN;
	if (!batch_fits(ch, dir, nworks))
		return -EAGAIN;
	if (nworks == 1) {
		err = post_single(ch, dir, works);
		nposted = !err;
	} else {
		err = post_chain(ch, dir, works, nworks, &nposted);
	}
	if (err) {
		sq_unpush(ch, dir, nworks - nposted);
		verbs_channel_fail(ch, -err);
		if (!nposted)
			return -ENOTCONN;
	}
	/* The posted part of a batch that failed half way ends with the channel, as one batch. */
	sq_last(ch)->last = true;
	sq_last(ch)->cookie = cookie;
	return 0;
}

/* ---- completions ----------------------------------------------------------------------------- */

static int wc_errno(const struct ibv_wc *wc)
{
	switch (wc->status) {
	case IBV_WC_REM_ACCESS_ERR:
		return -EACCES;
	case IBV_WC_LOC_LEN_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_BAD_RESP_ERR:
		return -EPROTO;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_REM_ABORT_ERR:
	case IBV_WC_REM_OP_ERR:
		return -ECONNRESET;
	default:
		return -EIO;
	}
}

/* In a failed completion only the number and the status are valid. A flushed work request shows
 * only that there was a cause elsewhere. */
static void verbs_io_failed(struct verbs_channel *ch, const struct ibv_wc *wc)
{
	static struct log_ratelimit limit = {.burst = VERBS_LOG_BURST};
	bool flushed = wc->status == IBV_WC_WR_FLUSH_ERR;

	if (!flushed && !ch->cause && ch->phase <= PHASE_DYING &&
		log_ratelimit_ok(&limit, VERBS_LOG_MS))
		log_info("%s: %s (vendor's code %#x)", ch->base.peer, ibv_wc_status_str(wc->status),
			wc->vendor_err);
	verbs_channel_fail(ch, flushed ? 0 : wc_errno(wc));
}

/* Returns the number of events, 0 or 1. */
static int sent(struct verbs_channel *ch, const struct ibv_wc *wc, struct event *event)
{
	int n = 0;

	while (ch->sq_completed <= wc->wr_id) {
		const struct verbs_sq_entry *entry = sq_pop(ch);

		sq_count(ch, entry);
		if (entry->kind == SQ_BYE) {
			ch->own_bye = true;
			verbs_channel_fail(ch, 0);
		}
		if (!entry->last)
			continue;
		assert(n == 0);
		event[n++] = (struct event){
			.type = EV_DONE, .channel = &ch->base, .cookie = entry->cookie};
	}
	return n;
}

/* Copies a message to where the caller finds it. NULL: the caller has as many as the peer may have
 * in flight. */
static const void *keep_message(struct verbs_channel *ch, uint32_t slot, uint32_t len)
{
	uint8_t *place;

	if (!ch->srq)
		return slot_memory(ch, slot);
	if (!ch->nfree_kept)
		return NULL;
	place = kept_memory(ch, ch->free_kept[--ch->nfree_kept]);
	memcpy(place, verbs_srq_message(ch->srq, slot), len);
	return place;
}

static void refuse_message(struct verbs_channel *ch, const char *what)
{
	static struct log_ratelimit limit = {.burst = VERBS_LOG_BURST};

	if (log_ratelimit_ok(&limit, VERBS_LOG_MS))
		log_warning("%s sent %s", ch->base.peer, what);
	verbs_channel_fail(ch, -EPROTO);
}

/* Opens the event's message in place. False: the peer did not send it, or it came before; the
 * message is given back. */
static bool open_message(struct verbs_channel *ch, struct event *event)
{
	uint32_t len;
	int err;

	if (!ch->seals_in)
		return true;
	err = sealed_open(&ch->seal_in, (void *)event->data, event->len,
		event->has_imm ? &event->imm : NULL, &len);
	if (!err) {
		event->len = len;
		return true;
	}
	verbs_recv_done(&ch->base, event->data);
	if (err != -EALREADY)
		verbs_channel_fail(ch, err);
	return false;
}

/* Returns the number of events, 0 or 1. */
static int received(
	struct verbs_channel *ch, const struct ibv_wc *wc, uint32_t slot, struct event *event)
{
	uint32_t max = ch->base.limits.msg_bytes + (ch->seals_in ? SEALED_OVERHEAD : 0);
	const void *data;

	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc->byte_len == 0 &&
		be32toh(wc->imm_data) == VERBS_BYE) {
		if (ch->srq && ch->peer_bye)
			refuse_message(ch, "more than one end");
		ch->peer_bye = true;
		return 0;
	}
	if (wc->opcode != IBV_WC_RECV || wc->byte_len > max) {
		refuse_message(ch, "what is no message");
		return 0;
	}
	data = keep_message(ch, slot, wc->byte_len);
	if (!data) {
		refuse_message(ch, "more messages than it may have on the way");
		return 0;
	}
	*event = (struct event){
		.type = EV_RECV,
		.channel = &ch->base,
		.data = data,
		.len = wc->byte_len,
		.has_imm = wc->wc_flags & IBV_WC_WITH_IMM,
		.imm = wc->wc_flags & IBV_WC_WITH_IMM ? be32toh(wc->imm_data) : 0,
	};
	return open_message(ch, event);
}

/* A shared receive is posted again however it has ended. A channel that is being fenced gives no
 * more messages. */
static int receive_done(struct verbs_channel *ch, const struct ibv_wc *wc, struct event *event)
{
	uint32_t slot = (uint32_t)(wc->wr_id & ~VERBS_RECV_FLAG);
	int n = 0;

	if (wc->status != IBV_WC_SUCCESS)
		verbs_io_failed(ch, wc);
	else if (!ch->fencing)
		n = received(ch, wc, slot, event);
	if (ch->srq)
		verbs_srq_completed(ch->srq, ch, slot);
	return n;
}

static int completed(struct verbs_channel *ch, const struct ibv_wc *wc, struct event *event)
{
	if (wc->wr_id & VERBS_RECV_FLAG)
		return receive_done(ch, wc, event);
	if (wc->status == IBV_WC_SUCCESS)
		return sent(ch, wc, event);
	verbs_io_failed(ch, wc);
	return 0;
}

int verbs_io_poll(struct verbs_channel *ch, struct event *events, int max)
{
	struct ibv_wc wc[POLL_CHUNK];
	bool may_finish = verbs_channel_may_finish(ch);
	int n = 0, want, got;

	do {
		want = (int)min_u64((uint64_t)(max - n), POLL_CHUNK);
		got = want ? ibv_poll_cq(ch->cq, want, wc) : 0;
		if (got < 0) {
			verbs_channel_fail(ch, -EIO);
			got = 0;
		}
		for (int i = 0; i < got; i++)
			n += completed(ch, &wc[i], &events[n]);
	} while (got && n < max);
	if (got || !want)
		return n;
	if (ch->srq)
		verbs_srq_emptied(ch->srq, ch);
	if (may_finish)
		verbs_channel_finish(ch);
	return n;
}

void verbs_io_drain(struct verbs_channel *ch)
{
	struct ibv_wc wc[POLL_CHUNK];
	int got;

	while ((got = ibv_poll_cq(ch->cq, POLL_CHUNK, wc)) > 0)
		for (int i = 0; i < got; i++)
			if (wc[i].wr_id & VERBS_RECV_FLAG)
				verbs_srq_completed(
					ch->srq, ch, (uint32_t)(wc[i].wr_id & ~VERBS_RECV_FLAG));
}
