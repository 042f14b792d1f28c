/* srq.c - receives that all channels of a server's event queue share.
 *
 * A message stays in one only until the queue is polled: it is copied to where its channel keeps
 * what its caller has (io.c), and the receive is posted again at once, whatever the caller
 * does. So requests that wait for others take none, a few serve many channels, and when all are
 * taken the peers' devices try again a moment later (RNR), until we have polled. Each channel has
 * its own limit of messages that its caller may hold at once; a peer that sends more loses it.
 *
 * The number of receives grows with the number of channels, in chunks that are registered as a
 * whole and stay. Receives belong to no queue pair, so at its end the receives it has taken must be
 * accounted for:
 *
 *     queue pair into error
 *     -> the device says that it takes no more, and has completed what it had
 *        (IBV_EVENT_QP_LAST_WQE_REACHED)
 *     -> windows freed -> completions taken -> queue pair destroyed
 *
 * Soft-RoCE and others send no such event. We wait for it VERBS_LAST_MS only. Receives that such a
 * queue pair may have taken are found again by the others' completions (receives.h); until then one
 * more takes their place. If no room is left for a channel, since too many receives are in doubt or
 * the device has no more, the channel gets receives of its own. When the last channel goes and a
 * receive may be lost, the queue and all its registrations go, too; the next channel makes it
 * anew. */
#include "common/transport/verbs/internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "common/base/nodump.h"
#include "common/base/util.h"

enum {
	SRQ_CHUNK = 64, /* so many receives are made at a time */
	SRQ_BASE = 32,  /* there are at least so many spare ones, */
	SRQ_EACH = 4,   /* plus so many per channel, */
	SRQ_MAX = 4096, /* and at most so many in all */
};

struct verbs_srq {
	struct verbs_transport *transport;
	struct ibv_srq *srq; /* NULL: to be made when a channel joins */
	struct receives books;
	uint8_t *memory; /* for the maximum; unregistered parts are not touched */
	size_t memory_len;
	struct ibv_mr *mrs[SRQ_MAX / SRQ_CHUNK];
	bool unposted; /* the device refused to post one */
};

/* An administrator may switch this off. Without windows each channel has a protection domain of its
 * own, so it can't share.
 */
bool verbs_srq_usable(const struct verbs_transport *t)
{
	const char *env = getenv("RMEMFS_VERBS_SRQ");

	return t->windows && t->device.max_srq > 0 && t->device.max_srq_wr >= SRQ_CHUNK &&
	       t->device.max_srq_sge > 0 && !(env && strcmp(env, "off") == 0);
}

static uint8_t *slot_memory(const struct verbs_srq *s, uint32_t slot)
{
	return s->memory + (size_t)slot * verbs_slot_bytes(&s->transport->base);
}

const void *verbs_srq_message(const struct verbs_srq *s, uint32_t slot)
{
	return slot_memory(s, slot);
}

struct ibv_srq *verbs_srq_queue(const struct verbs_srq *s)
{
	return s->srq;
}

uint32_t verbs_srq_size(const struct verbs_srq *s)
{
	return s->books.n;
}

unsigned verbs_srq_doubts(const struct verbs_srq *s)
{
	return receives_doubts(&s->books);
}

static int post(struct verbs_srq *s, uint32_t slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)slot_memory(s, slot),
		.length = verbs_slot_bytes(&s->transport->base),
		.lkey = s->mrs[slot / SRQ_CHUNK]->lkey,
	};
	struct ibv_recv_wr wr = {.wr_id = VERBS_RECV_FLAG | slot, .sg_list = &sge, .num_sge = 1};
	static struct log_ratelimit limit;
	struct ibv_recv_wr *bad;
	int err = ibv_post_srq_recv(s->srq, &wr, &bad);

	if (!err)
		receives_posted(&s->books, slot);
	else
		s->unposted = true;
	if (err && log_ratelimit_ok(&limit, VERBS_LOG_MS))
		log_error("verbs: %s takes no receive: %s", s->transport->base.device,
			errno_text(err));
	return -err;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int create_queue(struct verbs_srq *s)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = s->books.max, .max_sge = 1}};

	s->srq = ibv_create_srq(s->transport->pd, &attr);
	return s->srq ? 0 : errno ? -errno : -ENOMEM;
}

int verbs_srq_new(struct verbs_transport *t, struct verbs_srq **out)
{
	uint32_t max = (uint32_t)min_u64((uint64_t)t->device.max_srq_wr, SRQ_MAX);
	struct verbs_srq *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->transport = t;
	max -= max % SRQ_CHUNK;
	s->memory_len = (size_t)max * verbs_slot_bytes(&t->base);
	s->memory = mmap(NULL, s->memory_len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->memory == MAP_FAILED) {
		err = -errno;
		goto err_free;
	}
	nodump_exclude(s->memory, s->memory_len);
	err = receives_init(&s->books, max);
	if (err)
		goto err_unmap;
	err = create_queue(s);
	if (err)
		goto err_books;
	*out = s;
	return 0;

err_books:
	receives_fini(&s->books);
err_unmap:
	munmap(s->memory, s->memory_len);
err_free:
	free(s);
	return err;
}

static int destroy_queue(struct verbs_srq *s)
{
	static struct log_ratelimit limit;
	int err = s->srq ? ibv_destroy_srq(s->srq) : 0;

	if (!err)
		s->srq = NULL;
	else if (log_ratelimit_ok(&limit, VERBS_LOG_MS))
		log_error("verbs: the shared receive queue of %s cannot be destroyed: %s",
			s->transport->base.device, errno_text(err));
	return -err;
}

static void deregister_chunks(struct verbs_srq *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->mrs) && s->mrs[i]; i++) {
		ibv_dereg_mr(s->mrs[i]);
		s->mrs[i] = NULL;
	}
}

void verbs_srq_delete(struct verbs_srq *s)
{
	if (!s)
		return;
	destroy_queue(s);
	deregister_chunks(s);
	receives_fini(&s->books);
	munmap(s->memory, s->memory_len);
	free(s);
}

static int add_chunk(struct verbs_srq *s)
{
	size_t len = (size_t)SRQ_CHUNK * verbs_slot_bytes(&s->transport->base);
	uint32_t chunk = s->books.n / SRQ_CHUNK;
	int err = 0;

	s->mrs[chunk] = verbs_mr_new(s->transport, s->transport->pd, s->memory + chunk * len, len,
		IBV_ACCESS_LOCAL_WRITE, "receives", &err);
	if (!s->mrs[chunk])
		return err;
	for (unsigned i = 0; i < SRQ_CHUNK; i++)
		post(s, receives_add(&s->books));
	return 0;
}

static int post_unposted(struct verbs_srq *s)
{
	int err = 0;

	s->unposted = false;
	for (uint32_t slot = 0; slot < s->books.n && !err; slot++)
		if (!s->books.posted[slot])
			err = post(s, slot);
	return err;
}

/* ---- the channels' --------------------------------------------------------------------------- */

int verbs_srq_join(struct verbs_srq *s, struct verbs_channel *ch)
{
	struct receives *books = &s->books;
	uint64_t want =
		SRQ_BASE + (uint64_t)SRQ_EACH * (books->nusers + 1) + receives_doubts(books);
	int err = 0;

	if (!receives_fits(books, SRQ_BASE))
		return -EAGAIN;
	if (!s->srq)
		err = create_queue(s);
	while (!err && books->n < min_u64(want, books->max))
		err = add_chunk(s);
	if (!err && s->unposted)
		err = post_unposted(s);
	if (err)
		return err;
	receives_join(books, &ch->receives);
	ch->srq = s;
	return 0;
}

/* If a queue pair could not be destroyed, the queue can't be either: then all stays as it is. */
static void begin_anew(struct verbs_srq *s)
{
	if (destroy_queue(s))
		return;
	deregister_chunks(s);
	receives_clear(&s->books);
	s->unposted = false;
	madvise(s->memory, s->memory_len, MADV_DONTNEED);
}

void verbs_srq_leave(struct verbs_srq *s, struct verbs_channel *ch, bool sure)
{
	receives_leave(&s->books, &ch->receives, sure);
	ch->srq = NULL;
	if (receives_abandoned(&s->books))
		begin_anew(s);
}

void verbs_srq_emptied(struct verbs_srq *s, struct verbs_channel *ch)
{
	receives_emptied(&s->books, &ch->receives);
	ch->burst = 0;
}

static void post_lost(struct verbs_srq *s)
{
	uint32_t slot = receives_lost(&s->books, 0), n = 0;

	for (; slot < s->books.n; slot = receives_lost(&s->books, slot + 1)) {
		post(s, slot);
		n++;
	}
	if (n)
		log_debug("verbs: %u receives had gone with channels that ended", n);
	receives_next_round(&s->books);
}

void verbs_srq_completed(struct verbs_srq *s, struct verbs_channel *ch, uint32_t slot)
{
	bool round_over = receives_completed(&s->books, &ch->receives, slot);

	/* The channel has taken as many as the peer may have in flight, and perhaps more than its
	 * completion queue has places.
	 */
	if (++ch->burst > s->transport->base.config.nrecv)
		ch->overrun = true;
	post(s, slot);
	if (round_over)
		post_lost(s);
}
