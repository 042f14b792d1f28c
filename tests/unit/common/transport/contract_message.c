/* contract_message.c - messages, their order and limits, and sleeping until they come. */
#include "tests/unit/common/transport/contract.h"

#include <poll.h>

static void echo(struct fixture *f, const void *data, uint32_t len, unsigned flags, uint32_t imm)
{
	struct event event;

	send_message(f->ch, data, len, flags, imm);
	event = expect_event(f->q, EV_RECV, 0);
	assert_ptr_equal(event.channel, f->ch);
	assert_int_equal(event.len, len);
	if (len)
		assert_memory_equal(event.data, data, len);
	assert_int_equal(event.has_imm, flags == SEND_IMM);
	if (event.has_imm)
		assert_int_equal(event.imm, imm);
	channel_recv_done(f->ch, event.data);
}

static void send__with_and_without_immediate(void **state)
{
	struct fixture *f = *state;

	echo(f, "plain", 5, 0, 0);
	echo(f, "numbered", 8, SEND_IMM, 0xfedcba98);
	echo(f, "zero is a number too", 20, SEND_IMM, 0);
}

static void send__empty(void **state)
{
	struct fixture *f = *state;

	echo(f, NULL, 0, 0, 0);
	echo(f, NULL, 0, SEND_IMM, 7);
}

static void send__longest(void **state)
{
	struct fixture *f = *state;
	uint8_t data[MSG_BYTES];

	for (unsigned i = 0; i < 3 * NSEND; i++) {
		fill_pattern(data, sizeof(data), i);
		memset(data, 0, sizeof(struct ask));
		echo(f, data, sizeof(data), 0, 0);
	}
}

static void send__too_long(void **state)
{
	struct fixture *f = *state;
	void *buf = channel_send_buffer(f->ch);

	assert_non_null(buf);
	assert_int_equal(channel_send(f->ch, buf, MSG_BYTES + 1, 0, 0), -EINVAL);
	buf = channel_send_buffer(f->ch);
	assert_int_equal(channel_send(f->ch, buf, 1, 2, 0), -EINVAL);
	echo(f, "fine", 4, 0, 0);
}

static void send__buffers_run_out_and_come_back(void **state)
{
	struct fixture *f = *state;
	void *bufs[NSEND];

	for (int i = 0; i < NSEND; i++) {
		bufs[i] = channel_send_buffer(f->ch);
		assert_non_null(bufs[i]);
	}
	assert_null(channel_send_buffer(f->ch));
	for (int i = 0; i < NSEND; i++)
		channel_send_cancel(f->ch, bufs[i]);
	echo(f, "fine", 4, 0, 0);
}

static void recv__in_order(void **state)
{
	struct fixture *f = *state;

	for (int round = 0; round < 20; round++) {
		send_ask(f->ch, (struct ask){.op = ASK_FLOOD, .count = NSEND});
		for (uint64_t i = 0; i < NSEND; i++)
			assert_int_equal(expect_ask(f->q).value, i);
	}
}

static void recv__given_back_in_any_order(void **state)
{
	struct fixture *f = *state;
	const void *data[NRECV];

	for (int round = 0; round < 3; round++) {
		send_ask(f->ch, (struct ask){.op = ASK_FLOOD, .count = NRECV});
		for (int i = 0; i < NRECV; i++)
			data[i] = expect_event(f->q, EV_RECV, 0).data;
		for (int i = 0; i < NRECV; i++)
			channel_recv_done(f->ch, data[(i * 3) % NRECV]);
	}
}

/* A server that has given back no buffer yet is only late. One message more than it has room for
 * may wait or not (verbs keeps one receive for itself); it is not lost. */
static void send__to_a_busy_peer(void **state)
{
	struct fixture *f = *state;
	uint64_t held = 0, echoed = 0;

	for (uint64_t i = 0; i < NRECV; i++)
		send_ask(f->ch, (struct ask){.op = ASK_HOLD, .value = i});
	expect_silence(f->q, 50);
	send_ask(f->ch, (struct ask){.op = ASK_ECHO, .value = NRECV});
	peer_tell(&f->peer, PEER_RELEASE);
	while (held + echoed < NRECV + 1) {
		struct ask answer = expect_ask(f->q);

		if (answer.op == ASK_ECHO)
			echoed++;
		else
			assert_int_equal(answer.value, held++);
	}
	assert_int_equal(echoed, 1);
}

static void send__arrives_after_the_write(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 1; i < 40; i++) {
		struct ask ask = {.op = ASK_COMPARE, .count = 1 << 20, .byte = (uint8_t)i};

		memset(f->buf, (int)i, 1 << 20);
		assert_int_equal(post_one(f, IO_WRITE, 0, 1 << 20, 0, 0, NULL), 0);
		send_ask(f->ch, ask);
		/* EV_DONE and EV_RECV, in either order. */
		for (int n = 0; n < 2; n++) {
			struct event event = next_event(f->q);

			if (event.type == EV_DONE) {
				assert_int_equal(event.status, 0);
				continue;
			}
			assert_int_equal(event.type, EV_RECV);
			memcpy(&ask, event.data, sizeof(ask));
			channel_recv_done(f->ch, event.data);
			assert_int_equal(ask.value, 1);
		}
	}
}

/* Only the descriptor announces each answer; a lost wake-up would stop this test. */
static void arm__no_lost_wake_up(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < 2000; i++) {
		send_ask(f->ch, (struct ask){.op = ASK_ECHO, .value = i});
		assert_int_equal(expect_ask(f->q).value, i);
	}
}

static void arm__quiet_without_work(void **state)
{
	struct fixture *f = *state;
	struct pollfd pfd = {.fd = evq_fd(f->q), .events = POLLIN};
	struct event event;

	echo(f, "x", 1, 0, 0);
	do_one(f, IO_READ, 0, PAGE_BYTES, 0, 0);
	/* Events already taken may have left at most one wake-up. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(evq_arm(f->q), 0);
		assert_int_equal(evq_poll(f->q, &event, 1), 0);
		if (poll(&pfd, 1, 50) == 0)
			return;
	}
	fail_msg("the descriptor is readable for nothing");
}

static void counters__of_messages(void **state)
{
	struct fixture *f = *state;
	struct channel_counters before = *channel_counters(f->ch);
	const struct channel_counters *now = channel_counters(f->ch);

	echo(f, "12345", 5, 0, 0);
	assert_int_equal(now->sends - before.sends, 1);
	assert_int_equal(now->send_bytes - before.send_bytes, 5);
	assert_int_equal(now->recvs - before.recvs, 1);
	assert_int_equal(now->recv_bytes - before.recv_bytes, 5);
}

static const struct CMUnitTest tests[] = {
	CHANNEL_CASE(send__with_and_without_immediate),
	CHANNEL_CASE(send__empty),
	CHANNEL_CASE(send__longest),
	CHANNEL_CASE(send__too_long),
	CHANNEL_CASE(send__buffers_run_out_and_come_back),
	CHANNEL_CASE(recv__in_order),
	CHANNEL_CASE(recv__given_back_in_any_order),
	CHANNEL_CASE(send__to_a_busy_peer),
	CHANNEL_CASE(send__arrives_after_the_write),
	CHANNEL_CASE(arm__no_lost_wake_up),
	CHANNEL_CASE(arm__quiet_without_work),
	CHANNEL_CASE(counters__of_messages),
};

const struct cases message_cases = {"message", tests, ARRAY_SIZE(tests), ALL_KINDS};
