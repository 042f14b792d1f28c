/* contract_pipe.c - READs through the channel's pipe. */
#include "tests/unit/common/transport/contract.h"

#include <poll.h>
#include <stdlib.h>

#include "common/transport/sock/frame.h"
#include "common/transport/transport_ops.h"
#include "common/rpc/wire_version.h"

enum { BIG = 1 << 20, SMALL = 4096, NHEAD = 16, NPOSTED = 8 };

static const char head[NHEAD + 1] = "a head of bytes.";

static int post_piped(struct fixture *f, uint64_t at, uint32_t len, uint32_t region,
	uint64_t offset, void *cookie)
{
	struct sge sge = sge_at(f, at, len);
	struct work work = {.sge = &sge, .nsge = 1, .region = region, .offset = offset};

	return channel_post_piped(f->ch, &work, 1, head, NHEAD, cookie);
}

/* The pipe has the head, then len bytes of the pattern, and nothing else. */
static void assert_pipe(const struct channel *ch, size_t len, unsigned seed)
{
	autofree uint8_t *bytes = malloc(NHEAD + len + 1);
	size_t have = 0;
	ssize_t n;

	assert_non_null(bytes);
	while ((n = read(channel_pipe(ch), bytes + have, NHEAD + len + 1 - have)) > 0)
		have += (size_t)n;
	assert_int_equal(have, NHEAD + len);
	assert_memory_equal(bytes, head, NHEAD);
	assert_pattern(bytes + NHEAD, len, seed);
}

/* The bytes are where the event says. */
static void assert_arrived(
	const struct fixture *f, const struct event *event, uint64_t at, size_t len, unsigned seed)
{
	if (event->piped)
		assert_pipe(f->ch, len, seed);
	else
		assert_pattern(f->buf + at, len, seed);
}

static void piped__fetches(void **state)
{
	struct fixture *f = *state;
	struct event event;

	fill_pattern(f->memory[1].addr + 777, BIG, 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(post_piped(f, 100, BIG, 1, 777, f), 0);
		event = expect_event(f->q, EV_DONE, 0);
		assert_ptr_equal(event.cookie, f);
		/* Protected bytes come through the pipe where the kernel opens the records. */
		if (!contract_protected || contract_messages_only)
			assert_int_equal(event.piped, contract_kind == TRANSPORT_TCP);
		assert_arrived(f, &event, 100, BIG, 1);
	}
	assert_int_equal(channel_counters(f->ch)->reads, 3);
	assert_int_equal(channel_counters(f->ch)->read_bytes, 3 * BIG);
	assert_int_equal(channel_counters(f->ch)->batches, 3);
}

/* Too few bytes for a pipe. */
static void piped__little_comes_in_memory(void **state)
{
	struct fixture *f = *state;
	struct event event;

	fill_pattern(f->memory[1].addr, SMALL, 2);
	assert_int_equal(post_piped(f, 0, SMALL, 1, 0, f), 0);
	event = expect_event(f->q, EV_DONE, 0);
	assert_false(event.piped);
	assert_pattern(f->buf, SMALL, 2);
}

/* Takes all events that are there. */
static int next_events(struct evq *q, struct event *events, int max)
{
	struct pollfd pfd = {.fd = evq_fd(q), .events = POLLIN};
	int n = evq_poll(q, events, max);

	while (n == 0) {
		assert_int_equal(evq_arm(q), 0);
		n = evq_poll(q, events, max);
		if (n == 0)
			assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
	}
	return n;
}

/* The results of piped__among_others. */
struct arrivals {
	uint32_t len[NPOSTED]; /* cookies of the READs that may come through the pipe */
	unsigned ndone, nechoed;
};

static void arrivals_take(
	const struct fixture *f, struct arrivals *arrivals, const struct event *event)
{
	const uint32_t *len = event->cookie;

	if (event->type == EV_RECV) {
		channel_recv_done(f->ch, event->data);
		arrivals->nechoed++;
		return;
	}
	assert_int_equal(event->type, EV_DONE);
	assert_int_equal(event->status, 0);
	if (len)
		assert_arrived(f, event, (uint64_t)(len - arrivals->len) * BIG, *len, 3);
	arrivals->ndone++;
}

/* Large and small READs, through the pipe and in memory, with WRITEs and messages between them. */
static void piped__among_others(void **state)
{
	struct fixture *f = *state;
	struct arrivals arrivals = {0};
	uint32_t *len = arrivals.len;
	struct event events[8];

	fill_pattern(f->memory[1].addr, REGION_BYTES, 3);
	for (uint32_t i = 0; i < NPOSTED; i++) {
		len[i] = i % 3 == 1 ? SMALL : BIG - 10 - i;
		assert_int_equal(post_piped(f, i * BIG, len[i], 1, 0, &len[i]), 0);
		assert_int_equal(post_one(f, IO_READ, i * BIG + len[i], i + 1, 1, 0, NULL), 0);
		assert_int_equal(post_one(f, IO_WRITE, BUFFER_BYTES - 1, 1, 0, i, NULL), 0);
		if (i % 2)
			send_ask(f->ch, (struct ask){.op = ASK_ECHO, .value = i});
	}
	while (arrivals.ndone < 3 * NPOSTED || arrivals.nechoed < NPOSTED / 2) {
		int n = next_events(f->q, events, ARRAY_SIZE(events));

		for (int i = 0; i < n; i++)
			arrivals_take(f, &arrivals, &events[i]);
	}
}

static void piped__many_sges_and_ranges(void **state)
{
	enum { NWORKS = 4, PIECE = 100000 };
	struct fixture *f = *state;
	struct sge sges[NWORKS][2];
	struct work works[NWORKS];
	struct event event;

	fill_pattern(f->memory[1].addr, NWORKS * 2 * PIECE, 4);
	for (int i = 0; i < NWORKS; i++) {
		sges[i][0] = sge_at(f, (uint64_t)i * 2 * PIECE, PIECE);
		sges[i][1] = sge_at(f, (uint64_t)i * 2 * PIECE + PIECE, PIECE);
		works[i] = (struct work){
			.sge = sges[i], .nsge = 2, .region = 1, .offset = (uint64_t)i * 2 * PIECE};
	}
	assert_int_equal(channel_post_piped(f->ch, works, NWORKS, head, NHEAD, f), 0);
	event = expect_event(f->q, EV_DONE, 0);
	assert_arrived(f, &event, 0, NWORKS * 2 * PIECE, 4);
}

/* Nobody takes all of the first READ's bytes: the second READ still has only its own. */
static void piped__what_is_left_is_lost(void **state)
{
	struct fixture *f = *state;
	uint8_t some[100];
	struct event event;

	fill_pattern(f->memory[1].addr, BIG, 5);
	fill_pattern(f->memory[1].addr + BIG, BIG, 6);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(post_piped(f, 0, BIG, 1, 0, NULL), 0);
		assert_int_equal(post_piped(f, BIG, BIG, 1, BIG, NULL), 0);
		event = expect_event(f->q, EV_DONE, 0);
		if (event.piped && i)
			assert_true(read(channel_pipe(f->ch), some, sizeof(some)) > 0);
		event = expect_event(f->q, EV_DONE, 0);
		assert_arrived(f, &event, BIG, BIG, 6);
	}
}

static void piped__bad_arguments(void **state)
{
	struct fixture *f = *state;
	struct sge sge = sge_at(f, 0, BIG);
	struct work work = {.sge = &sge, .nsge = 1, .region = 1};

	assert_int_equal(channel_post_piped(f->ch, &work, 1, head, 0, f), -EINVAL);
	assert_int_equal(
		channel_post_piped(f->ch, &work, 1, head, CHANNEL_HEAD_MAX + 1, f), -EINVAL);
	assert_int_equal(channel_post_piped(f->ch, &work, 0, head, NHEAD, f), -EINVAL);
	work.offset = REGION_BYTES - BIG + 1;
	assert_int_equal(channel_post_piped(f->ch, &work, 1, head, NHEAD, f), -EINVAL);
	expect_silence(f->q, 20);
}

static void piped__peer_killed(void **state)
{
	struct fixture *f = *state;
	struct event event;
	int ndone = 0;

	peer_freeze(&f->peer);
	for (int i = 0; i < NPOSTED; i++)
		assert_int_equal(post_piped(f, (uint64_t)i * BIG, BIG, 1, 0, NULL), 0);
	peer_kill(&f->peer);
	while ((event = next_event(f->q)).type == EV_DONE) {
		assert_true(event.status || contract_kind != TRANSPORT_TCP);
		assert_false(event.piped);
		ndone++;
	}
	assert_int_equal(ndone, NPOSTED);
	assert_int_equal(event.type, EV_CLOSED);
	assert_int_equal(post_piped(f, 0, BIG, 1, 0, NULL), -ENOTCONN);
}

static const struct CMUnitTest tests[] = {
	CHANNEL_CASE(piped__fetches),
	CHANNEL_CASE(piped__little_comes_in_memory),
	CHANNEL_CASE(piped__among_others),
	CHANNEL_CASE(piped__many_sges_and_ranges),
	CHANNEL_CASE(piped__what_is_left_is_lost),
	CHANNEL_CASE(piped__bad_arguments),
	CHANNEL_CASE(piped__peer_killed),
};

const struct cases pipe_cases = {"pipe", tests, ARRAY_SIZE(tests), ALL_KINDS};

/* ---- tcp: a server that answers in pieces ---------------------------------------------------- */

enum { PIECES = 64 << 10 };

static int raw_server(struct fixture *f)
{
	struct sockaddr *addr = (struct sockaddr *)&f->address.addr;
	struct transport_hello hello = {.version = RMEMFS_WIRE_VERSION,
		.msg_bytes = MSG_BYTES,
		.nrecv = NRECV,
		.nwork = NWORK};
	struct region_key key = {.len = REGION_BYTES, .access = REGION_READ};
	uint8_t bytes[TRANSPORT_HELLO_BYTES];
	int fd, lfd = socket(f->address.addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(lfd, addr, f->address.addrlen), 0);
	assert_int_equal(getsockname(lfd, addr, &f->address.addrlen), 0);
	assert_int_equal(listen(lfd, 1), 0);
	assert_int_equal(channel_connect(f->q, &f->address, &f->ch), 0);
	fd = accept(lfd, NULL, NULL);
	assert_true(fd >= 0);
	close(lfd);
	expect_silence(f->q, 20);
	assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_WAITALL), (ssize_t)sizeof(bytes));
	transport_hello_encode(&hello, bytes);
	assert_int_equal(send(fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
	expect_event(f->q, EV_OPEN, 0);
	assert_int_equal(channel_set_key(f->ch, 1, &key), 0);
	return fd;
}

static void send_all(int fd, const void *data, size_t len)
{
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* Takes the request, and sends the head of its answer. */
static void raw_answer(int fd, uint64_t len)
{
	struct sock_frame frame = {.type = FRAME_DONE, .len = len};
	uint8_t header[FRAME_BYTES];

	assert_int_equal(recv(fd, header, sizeof(header), MSG_WAITALL), FRAME_BYTES);
	sock_frame_encode(&frame, header);
	send_all(fd, header, sizeof(header));
}

/* Sends the bytes one by one; the client takes each before the next. */
static void dribble(struct fixture *f, int fd, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct pollfd pfd = {.fd = evq_fd(f->q), .events = POLLIN};
		struct event event;

		send_all(fd, bytes + i, 1);
		assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
		assert_int_equal(evq_poll(f->q, &event, 1), 0);
	}
}

/* One READ; so many of its bytes come singly. */
static struct event read_dribbled(struct fixture *f, int fd, size_t singly)
{
	autofree uint8_t *bytes = malloc(PIECES);
	struct event event;

	assert_non_null(bytes);
	fill_pattern(bytes, PIECES, 7);
	memset(f->buf, 0, PIECES);
	assert_int_equal(post_piped(f, 0, PIECES, 1, 0, f), 0);
	raw_answer(fd, PIECES);
	expect_silence(f->q, 1);
	dribble(f, fd, bytes, singly);
	send_all(fd, bytes + singly, PIECES - singly);
	event = expect_event(f->q, EV_DONE, 0);
	assert_arrived(f, &event, 0, PIECES, 7);
	return event;
}

static void piped__comes_in_pieces(void **state)
{
	struct fixture *f = *state;
	int fd = raw_server(f);

	assert_true(read_dribbled(f, fd, 100).piped);
	assert_true(read_dribbled(f, fd, 0).piped);
	close(fd);
}

/* More pieces than any pipe has room for: all bytes come in memory, and so do the next READs for a
 * while. */
static void piped__comes_in_too_many_pieces(void **state)
{
	struct fixture *f = *state;
	int fd = raw_server(f), n = 0;

	assert_false(read_dribbled(f, fd, 1100).piped);
	while (!read_dribbled(f, fd, 0).piped)
		n++;
	assert_int_equal(n, 256);
	close(fd);
}

static void piped__ends_in_the_middle(void **state)
{
	static const uint8_t zeros[PIECES];
	struct fixture *f = *state;
	int fd = raw_server(f);

	assert_int_equal(post_piped(f, 0, PIECES, 1, 0, f), 0);
	assert_int_equal(post_piped(f, 0, PIECES, 1, 0, f), 0);
	raw_answer(fd, PIECES);
	send_all(fd, zeros, PIECES - 1);
	expect_silence(f->q, 20);
	close(fd);
	for (int i = 0; i < 2; i++) {
		struct event event = next_event(f->q);

		assert_int_equal(event.type, EV_DONE);
		assert_int_equal(event.status, -ECONNRESET);
		assert_false(event.piped);
	}
	expect_event(f->q, EV_CLOSED, -ECONNRESET);
}

/* The channel is deleted with the pipe half full, and full. */
static void piped__channel_deleted(void **state)
{
	static const uint8_t zeros[PIECES];
	struct fixture *f = *state;

	for (int i = 0; i < 2; i++) {
		int fd = raw_server(f);

		assert_int_equal(post_piped(f, 0, PIECES, 1, 0, f), 0);
		raw_answer(fd, PIECES);
		send_all(fd, zeros, i ? PIECES : PIECES / 2);
		if (i)
			assert_true(expect_event(f->q, EV_DONE, 0).piped);
		else
			expect_silence(f->q, 20);
		channel_delete(f->ch);
		f->ch = NULL;
		close(fd);
		f->address = contract_address();
	}
}

static const struct CMUnitTest tcp_tests[] = {
	CLIENT_CASE(piped__comes_in_pieces),
	CLIENT_CASE(piped__comes_in_too_many_pieces),
	CLIENT_CASE(piped__ends_in_the_middle),
	CLIENT_CASE(piped__channel_deleted),
};

const struct cases tcp_pipe_cases = {
	"pipe in pieces", tcp_tests, ARRAY_SIZE(tcp_tests), 1 << TRANSPORT_TCP};
