/* contract_verbs.c - peers on verbs that break the protocol; they use librdmacm directly here. */
#include "tests/unit/common/transport/contract.h"

#include <poll.h>
#include <rdma/rdma_verbs.h>

#include "common/transport/transport_ops.h"
#include "common/rpc/wire_version.h"

struct stranger {
	struct rdma_event_channel *cm;
	struct rdma_cm_id *id;
};

static struct stranger stranger_new(void)
{
	struct stranger s = {.cm = rdma_create_event_channel()};

	assert_non_null(s.cm);
	assert_int_equal(rdma_create_id(s.cm, &s.id, NULL, RDMA_PS_TCP), 0);
	return s;
}

static void stranger_delete(struct stranger s)
{
	if (s.id->qp)
		rdma_destroy_qp(s.id);
	rdma_destroy_id(s.id);
	rdma_destroy_event_channel(s.cm);
}

/* Runs our own queue, which must give no events, until the stranger has its event. */
static struct rdma_cm_event *await(
	const struct fixture *f, const struct stranger *s, enum rdma_cm_event_type type)
{
	struct pollfd pfds[2] = {
		{.fd = s->cm->fd, .events = POLLIN},
		{.fd = evq_fd(f->q), .events = POLLIN},
	};
	struct rdma_cm_event *cm_event;
	struct event event;

	while (!pfds[0].revents) {
		assert_int_equal(evq_arm(f->q), 0);
		assert_int_equal(evq_poll(f->q, &event, 1), 0);
		assert_true(poll(pfds, 2, WAIT_MS) > 0);
	}
	assert_int_equal(rdma_get_cm_event(s->cm, &cm_event), 0);
	assert_int_equal(cm_event->event, type);
	return cm_event;
}

static void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

static void stranger_connect(const struct fixture *f, struct stranger *s, const uint8_t *hello)
{
	struct sockaddr_storage addr = f->address.addr;
	struct rdma_conn_param param = {
		.private_data = hello,
		.private_data_len = hello ? TRANSPORT_HELLO_BYTES : 0,
		.initiator_depth = 1,
		.responder_resources = 1,
		.retry_count = 6,
	};

	assert_int_equal(rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&addr, WAIT_MS), 0);
	rdma_ack_cm_event(await(f, s, RDMA_CM_EVENT_ADDR_RESOLVED));
	assert_int_equal(rdma_resolve_route(s->id, WAIT_MS), 0);
	rdma_ack_cm_event(await(f, s, RDMA_CM_EVENT_ROUTE_RESOLVED));
	create_qp(s->id);
	assert_int_equal(rdma_connect(s->id, &param), 0);
}

/* Connects with this hello. The server makes no channel, and its answer says why. */
static void expect_refusal(struct fixture *f, const uint8_t *bytes)
{
	struct stranger s = stranger_new();
	struct transport_hello answer;
	struct rdma_cm_event *event;

	stranger_connect(f, &s, bytes);
	event = await(f, &s, RDMA_CM_EVENT_REJECTED);
	assert_true(event->param.conn.private_data_len >= TRANSPORT_HELLO_BYTES);
	assert_int_equal(transport_hello_decode(event->param.conn.private_data, &answer), 0);
	assert_int_equal(answer.version, RMEMFS_WIRE_VERSION);
	assert_int_equal(answer.status, -EPROTO);
	rdma_ack_cm_event(event);
	stranger_delete(s);
}

static void expect_refusal_of(struct fixture *f, struct transport_hello hello)
{
	uint8_t bytes[TRANSPORT_HELLO_BYTES];

	transport_hello_encode(&hello, bytes);
	expect_refusal(f, bytes);
}

static struct transport_hello good_hello(void)
{
	return (struct transport_hello){
		.version = RMEMFS_WIRE_VERSION,
		.msg_bytes = MSG_BYTES,
		.nrecv = NRECV,
		.nwork = NWORK,
	};
}

static void hello__wrong_version(void **state)
{
	struct transport_hello hello = good_hello();

	hello.version++;
	expect_refusal_of(*state, hello);
}

static void hello__of_impossible_sizes(void **state)
{
	struct transport_hello hello = good_hello();

	hello.nrecv = 0;
	expect_refusal_of(*state, hello);
	hello = good_hello();
	hello.msg_bytes = 0;
	expect_refusal_of(*state, hello);
}

static void hello__garbage(void **state)
{
	static const uint8_t bytes[TRANSPORT_HELLO_BYTES] = "GET / HTTP/1.1\r\nHost: memory\r\n";

	expect_refusal(*state, bytes);
	expect_refusal(*state, NULL);
}

/* The listener has the request, but the caller has not seen it. */
static void listener_delete__with_a_channel_waiting(void **state)
{
	struct fixture *f = *state;
	struct stranger s = stranger_new();
	struct transport_hello hello = good_hello();
	uint8_t bytes[TRANSPORT_HELLO_BYTES];
	struct pollfd pfd = {.fd = evq_fd(f->q), .events = POLLIN};

	transport_hello_encode(&hello, bytes);
	stranger_connect(f, &s, bytes);
	assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
	assert_int_equal(evq_poll(f->q, NULL, 0), 0);
	listener_delete(f->l);
	f->l = NULL;
	rdma_ack_cm_event(await(f, &s, RDMA_CM_EVENT_REJECTED));
	stranger_delete(s);
}

/* ---- a listener that is not our server ------------------------------------------------------- */

static void stranger_listen(struct fixture *f, struct stranger *s)
{
	struct sockaddr_storage addr = contract_address().addr;

	assert_int_equal(rdma_bind_addr(s->id, (struct sockaddr *)&addr), 0);
	assert_int_equal(rdma_listen(s->id, 1), 0);
	memcpy(&f->address.addr, rdma_get_local_addr(s->id), f->address.addrlen);
}

static struct rdma_cm_id *take_request(struct fixture *f, const struct stranger *s)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	assert_int_equal(channel_connect(f->q, &f->address, &f->ch), 0);
	event = await(f, s, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void connect__accepted_without_hello(void **state)
{
	struct fixture *f = *state;
	struct stranger s = stranger_new();
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct rdma_cm_id *id;

	stranger_listen(f, &s);
	id = take_request(f, &s);
	create_qp(id);
	assert_int_equal(rdma_accept(id, &param), 0);
	expect_event(f->q, EV_CLOSED, -EPROTO);
	channel_delete(f->ch);
	f->ch = NULL;
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	stranger_delete(s);
}

static void connect__refused_without_hello(void **state)
{
	struct fixture *f = *state;
	struct stranger s = stranger_new();
	struct rdma_cm_id *id;

	stranger_listen(f, &s);
	id = take_request(f, &s);
	assert_int_equal(rdma_reject(id, NULL, 0), 0);
	expect_event(f->q, EV_CLOSED, -EPROTO);
	rdma_destroy_id(id);
	stranger_delete(s);
}

static const struct CMUnitTest tests[] = {
	SERVER_CASE(hello__wrong_version),
	SERVER_CASE(hello__of_impossible_sizes),
	SERVER_CASE(hello__garbage),
	SERVER_CASE(listener_delete__with_a_channel_waiting),
	CLIENT_CASE(connect__accepted_without_hello),
	CLIENT_CASE(connect__refused_without_hello),
};

const struct cases verbs_cases = {"verbs", tests, ARRAY_SIZE(tests), 1 << TRANSPORT_VERBS};
