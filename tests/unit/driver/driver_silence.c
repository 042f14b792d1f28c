/* driver_silence.c - silent clients, and a server that can't hear its clients. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/unit/driver/client.h"
#include "tests/unit/driver/driver.h"

enum { TIMEOUT_MS = 1000 };

static struct test_server server;
static struct rpc_client client;

static void ping(void)
{
	struct rpc_request req = {.op = RPC_PING, .slot = RPC_NO_SLOT};

	client_send(&client, &req);
}

static void ping_is_answered(void)
{
	struct rpc_reply rep;

	client_receive(&client, &rep);
	assert_int_equal(rep.op, RPC_PING);
	assert_int_equal(rep.status, 0);
}

static void assert_session_goes_on(void)
{
	struct rpc_request req = {.op = RPC_MKDIR,
		.create = {.parent = ROOT_INO, .mode = S_IFDIR | 0755, .name = {"still-mine", 10}}};
	struct rpc_reply rep;

	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
}

static void assert_is_kept(void)
{
	assert_false(server_logged(&server, "has been silent"));
	assert_session_goes_on();
}

static void silence__closes_the_channel(void **state)
{
	assert_int_equal(client.attached.peer_timeout_ms, TIMEOUT_MS);
	client_wait_closed(&client);
	server_logs(&server, ": client owner at export 'default' has been silent for 1.");
	client_resume(&client);
	assert_true(client.attached.resumed);
	assert_session_goes_on();
}

/* The silent client may live, so the owner's next client waits for the lease time like any
 * other. */
static void silence__ends_the_session_for_its_owner_after_the_lease(void **state)
{
	struct rpc_client next;
	int64_t start = now_ms();

	client_init(&next, &server, "owner", 2);
	client_begin(&next);
	assert_true(now_ms() - start >= TIMEOUT_MS - 100);
	server_logs(&server, "has ended: nothing was heard of it for the lease time");
	client_fini(&next);
}

static void silence__whoever_pings_is_kept(void **state)
{
	for (int64_t start = now_ms(); now_ms() - start < 2 * TIMEOUT_MS; poll(NULL, 0, 250)) {
		ping();
		ping_is_answered();
	}
	assert_is_kept();
}

/* On a slow link the client's messages may wait behind its transfers for longer than it may be
 * silent. */
static void silence__not_while_transfers_are_seen(void **state)
{
	if (driver_kind == TRANSPORT_VERBS)
		return; /* the device alone sees them */
	client_regions(&client);
	for (int64_t start = now_ms(); now_ms() - start < 2 * TIMEOUT_MS; poll(NULL, 0, 100))
		assert_int_equal(client_transfer(&client, IO_READ, 0, 0, 512), 0);
	assert_is_kept();
}

/* Meanwhile the client's messages wait in the server's sockets. When the server goes on, its timers
 * may run before it reads them. */
static void silence__not_while_the_server_itself_stands_still(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(kill(server.pid, SIGSTOP), 0);
		ping();
		poll(NULL, 0, TIMEOUT_MS + 200);
		assert_int_equal(kill(server.pid, SIGCONT), 0);
		ping_is_answered();
	}
	assert_is_kept();
}

/* The server knows the process, and the socket closes when that ends. */
static void silence__on_shm_is_no_matter(void **state)
{
	assert_int_equal(client.attached.peer_timeout_ms, 0);
	poll(NULL, 0, TIMEOUT_MS + 500);
	assert_is_kept();
}

static int set_up(void **state)
{
	server_init_timed(&server, driver_kind, 1, TIMEOUT_MS / 1000);
	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	return 0;
}

static int tear_down(void **state)
{
	client_fini(&client);
	server_fini(&server);
	return 0;
}

int driver_run_silence(void)
{
#define SILENCE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		SILENCE_TEST(silence__closes_the_channel),
		SILENCE_TEST(silence__ends_the_session_for_its_owner_after_the_lease),
		SILENCE_TEST(silence__whoever_pings_is_kept),
		SILENCE_TEST(silence__not_while_transfers_are_seen),
		SILENCE_TEST(silence__not_while_the_server_itself_stands_still),
	};
	static const struct CMUnitTest shm_tests[] = {
		SILENCE_TEST(silence__on_shm_is_no_matter),
	};

	return driver_kind == TRANSPORT_SHM
		       ? cmocka_run_group_tests_name("silence", shm_tests, NULL, NULL)
		       : cmocka_run_group_tests_name("silence", tests, NULL, NULL);
}
