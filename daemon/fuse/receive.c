/* receive.c - reading the kernel's messages: which of them becomes a request, where it lives, and
 * what happens when there is no room for it.
 *
 * A message is read into the buffer that its payload, if it has one, is sent from. When all
 * requests or buffers are in use, further messages wait in the kernel: that is the back-pressure.
 * But then INTERRUPTs wait there, too. With a server that doesn't answer nothing would end any
 * more, not even by SIGKILL. So after STARVED_MS without a free request or buffer reading goes on,
 * into the spare buffer. A message that needs room is parked: copied to the heap, until there is
 * room or its caller gives up. While a soft mount gives up on its server, waiting for room is of no
 * use. Messages that need it then fail at once, except those that must be done sooner or later
 * (RELEASE).
 *
 * The same holds while much is set aside that waits for other clients (request.h). If that has not
 * become less for STARVED_MS, the thread does not wait for it, until as much has come again.
 *
 * A sharing mount reserves some room for requests that a RETURN waits for. While the kernel drops
 * pages, reading goes on at once, since such requests may be behind others.
 *
 * A mount that is paused (serve/pause.h) reads for such requests alone. All other messages that
 * come before them stay parked until the mount goes on, in this process or in another one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "common/base/log.h"
#include "common/base/nodump.h"
#include "common/base/probes.h"
#include "common/base/util.h"
#include "daemon/fuse/decode.h"
#include "daemon/fuse/fuse_ops.h"
#include "daemon/fuse/receive.h"
#include "daemon/fuse/reply.h"
#include "daemon/fuse/port.h"
#include "daemon/remote/remote.h"
#include "daemon/request/caller.h"
#include "daemon/request/io_thread_private.h"

enum { STARVED_MS = 200, PARKED_BYTES_MAX = 64 << 20 };

static const uint64_t NEVER = UINT64_MAX;

struct parked {
	struct list link;
	size_t len;
	bool stays; /* while the mount is paused: it was read since then */
	/* As in the request that the message becomes: */
	bool interrupted;
	uint32_t process;
	int64_t since_ms;
	int64_t read_ns;
	_Alignas(16) uint8_t msg[];
};

static const struct fuse_in_header *header_of(const void *msg)
{
	return msg;
}

static bool is_paused(const struct io_thread *thread)
{
	return atomic_load_explicit(&thread->shared->paused, memory_order_acquire);
}

/* ---- interrupts ------------------------------------------------------------------------------ */

static void unpark(struct io_thread_private *priv, struct parked *parked)
{
	list_del(&parked->link);
	priv->parked_bytes -= parked->len;
	__atomic_store_n(&priv->any_parked, !list_empty(&priv->parked), __ATOMIC_SEQ_CST);
	nodump_free(parked);
}

/* signalled: the caller was, or may have been. */
static void give_up_parked(struct io_thread *thread, struct parked *parked, bool signalled)
{
	const struct fuse_in_header *h = header_of(parked->msg);

	if (signalled && !parked->interrupted) {
		parked->since_ms = thread->priv->now;
		parked->interrupted = true;
	}
	if (!caller_ends_wait(thread, (struct caller){h->pid, parked->process}, parked->interrupted,
		    parked->since_ms))
		return;
	fuse_reply_status(thread, h->unique, -EINTR);
	unpark(thread->priv, parked);
}

static bool interrupt_parked(struct io_thread *thread, uint64_t unique)
{
	list_for_each (pos, &thread->priv->parked) {
		struct parked *parked = list_entry(pos, struct parked, link);

		if (header_of(parked->msg)->unique == unique) {
			give_up_parked(thread, parked, true);
			return true;
		}
	}
	return false;
}

static bool is_to_be_watched(const struct io_thread *thread, const struct parked *parked)
{
	return parked->interrupted ||
	       (remote_disconnected(thread) &&
		       fuse_decode_signals_are_untold(parked->msg, parked->len));
}

/* Its thread may end before it does. */
static void note_process(const struct io_thread *thread, struct parked *parked)
{
	if (is_to_be_watched(thread, parked))
		caller_note_process(&parked->process, header_of(parked->msg)->pid);
}

void fuse_receive_give_up_parked(struct io_thread *thread)
{
	list_for_each_safe (pos, &thread->priv->parked) {
		struct parked *parked = list_entry(pos, struct parked, link);

		note_process(thread, parked);
		if (is_to_be_watched(thread, parked))
			give_up_parked(
				thread, parked, header_of(parked->msg)->opcode == FUSE_FLUSH);
	}
}

static bool interrupt_here(struct io_thread *thread, uint64_t unique)
{
	struct request *req = request_find(thread, unique);

	if (!req)
		return thread->ops->interrupt_other(thread, unique) ||
		       interrupt_parked(thread, unique);
	if (!req->replied)
		thread->ops->interrupt(req);
	return true;
}

/* Any thread reads an INTERRUPT, but its request belongs to the one thread that has read it. The
 * kernel queues an INTERRUPT only after that. So each thread, asked in its own turn, has the
 * request in its list or has answered it. If none has it, it needs no answer, and never EAGAIN. */
static void pass_note(struct thread_call *call)
{
	struct interrupt_note *note = container_of(call, struct interrupt_note, call);
	struct io_thread *at = note->at;

	if (at == note->home) {
		list_add_tail(&at->priv->free_notes, &note->link);
		return;
	}
	note->at = interrupt_here(at, note->unique) ? note->home
						    : io_thread_sibling(at, at->index + 1);
	io_thread_call(note->at, &note->call);
}

static void handle_interrupt(struct io_thread *thread, const void *msg, size_t len)
{
	struct interrupt_note *note;
	uint64_t unique;

	if (fuse_decode_interrupt(msg, len, &unique) != 0 || interrupt_here(thread, unique))
		return;
	if (io_thread_siblings(thread) == 1)
		return;
	/* fuse_receive_ready() made sure that there is one. */
	note = list_entry(list_pop(&thread->priv->free_notes), struct interrupt_note, link);
	note->call.run = pass_note;
	note->unique = unique;
	note->home = thread;
	note->at = io_thread_sibling(thread, thread->index + 1);
	io_thread_call(note->at, &note->call);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void handle_forgets(struct io_thread *thread, const void *msg, size_t len)
{
	struct forget forget;
	uint32_t n;

	if (fuse_decode_nforgets(msg, len, &n) != 0) {
		log_error("fuse: malformed FORGET of %zu bytes", len);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		fuse_decode_forget(msg, i, &forget);
		thread->ops->forget(thread, &forget);
	}
}

static void start_request(
	struct io_thread *thread, struct request *req, int err, void *msg, size_t len)
{
	struct io_thread_private *priv = thread->priv;

	PROBE(rmemfs, request_receive, req->unique, header_of(msg)->opcode, req->node, req->pid,
		req->args.offset, req->args.size);
	if (err == -EIO)
		log_error("fuse: malformed request, opcode %u, %zu bytes", header_of(msg)->opcode,
			len);
	if (err) {
		reply_error(req, err);
		return;
	}
	if (fuse_decode_has_payload(header_of(msg)->opcode))
		req->buf = steal_ptr(&priv->recv);
	else
		fuse_decode_keep(req, msg, len);
	thread->ops->dispatch(req);
}

/* Whether there is a request for any message, not only a reserved one. */
static bool has_requests(const struct io_thread *thread)
{
	return thread->priv->nused <
	       (thread->shared->sharing ? UNRESERVED_REQUESTS : THREAD_REQUESTS);
}

/* Makes a request from the message, with *err as the result; NULL: there is none for it. stays: it
 * becomes one only if pages that are being dropped wait for it. */
static struct request *decode(
	struct io_thread *thread, const void *msg, size_t len, bool stays, int *err)
{
	bool reserved = stays || !has_requests(thread);
	struct request *req = request_new(thread);

	if (!req)
		return NULL;
	*err = fuse_decode(msg, len, req);
	if (!reserved || *err || thread->ops->holds_up_dropping(req))
		return req;
	request_unmake(req);
	return NULL;
}

static bool may_be_refused(const void *msg)
{
	uint32_t opcode = header_of(msg)->opcode;

	return opcode != FUSE_RELEASE && opcode != FUSE_RELEASEDIR;
}

static void park(struct io_thread *thread, const void *msg, size_t len)
{
	struct io_thread_private *priv = thread->priv;
	struct parked *parked;

	if (remote_gives_up(thread) && may_be_refused(msg)) {
		fuse_reply_status(thread, header_of(msg)->unique, -EIO);
		return;
	}
	/* With so many bytes parked nothing is read, except while pages are being dropped. */
	parked = priv->parked_bytes < PARKED_BYTES_MAX ||
				 !fuse_decode_has_payload(header_of(msg)->opcode)
			 ? nodump_alloc(sizeof(*parked) + len)
			 : NULL;
	if (!parked) {
		fuse_reply_status(thread, header_of(msg)->unique, -ENOMEM);
		return;
	}
	parked->len = len;
	parked->interrupted = false;
	parked->process = 0;
	parked->stays = priv->parks;
	parked->since_ms = priv->now;
	parked->read_ns = priv->now_ns;
	memcpy(parked->msg, msg, len);
	note_process(thread, parked);
	list_add_tail(&priv->parked, &parked->link);
	priv->parked_bytes += len;
	__atomic_store_n(&priv->any_parked, true, __ATOMIC_SEQ_CST);
	/* With room it might have been let in. */
	if (list_empty(&priv->free_requests) || !priv->recv)
		priv->looked_through = NEVER;
}

static void handle_message(struct io_thread *thread, void *msg, size_t len)
{
	struct io_thread_private *priv = thread->priv;
	const struct fuse_in_header *h = header_of(msg);
	struct request *req;
	int err;

	switch (h->opcode) {
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		handle_forgets(thread, msg, len);
		break;
	case FUSE_INTERRUPT:
		handle_interrupt(thread, msg, len);
		break;
	case FUSE_DESTROY:
		fuse_reply_status(thread, h->unique, 0);
		break;
	default:
		if ((fuse_decode_has_payload(h->opcode) && !priv->recv) ||
			!(req = decode(thread, msg, len, priv->parks, &err)))
			park(thread, msg, len);
		else
			start_request(thread, req, err, msg, len);
	}
}

static bool is_message(const void *msg, ssize_t n)
{
	if ((size_t)n >= sizeof(struct fuse_in_header) && header_of(msg)->len == (size_t)n)
		return true;
	log_error("fuse: a message of %zd bytes is none", n);
	return false;
}

/* ---- reading --------------------------------------------------------------------------------- */

bool fuse_receive_ready(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	bool room = !list_empty(&priv->free_requests) && request_refill_recv(priv);

	if (list_empty(&priv->free_notes))
		return false;
	/* None of them is to be refused for a pause. */
	if (is_paused(thread) && priv->parked_bytes >= PARKED_BYTES_MAX / 2)
		return false;
	if (room && list_empty(&priv->parked) && !request_much_is_aside(priv)) {
		priv->starved_since = 0;
		return true;
	}
	if (!priv->starved_since)
		priv->starved_since = priv->now;
	if (room && fuse_receive_is_dropping(thread))
		return true;
	if (priv->now - priv->starved_since < STARVED_MS && !remote_gives_up(thread))
		return false;
	priv->stuck_bytes = priv->aside_bytes;
	return priv->parked_bytes < PARKED_BYTES_MAX;
}

static int receive_failed(int err, bool landing)
{
	switch (err) {
	case ENOENT: /* its caller gave up while we read it */
	case EINTR:
		return RECEIVE_ONE;
	case EAGAIN:
		return RECEIVE_NOTHING;
	case ENODEV:
	case ECONNABORTED:
		return RECEIVE_GONE;
	case EFAULT:
		if (landing) /* that is not our memory: the caller has got EIO */
			return RECEIVE_ONE;
		/* fall through */
	default:
		log_error("fuse: cannot read requests: %s", errno_text(err));
		return RECEIVE_GONE;
	}
}

static int receive_whole(struct io_thread *thread, uint8_t *msg)
{
	ssize_t n = read(thread->priv->fuse_fd, msg, FUSE_MESSAGE_BYTES_MAX);

	if (n < 0)
		return receive_failed(errno, false);
	if (is_message(msg, n))
		handle_message(thread, msg, (size_t)n);
	return RECEIVE_ONE;
}

/* The same when the payload, or the part of a small message that does not fit before it, lies
 * elsewhere. */
static void handle_landed(struct io_thread *thread, uint8_t *msg, size_t n)
{
	int64_t len = n > PAYLOAD_HEAD_BYTES ? (int64_t)(n - PAYLOAD_HEAD_BYTES) : 0;
	bool stays = header_of(msg)->opcode == FUSE_WRITE && has_requests(thread) &&
		     !thread->priv->parks;

	thread->ops->payload_arrived(thread, msg + PAYLOAD_HEAD_BYTES, len, stays);
	handle_message(thread, msg, n);
}

static int receive_apart(struct io_thread *thread, uint8_t *msg, void *home)
{
	struct iovec iov[2] = {{msg, PAYLOAD_HEAD_BYTES}, {home, IO_BYTES_MAX}};
	ssize_t n = readv(thread->priv->fuse_fd, iov, 2);
	uint64_t unique = n > 0 ? header_of(msg)->unique : 0;
	int got = RECEIVE_ONE;

	if (n < 0) {
		int err = errno;

		thread->ops->payload_arrived(thread, NULL, -err, false);
		got = receive_failed(err, true);
	} else if (is_message(msg, n)) {
		handle_landed(thread, msg, (size_t)n);
	} else {
		thread->ops->payload_arrived(thread, NULL, -EPROTO, false);
	}
	thread->ops->payload_done(thread, unique);
	return got;
}

/* Set from before a message leaves the kernel's queue, or the parked ones, until it is
 * dispatched. */
static void set_reading(struct io_thread *thread, bool reading)
{
	__atomic_store_n(&thread->priv->reading, reading, __ATOMIC_SEQ_CST);
}

int fuse_receive(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	uint8_t *msg = request_room(thread);
	void *landing = priv->recv ? thread->ops->payload_home(thread) : NULL;
	int got;

	set_reading(thread, true);
	priv->parks = is_paused(thread) && thread->shared->sharing;
	got = landing ? receive_apart(thread, msg, landing) : receive_whole(thread, msg);
	set_reading(thread, false);
	return got;
}

/* Looks in the order in which a message goes: it is read, then parked, and then read back. */
bool fuse_receive_may_hide(const struct io_thread *thread, const struct io_thread *asking)
{
	const struct io_thread_private *priv = thread->priv;

	return (thread != asking && __atomic_load_n(&priv->reading, __ATOMIC_SEQ_CST)) ||
	       __atomic_load_n(&priv->any_parked, __ATOMIC_SEQ_CST) ||
	       (thread != asking && __atomic_load_n(&priv->reading, __ATOMIC_SEQ_CST));
}

bool fuse_receive_has_parked_append(const struct io_thread *thread, uint64_t node, uint64_t offset)
{
	list_for_each (pos, &thread->priv->parked) {
		const uint8_t *msg = list_entry(pos, struct parked, link)->msg;
		const struct fuse_write_in *in =
			(const void *)(msg + sizeof(struct fuse_in_header));

		if (header_of(msg)->opcode == FUSE_WRITE && header_of(msg)->nodeid == node &&
			in->flags & O_APPEND && in->offset < offset)
			return true;
	}
	return false;
}

/* ---- parked messages ------------------------------------------------------------------------- */

/* The first parked message that gets a request, which it is decoded into. Messages that could only
 * use a reserved request, or stay, are looked through once for each range of pages that is
 * dropped. */
static struct parked *next_parked(struct io_thread *thread, struct request **req)
{
	struct io_thread_private *priv = thread->priv;
	uint64_t drops = atomic_load(&thread->shared->ndrops);
	bool paused = is_paused(thread), seen = priv->looked_through == drops;
	int err;

	if (list_empty(&priv->free_requests) || (!has_requests(thread) && seen))
		return NULL;
	list_for_each (pos, &priv->parked) {
		struct parked *parked = list_entry(pos, struct parked, link);
		bool stays = paused && parked->stays;

		if (stays && (seen || !fuse_receive_is_dropping(thread)))
			continue;
		*req = decode(thread, parked->msg, parked->len, stays, &err);
		if (*req)
			return parked;
	}
	priv->looked_through = drops;
	return NULL;
}

/* Decodes it again, since payload and names lie elsewhere now. */
static void start_parked(struct io_thread *thread, struct parked *parked, struct request *req)
{
	struct io_thread_private *priv = thread->priv;
	uint8_t *msg = priv->recv->data - PAYLOAD_HEAD_BYTES;
	size_t len = parked->len;
	int err;

	req->interrupted = parked->interrupted;
	req->process = parked->process;
	req->since_ms = parked->since_ms;
	req->read_ns = parked->read_ns;
	memcpy(msg, parked->msg, len);
	unpark(priv, parked);
	err = fuse_decode(msg, len, req);
	start_request(thread, req, err, msg, len);
}

unsigned fuse_receive_nparked(const struct io_thread *thread, int64_t *oldest_ns)
{
	unsigned n = 0;

	*oldest_ns = 0;
	list_for_each (pos, &thread->priv->parked) {
		int64_t read_ns = list_entry(pos, struct parked, link)->read_ns;

		n++;
		if (!*oldest_ns || read_ns < *oldest_ns)
			*oldest_ns = read_ns;
	}
	return n;
}

unsigned fuse_receive_parked(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	struct parked *parked;
	struct request *req;
	unsigned n = 0;

	if (list_empty(&priv->parked))
		return 0;
	set_reading(thread, true);
	while (!list_empty(&priv->parked) && request_refill_recv(priv) &&
		(parked = next_parked(thread, &req))) {
		start_parked(thread, parked, req);
		n++;
	}
	set_reading(thread, false);
	return n;
}

/* ---- pages that are dropped ------------------------------------------------------------------ */

/* A mount that is paused reads while pages are dropped. */
static void look_again(struct io_thread *thread)
{
	if (__atomic_load_n(&thread->priv->any_parked, __ATOMIC_SEQ_CST) ||
		atomic_load(&thread->shared->paused))
		io_thread_wake(thread);
}

void fuse_receive_drop_begins(struct io_thread *thread)
{
	atomic_fetch_add(&thread->shared->ndropping, 1);
	atomic_fetch_add(&thread->shared->ndrops, 1);
	for (unsigned i = 0; i < io_thread_siblings(thread); i++)
		look_again(io_thread_sibling(thread, i));
}

void fuse_receive_drop_ended(struct io_thread *thread)
{
	atomic_fetch_sub(&thread->shared->ndropping, 1);
}

bool fuse_receive_is_dropping(const struct io_thread *thread)
{
	return atomic_load(&thread->shared->ndropping);
}

void fuse_receive_refuse_parked(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;

	list_for_each_safe (pos, &priv->parked) {
		struct parked *parked = list_entry(pos, struct parked, link);

		if (!may_be_refused(parked->msg))
			continue;
		fuse_reply_status(thread, header_of(parked->msg)->unique, -EIO);
		unpark(priv, parked);
	}
}

void fuse_receive_drop_parked(struct io_thread *thread)
{
	struct list *link;

	while ((link = list_pop(&thread->priv->parked)))
		nodump_free(list_entry(link, struct parked, link));
}

/* ---- another daemon -------------------------------------------------------------------------- */

bool fuse_receive_parked_stay(const struct io_thread *thread)
{
	list_for_each (pos, &thread->priv->parked)
		if (!list_entry(pos, struct parked, link)->stays)
			return false;
	return true;
}

void fuse_receive_each_parked(struct io_thread *thread,
	void (*fn)(const struct fuse_parked *message, void *arg), void *arg)
{
	list_for_each (pos, &thread->priv->parked) {
		const struct parked *parked = list_entry(pos, struct parked, link);

		fn(&(struct fuse_parked){.thread = thread->index,
			   .interrupted = parked->interrupted,
			   .since_ms = parked->since_ms,
			   .read_ns = parked->read_ns,
			   .msg = parked->msg,
			   .len = parked->len},
			arg);
	}
}

int fuse_receive_adopt_parked(struct io_thread *thread, const struct fuse_parked *message)
{
	struct io_thread_private *priv = thread->priv;
	struct parked *parked;

	if (message->len < sizeof(struct fuse_in_header) || message->len > FUSE_MESSAGE_BYTES_MAX)
		return -EINVAL;
	parked = nodump_alloc(sizeof(*parked) + message->len);
	if (!parked)
		return -ENOMEM;
	parked->len = message->len;
	parked->interrupted = message->interrupted;
	parked->stays = true;
	parked->since_ms = message->since_ms;
	parked->read_ns = message->read_ns;
	memcpy(parked->msg, message->msg, message->len);
	list_add_tail(&priv->parked, &parked->link);
	priv->parked_bytes += parked->len;
	priv->any_parked = true;
	return header_of(parked->msg)->len == message->len ? 0 : -EINVAL;
}
