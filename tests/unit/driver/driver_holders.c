/* driver_holders.c - sessions that share an export: how long the others wait for a session that
 * returns nothing, and what happens to its leases. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/base/clock.h"
#include "server/session/penalty.h"
#include "tests/unit/driver/driver.h"
#include "tests/unit/driver/holder.h"
#include "tests/unit/driver/sharers.h"

static uint64_t held_ino(unsigned i)
{
	struct rpc_request req = {
		.op = RPC_READDIR, .readdir = {ROOT_INO, 0, RPC_MSG_BYTES, false}};
	struct rpc_dirent d;
	struct rpc_reply rep;
	struct wire_in r;

	assert_int_equal(client_call(&clients[i], 0, &req, &rep), 0);
	r = rpc_tail_reader(&rep.readdir.tail);
	assert_true(rpc_get_dirent(&r, &d, false));
	return d.ino;
}

/* Over shm a living process can still write, so the others wait until it is unmapped or has
 * ended. */
static void end__of_one_that_gives_nothing_back(void **state)
{
	int64_t before = realtime_ns(), began;
	struct holder h;
	uint64_t ino;

	holder_start(&h, &server, "holder", 1, ATTACH_SHARED);
	begin(0, ATTACH_SHARED);
	ino = held_ino(0);
	began = now_ms();
	ask(0, 0, getattr_request(ino));
	if (driver_kind == TRANSPORT_SHM) {
		server_logs(&server, "when its process goes on or ends");
		expect_no_recall(0);
		assert_true(status_says("\"waiting\":1"));
		holder_kill(&h);
	}
	assert_true(expect(0, RPC_GETATTR, 0).attr.attr.mtime > before);
	assert_true(now_ms() - began >= LEASE_MS);
	server_logs(&server, "others wait for it: /" HOLDER_FILE);
	server_logs(&server, "is ended: it has not given back inode 2, /" HOLDER_FILE ", for ");
	server_logs(&server, "of client holder at export 'default'");
	if (driver_kind != TRANSPORT_SHM)
		holder_kill(&h);
	client_fini(&clients[0]);
}

static void end__of_one_that_has_died(void **state)
{
	int64_t before = realtime_ns();
	struct holder h;
	uint64_t ino;

	holder_start(&h, &server, "holder", 1, ATTACH_SHARED);
	begin(0, ATTACH_SHARED);
	ino = held_ino(0);
	holder_kill(&h);
	ask(0, 0, lease_request(ino, LEASE_EXCLUSIVE));
	assert_true(expect(0, RPC_LEASE, 0).entry.attr.mtime > before);
	if (driver_kind == TRANSPORT_SHM) {
		server_logs(&server,
			"is ended: its process has ended, and others want inode 2, /" HOLDER_FILE);
		assert_false(server_logged(&server, "has not given back"));
	}
	client_fini(&clients[0]);
}

/* A client is not late for the time in which the server could not take its answer. */
static void end__not_for_time_in_which_the_server_stood_still(void **state)
{
	uint64_t ino, number;

	begin(0, ATTACH_SHARED);
	begin(1, ATTACH_SHARED);
	ino = make_file(0, "file");
	number = take(0, ino, LEASE_EXCLUSIVE);
	ask(1, 0, getattr_request(ino));
	expect_no_recall(1);
	expect_recall(0, ino, number, LEASE_SHARED);
	assert_int_equal(kill(server.pid, SIGSTOP), 0);
	usleep(LEASE_MS * 1300);
	assert_int_equal(kill(server.pid, SIGCONT), 0);
	expect_no_recall(1);
	give_back(0, ino, number, LEASE_SHARED);
	expect(1, RPC_GETATTR, 0);
	client_fini(&clients[1]);
	client_fini(&clients[0]);
}

static void freeze(unsigned i)
{
	char dir[128];
	struct rpc_request req = {.op = RPC_SNAPSHOT, .slot = RPC_NO_SLOT};
	int64_t until = now_ms() + WAIT_MS;
	struct rpc_reply rep;

	snprintf(dir, sizeof(dir), "%s/snapshot", server.dir);
	req.snapshot = (struct rpc_snapshot){SNAPSHOT_START, str("default"), str(dir)};
	client_send(&clients[i], &req);
	client_receive(&clients[i], &rep);
	assert_int_equal(rep.status, 0);
	do {
		assert_true(now_ms() < until);
		req = (struct rpc_request){.op = RPC_PING, .slot = RPC_NO_SLOT};
		client_send(&clients[i], &req);
		client_receive(&clients[i], &rep);
	} while (!rep.ping.frozen);
}

/* While clients hold their writes for a snapshot, the server still takes commits and returns. */
static void end__not_for_time_in_which_writes_stand_still(void **state)
{
	struct rpc_request req;
	struct rpc_reply rep;
	uint64_t ino, number;

	begin(0, ATTACH_SHARED);
	begin(1, ATTACH_SHARED);
	ino = make_file(0, "file");
	number = take(0, ino, LEASE_EXCLUSIVE);
	/* Only an admin at the socket of this machine may take snapshots. */
	if (driver_kind == TRANSPORT_SHM)
		freeze(0);
	ask(1, 0, getattr_request(ino));
	expect_no_recall(1);
	if (driver_kind == TRANSPORT_SHM)
		usleep(LEASE_MS * 1300);
	expect_recall(0, ino, number, LEASE_SHARED);
	req = commit_request(ino, 4321);
	assert_int_equal(client_call(&clients[0], 1, &req, &rep), 0);
	give_back(0, ino, number, LEASE_SHARED);
	assert_int_equal(expect(1, RPC_GETATTR, 0).attr.attr.size, 4321);
	client_fini(&clients[1]);
	client_fini(&clients[0]);
}

/* The holder has committed all its changes, so the server does not change the file's times. */
static void end__by_bye_is_in_order(void **state)
{
	struct rpc_reply rep;
	struct holder h;
	uint64_t ino;
	int64_t after;

	holder_start(&h, &server, "holder", 1, ATTACH_SHARED);
	begin(0, ATTACH_SHARED);
	ino = held_ino(0);
	ask(0, 0, lease_request(ino, LEASE_EXCLUSIVE));
	expect_no_recall(0);
	after = realtime_ns();
	close(h.go);
	rep = expect(0, RPC_LEASE, 0);
	assert_true(rep.entry.attr.mtime < after);
	holder_wait(&h);
	client_fini(&clients[0]);
}

/* The server gives the files that the client had leased for changes new times. */
static void end__by_bye_of_one_that_has_lost_something(void **state)
{
	struct rpc_request req;
	struct rpc_reply rep;
	uint64_t ino;
	int64_t before;

	begin(0, ATTACH_SHARED);
	begin(1, ATTACH_SHARED);
	ino = make_file(0, "file");
	take(0, ino, LEASE_EXCLUSIVE);
	before = realtime_ns();
	clients[0].loses = true;
	client_bye(&clients[0]);
	client_fini(&clients[0]);
	req = lease_request(ino, LEASE_EXCLUSIVE);
	assert_int_equal(client_call(&clients[1], 0, &req, &rep), 0);
	assert_true(rep.entry.attr.mtime > before);
	client_fini(&clients[1]);
}

/* The client's process lives. Over shm so do its mappings, until it reports that they are gone. It
 * has kept others waiting, and so waits for its next session. */
static void end__of_one_that_comes_back(void **state)
{
	struct rpc_request req;
	struct rpc_reply rep;
	uint64_t ino, first;
	int64_t began;

	begin(0, ATTACH_SHARED);
	client_regions(&clients[0]);
	begin(1, ATTACH_SHARED);
	ino = make_file(0, "file");
	take(0, ino, LEASE_EXCLUSIVE);
	first = clients[0].attached.session;
	began = now_ms();
	ask(1, 0, getattr_request(ino));
	client_wait_closed(&clients[0]);
	if (driver_kind == TRANSPORT_SHM) {
		assert_true(status_says("\"state\":\"ending\""));
		assert_true(status_says("\"waits_for\":["));
	}
	client_drop(&clients[0]);
	client_connect(&clients[0]);
	assert_int_equal(client_attach(&clients[0], "default", first, 0, text), -EIDRM);
	if (driver_kind == TRANSPORT_SHM)
		expect_no_recall(1); /* nor an answer */
	clients[0].ended = first;
	assert_int_equal(client_attach(&clients[0], "default", 0, WAIT_MS, text), 0);
	assert_true(now_ms() - began >= LEASE_MS + PENALTY_FIRST_MS);
	expect(1, RPC_GETATTR, 0);
	assert_true(clients[0].attached.session != first);
	memset(clients[0].seq, 0, sizeof(clients[0].seq));
	client_regions(&clients[0]);
	req = lease_request(ino, LEASE_EXCLUSIVE);
	assert_int_equal(client_call(&clients[0], 0, &req, &rep), 0);
	client_fini(&clients[1]);
	client_fini(&clients[0]);
}

/* A client may report that only of its own session, from the process that had it. */
static void end__nobody_else_says_that_it_is_unmapped(void **state)
{
	struct holder h;
	uint64_t ino;

	holder_start(&h, &server, "holder", 1, ATTACH_SHARED);
	begin(0, ATTACH_SHARED);
	ino = held_ino(0);
	ask(0, 0, getattr_request(ino));
	server_logs(&server, "is ended: it has not given back inode 2");
	client_init(&clients[1], &server, "holder", 1);
	clients[1].flags = ATTACH_SHARED;
	client_connect(&clients[1]);
	clients[1].ended = clients[0].attached.session - 1;
	client_know_store(&clients[1]);
	assert_int_equal(client_attach(&clients[1], "default", 0, 200, text), -EBUSY);
	expect_no_recall(0);
	holder_kill(&h);
	expect(0, RPC_GETATTR, 0);
	client_fini(&clients[1]);
	client_fini(&clients[0]);
}

static struct rpc_request attach_request(
	const char *owner, uint64_t ended, const uint8_t token[TOKEN_BYTES])
{
	struct rpc_request req = {.op = RPC_ATTACH,
		.slot = RPC_NO_SLOT,
		.attach = {.instance = 1,
			.ended = ended,
			.nchannels = 1,
			.flags = ATTACH_SHARED,
			.wait_ms = WAIT_MS,
			.export_name = str("default"),
			.client = str(owner)}};

	snprintf((char *)req.attach.owner, OWNER_BYTES, "%s", owner);
	req.attach.store_id = clients[1].attached.store_id;
	req.attach.token = token;
	return req;
}

/* This releases another ATTACH that waits on the same channel, but a channel has only one
 * session. */
static void end__by_word_is_not_twice_on_one_channel(void **state)
{
	struct rpc_reply first, second;
	struct rpc_request req;
	uint64_t session;

	begin(0, 0);
	client_regions(&clients[0]);
	session = clients[0].attached.session;
	server_kill(&server);
	server_start(&server);
	client_init(&clients[1], &server, "channel", 1);
	client_connect(&clients[1]);
	client_know_store(&clients[1]);
	if (driver_kind != TRANSPORT_SHM)
		assert_int_equal(client_prove(&clients[1], &server.key), 0);
	req = attach_request("another", 0, NULL);
	client_send(&clients[1], &req);
	req = attach_request("client 0", session, clients[0].attached.token);
	client_send(&clients[1], &req);
	client_receive(&clients[1], &first);
	client_receive(&clients[1], &second);
	assert_int_equal(first.op, RPC_ATTACH);
	assert_int_equal(second.op, RPC_ATTACH);
	assert_true((first.status == 0) + (second.status == 0) == 1);
	assert_true((first.status == -EPROTO) + (second.status == -EPROTO) == 1);
	client_fini(&clients[1]);
	client_fini(&clients[0]);
	begin(2, ATTACH_SHARED);
	client_fini(&clients[2]);
}

/* The pages of a dead client go to a client that needs some. */
static void end__of_one_that_has_died_gives_pages(void **state)
{
	struct rpc_request req = {.op = RPC_GRANT, .grant = {16, true}};
	int64_t until = now_ms() + WAIT_MS;
	struct rpc_reply rep;
	struct holder h;

	holder_start(&h, &server, "holder", 1, ATTACH_SHARED);
	begin(0, ATTACH_SHARED);
	assert_int_equal(client_call(&clients[0], 0, &req, &rep), -ENOSPC);
	holder_kill(&h);
	/* Except over shm the client might come back. */
	while (client_call(&clients[0], 0, &req, &rep)) {
		assert_true(now_ms() < until);
		usleep(50000);
	}
	assert_int_equal(rep.grant.ngrant, 1);
	client_fini(&clients[0]);
}

static void restart__forgets_no_lease(void **state)
{
	uint64_t ino, number;

	begin(0, ATTACH_SHARED);
	begin(1, ATTACH_SHARED);
	ino = make_file(0, "file");
	number = take(0, ino, LEASE_EXCLUSIVE);
	ask(1, 0, getattr_request(ino));
	expect_no_recall(1);
	server_kill(&server);
	server_start(&server);
	for (unsigned i = 0; i < 2; i++) {
		client_wait_closed(&clients[i]);
		client_resume(&clients[i]);
	}
	expect_no_recall(0);
	clients[1].seq[0]--;
	ask(1, 0, getattr_request(ino));
	expect_no_recall(1);
	expect_recall(0, ino, number, LEASE_SHARED);
	give_back(0, ino, number, LEASE_SHARED);
	expect(1, RPC_GETATTR, 0);
	assert_true(take(1, ino, LEASE_SHARED) > number);
	client_fini(&clients[1]);
	client_fini(&clients[0]);
}

/* A client that does not come back has the lease time, counted from when it could. */
static void restart__ends_a_holder_that_stays_away(void **state)
{
	uint64_t ino;
	int64_t began;

	begin(0, ATTACH_SHARED);
	begin(1, ATTACH_SHARED);
	ino = make_file(0, "file");
	take(0, ino, LEASE_EXCLUSIVE);
	server_kill(&server);
	server_start(&server);
	began = now_ms();
	client_wait_closed(&clients[0]);
	client_wait_closed(&clients[1]);
	client_fini(&clients[0]);
	client_resume(&clients[1]);
	ask(1, 0, lease_request(ino, LEASE_SHARED));
	expect_no_recall(1);
	/* Over shm its process (the test) still lives. */
	if (driver_kind != TRANSPORT_SHM) {
		expect(1, RPC_LEASE, 0);
		assert_true(now_ms() - began >= LEASE_MS - 100);
	}
	client_fini(&clients[1]);
}

int driver_run_holders(void)
{
	static const struct CMUnitTest tests[] = {
		SHARERS_TEST(end__of_one_that_gives_nothing_back),
		SHARERS_TEST(end__of_one_that_has_died),
		SHARERS_TEST(end__not_for_time_in_which_the_server_stood_still),
		SHARERS_TEST(end__not_for_time_in_which_writes_stand_still),
		SHARERS_TEST(end__by_bye_is_in_order),
		SHARERS_TEST(end__by_bye_of_one_that_has_lost_something),
		SHARERS_TEST(end__of_one_that_comes_back),
		SHARERS_TEST(end__of_one_that_has_died_gives_pages),
		SHARERS_TEST(restart__forgets_no_lease),
		SHARERS_TEST(restart__ends_a_holder_that_stays_away),
	};
	static const struct CMUnitTest shm_tests[] = {
		SHARERS_TEST(end__nobody_else_says_that_it_is_unmapped),
		SHARERS_TEST(end__by_word_is_not_twice_on_one_channel),
	};
	int failed = cmocka_run_group_tests_name("holders", tests, NULL, NULL);

	if (driver_kind == TRANSPORT_SHM)
		failed += cmocka_run_group_tests_name("mappings", shm_tests, NULL, NULL);
	return failed;
}
