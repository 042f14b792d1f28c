/* driver_strangers.c - peers that no client of ours resembles: they may lose their own session, and
 * no other client notices. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "tests/unit/driver/client.h"
#include "tests/unit/driver/driver.h"

static struct test_server server;
static struct rpc_client client, stranger;

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

static struct rpc_request mkdir_request(const char *name)
{
	return (struct rpc_request){.op = RPC_MKDIR,
		.create = {.parent = ROOT_INO, .mode = S_IFDIR | 0755, .name = str(name)}};
}

static void assert_works(struct rpc_client *c, const char *name)
{
	struct rpc_request req = mkdir_request(name);
	struct rpc_reply rep;

	assert_int_equal(client_call(c, 0, &req, &rep), 0);
}

static void send_attach(struct rpc_client *c)
{
	struct rpc_request req = {.op = RPC_ATTACH, .slot = RPC_NO_SLOT};

	req.attach = (struct rpc_attach){
		.instance = c->instance,
		.nchannels = 1,
		.wait_ms = WAIT_MS,
		.export_name = str("default"),
		.client = str("a stranger"),
	};
	memcpy(req.attach.owner, c->owner, OWNER_BYTES);
	if (server.kind != TRANSPORT_SHM && !c->proven)
		assert_int_equal(client_prove(c, &server.key), 0);
	client_send(c, &req);
}

/* ---- ATTACH ---------------------------------------------------------------------------------- */

/* When the export is free the first ATTACH gets it. Then the second one fails: the channel is
 * attached. */
static void attach__twice_while_waiting(void **state)
{
	struct rpc_reply rep;

	client_begin(&client);
	client_connect(&stranger);
	send_attach(&stranger);
	send_attach(&stranger);
	client_bye(&client);
	client_receive(&stranger, &rep);
	assert_int_equal(rep.status, 0);
	client_receive(&stranger, &rep);
	assert_int_equal(rep.status, -EPROTO);
	assert_works(&stranger, "still-here");
}

/* Keeps the session from being silent while the strangers gather. */
static void stay_alive(void)
{
	struct rpc_request req = {.op = RPC_PING, .slot = RPC_NO_SLOT};
	struct rpc_reply rep;

	client_send(&client, &req);
	client_receive(&client, &rep);
	assert_int_equal(rep.status, 0);
}

/* More channels than may be unattached, each with an ATTACH that waits for the client's session.
 * The client itself can still come back. */
static void attach__many_that_wait_keep_nobody_out(void **state)
{
	enum { MANY = 300 };
	static struct channel *many[MANY];
	struct transport_address address;
	struct event event;

	client_begin(&client);
	for (unsigned i = 0; i < MANY; i++) {
		server_address(&server, &address);
		assert_int_equal(channel_connect(stranger.q, &address, &many[i]), 0);
		do
			client_event(&stranger, &event);
		while (event.channel != many[i]);
		assert_int_equal(event.type, EV_OPEN);
		stranger.channel = many[i];
		stranger.proven = false;
		send_attach(&stranger);
		stay_alive();
	}
	stranger.channel = NULL;
	client_drop(&client);
	client_resume(&client);
	assert_works(&client, "still-here");
	for (unsigned i = 0; i < MANY; i++)
		channel_delete(many[i]);
}

/* More channels than may be unattached, all without a request: the server closes the oldest, or, if
 * they are strangers, lets them wait. */
static void connect__many_that_never_attach_keep_nobody_out(void **state)
{
	enum { MANY = 300 };
	static struct channel *many[MANY];
	struct transport_address address;

	server_address(&server, &address);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(channel_connect(stranger.q, &address, &many[i]), 0);
	for (unsigned opened = 0; opened < (server.kind == TRANSPORT_SHM ? MANY : 16);) {
		struct event event;

		client_event(&stranger, &event);
		opened += event.type == EV_OPEN;
	}
	client_begin(&client);
	client_regions(&client);
	assert_works(&client, "still-here");
	server_logs(&server, server.kind == TRANSPORT_SHM
				     ? "too many channels have not attached"
				     : "it has proven no key in time, and others wait");
	for (unsigned i = 0; i < MANY; i++)
		channel_delete(many[i]);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void status__shows_a_client_whose_name_is_not_utf8(void **state)
{
	static char json[RPC_MSG_BYTES];

	memcpy(client.owner, "caf\xe9", 5);
	client_begin(&client);
	server_status(&server, json);
	assert_non_null(strstr(json, "\"client caf?\""));
}

static void status__shows_nothing_that_steers_a_terminal(void **state)
{
	static char json[RPC_MSG_BYTES];
	char text[RPC_TEXT_MAX + 1];

	memcpy(client.owner, "a\n\x1b[2J\xc2\x9b", 9);
	client_begin(&client);
	server_status(&server, json);
	assert_non_null(strstr(json, "\"client a??[2J?\""));
	client_connect(&stranger);
	assert_true(client_attach(&stranger, "no\x1bthing\xe2\x80\xae", 0, 0, text) < 0);
	assert_non_null(strstr(text, "no export 'no?thing?"));
}

/* ---- what strangers are told ----------------------------------------------------------------- */

static void expect_status(struct rpc_client *c, uint32_t offset, const char *json)
{
	struct rpc_reply rep = client_status(c, offset);

	assert_int_equal(rep.status, 0);
	assert_int_equal(rep.status_text.total, offset + strlen(json));
	assert_int_equal(rep.status_text.tail.len, strlen(json));
	assert_memory_equal(rep.status_text.tail.data, json, strlen(json));
}

/* Also while others are attached. driver_auth.c has those with a key. */
static void status__tells_strangers_versions_alone(void **state)
{
	char json[128];

	snprintf(json, sizeof(json), "{\"version\":\"%s\",\"wire_version\":%d}", RMEMFS_VERSION,
		RMEMFS_WIRE_VERSION);
	client_begin(&client);
	client_connect(&stranger);
	expect_status(&stranger, 0, json);
	expect_status(&stranger, 5, json + 5);
}

/* The server answers as many as for one second at once, then one each EACH_MS, which is longer than
 * a request takes. */
static void status__of_strangers_comes_in_turns(void **state)
{
	enum { AT_ONCE = 10, MORE = 5, EACH_MS = 100 };
	int64_t began = now_ms();

	client_connect(&stranger);
	for (unsigned i = 0; i < AT_ONCE + MORE; i++)
		assert_int_equal(client_status(&stranger, 0).status, 0);
	assert_true(now_ms() - began >= MORE * EACH_MS);
}

/* The server closes channels that exceed its queue. No other client notices, nor when all those
 * that wait go away. */
static void status__many_that_ask_keep_nobody_out(void **state)
{
	enum { MANY = 16, EACH = 4 };
	static struct channel *many[MANY];
	struct transport_address address;
	struct event event;
	bool closed = false;
	unsigned n = 0;

	server_address(&server, &address);
	while (!closed && n < MANY) {
		assert_int_equal(channel_connect(stranger.q, &address, &many[n]), 0);
		do {
			client_event(&stranger, &event);
			closed |= event.type == EV_CLOSED;
			if (event.type == EV_RECV)
				channel_recv_done(event.channel, event.data);
		} while (event.channel != many[n] || event.type != EV_OPEN);
		stranger.channel = many[n++];
		for (unsigned i = 0; i < EACH; i++)
			client_ask_status(&stranger, 0);
	}
	stranger.channel = NULL;
	while (!closed) {
		client_event(&stranger, &event);
		closed |= event.type == EV_CLOSED;
	}
	server_logs(&server, "channel closed: too many ask for the status");
	client_begin(&client);
	assert_works(&client, "beside");
	for (unsigned i = 0; i < n; i++)
		channel_delete(many[i]);
	client_connect(&stranger);
	assert_int_equal(client_status(&stranger, 0).status, 0);
	assert_works(&client, "after");
}

static void attach__strangers_are_not_told_the_exports(void **state)
{
	char text[RPC_TEXT_MAX + 1];

	client_connect(&stranger);
	if (driver_kind == TRANSPORT_SHM) {
		assert_int_equal(client_attach(&stranger, "none", 0, 0, text), -ENOENT);
		assert_string_equal(text, "no export 'none'; exports: default");
	} else {
		assert_int_equal(client_attach(&stranger, "none", 0, 0, text), -EACCES);
		assert_null(strstr(text, "default"));
	}
}

/* ---- silent connections ---------------------------------------------------------------------- */

static int connect_to(const struct transport_address *address)
{
	int fd = socket(address->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address->addr, address->addrlen), 0);
	return fd;
}

/* Makes more connections at another listener than the server may have descriptors. */
static void connect__silent_crowd_at_one_listener_keeps_none_from_another(void **state)
{
	enum { LIMIT = 256, SILENT = 600 };
	static const struct rlimit few = {LIMIT, LIMIT};
	struct transport_address address;
	int silent[SILENT];

	server_listen_too(&server, &address);
	assert_int_equal(prlimit(server.pid, RLIMIT_NOFILE, &few, NULL), 0);
	for (unsigned i = 0; i < SILENT; i++)
		silent[i] = connect_to(&address);
	client_begin(&client);
	client_regions(&client);
	assert_works(&client, "still-here");
	for (unsigned i = 0; i < SILENT; i++)
		close(silent[i]);
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool listens(void)
{
	struct transport_address address;
	struct channel *ch;
	struct event event;

	server_address(&server, &address);
	assert_int_equal(channel_connect(stranger.q, &address, &ch), 0);
	client_event(&stranger, &event);
	channel_delete(ch);
	return event.type == EV_OPEN;
}

/* A request on a channel that the server is closing breaks no rule of the protocol. */
static void sigterm__request_that_comes_too_late(void **state)
{
	struct rpc_request req = mkdir_request("late");

	client_begin(&client);
	assert_int_equal(kill(server.pid, SIGTERM), 0);
	while (listens())
		continue;
	for (unsigned slot = 0; slot < CLIENT_SLOTS; slot++) {
		client_number(&client, slot, &req);
		client_send(&client, &req);
	}
	client_wait_closed(&client);
	server_wait(&server);
	assert_false(server_logged(&server, "warning: shm"));
	assert_false(server_logged(&server, "warning: tcp"));
	server_start(&server);
}

static int set_up(void **state)
{
	server_init(&server, driver_kind);
	client_init(&client, &server, "client", 1);
	client_init(&stranger, &server, "stranger", 1);
	return 0;
}

static int tear_down(void **state)
{
	client_fini(&stranger);
	client_fini(&client);
	server_fini(&server);
	return 0;
}

int driver_run_strangers(void)
{
#define STRANGER_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		STRANGER_TEST(attach__twice_while_waiting),
		STRANGER_TEST(attach__many_that_wait_keep_nobody_out),
		STRANGER_TEST(connect__many_that_never_attach_keep_nobody_out),
		STRANGER_TEST(status__shows_a_client_whose_name_is_not_utf8),
		STRANGER_TEST(status__shows_nothing_that_steers_a_terminal),
		STRANGER_TEST(attach__strangers_are_not_told_the_exports),
		STRANGER_TEST(connect__silent_crowd_at_one_listener_keeps_none_from_another),
		STRANGER_TEST(sigterm__request_that_comes_too_late),
	};

	/* A peer at the socket is no stranger. */
	static const struct CMUnitTest address_tests[] = {
		STRANGER_TEST(status__tells_strangers_versions_alone),
		STRANGER_TEST(status__of_strangers_comes_in_turns),
		STRANGER_TEST(status__many_that_ask_keep_nobody_out),
	};
	int failed = cmocka_run_group_tests_name("strangers", tests, NULL, NULL);

	if (driver_kind != TRANSPORT_SHM)
		failed += cmocka_run_group_tests_name("addresses", address_tests, NULL, NULL);
	return failed;
}
