/* contract_connect.c - listening, connecting, ending in order. */
#include "tests/unit/common/transport/contract.h"
#include "common/rpc/wire_version.h"
#include "common/transport/kinds.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

static void start_server(struct fixture *f, enum peer_role role)
{
	int memory[NREGIONS];

	for (int i = 0; i < NREGIONS; i++)
		memory[i] = f->memory[i].fd;
	peer_start(&f->peer, role, memory, NULL);
	f->address = peer_expect(&f->peer, PEER_READY).address;
}

static void connect__opens(void **state)
{
	struct fixture *f = *state;
	const struct channel_limits *limits = channel_limits(f->ch);

	assert_int_equal(limits->msg_bytes, MSG_BYTES);
	assert_int_equal(limits->peer_nrecv, NRECV);
	assert_true(limits->max_works_read >= 1 && limits->max_works_read <= NWORK);
	assert_true(limits->max_works_write >= 1 && limits->max_works_write <= NWORK);
	assert_true(limits->max_sge_read >= 1 && limits->max_sge_write >= 1);
	assert_true(limits->max_work_bytes >= 1 << 20);
	assert_int_equal(strncmp(channel_peer(f->ch), transport_kind_name(contract_kind),
				 strlen(transport_kind_name(contract_kind))),
		0);
	assert_int_equal(channel_peer_pid(f->ch), contract_kind == TRANSPORT_SHM ? f->peer.pid : 0);
	assert_null(channel_user(f->ch));
	channel_set_user(f->ch, f);
	assert_ptr_equal(channel_user(f->ch), f);
	assert_int_equal(transport_kind_of(f->t), contract_kind);
	assert_true(strlen(transport_device(f->t)) > 0);
}

static void connect__rejected(void **state)
{
	struct fixture *f = *state;

	start_server(f, ROLE_REJECTING_SERVER);
	assert_int_equal(channel_connect(f->q, &f->address, &f->ch), 0);
	expect_event(f->q, EV_CLOSED, -ECONNREFUSED);
	assert_int_equal(post_one(f, IO_READ, 0, 1, 0, 0, NULL), -ENOTCONN);
}

static void connect__nobody_listens(void **state)
{
	struct fixture *f = *state;
	struct transport_address address = contract_address();
	struct listener *l;

	/* An address that was free a moment ago. */
	assert_int_equal(transport_listen(f->q, &address, &l), 0);
	address = *listener_address(l);
	listener_delete(l);
	assert_int_equal(channel_connect(f->q, &address, &f->ch), 0);
	/* The socket's file is gone with the listener. */
	expect_event(f->q, EV_CLOSED, contract_kind == TRANSPORT_SHM ? -ENOENT : -ECONNREFUSED);
	expect_silence(f->q, 0);
}

#ifdef RMEMFS_CRASH_POINTS
/* The server peer is of a release with this version of the protocol. */
static void start_server_of(struct fixture *f, enum peer_role role, uint32_t version)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", version);
	setenv("RMEMFS_WIRE", text, 1);
	start_server(f, role);
	unsetenv("RMEMFS_WIRE");
}

static void connect_in(struct fixture *f, uint32_t version)
{
	channel_delete(f->ch);
	assert_int_equal(channel_connect(f->q, &f->address, &f->ch), 0);
	channel_ask_version(f->ch, version);
}

static void connect__in_each_version_of_the_server(void **state)
{
	static const uint32_t spoken[] = {RMEMFS_WIRE_VERSION, RMEMFS_WIRE_NEXT};
	struct fixture *f = *state;

	start_server_of(f, ROLE_SERVER, RMEMFS_WIRE_NEXT);
	for (unsigned i = 0; i < ARRAY_SIZE(spoken); i++) {
		connect_in(f, spoken[i]);
		expect_event(f->q, EV_OPEN, 0);
		assert_int_equal(channel_version(f->ch), spoken[i]);
		assert_int_equal(channel_peer_version(f->ch), spoken[i]);
	}
}

static void connect__in_a_version_that_the_server_has_not(void **state)
{
	static const uint32_t others[] = {
		0, RMEMFS_WIRE_FIRST - 1, RMEMFS_WIRE_NEXT + 1, UINT32_MAX};
	struct fixture *f = *state;

	start_server_of(f, ROLE_SERVER, RMEMFS_WIRE_NEXT);
	for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
		connect_in(f, others[i]);
		expect_event(f->q, EV_CLOSED, -EPROTO);
		assert_int_equal(channel_peer_version(f->ch), RMEMFS_WIRE_NEXT);
	}
}

/* For another reason than the version: the client must not take it for one. */
static void connect__in_the_version_before__rejected(void **state)
{
	struct fixture *f = *state;

	start_server_of(f, ROLE_REJECTING_SERVER, RMEMFS_WIRE_NEXT);
	connect_in(f, RMEMFS_WIRE_VERSION);
	expect_event(f->q, EV_CLOSED, -ECONNREFUSED);
	assert_int_equal(channel_peer_version(f->ch), RMEMFS_WIRE_VERSION);
}
#endif

static void connect__of_another_kind(void **state)
{
	struct fixture *f = *state;
	struct transport_address address = f->address;
	struct listener *l;

	address.kind = (contract_kind + 1) % TRANSPORT_NKINDS;
	assert_int_equal(channel_connect(f->q, &address, &f->ch), -EINVAL);
	assert_int_equal(transport_listen(f->q, &address, &l), -EINVAL);
}

static void connect__deleted_while_connecting(void **state)
{
	struct fixture *f = *state;

	start_server(f, ROLE_SERVER);
	assert_int_equal(channel_connect(f->q, &f->address, &f->ch), 0);
	channel_delete(f->ch);
	expect_silence(f->q, 0);
	f->ch = connect_channel(f);
}

static void listen__address_in_use(void **state)
{
	struct fixture *f = *state;
	struct listener *l;

	assert_int_equal(transport_listen(f->q, &f->address, &l), -EADDRINUSE);
}

/* The probe gives the errors of listening, and the present listener notices nothing. */
static void probe__tells_what_listening_would(void **state)
{
	struct fixture *f = *state;
	struct transport_address other = f->address;

	assert_int_equal(transport_probe(f->t, &f->address), -EADDRINUSE);
	expect_silence(f->q, 100);
	other.kind = (contract_kind + 1) % TRANSPORT_NKINDS;
	assert_int_equal(transport_probe(f->t, &other), -EINVAL);
	listener_delete(f->l);
	/* Twice: the first probe has left nothing. */
	assert_int_equal(transport_probe(f->t, &f->address), 0);
	assert_int_equal(transport_probe(f->t, &f->address), 0);
	assert_int_equal(transport_listen(f->q, &f->address, &f->l), 0);
}

static void open__bad_config(void **state)
{
	struct transport_address address = contract_address();
	struct transport_config config = contract_config();
	struct transport *t;

	config.msg_bytes = 0;
	assert_int_equal(transport_open(&address, &config, WAIT_MS, &t), -EINVAL);
	config = contract_config();
	config.nwork = 0;
	assert_int_equal(transport_open(&address, &config, WAIT_MS, &t), -EINVAL);
}

static void disconnect__by_client(void **state)
{
	struct fixture *f = *state;

	channel_disconnect(f->ch);
	channel_disconnect(f->ch);
	assert_null(channel_send_buffer(f->ch));
	assert_int_equal(post_one(f, IO_READ, 0, 1, 0, 0, NULL), -ENOTCONN);
	expect_event(f->q, EV_CLOSED, 0);
	channel_disconnect(f->ch);
	assert_int_equal(peer_expect(&f->peer, PEER_CLOSED).status, 0);
}

/* Messages sent before still arrive. */
static void disconnect__after_messages(void **state)
{
	struct fixture *f = *state;

	do_one(f, IO_WRITE, 0, PAGE_BYTES, 0, 0);
	for (int i = 0; i < 3; i++)
		send_ask(f->ch, (struct ask){.op = ASK_HOLD});
	channel_disconnect(f->ch);
	expect_event(f->q, EV_CLOSED, 0);
	assert_int_equal(peer_expect(&f->peer, PEER_CLOSED).status, 0);
}

static void disconnect__by_server(void **state)
{
	struct fixture *f = *state;

	send_ask(f->ch, (struct ask){.op = ASK_HANG_UP});
	expect_event(f->q, EV_CLOSED, 0);
	assert_int_equal(peer_expect(&f->peer, PEER_CLOSED).status, 0);
	expect_silence(f->q, 0);
}

/* The buffer is taken in any case. */
static void send__on_a_closed_channel(void **state)
{
	struct fixture *f = *state;
	void *buf = channel_send_buffer(f->ch);

	assert_non_null(buf);
	channel_disconnect(f->ch);
	expect_event(f->q, EV_CLOSED, 0);
	assert_int_equal(channel_send(f->ch, buf, 1, 0, 0), -ENOTCONN);
}

/* The fixture's two sides are on one machine, so the peer comes from the listener's own address,
 * and from a port that the system chose. */
static void server__knows_the_peers_address(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_storage peer = {0};
	int memory[NREGIONS];
	struct channel *ch;

	for (int i = 0; i < NREGIONS; i++)
		memory[i] = f->memory[i].fd;
	peer_start(&f->peer, ROLE_CLIENT, memory, &f->address);
	ch = expect_event(f->q, EV_INCOMING, 0).channel;
	if (contract_kind == TRANSPORT_SHM) {
		assert_false(channel_peer_address(ch, &peer));
	} else {
		const struct sockaddr_in *from = (const struct sockaddr_in *)&peer;
		const struct sockaddr_in *to = (const struct sockaddr_in *)&f->address.addr;

		assert_true(channel_peer_address(ch, &peer));
		assert_int_equal(from->sin_family, AF_INET);
		assert_int_equal(from->sin_addr.s_addr, to->sin_addr.s_addr);
		assert_int_not_equal(from->sin_port, to->sin_port);
	}
	channel_reject(ch);
	peer_expect(&f->peer, PEER_CLOSED);
}

static struct channel *expect_incoming(struct fixture *f)
{
	int memory[NREGIONS];

	for (int i = 0; i < NREGIONS; i++)
		memory[i] = f->memory[i].fd;
	peer_start(&f->peer, ROLE_CLIENT, memory, &f->address);
	return expect_event(f->q, EV_INCOMING, 0).channel;
}

/* A server may let peers wait for its answer. */
static void server__answers_later(void **state)
{
	struct fixture *f = *state;
	struct channel *ch = expect_incoming(f);

	expect_silence(f->q, 100);
	assert_int_equal(channel_accept(ch), 0);
	expect_event(f->q, EV_OPEN, 0);
	peer_expect(&f->peer, PEER_OPEN);
	fence_delete(f, ch);
	peer_expect(&f->peer, PEER_CLOSED);
}

static void server__answers_a_peer_that_has_gone(void **state)
{
	struct fixture *f = *state;
	struct channel *ch = expect_incoming(f);

	peer_kill(&f->peer);
	expect_silence(f->q, 100);
	if (channel_accept(ch))
		channel_reject(ch);
	else
		fence_delete(f, ch);
	ch = expect_incoming(f);
	peer_kill(&f->peer);
	channel_reject(ch);
	expect_silence(f->q, 0);
}

static void server__fences_and_deletes(void **state)
{
	struct fixture *f = *state;
	int memory[NREGIONS];
	struct channel *ch;

	for (int i = 0; i < NREGIONS; i++)
		memory[i] = f->memory[i].fd;
	peer_start(&f->peer, ROLE_CLIENT, memory, &f->address);
	ch = expect_event(f->q, EV_INCOMING, 0).channel;
	assert_int_equal(channel_accept(ch), 0);
	expect_event(f->q, EV_OPEN, 0);
	peer_expect(&f->peer, PEER_OPEN);
	/* No key was published, so on no kind the fence has to wait. */
	fence_delete(f, ch);
	peer_expect(&f->peer, PEER_CLOSED);
	expect_silence(f->q, 0);
}

static void server__deletes_an_open_channel(void **state)
{
	struct fixture *f = *state;
	int memory[NREGIONS];
	struct channel *ch;

	for (int i = 0; i < NREGIONS; i++)
		memory[i] = f->memory[i].fd;
	peer_start(&f->peer, ROLE_CLIENT, memory, &f->address);
	ch = accept_channel(f);
	peer_expect(&f->peer, PEER_OPEN);
	peer_expect(&f->peer, PEER_WROTE);
	channel_delete(ch);
	peer_expect(&f->peer, PEER_CLOSED);
	expect_silence(f->q, 0);
}

static const struct CMUnitTest tests[] = {
	CHANNEL_CASE(connect__opens),
	CLIENT_CASE(connect__rejected),
	CLIENT_CASE(connect__nobody_listens),
#ifdef RMEMFS_CRASH_POINTS
	CLIENT_CASE(connect__in_each_version_of_the_server),
	CLIENT_CASE(connect__in_a_version_that_the_server_has_not),
	CLIENT_CASE(connect__in_the_version_before__rejected),
#endif
	CLIENT_CASE(connect__of_another_kind),
	CLIENT_CASE(connect__deleted_while_connecting),
	SERVER_CASE(listen__address_in_use),
	SERVER_CASE(probe__tells_what_listening_would),
	cmocka_unit_test(open__bad_config),
	CHANNEL_CASE(disconnect__by_client),
	CHANNEL_CASE(disconnect__after_messages),
	CHANNEL_CASE(disconnect__by_server),
	CHANNEL_CASE(send__on_a_closed_channel),
	SERVER_CASE(server__knows_the_peers_address),
	SERVER_CASE(server__answers_later),
	SERVER_CASE(server__answers_a_peer_that_has_gone),
	SERVER_CASE(server__fences_and_deletes),
	SERVER_CASE(server__deletes_an_open_channel),
};

const struct cases connect_cases = {"connect", tests, ARRAY_SIZE(tests), ALL_KINDS};
