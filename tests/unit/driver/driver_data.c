/* driver_data.c - pages: granted, written one-sided, committed, read back; none left; status.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "common/base/util.h"
#include "tests/unit/driver/client.h"
#include "tests/unit/driver/driver.h"

static struct test_server server;
static struct rpc_client client;

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

static struct rpc_tail tail_of(uint8_t *buf, const struct extent *e, unsigned n)
{
	struct wire_out w;

	wire_out_init(&w, buf, n * RPC_EXTENT_BYTES);
	for (unsigned i = 0; i < n; i++)
		rpc_put_extent(&w, &e[i]);
	return (struct rpc_tail){buf, (uint32_t)wire_out_len(&w)};
}

static void fill_memory(uint32_t len, unsigned seed)
{
	srand(seed);
	for (uint32_t i = 0; i < len; i++)
		client.memory[i] = (uint8_t)rand();
}

static void round_trip__through_keys(void **state)
{
	enum { PAGES = 64, LEN = PAGES * PAGE_BYTES };
	static uint8_t expected[LEN];
	uint8_t tail[RPC_EXTENT_BYTES];
	struct rpc_request req = {.op = RPC_CREATE,
		.create = {.parent = ROOT_INO,
			.mode = S_IFREG | 0644,
			.want_pages = PAGES,
			.exclusive = true,
			.name = str("file")}};
	struct extent e;
	struct rpc_reply rep;

	client_regions(&client);
	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	assert_int_equal(rep.entry.ngrant, 1);
	e = rep.entry.grant[0];
	assert_int_equal(e.npages, PAGES);
	fill_memory(LEN, 3);
	memcpy(expected, client.memory, LEN);
	assert_int_equal(
		client_transfer(&client, IO_WRITE, e.region, (uint64_t)e.page * PAGE_BYTES, LEN),
		0);
	req = (struct rpc_request){.op = RPC_COMMIT,
		.commit = {.ino = rep.entry.attr.ino,
			.flags = COMMIT_SIZE,
			.size = LEN,
			.tail = tail_of(tail, &e, 1)}};
	assert_int_equal(client_call(&client, 14, &req, &rep), 0);

	req = (struct rpc_request){.op = RPC_LOOKUP, .name = {ROOT_INO, str("file")}};
	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	assert_int_equal(rep.entry.attr.size, LEN);
	assert_int_equal(rep.entry.nextents, 1);
	assert_int_equal(rep.entry.lease.type, LEASE_EXCLUSIVE);
	assert_int_equal(rep.entry.lease.ms, 1000);
	e = rep.entry.head[0];
	memset(client.memory, 0, LEN);
	assert_int_equal(
		client_transfer(&client, IO_READ, e.region, (uint64_t)e.page * PAGE_BYTES, LEN), 0);
	assert_memory_equal(client.memory, expected, LEN);
}

enum { EXTENTS = 64 };

/* Gets all pages of the export, in as many extents as needed. */
static unsigned grant_all(struct extent e[EXTENTS])
{
	unsigned n = 0;

	for (;;) {
		struct rpc_request req = {.op = RPC_GRANT, .grant = {UINT32_MAX, false}};
		struct rpc_reply rep;

		if (client_call(&client, 0, &req, &rep) == -ENOSPC)
			return n;
		assert_int_equal(rep.status, 0);
		assert_true(n + rep.grant.ngrant <= EXTENTS);
		memcpy(e + n, rep.grant.grant, rep.grant.ngrant * sizeof(*e));
		n += rep.grant.ngrant;
	}
}

static void grant__without_pages_is_enospc(void **state)
{
	struct rpc_request req = {.op = RPC_GRANT, .grant = {1, true}};
	struct extent e[EXTENTS];
	struct rpc_reply rep;

	grant_all(e);
	assert_int_equal(client_call(&client, 1, &req, &rep), -ENOSPC);
	assert_true(rep.text.len == 0 || rep.text.s);
}

/* Both requests are sent at once. The server can answer the second only when the pages of the first
 * are zero. */
static void grant__waits_for_scrubbing(void **state)
{
	uint8_t tail[EXTENTS * RPC_EXTENT_BYTES];
	struct rpc_request give = {.op = RPC_RETURN}, take = {.op = RPC_GRANT, .grant = {64, true}};
	struct rpc_reply rep;
	struct extent e[EXTENTS] = {0};
	unsigned n;

	client_regions(&client);
	n = grant_all(e);
	fill_memory(CLIENT_MEMORY, 5);
	assert_int_equal(client_transfer(&client, IO_WRITE, e[0].region,
				 (uint64_t)e[0].page * PAGE_BYTES, CLIENT_MEMORY),
		0);
	give.ret = (struct rpc_return){RETURN_GRANTS, tail_of(tail, e, n)};
	client_number(&client, 14, &give);
	client_number(&client, 1, &take);
	client_send(&client, &give);
	client_send(&client, &take);
	client_receive(&client, &rep);
	assert_int_equal(rep.op, RPC_RETURN);
	assert_int_equal(rep.status, 0);
	client_receive(&client, &rep);
	assert_int_equal(rep.op, RPC_GRANT);
	assert_int_equal(rep.status, 0);
	assert_int_equal(client_transfer(&client, IO_READ, rep.grant.grant[0].region,
				 (uint64_t)rep.grant.grant[0].page * PAGE_BYTES, PAGE_BYTES),
		0);
	for (unsigned i = 0; i < PAGE_BYTES; i++)
		assert_int_equal(client.memory[i], 0);
}

static void status__tells_of_exports_and_sessions_without_attach(void **state)
{
	char json[RPC_MSG_BYTES];

	server_status(&server, json);
	assert_non_null(strstr(json, "\"client\":\"client data\""));
	assert_non_null(strstr(json, "\"name\":\"default\""));
	assert_non_null(strstr(json, transport_kind_name(driver_kind)));
}

/* Strangers get an empty text instead. */
static void status__from_beyond_its_end(void **state)
{
	assert_int_equal(client_status(&client, RPC_MSG_BYTES).status, -EINVAL);
}

static void ping_with(uint64_t read_bytes)
{
	struct rpc_request req = {.op = RPC_PING,
		.slot = RPC_NO_SLOT,
		.ping = {.reads = 1, .read_bytes = read_bytes}};
	struct rpc_reply rep;

	client_send(&client, &req);
	client_receive(&client, &rep);
	assert_int_equal(rep.status, 0);
	assert_true(rep.ping.server_time > 0);
}

/* The bytes count in the session, in its export, and in the total. */
static void assert_status_counts(uint64_t read_bytes)
{
	char json[RPC_MSG_BYTES], words[64], *at;
	int n = 0;

	server_status(&server, json);
	snprintf(words, sizeof(words), "\"read_bytes\":%" PRIu64 ",", read_bytes);
	for (at = json; (at = strstr(at, words)); at++)
		n++;
	assert_int_equal(n, 3);
}

static void ping__counters_show_in_status(void **state)
{
	ping_with(123456789);
	assert_status_counts(123456789);
}

static void ping__counts_in_this_run_of_the_server(void **state)
{
	ping_with(1000);
	server_kill(&server);
	client_wait_closed(&client);
	server_start(&server);
	client_resume(&client);
	ping_with(1500);
	assert_status_counts(0);
	ping_with(1542);
	assert_status_counts(42);
	ping_with(7);
	assert_status_counts(0);
}

static int set_up(void **state)
{
	server_init(&server, driver_kind);
	client_init(&client, &server, "data", 1);
	client_begin(&client);
	return 0;
}

static int tear_down(void **state)
{
	client_fini(&client);
	server_fini(&server);
	return 0;
}

int driver_run_data(void)
{
#define DATA_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		DATA_TEST(round_trip__through_keys),
		DATA_TEST(grant__without_pages_is_enospc),
		DATA_TEST(grant__waits_for_scrubbing),
		DATA_TEST(status__tells_of_exports_and_sessions_without_attach),
		DATA_TEST(status__from_beyond_its_end),
		DATA_TEST(ping__counters_show_in_status),
		DATA_TEST(ping__counts_in_this_run_of_the_server),
	};

	return cmocka_run_group_tests_name("data", tests, NULL, NULL);
}
