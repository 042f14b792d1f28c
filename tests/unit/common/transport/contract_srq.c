/* contract_srq.c - many channels share a server's receives over verbs: few receives are enough for
 * many channels, a channel that sends too much takes only a bounded number, and none is lost with
 * channels that end. */
#include "tests/unit/common/transport/contract.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/transport/verbs/internal.h"
#include "common/rpc/wire_version.h"

/* Messages of many packets, so that a channel can end in the middle of one. */
enum { LONG_BYTES = 64 << 10, MANY = 64, SOME = 24, FEW = 64, STRANGER_SENDS = 30, STRANGERS = 4 };

/* The server uses the fixture's queue; its clients have one of their own. */
struct shared {
	struct fixture *f;
	struct evq *clients;
	uint32_t msg_bytes;
};

static int setup_shared_of(void **state, uint32_t msg_bytes)
{
	struct shared *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	contract_msg_bytes = msg_bytes;
	setup_server(state);
	contract_msg_bytes = MSG_BYTES;
	s->f = *state;
	s->msg_bytes = msg_bytes;
	assert_int_equal(evq_new(s->f->t, &s->clients), 0);
	*state = s;
	return 0;
}

static int setup_shared(void **state)
{
	return setup_shared_of(state, MSG_BYTES);
}

static int setup_long(void **state)
{
	return setup_shared_of(state, LONG_BYTES);
}

/* Uses a device with the fewest receives. */
static int setup_small(void **state)
{
	struct verbs_transport *t;
	struct verbs_evq *q;
	struct shared *s;

	setup_shared(state);
	s = *state;
	t = verbs_transport(s->f->t);
	q = verbs_evq(s->f->q);
	if (!q->srq)
		return 0;
	verbs_srq_delete(q->srq);
	t->device.max_srq_wr = FEW;
	assert_int_equal(verbs_srq_new(t, &q->srq), 0);
	return 0;
}

static int teardown_shared(void **state)
{
	struct shared *s = *state;

	evq_delete(s->clients);
	*state = s->f;
	free(s);
	return teardown(state);
}

static struct verbs_srq *srq_of(const struct shared *s)
{
	return verbs_evq(s->f->q)->srq;
}

/* Without shared receives there is nothing to test: RMEMFS_VERBS_SRQ=off, or no windows. */
static bool shares(const struct shared *s)
{
	return srq_of(s);
}

/* ---- channels of clients --------------------------------------------------------------------- */

struct pair {
	struct channel *server, *client;
};

static struct pair pair_new(struct shared *s)
{
	int64_t until = now_ms() + WAIT_MS;
	struct pair p = {0};
	int nopen = 0;

	assert_int_equal(channel_connect(s->clients, &s->f->address, &p.client), 0);
	while (nopen < 2) {
		struct event event;

		assert_true(now_ms() < until);
		if (evq_poll(s->f->q, &event, 1) == 1) {
			p.server = event.channel;
			if (event.type == EV_INCOMING)
				assert_int_equal(channel_accept(event.channel), 0);
			else
				nopen += event.type == EV_OPEN;
		}
		if (evq_poll(s->clients, &event, 1) == 1) {
			assert_int_equal(event.type, EV_OPEN);
			nopen++;
		}
	}
	return p;
}

static void pair_delete(struct shared *s, struct pair *p)
{
	fence_delete(s->f, p->server);
	channel_delete(p->client);
	*p = (struct pair){0};
}

/* One message, and its number back: by then its receive is posted again, and no completion is left.
 */
static void roundtrip(struct shared *s, const struct pair *p, uint64_t number)
{
	struct ask ask = {.value = number};

	send_ask(p->client, ask);
	ask = expect_ask(s->f->q);
	assert_int_equal(ask.value, number);
	send_ask(p->server, ask);
	assert_int_equal(expect_ask(s->clients).value, number);
	expect_silence(s->f->q, 0);
}

/* ---- strangers that do not wait -------------------------------------------------------------- */

struct stranger {
	struct rdma_event_channel *cm;
	struct rdma_cm_id *id;
	struct channel *server;
	struct ibv_mr *mr;
	uint8_t message[64];
	unsigned nsent;
};

static void stranger_expect(struct shared *s, struct stranger *x, enum rdma_cm_event_type type)
{
	struct pollfd pfd = {.fd = x->cm->fd, .events = POLLIN};
	int64_t until = now_ms() + WAIT_MS;
	struct rdma_cm_event *cm_event;
	struct event event;

	while (poll(&pfd, 1, 5) == 0) {
		assert_true(now_ms() < until);
		if (evq_poll(s->f->q, &event, 1) == 1) {
			assert_int_equal(event.type, EV_INCOMING);
			x->server = event.channel;
			assert_int_equal(channel_accept(x->server), 0);
		}
	}
	assert_int_equal(rdma_get_cm_event(x->cm, &cm_event), 0);
	assert_int_equal(cm_event->event, type);
	rdma_ack_cm_event(cm_event);
}

static void stranger_connect(struct shared *s, struct stranger *x)
{
	struct sockaddr_storage addr = s->f->address.addr;
	struct transport_hello hello = {.version = RMEMFS_WIRE_VERSION,
		.msg_bytes = s->msg_bytes,
		.nrecv = NRECV,
		.nwork = NWORK};
	uint8_t bytes[TRANSPORT_HELLO_BYTES];
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 2 * STRANGER_SENDS,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct rdma_conn_param param = {.private_data = bytes,
		.private_data_len = sizeof(bytes),
		.initiator_depth = 1,
		.responder_resources = 1,
		.retry_count = 6};

	*x = (struct stranger){.cm = rdma_create_event_channel()};
	transport_hello_encode(&hello, bytes);
	assert_non_null(x->cm);
	assert_int_equal(rdma_create_id(x->cm, &x->id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(x->id, NULL, (struct sockaddr *)&addr, WAIT_MS), 0);
	stranger_expect(s, x, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(x->id, WAIT_MS), 0);
	stranger_expect(s, x, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_create_qp(x->id, NULL, &attr), 0);
	x->mr = rdma_reg_msgs(x->id, x->message, sizeof(x->message));
	assert_non_null(x->mr);
	assert_int_equal(rdma_connect(x->id, &param), 0);
	stranger_expect(s, x, RDMA_CM_EVENT_ESTABLISHED);
	assert_ptr_equal(expect_event(s->f->q, EV_OPEN, 0).channel, x->server);
}

static void stranger_delete(struct stranger *x)
{
	rdma_destroy_qp(x->id);
	rdma_dereg_mr(x->mr);
	rdma_destroy_id(x->id);
	rdma_destroy_event_channel(x->cm);
}

/* Soft-RoCE's count of answers that no receive is posted. */
static uint64_t count_refusals(const struct shared *s)
{
	char path[128], text[32];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/rcvd_rnr_err",
		transport_device(s->f->t));
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	return strtoull(text, NULL, 10);
}

/* False: there was no receive for it, and the device sends it again until there is one. */
static bool stranger_send(const struct shared *s, struct stranger *x)
{
	uint64_t refusals = count_refusals(s);
	int64_t until = now_ms() + WAIT_MS;
	struct ibv_wc wc;

	assert_int_equal(rdma_post_send(x->id, NULL, x->message, sizeof(x->message), x->mr,
				 IBV_SEND_SIGNALED),
		0);
	while (ibv_poll_cq(x->id->send_cq, 1, &wc) == 0) {
		assert_true(now_ms() < until);
		if (count_refusals(s) != refusals)
			return false;
	}
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	x->nsent++;
	return true;
}

/* How many messages arrive while the server takes none: the number of receives really posted. */
static unsigned fill_receives(const struct shared *s, struct stranger strangers[STRANGERS])
{
	unsigned n = 0;

	for (int i = 0; i < STRANGERS; i++)
		for (int j = 0; j < STRANGER_SENDS; j++, n++)
			if (!stranger_send(s, &strangers[i]))
				return n;
	fail_msg("all of %u messages came in", n);
	return n;
}

/* Each channel that sent more than it may is closed for that. */
static void expect_ends(struct shared *s, struct stranger strangers[STRANGERS])
{
	unsigned nrecv[STRANGERS] = {0};
	int nclosed = 0, want = 0;

	for (int i = 0; i < STRANGERS; i++)
		want += strangers[i].nsent > NRECV + 1;
	while (nclosed < want) {
		struct event event = next_event(s->f->q);
		int i = 0;

		while (strangers[i].server != event.channel)
			i++;
		if (event.type == EV_CLOSED) {
			assert_int_equal(event.status, -EPROTO);
			assert_int_equal(nrecv[i], NRECV + 1);
			nclosed++;
		} else {
			assert_int_equal(event.type, EV_RECV);
			nrecv[i]++;
		}
	}
}

static void end_strangers(struct shared *s, struct stranger strangers[STRANGERS])
{
	for (int i = 0; i < STRANGERS; i++) {
		/* Ignore their other events. */
		assert_int_equal(channel_fence(strangers[i].server), 0);
		while (next_event(s->f->q).type != EV_FENCED)
			;
		channel_delete(strangers[i].server);
		stranger_delete(&strangers[i]);
	}
}

/* Completes rounds until no receive is in doubt: before, there may be more receives than needed. */
static void settle(struct shared *s, const struct pair *p)
{
	for (uint64_t n = 0; verbs_srq_doubts(srq_of(s)); n++) {
		roundtrip(s, p, n);
		assert_true(n < 4 * (uint64_t)verbs_srq_size(srq_of(s)));
	}
}

static void expect_all_posted(struct shared *s, const struct pair *p)
{
	struct stranger strangers[STRANGERS];

	settle(s, p);
	for (int i = 0; i < STRANGERS; i++)
		stranger_connect(s, &strangers[i]);
	assert_int_equal(fill_receives(s, strangers), verbs_srq_size(srq_of(s)));
	expect_ends(s, strangers);
	end_strangers(s, strangers);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void receives__few_for_many_channels(void **state)
{
	struct shared *s = *state;
	struct pair pairs[MANY];

	if (!shares(s))
		return;
	for (int i = 0; i < MANY; i++)
		pairs[i] = pair_new(s);
	/* Half of what they would have if each channel had its own. */
	assert_true(verbs_srq_size(srq_of(s)) <= MANY * (NRECV + 1) / 2 + 64);
	/* All messages that may be in flight at once: more than there are receives. */
	for (uint64_t n = 0; n < NRECV; n++)
		for (int i = 0; i < MANY; i++)
			send_ask(pairs[i].client, (struct ask){.value = n});
	for (int got = 0; got < MANY * NRECV; got++) {
		struct event event = expect_event(s->f->q, EV_RECV, 0);
		uintptr_t n = (uintptr_t)channel_user(event.channel);
		struct ask ask;

		memcpy(&ask, event.data, sizeof(ask));
		assert_int_equal(ask.value, n);
		channel_set_user(event.channel, (void *)(n + 1));
		channel_recv_done(event.channel, event.data);
	}
	for (int i = 0; i < MANY; i++) {
		assert_int_equal((uintptr_t)channel_user(pairs[i].server), NRECV);
		roundtrip(s, &pairs[i], (uint64_t)i);
	}
	for (int i = 0; i < MANY; i++)
		pair_delete(s, &pairs[i]);
}

static void receives__are_not_what_the_caller_has(void **state)
{
	struct shared *s = *state;
	struct pair pairs[SOME];
	const void *held[SOME][NRECV];

	if (!shares(s))
		return;
	for (int i = 0; i < SOME; i++)
		pairs[i] = pair_new(s);
	for (int i = 0; i < SOME; i++)
		for (uint64_t n = 0; n < NRECV; n++) {
			send_ask(pairs[i].client, (struct ask){.value = n});
			held[i][n] = expect_event(s->f->q, EV_RECV, 0).data;
		}
	/* That was more than the receives, and all messages arrived as sent. */
	assert_true(SOME * NRECV > verbs_srq_size(srq_of(s)));
	for (int i = 0; i < SOME; i++)
		for (uint64_t n = 0; n < NRECV; n++) {
			struct ask ask;

			memcpy(&ask, held[i][n], sizeof(ask));
			assert_int_equal(ask.value, n);
			channel_recv_done(pairs[i].server, held[i][n]);
		}
	for (int i = 0; i < SOME; i++) {
		roundtrip(s, &pairs[i], 1);
		pair_delete(s, &pairs[i]);
	}
}

/* While one channel has taken all receives a message is delayed, but neither it nor its channel is
 * lost. */
static void receives__all_taken_by_one_who_sends_too_much(void **state)
{
	struct shared *s = *state;
	struct stranger strangers[STRANGERS];
	struct event event;
	struct pair p;

	if (!shares(s))
		return;
	p = pair_new(s);
	for (int i = 0; i < STRANGERS; i++)
		stranger_connect(s, &strangers[i]);
	assert_int_equal(fill_receives(s, strangers), verbs_srq_size(srq_of(s)));
	for (uint64_t n = 0; n < NRECV; n++)
		send_ask(p.client, (struct ask){.value = n});
	assert_int_equal(evq_poll(s->clients, &event, 1), 0);
	poll(NULL, 0, 20);
	for (uint64_t n = 0; n < NRECV;) {
		struct ask ask;

		event = next_event(s->f->q);
		if (event.channel != p.server)
			continue;
		assert_int_equal(event.type, EV_RECV);
		memcpy(&ask, event.data, sizeof(ask));
		assert_int_equal(ask.value, n++);
		channel_recv_done(p.server, event.data);
	}
	end_strangers(s, strangers);
	roundtrip(s, &p, 17);
	expect_all_posted(s, &p);
	pair_delete(s, &p);
}

/* The channel ends in the middle of its messages, of which one has arrived. */
static void end_amid_messages(struct shared *s, int how)
{
	struct pair p = pair_new(s);
	uint8_t data[LONG_BYTES];
	struct event event;

	fill_pattern(data, sizeof(data), (unsigned)how);
	for (int i = 0; i < NRECV; i++)
		send_message(p.client, data, sizeof(data), 0, 0);
	assert_ptr_equal(expect_event(s->f->q, EV_RECV, 0).channel, p.server);
	if (how == 0) {
		assert_int_equal(channel_fence(p.server), 0);
		while (next_event(s->f->q).type != EV_FENCED)
			;
	} else if (how == 1) {
		channel_delete(p.client);
		p.client = NULL;
		do
			event = next_event(s->f->q);
		while (event.type == EV_RECV);
		assert_int_equal(event.type, EV_CLOSED);
		assert_int_equal(channel_fence(p.server), 0);
		expect_event(s->f->q, EV_FENCED, 0);
	}
	channel_delete(p.server);
	if (p.client) {
		expect_event(s->clients, EV_CLOSED, -ECONNRESET);
		channel_delete(p.client);
	}
}

static void receives__come_back_from_channels_that_end_amid_messages(void **state)
{
	struct shared *s = *state;
	struct pair p;

	if (!shares(s))
		return;
	p = pair_new(s);
	for (int round = 0; round < 12; round++) {
		for (int i = 0; i < 4; i++)
			end_amid_messages(s, (round + i) % 3);
		expect_all_posted(s, &p);
	}
	pair_delete(s, &p);
}

/* A silent channel that ends without proof that it has taken no receive. So it is with Soft-RoCE;
 * other devices are late. */
static void come_and_go(struct shared *s)
{
	struct pair p = pair_new(s);

	fence_delete(s->f, p.server);
	expect_event(s->clients, EV_CLOSED, -ECONNRESET);
	channel_delete(p.client);
}

static bool takes_part(const struct pair *p)
{
	return verbs_channel(p->server)->srq;
}

/* While one silent channel stays, the receives of ended channels remain in doubt. */
static void receives__of_its_own_has_who_comes_after_too_many(void **state)
{
	struct shared *s = *state;
	struct pair quiet, late, p;
	const void *held[NRECV];

	if (!shares(s))
		return;
	quiet = pair_new(s);
	for (int i = 0; i < FEW / 2; i++)
		come_and_go(s);
	assert_true(verbs_srq_doubts(srq_of(s)) < FEW / 2);
	assert_true(verbs_srq_size(srq_of(s)) <= FEW);
	late = pair_new(s);
	assert_int_equal(takes_part(&late), verbs_srq_doubts(srq_of(s)) == 0);
	for (uint64_t n = 0; n < NRECV; n++) {
		send_ask(late.client, (struct ask){.value = n});
		held[n] = expect_event(s->f->q, EV_RECV, 0).data;
	}
	for (int n = 0; n < NRECV; n++)
		channel_recv_done(late.server, held[n]);
	for (uint64_t n = 0; n < 4 * NRECV; n++)
		roundtrip(s, &late, n);
	/* And the first one's completions make room for others. */
	settle(s, &quiet);
	p = pair_new(s);
	assert_true(takes_part(&p));
	roundtrip(s, &p, 17);
	pair_delete(s, &p);
	pair_delete(s, &late);
	settle(s, &quiet);
	expect_all_posted(s, &quiet);
	pair_delete(s, &quiet);
}

static void receives__few_where_others_come_and_go(void **state)
{
	struct shared *s = *state;
	struct pair p;

	if (!shares(s))
		return;
	p = pair_new(s);
	for (int i = 0; i < FEW / 2; i++) {
		come_and_go(s);
		for (uint64_t n = 0; n < NRECV; n++)
			roundtrip(s, &p, n);
		assert_true(verbs_srq_doubts(srq_of(s)) <= FEW / 3);
	}
	expect_all_posted(s, &p);
	pair_delete(s, &p);
}

static void receives__are_made_anew_when_all_have_gone(void **state)
{
	struct shared *s = *state;
	struct pair p;

	if (!shares(s))
		return;
	for (int i = 0; i < 3; i++) {
		for (int j = 0; j < 4; j++)
			end_amid_messages(s, j % 3);
		assert_int_equal(verbs_srq_doubts(srq_of(s)), 0);
		p = pair_new(s);
		assert_true(takes_part(&p));
		assert_int_equal(verbs_srq_size(srq_of(s)), FEW);
		expect_all_posted(s, &p);
		pair_delete(s, &p);
		assert_int_equal(verbs_srq_doubts(srq_of(s)), 0);
	}
}

#define SHARED_CASE(test) cmocka_unit_test_setup_teardown(test, setup_shared, teardown_shared)
#define LONG_CASE(test)   cmocka_unit_test_setup_teardown(test, setup_long, teardown_shared)
#define SMALL_CASE(test)  cmocka_unit_test_setup_teardown(test, setup_small, teardown_shared)

static const struct CMUnitTest tests[] = {
	SHARED_CASE(receives__few_for_many_channels),
	SHARED_CASE(receives__are_not_what_the_caller_has),
	SHARED_CASE(receives__all_taken_by_one_who_sends_too_much),
	LONG_CASE(receives__come_back_from_channels_that_end_amid_messages),
	SMALL_CASE(receives__of_its_own_has_who_comes_after_too_many),
	SMALL_CASE(receives__few_where_others_come_and_go),
	LONG_CASE(receives__are_made_anew_when_all_have_gone),
};

const struct cases srq_cases = {"srq", tests, ARRAY_SIZE(tests), 1 << TRANSPORT_VERBS};
