/* driver_rings.c - rings, by which the server tells a client of news: a snapshot's freeze and its
 * end. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/util.h"
#include "tests/unit/driver/client.h"
#include "tests/unit/driver/driver.h"

static struct test_server server, admins_door;
static struct rpc_client client, second, admin;
static unsigned nsnapshots;

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

/* ---- the admin ------------------------------------------------------------------------------- */

static enum rpc_snapshot_state command(enum rpc_snapshot_command what)
{
	struct rpc_request req = {.op = RPC_SNAPSHOT, .slot = RPC_NO_SLOT};
	struct rpc_reply rep;
	char dir[128];

	nsnapshots += what == SNAPSHOT_START;
	snprintf(dir, sizeof(dir), "%s/image.%u", server.dir, nsnapshots);
	req.snapshot.command = (uint8_t)what;
	req.snapshot.export_name = str("default");
	if (what == SNAPSHOT_START)
		req.snapshot.dir = str(dir);
	client_send(&admin, &req);
	client_receive(&admin, &rep);
	assert_int_equal(rep.op, RPC_SNAPSHOT);
	assert_int_equal(rep.status, 0);
	return (enum rpc_snapshot_state)rep.snapshot.state;
}

static void until_state(enum rpc_snapshot_state state)
{
	for (unsigned ms = 0; command(SNAPSHOT_POLL) != state; ms++) {
		assert_in_range(ms, 0, WAIT_MS);
		poll(NULL, 0, 1);
	}
}

/* ---- the clients ----------------------------------------------------------------------------- */

static uint64_t npings;

static void send_ping(struct rpc_client *c)
{
	client_send(c, &(struct rpc_request){.op = RPC_PING, .slot = RPC_NO_SLOT, .seq = ++npings});
}

/* The answer is the very next message: no ring comes before it. */
static struct rpc_ping_reply ping(struct rpc_client *c)
{
	struct rpc_reply rep;

	send_ping(c);
	client_receive(c, &rep);
	assert_int_equal(rep.op, RPC_PING);
	assert_int_equal(rep.seq, npings);
	assert_int_equal(rep.status, 0);
	return rep.ping;
}

static void expect_ring(struct rpc_client *c)
{
	struct event event;

	client_event(c, &event);
	assert_int_equal(event.type, EV_RECV);
	assert_ptr_equal(event.channel, c->channel);
	assert_true(event.has_imm);
	assert_int_equal(event.imm, RPC_RING);
	assert_int_equal(event.len, 0);
	channel_recv_done(c->channel, event.data);
}

/* The server waits for the client's FROZEN. */
static uint64_t expect_freeze(struct rpc_client *c)
{
	struct rpc_ping_reply news;

	expect_ring(c);
	news = ping(c);
	assert_int_not_equal(news.snapshot, 0);
	assert_true(news.frozen);
	return news.snapshot;
}

static void expect_end(struct rpc_client *c)
{
	struct rpc_ping_reply news;

	expect_ring(c);
	news = ping(c);
	assert_int_equal(news.snapshot, 0);
	assert_false(news.frozen);
}

static void begin_with_two_channels(void)
{
	client.nchannels = second.nchannels = 2;
	second.index = 1;
	client_begin(&client);
	second.attached = client.attached;
	client_resume(&second);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void ring__at_the_freeze_and_at_the_end(void **state)
{
	struct rpc_request req = {.op = RPC_FROZEN};
	struct rpc_reply rep;

	client_begin(&client);
	for (unsigned i = 0; i < 3; i++) {
		command(SNAPSHOT_START);
		req.frozen.snapshot = expect_freeze(&client);
		assert_int_equal(client_call(&client, 0, &req, &rep), 0);
		expect_end(&client);
		until_state(SNAPSHOT_DONE);
	}
}

static void ring__when_it_is_cancelled(void **state)
{
	client_begin(&client);
	command(SNAPSHOT_START);
	expect_freeze(&client);
	command(SNAPSHOT_CANCEL);
	expect_end(&client);
}

static void ring__not_again_before_a_ping(void **state)
{
	client_begin(&client);
	for (unsigned i = 0; i < 3; i++) {
		struct rpc_ping_reply news;

		command(SNAPSHOT_START);
		expect_ring(&client);
		command(SNAPSHOT_CANCEL);
		until_state(SNAPSHOT_FAILED);
		news = ping(&client);
		assert_int_equal(news.snapshot, 0);
	}
}

/* A PING that crosses a ring causes at most one more ring. */
static void ring__again_after_a_ping_that_crossed_it(void **state)
{
	struct rpc_reply rep;

	begin_with_two_channels();
	command(SNAPSHOT_START);
	while (!ping(&second).frozen)
		poll(NULL, 0, 1);
	send_ping(&client);
	expect_ring(&client);
	client_receive(&client, &rep);
	assert_true(rep.ping.frozen);
	command(SNAPSHOT_CANCEL);
	expect_end(&client);
}

static void ring__on_one_channel_only(void **state)
{
	begin_with_two_channels();
	command(SNAPSHOT_START);
	expect_ring(&client);
	assert_true(ping(&second).frozen);
	assert_true(ping(&client).frozen);
	command(SNAPSHOT_CANCEL);
	expect_end(&client);
	assert_int_equal(ping(&second).snapshot, 0);
}

static void ring__on_another_channel_when_that_one_is_lost(void **state)
{
	begin_with_two_channels();
	command(SNAPSHOT_START);
	expect_ring(&client);
	client_drop(&client);
	expect_freeze(&second);
}

static void ring__after_attach_where_it_was_lost(void **state)
{
	client_begin(&client);
	command(SNAPSHOT_START);
	expect_ring(&client);
	client_drop(&client);
	client_resume(&client);
	expect_freeze(&client);
}

/* The snapshot ends while the client has no channel. Only ATTACH's answer comes before the ring. */
static void ring__after_attach_when_there_was_no_channel(void **state)
{
	client_begin(&client);
	command(SNAPSHOT_START);
	expect_freeze(&client);
	client_drop(&client);
	command(SNAPSHOT_CANCEL);
	until_state(SNAPSHOT_FAILED);
	client_resume(&client);
	expect_end(&client);
}

static void ring__not_for_who_only_reads(void **state)
{
	client.flags = ATTACH_READ_ONLY;
	client_begin(&client);
	command(SNAPSHOT_START);
	until_state(SNAPSHOT_DONE);
	assert_int_equal(ping(&client).snapshot, 0);
}

/* ---- all ------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	server_init(&server, driver_kind);
	/* Only an admin at the socket may take snapshots. */
	admins_door = server;
	memcpy(admins_door.listen, server.socket, sizeof(server.socket));
	client_init(&client, &server, "owner", 1);
	client_init(&second, &server, "owner", 1);
	client_init(&admin, &admins_door, "admin", 1);
	client_connect(&admin);
	return 0;
}

static int tear_down(void **state)
{
	client_fini(&admin);
	client_fini(&second);
	client_fini(&client);
	server_fini(&server);
	return 0;
}

int driver_run_rings(void)
{
#define RING_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		RING_TEST(ring__at_the_freeze_and_at_the_end),
		RING_TEST(ring__when_it_is_cancelled),
		RING_TEST(ring__not_again_before_a_ping),
		RING_TEST(ring__again_after_a_ping_that_crossed_it),
		RING_TEST(ring__on_one_channel_only),
		RING_TEST(ring__on_another_channel_when_that_one_is_lost),
		RING_TEST(ring__after_attach_where_it_was_lost),
		RING_TEST(ring__after_attach_when_there_was_no_channel),
		RING_TEST(ring__not_for_who_only_reads),
	};

	return cmocka_run_group_tests_name("rings", tests, NULL, NULL);
}
