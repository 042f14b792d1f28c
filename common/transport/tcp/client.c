/* client.c - a client's tcp channel. The queue's thread does all of it, in channel_post and
 * evq_poll. channel_post tries to send at once. A READ's bytes are read straight into its SGEs, or
 * moved to the channel's pipe. Answers come one after the other, so there is one pipe, and an
 * answer that is whole there is the last event of its poll. */
#include "common/transport/tcp/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "common/base/util.h"

/* For fewer bytes a copy is cheaper than the system calls that save it. */
enum { PIPED_BYTES_MIN = 64 << 10 };

/* ---- out ------------------------------------------------------------------------------------- */

/* The peer hung up or is failing. Its earlier bytes tell which. */
static void output_died(struct tcp_client *ch)
{
	ch->out_dead = true;
	while (!list_empty(&ch->out.pieces))
		list_pop(&ch->out.pieces);
	tcp_out_init(&ch->out);
	sock_source_pend(&ch->sock.source);
}

static void pieces_done(struct tcp_client *ch, struct list *done)
{
	while (!list_empty(done)) {
		struct sock_piece *piece = list_entry(list_pop(done), struct sock_piece, node);

		if (piece->is_message)
			sock_pool_put(&ch->sock.send, container_of(piece, struct sock_msg, piece));
		else if (piece == &ch->bye)
			shutdown(ch->sock.fd, SHUT_WR);
	}
}

static bool send_some(struct tcp_client *ch)
{
	struct iovec iov[TCP_IOV_MAX];
	int niov = tcp_out_gather(&ch->out, iov, TCP_IOV_MAX);
	struct list done;
	ssize_t sent;

	if (!niov)
		return false;
	sent = tcp_seal_send(&ch->seal_out, ch->sock.fd, iov, niov);
	if (sent == -EAGAIN) {
		ch->sock.blocked = true;
		return false;
	}
	if (sent < 0) {
		output_died(ch);
		return false;
	}
	ch->sock.base.counters.doorbells++;
	list_init(&done);
	tcp_out_advance(&ch->out, (size_t)sent, &done);
	pieces_done(ch, &done);
	return true;
}

static void tcp_client_flush(struct tcp_client *ch)
{
	bool was_blocked = ch->sock.blocked;

	ch->sock.blocked = false;
	while (send_some(ch))
		continue;
	if (ch->sock.blocked != was_blocked)
		sock_channel_watch(&ch->sock);
}

static void queue_piece(struct tcp_client *ch, struct sock_piece *piece)
{
	if (ch->out_dead)
		return;
	list_add_tail(&ch->out.pieces, &piece->node);
	if (!ch->sock.blocked)
		tcp_client_flush(ch);
}

int tcp_client_send(struct tcp_client *ch, struct sock_msg *msg)
{
	if (ch->sock.phase != SOCK_OPEN) {
		sock_pool_put(&ch->sock.send, msg);
		return -ENOTCONN;
	}
	queue_piece(ch, &msg->piece);
	return 0;
}

/* ---- posting --------------------------------------------------------------------------------- */

static size_t batch_bytes(const struct work *works, uint32_t nworks, uint32_t *nsge)
{
	*nsge = 0;
	for (uint32_t i = 0; i < nworks; i++)
		*nsge += works[i].nsge;
	return sizeof(struct tcp_batch) + (1 + (size_t)*nsge) * sizeof(struct iovec) + FRAME_BYTES +
	       (size_t)(nworks - 1) * FRAME_RANGE_BYTES;
}

static struct sock_range range_of(const struct tcp_client *ch, const struct work *work)
{
	const struct region_key *key = &ch->sock.base.keys[work->region];

	return (struct sock_range){
		.addr = key->addr + work->offset,
		.len = (uint32_t)work_bytes(work),
		.rkey = key->rkey,
	};
}

/* Encodes the request's frame and its ranges. Returns the ranges' bytes together. */
static size_t encode_request(const struct tcp_client *ch, enum io_dir dir, const struct work *works,
	uint32_t nworks, uint8_t *out)
{
	struct sock_range range = range_of(ch, &works[0]);
	struct sock_frame frame = {
		.type = dir == IO_READ ? FRAME_READ : FRAME_WRITE,
		.count = nworks,
		.rkey = range.rkey,
		.addr = range.addr,
		.len = range.len,
	};

	sock_frame_encode(&frame, out);
	out += FRAME_BYTES;
	for (uint32_t i = 1; i < nworks; i++) {
		range = range_of(ch, &works[i]);
		sock_range_encode(&range, out);
		out += FRAME_RANGE_BYTES;
	}
	return FRAME_BYTES + (size_t)(nworks - 1) * FRAME_RANGE_BYTES;
}

static struct tcp_batch *batch_new(
	struct tcp_client *ch, enum io_dir dir, const struct work *works, uint32_t nworks)
{
	uint32_t nsge;
	size_t bytes = batch_bytes(works, nworks, &nsge);
	struct tcp_batch *batch = sock_arena_alloc(&ch->arena, bytes);
	struct iovec *iov;
	uint8_t *request;

	if (!batch)
		return NULL;
	iov = (struct iovec *)(batch + 1);
	request = (uint8_t *)(iov + 1 + nsge);
	*batch = (struct tcp_batch){
		.iov = iov, .niov = 1 + nsge, .nworks = nworks, .arena_bytes = bytes, .dir = dir};
	*iov++ = (struct iovec){
		.iov_base = request,
		.iov_len = encode_request(ch, dir, works, nworks, request),
	};
	for (uint32_t i = 0; i < nworks; i++) {
		for (uint32_t j = 0; j < works[i].nsge; j++) {
			const struct sge *sge = &works[i].sge[j];

			*iov++ = (struct iovec){.iov_base = sge->addr, .iov_len = sge->len};
			batch->bytes += sge->len;
		}
	}
	list_init(&batch->piece.node);
	batch->piece.iov = batch->iov;
	batch->piece.niov = dir == IO_WRITE ? batch->niov : 1;
	return batch;
}

static int post(struct tcp_client *ch, enum io_dir dir, const struct work *works, uint32_t nworks,
	const void *head, uint32_t headlen, void *cookie)
{
	struct tcp_batch *batch;

	if (ch->sock.phase != SOCK_OPEN)
		return -ENOTCONN;
	if (nworks > ch->sock.base.limits.max_works_read - ch->nworks)
		return -EAGAIN;
	batch = batch_new(ch, dir, works, nworks);
	if (!batch)
		return -EAGAIN;
	batch->cookie = cookie;
	batch->head = batch->bytes >= PIPED_BYTES_MIN ? head : NULL;
	batch->headlen = headlen;
	list_add_tail(&ch->batches, &batch->node);
	ch->nworks += nworks;
	queue_piece(ch, &batch->piece);
	return 0;
}

int tcp_post(struct channel *base, enum io_dir dir, const struct work *works, uint32_t nworks,
	void *cookie)
{
	return post(tcp_client_of(base), dir, works, nworks, NULL, 0, cookie);
}

int tcp_post_piped(struct channel *base, const struct work *works, uint32_t nworks,
	const void *head, uint32_t headlen, void *cookie)
{
	return post(tcp_client_of(base), IO_READ, works, nworks, head, headlen, cookie);
}

/* ---- in -------------------------------------------------------------------------------------- */

static void count_done(struct tcp_client *ch, const struct tcp_batch *batch)
{
	struct channel_counters *counters = &ch->sock.base.counters;

	if (batch->dir == IO_READ) {
		counters->reads += batch->nworks;
		counters->read_bytes += batch->bytes;
	} else {
		counters->writes += batch->nworks;
		counters->write_bytes += batch->bytes;
	}
}

static struct event end_batch(struct tcp_client *ch, int status)
{
	struct tcp_batch *batch = list_entry(list_pop(&ch->batches), struct tcp_batch, node);
	struct event event = sock_event(&ch->sock, EV_DONE, status);

	if (!status)
		count_done(ch, batch);
	event.cookie = batch->cookie;
	event.piped = !status && batch->piped;
	ch->nworks -= batch->nworks;
	sock_arena_free(&ch->arena, batch, batch->arena_bytes);
	return event;
}

/* Ends the connection; from here on nothing writes to a READ's memory. */
static void tcp_client_fail(struct tcp_client *ch, int status)
{
	shutdown(ch->sock.fd, SHUT_RDWR);
	ch->sock.blocked = false;
	sock_channel_fail(&ch->sock, status);
}

static int take_done(struct tcp_client *ch, const struct sock_frame *frame)
{
	struct tcp_batch *batch;
	bool read;

	if (list_empty(&ch->batches))
		return -EPROTO;
	batch = list_entry(ch->batches.next, struct tcp_batch, node);
	if (frame->arg) {
		batch->status = sock_peer_status((int32_t)frame->arg);
		return batch->status;
	}
	read = batch->dir == IO_READ;
	/* An answer before its request was sent is refused: the request's memory is still in our
	 * send queue. */
	if (frame->len != (read ? batch->bytes : 0) || !list_empty(&batch->piece.node))
		return -EPROTO;
	ch->arriving = batch;
	batch->piped = batch->head && ch->seal_in.kind != TCP_SEAL_USER &&
		       tcp_pipe_begin(&ch->pipe, batch->head, batch->headlen, batch->bytes);
	tcp_in_payload(&ch->in, batch->iov + 1, read && !batch->piped ? batch->niov - 1 : 0, false);
	return 0;
}

static int take_message(struct tcp_client *ch, const struct sock_frame *frame)
{
	struct sock_msg *msg;

	if (frame->len > sock_channel_msg_bytes(&ch->sock))
		return -EPROTO;
	msg = sock_pool_get(&ch->sock.recv);
	if (!msg) {
		ch->sock.stalled = true;
		sock_channel_watch(&ch->sock);
		return 0;
	}
	msg->frame = *frame;
	msg->iov[0] = (struct iovec){.iov_base = msg->data, .iov_len = frame->len};
	ch->message = msg;
	tcp_in_payload(&ch->in, msg->iov, frame->len ? 1 : 0, false);
	return 0;
}

static void take_header(struct tcp_client *ch)
{
	struct sock_frame frame;
	int err = sock_frame_decode(ch->in.header, &frame);

	if (!err && frame.type == FRAME_BYE) {
		tcp_client_fail(ch, sock_peer_status((int32_t)frame.arg));
		return;
	}
	if (!err && frame.type == FRAME_MESSAGE)
		err = take_message(ch, &frame);
	else if (!err && frame.type == FRAME_DONE)
		err = take_done(ch, &frame);
	else
		err = -EPROTO;
	if (err)
		tcp_client_fail(ch, err);
}

/* From here on the whole answer goes to memory. */
static int spill(struct tcp_client *ch)
{
	struct tcp_batch *batch = ch->arriving;

	batch->piped = false;
	tcp_in_payload(&ch->in, batch->iov + 1, batch->niov - 1, false);
	return tcp_pipe_spill(&ch->pipe, &ch->in);
}

/* Reads once, into the place where the bytes belong. Returns as tcp_in_fill(). */
static ssize_t tcp_client_fill(struct tcp_client *ch)
{
	ssize_t got;

	if (!ch->pipe.left)
		return tcp_in_fill(&ch->in, &ch->seal_in, ch->sock.fd);
	if (ch->in.drained)
		return 0;
	got = tcp_pipe_fill(&ch->pipe, ch->sock.fd);
	if (got > 0)
		tcp_seal_in_spliced(&ch->seal_in, (size_t)got);
	/* The kernel's TLS gives one record at a time. */
	ch->in.drained = got > 0 && ch->pipe.left && ch->seal_in.kind == TCP_SEAL_NONE;
	return got;
}

static bool payload_done(const struct tcp_client *ch)
{
	return tcp_in_payload_done(&ch->in) && !ch->pipe.left;
}

static int take_opened(struct tcp_client *ch, struct sock_msg *msg, struct event *event)
{
	int err;

	*event = sock_event_message(&ch->sock, msg);
	err = tcp_messages_open(&ch->messages, event, ch->sock.base.limits.msg_bytes);
	if (!err)
		return 1;
	sock_pool_put(&ch->sock.recv, msg);
	tcp_client_fail(ch, err);
	return 0;
}

/* Makes an event of what has arrived whole. */
static int take_arrived(struct tcp_client *ch, struct event *event)
{
	if (ch->arriving) {
		ch->arriving = NULL;
		*event = end_batch(ch, 0);
		return 1;
	}
	if (ch->message)
		return take_opened(ch, steal_ptr(&ch->message), event);
	return 0;
}

static int read_answers(struct tcp_client *ch, struct event *events, int max)
{
	int n = 0;

	ch->in.drained = false;
	while (n < max && ch->sock.phase == SOCK_OPEN && !ch->sock.stalled) {
		ssize_t got;

		if (payload_done(ch) && take_arrived(ch, &events[n])) {
			/* The caller must empty the pipe before we go on. */
			if (events[n++].piped) {
				sock_source_pend(&ch->sock.source);
				break;
			}
			continue;
		}
		if (payload_done(ch) && tcp_in_header_done(&ch->in)) {
			take_header(ch);
			continue;
		}
		got = tcp_client_fill(ch);
		if (got == -ENOSPC)
			got = spill(ch);
		else if (got == 0)
			break;
		if (got < 0)
			tcp_client_fail(ch, got == -ECONNRESET && ch->bye_sent ? 0 : (int)got);
	}
	return n;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void greet(struct tcp_client *ch)
{
	int ret = sock_channel_greet(&ch->sock);

	if (ret == 1) {
		const struct transport_config *config = &ch->sock.base.transport->config;
		size_t work = tcp_limits.max_sge_write * sizeof(struct iovec) + FRAME_RANGE_BYTES;

		ret = sock_arena_init(&ch->arena, config->nwork * work + sizeof(struct tcp_batch) +
							  sizeof(struct iovec) + FRAME_BYTES);
		if (!ret)
			ret = sock_channel_buffers(&ch->sock);
		if (!ret) {
			tcp_pipe_init(&ch->pipe);
			ch->sock.phase = SOCK_ACCEPTED;
		}
	}
	if (ret < 0)
		tcp_client_fail(ch, ret);
}

/* Gives EV_DONE for the batches left, then EV_CLOSED. */
static int take_end(struct tcp_client *ch, struct event *events, int max)
{
	int n = 0;

	ch->arriving = NULL;
	while (n < max && !list_empty(&ch->batches)) {
		struct tcp_batch *batch = list_entry(ch->batches.next, struct tcp_batch, node);
		int status = batch->status ? batch->status : ch->sock.status;

		events[n++] = end_batch(ch, status ? status : -ECONNABORTED);
	}
	if (n < max) {
		ch->sock.phase = SOCK_OVER;
		events[n++] = sock_event_closed(&ch->sock);
	}
	return n;
}

static int client_poll(struct sock_source *s, struct event *events, int max)
{
	struct tcp_client *ch = container_of(s, struct tcp_client, sock.source);
	struct sock_channel *sock = &ch->sock;
	int n = 0;

	if (sock->phase == SOCK_GREETING)
		greet(ch);
	if (sock->phase == SOCK_ACCEPTED) {
		sock->phase = SOCK_OPEN;
		events[n++] = sock_event(sock, EV_OPEN, 0);
	}
	if (sock->phase == SOCK_OPEN && sock->blocked)
		tcp_client_flush(ch);
	if (sock->phase == SOCK_OPEN)
		n += read_answers(ch, events + n, max - n);
	if (n < max && sock->phase == SOCK_FAILED)
		n += take_end(ch, events + n, max - n);
	if (n == max && sock->phase != SOCK_OVER)
		sock_source_pend(s);
	return n;
}

/* ---- life ------------------------------------------------------------------------------------ */

int tcp_connect(struct evq *base, const struct transport_address *address, struct channel **out)
{
	struct sock_evq *q = container_of(base, struct sock_evq, base);
	struct tcp_client *ch = calloc(1, sizeof(*ch));
	int err;

	if (!ch)
		return -ENOMEM;
	list_init(&ch->batches);
	tcp_out_init(&ch->out);
	ch->pipe.out = ch->pipe.in = -1;
	err = sock_channel_init(&ch->sock, q, false, &tcp_limits, client_poll);
	if (err)
		goto err_free;
	err = sock_channel_connect(&ch->sock, address);
	if (err)
		goto err_fini;
	*out = &ch->sock.base;
	return 0;

err_fini:
	sock_channel_fini(&ch->sock);
err_free:
	free(ch);
	return err;
}

void tcp_client_disconnect(struct channel *base)
{
	struct tcp_client *ch = tcp_client_of(base);

	/* Still connecting: nothing in flight can be lost. */
	if (ch->sock.phase == SOCK_GREETING) {
		tcp_client_fail(ch, 0);
		return;
	}
	if (ch->sock.phase != SOCK_OPEN)
		return;
	tcp_bye_piece(&ch->bye, &ch->bye_iov, ch->bye_header);
	ch->bye_sent = true;
	queue_piece(ch, &ch->bye);
}

static int protect_messages(
	struct tcp_client *ch, unsigned directions, const struct channel_keys *keys)
{
	if (directions & PROTECT_OUT && !list_empty(&ch->out.pieces))
		return -EPROTO;
	if (directions & PROTECT_IN && (!payload_done(ch) || ch->in.header_got))
		return -EPROTO;
	return tcp_messages_begin(&ch->messages, directions, &keys->client, &keys->server);
}

/* Our memory for READs and messages is undefined when a channel fails, so records may be opened
 * there. */
int tcp_client_protect(struct tcp_client *ch, unsigned directions, const struct channel_keys *keys)
{
	int fd = ch->sock.fd, err = 0;

	if (ch->sock.phase != SOCK_OPEN)
		return -ENOTCONN;
	if (ch->sock.base.messages_only)
		return protect_messages(ch, directions, keys);
	if (directions & PROTECT_OUT)
		err = list_empty(&ch->out.pieces)
			      ? tcp_seal_out_begin(&ch->seal_out, fd, &keys->client)
			      : -EPROTO;
	if (!err && directions & PROTECT_IN)
		err = payload_done(ch) && !ch->in.header_got
			      ? tcp_seal_in_begin(&ch->seal_in, fd, &keys->server, RECORD_PRIVATE)
			      : -EPROTO;
	return err;
}

bool tcp_client_worn(const struct tcp_client *ch)
{
	return tcp_seal_out_worn(&ch->seal_out) || tcp_seal_in_worn(&ch->seal_in) ||
	       tcp_messages_worn(&ch->messages);
}

int tcp_client_pipe(const struct channel *base)
{
	return container_of(base, struct tcp_client, sock.base)->pipe.out;
}

void tcp_client_delete(struct channel *base)
{
	struct tcp_client *ch = tcp_client_of(base);

	sock_channel_fini(&ch->sock);
	sock_arena_fini(&ch->arena);
	tcp_pipe_fini(&ch->pipe);
	tcp_seal_out_fini(&ch->seal_out);
	tcp_seal_in_fini(&ch->seal_in);
	tcp_messages_fini(&ch->messages);
	free(ch);
}
