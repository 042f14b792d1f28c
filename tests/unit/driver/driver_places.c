/* driver_places.c - crowds at one address: of clients with a key, which all get in, and of
 * strangers, which keep no client out and take little memory. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/auth/handshake.h"
#include "common/base/sanitized.h"
#include "common/base/util.h"
#include "common/transport/sock/frame.h"
#include "common/transport/transport_ops.h"
#include "server/session/places.h"
#include "tests/unit/driver/client.h"
#include "tests/unit/driver/driver.h"
#include "tests/unit/emulated.h"

static struct test_server server;
static struct rpc_client client;
static struct handshake_context *context;
static char text[RPC_TEXT_MAX + 1];

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

/* ---- clients with a key ---------------------------------------------------------------------- */

/* One channel of one of many clients. Channel 0 makes the session, which the others join then. */
struct member {
	struct rpc_client c; /* shares transport and queue with all others */
	struct member *first;
	struct handshake *h;
	struct channel_keys keys;
	bool attached;
};

enum { CLIENTS = 256, CHANNELS_EACH = 4, MEMBERS = CLIENTS * CHANNELS_EACH };

static struct member members[MEMBERS];

static void member_connect(struct member *m)
{
	struct transport_address address;

	server_address(&server, &address);
	assert_int_equal(channel_connect(m->c.q, &address, &m->c.channel), 0);
	channel_set_user(m->c.channel, m);
}

static void send_flight(struct member *m, uint8_t step, const void *in, size_t inlen)
{
	struct rpc_request req = {.op = RPC_AUTH, .slot = RPC_NO_SLOT};
	uint8_t flight[HANDSHAKE_FLIGHT_MAX];
	size_t len;

	assert_int_not_equal(
		handshake_step(m->h, in, inlen, flight, sizeof(flight), &len), HANDSHAKE_REFUSED);
	req.auth = (struct rpc_auth){step, {flight, (uint32_t)len}};
	client_send(&m->c, &req);
}

static void member_opened(struct member *m)
{
	assert_int_equal(handshake_client_new(context, &server.key, &m->h), 0);
	send_flight(m, 1, NULL, 0);
}

static void send_attach(struct member *m)
{
	struct rpc_request req = {.op = RPC_ATTACH, .slot = RPC_NO_SLOT};
	const struct rpc_attach_reply *made = &m->first->c.attached;

	req.attach = (struct rpc_attach){
		.session = m == m->first ? 0 : made->session,
		.instance = 1,
		.channel = (uint16_t)(m - m->first),
		.nchannels = CHANNELS_EACH,
		.flags = ATTACH_SHARED,
		.export_name = str("default"),
		.client = str("one of many"),
	};
	memcpy(req.attach.owner, m->first->c.owner, OWNER_BYTES);
	req.attach.store_id = made->store_id;
	req.attach.token = made->token;
	client_send(&m->c, &req);
}

static void take_auth(struct member *m, const struct rpc_reply *rep)
{
	struct channel *ch = m->c.channel;

	if (!m->h) {
		assert_int_equal(channel_protect(ch, PROTECT_OUT, &m->keys), 0);
		send_attach(m);
		return;
	}
	send_flight(m, 2, rep->auth.tail.data, rep->auth.tail.len);
	assert_int_equal(handshake_keys(m->h, channel_client_hello(ch), channel_server_hello(ch),
				 (uint8_t)server.kind, &m->keys),
		0);
	assert_int_equal(channel_protect(ch, PROTECT_IN, &m->keys), 0);
	handshake_delete(m->h);
	m->h = NULL;
}

static void take_reply(struct member *m, const struct event *event)
{
	struct rpc_reply rep;

	assert_int_equal(rpc_reply_decode(&rep, RMEMFS_WIRE_VERSION, event->data, event->len), 0);
	assert_int_equal(rep.status, 0);
	if (rep.op == RPC_AUTH) {
		take_auth(m, &rep);
	} else {
		assert_int_equal(rep.op, RPC_ATTACH);
		m->attached = true;
		m->c.attached = rep.attach;
		for (unsigned i = 1; m == m->first && i < CHANNELS_EACH; i++)
			member_connect(m + i);
	}
	channel_recv_done(m->c.channel, event->data);
}

/* On a busy machine this process may stand still for longer than a step may take. Then it comes
 * again, as a client does. */
static void member_closed(struct member *m)
{
	assert_false(m->attached);
	handshake_delete(m->h);
	m->h = NULL;
	channel_delete(m->c.channel);
	member_connect(m);
}

/* All at once, and all get in. None is refused, nor closed for there being too many. */
static void attach__clients_of_one_address_with_their_channels(void **state)
{
	unsigned attached = 0;

	skip_if_emulated(); /* its times are too short for that */
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *m = &members[i];

		*m = (struct member){.c = client, .first = &members[i - i % CHANNELS_EACH]};
		snprintf((char *)m->c.owner, sizeof(m->c.owner), "client %u", i / CHANNELS_EACH);
	}
	for (unsigned i = 0; i < MEMBERS; i += CHANNELS_EACH)
		member_connect(&members[i]);
	while (attached < MEMBERS) {
		struct event event;
		struct member *m;

		client_event(&client, &event);
		m = channel_user(event.channel);
		if (event.type == EV_OPEN)
			member_opened(m);
		else if (event.type == EV_CLOSED)
			member_closed(m);
		else if (event.len)
			take_reply(m, &event);
		attached += event.type == EV_RECV && m->attached;
	}
	assert_false(server_logged(&server, "refused"));
	assert_false(server_logged(&server, "too many channels"));
	for (unsigned i = 0; i < MEMBERS; i++)
		channel_delete(members[i].c.channel);
}

/* ---- strangers ------------------------------------------------------------------------------- */

/* More than a listener has guests, and channels that wait. */
enum { STRANGERS = 2500, GROWTH_KIB = 8 << 10 };

static int strangers[STRANGERS];

/* from: the last byte of its address in 127.0.0.0/24. */
static int stranger_connect(unsigned from)
{
	struct sockaddr_in own = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + from)};
	const struct transport_hello hello = {
		.version = RMEMFS_WIRE_VERSION, .msg_bytes = 16384, .nrecv = 64, .nwork = 64};
	uint8_t bytes[TRANSPORT_HELLO_BYTES];
	struct transport_address address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	server_address(&server, &address);
	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address.addr, address.addrlen), 0);
	transport_hello_encode(&hello, bytes);
	assert_int_equal(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL), (ssize_t)sizeof(bytes));
	return fd;
}

/* The server may have closed the connection already. */
static void stranger_send_auth(int fd, const void *flight, size_t len)
{
	struct rpc_request req = {.op = RPC_AUTH,
		.slot = RPC_NO_SLOT,
		.auth = {.step = 1, .tail = {flight, (uint32_t)len}}};
	uint8_t bytes[FRAME_BYTES + RPC_MSG_BYTES];
	struct sock_frame frame = {.type = FRAME_MESSAGE};
	size_t n;

	assert_int_equal(rpc_request_encode(&req, RMEMFS_WIRE_VERSION, bytes + FRAME_BYTES,
				 sizeof(bytes) - FRAME_BYTES, &n),
		0);
	frame.len = n;
	sock_frame_encode(&frame, bytes);
	(void)!send(fd, bytes, FRAME_BYTES + n, MSG_NOSIGNAL);
}

static long resident_kib(void)
{
	char path[64], line[128];
	long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", server.pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (kib < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "VmRSS: %ld kB", &kib);
	fclose(f);
	return kib;
}

static void assert_gets_in(void)
{
	client_connect(&client);
	assert_int_equal(client_attach(&client, "default", 0, 0, text), 0);
	client_bye(&client);
	client_drop(&client);
}

/* flight: their first message; len 0: they are silent. All are at the client's own address, and
 * nobody closes one but the server. */
static void crowd(const void *flight, size_t len)
{
	long before;

	assert_gets_in(); /* the server has its memory for clients */
	before = resident_kib();
	for (unsigned i = 0; i < STRANGERS; i++) {
		strangers[i] = stranger_connect(1);
		if (len)
			stranger_send_auth(strangers[i], flight, len);
	}
	assert_gets_in();
	if (!IS_SANITIZED)
		assert_true(resident_kib() - before < GROWTH_KIB);
	for (unsigned i = 0; i < STRANGERS; i++)
		close(strangers[i]);
}

static void crowd__of_silent_ones(void **state)
{
	crowd(NULL, 0);
}

static void crowd__of_forged_flights(void **state)
{
	crowd("forged", 6);
}

/* Each has the flight of a holder of the key, and could go on. */
static void crowd__of_those_that_stop_half_way(void **state)
{
	uint8_t flight[HANDSHAKE_FLIGHT_MAX];
	struct handshake *h;
	size_t len;

	assert_int_equal(handshake_client_new(context, &server.key, &h), 0);
	assert_int_equal(handshake_step(h, NULL, 0, flight, sizeof(flight), &len), HANDSHAKE_MORE);
	handshake_delete(h);
	crowd(flight, len);
}

/* Strangers of other addresses have all places there are. */
static void crowd__of_many_addresses(void **state)
{
	for (unsigned i = 0; i < PLACES; i++)
		strangers[i] = stranger_connect(2 + i / PLACES_OF_ADDRESS);
	assert_gets_in();
	server_logs(&server, "it has proven no key in time, and others wait");
	for (unsigned i = 0; i < PLACES; i++)
		close(strangers[i]);
}

/* ---- ATTACHes that wait ---------------------------------------------------------------------- */

/* One holder's ATTACHes wait for its other client. So many do, and the next one is told at once. */
static void attach__so_many_of_a_holder_wait(void **state)
{
	enum { MORE = 2 };
	static struct rpc_client waiting[ATTACH_WAITING_OF_HOLDER + MORE];
	struct rpc_request req = {.op = RPC_ATTACH, .slot = RPC_NO_SLOT};
	struct rpc_reply rep;

	client_begin(&client);
	for (unsigned i = 0; i < ARRAY_SIZE(waiting); i++) {
		struct rpc_client *c = &waiting[i];

		client_init(c, &server, "waiting", i + 2);
		client_connect(c);
		assert_int_equal(client_prove(c, &server.key), 0);
		req.attach = (struct rpc_attach){.instance = i + 2,
			.nchannels = 1,
			.wait_ms = WAIT_MS,
			.export_name = str("default"),
			.client = str("waits")};
		memcpy(req.attach.owner, c->owner, OWNER_BYTES);
		client_send(c, &req);
		if (i < ATTACH_WAITING_OF_HOLDER)
			continue;
		client_receive(c, &rep);
		assert_int_equal(rep.status, -EBUSY);
	}
	/* One that waited gets in. */
	client_bye(&client);
	client_drop(&client);
	client_receive(&waiting[0], &rep);
	assert_int_equal(rep.status, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(waiting); i++)
		client_fini(&waiting[i]);
}

/* ---- the group ------------------------------------------------------------------------------- */

/* The clients send no pings. In a slow guest several connections take longer than a second, and a
 * client that is silent for the lease time gives way to the next one. */
enum { LEASE_S = 3600 };

static int set_up(void **state)
{
	struct rlimit limit;
	char why[256];

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -1;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) ||
		handshake_context_new(HANDSHAKE_CLIENT, &context, why, sizeof(why)))
		return -1;
	server_init_timed(&server, driver_kind, LEASE_S, LEASE_S);
	client_init(&client, &server, "client", 1);
	return 0;
}

static int tear_down(void **state)
{
	client_fini(&client);
	server_fini(&server);
	handshake_context_delete(context);
	return 0;
}

int driver_run_places(void)
{
#define PLACES_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		PLACES_TEST(attach__so_many_of_a_holder_wait),
	};
	/* Raw sockets, and more channels than a guest's device has. */
	static const struct CMUnitTest tcp_tests[] = {
		PLACES_TEST(attach__clients_of_one_address_with_their_channels),
		PLACES_TEST(crowd__of_silent_ones),
		PLACES_TEST(crowd__of_forged_flights),
		PLACES_TEST(crowd__of_those_that_stop_half_way),
		PLACES_TEST(crowd__of_many_addresses),
	};
	int failed = 0;

	if (driver_kind != TRANSPORT_SHM)
		failed += cmocka_run_group_tests_name("places", tests, NULL, NULL);
	if (driver_kind == TRANSPORT_TCP)
		failed += cmocka_run_group_tests_name("crowds", tcp_tests, NULL, NULL);
	return failed;
}
