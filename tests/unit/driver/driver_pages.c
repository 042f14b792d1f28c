/* driver_pages.c - sessions that share an export: pages that a client has and does not use. */
#include <errno.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "server/recall/page_recall.h"
#include "tests/unit/driver/holder.h"
#include "tests/unit/driver/sharers.h"
#include "tests/unit/emulated.h"

enum { GIVE_MS = LEASE_MS / GIVE_PAGES_SHARE };

static struct rpc_request grant_request(bool wait)
{
	return (struct rpc_request){.op = RPC_GRANT, .grant = {UINT32_MAX, wait}};
}

static struct rpc_grant_reply take_some(unsigned i)
{
	struct rpc_request req = grant_request(false);
	struct rpc_reply rep;

	assert_int_equal(client_call(&clients[i], 0, &req, &rep), 0);
	return rep.grant;
}

/* Client 0 gets all free pages but those that client 1 holds. */
static struct rpc_grant_reply begin_with_none_left(void)
{
	struct rpc_grant_reply spare;
	struct rpc_request req;
	struct rpc_reply rep;
	int status;

	begin(0, ATTACH_SHARED);
	begin(1, ATTACH_SHARED);
	spare = take_some(1);
	do {
		req = grant_request(false);
		status = client_call(&clients[0], 0, &req, &rep);
	} while (!status);
	assert_int_equal(status, -ENOSPC);
	return spare;
}

/* Returns the number of the request for pages in the PING reply. */
static uint64_t told(unsigned i)
{
	struct rpc_request req = {.op = RPC_PING, .slot = RPC_NO_SLOT};
	struct rpc_reply rep;

	client_send(&clients[i], &req);
	client_receive(&clients[i], &rep);
	assert_int_equal(rep.op, RPC_PING);
	return rep.ping.give_pages;
}

static uint64_t until_told(unsigned i)
{
	int64_t until = now_ms() + WAIT_MS;
	uint64_t number;

	do {
		assert_true(now_ms() < until);
		number = told(i);
	} while (!number);
	return number;
}

static uint64_t statfs_free(void)
{
	struct rpc_request req = {.op = RPC_STATFS};
	struct rpc_reply rep;

	assert_int_equal(client_call(&clients[0], 2, &req, &rep), 0);
	return rep.statfs.free_pages;
}

static void return_pages(unsigned i, const struct rpc_grant_reply *pages, uint64_t answers)
{
	uint8_t buf[GRANT_EXTENTS * RPC_EXTENT_BYTES];
	struct rpc_request req = {.op = RPC_RETURN};
	struct rpc_reply rep;
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	for (unsigned k = 0; k < pages->ngrant; k++)
		rpc_put_extent(&w, &pages->grant[k]);
	req.ret = (struct rpc_return){RETURN_GRANTS, {buf, (uint32_t)wire_out_len(&w)}, answers};
	assert_int_equal(client_call(&clients[i], 14, &req, &rep), 0);
}

static void end_both(void)
{
	client_fini(&clients[1]);
	client_fini(&clients[0]);
}

/* Returns how long a request of client 0 takes that gets nothing. */
static int64_t wait_in_vain(void)
{
	struct rpc_request req = grant_request(true);
	int64_t began = now_ms();
	struct rpc_reply rep;

	assert_int_equal(client_call(&clients[0], 0, &req, &rep), -ENOSPC);
	return now_ms() - began;
}

static void spare__goes_to_who_lacks_it(void **state)
{
	struct rpc_grant_reply spare = begin_with_none_left(), got;
	uint64_t number;

	assert_int_equal(spare.answers, 0);
	assert_int_equal(told(1), 0);
	ask(0, 1, grant_request(true));
	number = until_told(1);
	return_pages(1, &spare, number);
	got = expect(0, RPC_GRANT, 1).grant;
	assert_true(got.ngrant);
	assert_int_equal(got.answers, number);
	assert_int_equal(told(1), 0);
	end_both();
}

static void spare__is_none_when_all_have_said_so(void **state)
{
	static const struct rpc_grant_reply nothing;
	struct rpc_reply rep;
	uint64_t number;

	begin_with_none_left();
	ask(0, 1, grant_request(true));
	number = until_told(1);
	return_pages(1, &nothing, 0);
	return_pages(1, &nothing, number - 1);
	assert_int_equal(told(1), number);
	return_pages(1, &nothing, number);
	client_receive(&clients[0], &rep);
	assert_int_equal(rep.op, RPC_GRANT);
	assert_int_equal(rep.status, -ENOSPC);
	assert_true(wait_in_vain() < GIVE_MS);
	end_both();
}

/* The silent client may be stopped: without this each request for pages would wait for it. */
static void spare__of_one_that_says_nothing_is_waited_for_once(void **state)
{
	struct rpc_grant_reply spare = begin_with_none_left();
	uint64_t number;

	assert_true(wait_in_vain() >= GIVE_MS);
	assert_true(wait_in_vain() < GIVE_MS);
	number = told(1);
	assert_int_not_equal(number, 0);
	return_pages(1, &spare, number);
	ask(0, 1, grant_request(true));
	assert_true(expect(0, RPC_GRANT, 1).grant.ngrant);
	end_both();
}

/* Client 1 says that it has none, and keeps what it has. Client 0 gets that all the same, and the
 * holder of client 1's key waits for its next session, whatever the owner's name. */
static void spare__of_one_that_says_it_has_none_and_has(void **state)
{
	static const struct rpc_grant_reply nothing;
	struct rpc_request req = grant_request(true);
	int64_t until = now_ms() + WAIT_MS;
	struct rpc_reply rep;

	begin_with_none_left();
	ask(0, 1, grant_request(true));
	return_pages(1, &nothing, until_told(1));
	client_receive(&clients[0], &rep);
	assert_int_equal(rep.status, -ENOSPC);
	while (client_call(&clients[0], 0, &req, &rep)) {
		assert_int_equal(rep.status, -ENOSPC);
		assert_true(now_ms() < until);
		usleep(10000);
	}
	assert_true(rep.grant.ngrant);
	server_logs(&server, "pages that others lack");
	client_wait_closed(&clients[1]);
	client_connect(&clients[1]);
	memcpy(clients[1].owner, "elsewhere", sizeof("elsewhere"));
	assert_int_equal(client_attach(&clients[1], "default", 0, 0, text), -EBUSY);
	assert_non_null(strstr(text, "did not give back in time what others wanted"));
	end_both();
}

/* It says so, and puts back what it has before its time is over. */
static void spare__of_one_that_gives_it_later(void **state)
{
	struct rpc_grant_reply spare = begin_with_none_left(), nothing = {0};
	struct rpc_reply rep;

	ask(0, 1, grant_request(true));
	return_pages(1, &nothing, until_told(1));
	client_receive(&clients[0], &rep);
	assert_int_equal(rep.status, -ENOSPC);
	return_pages(1, &spare, 0);
	ask(0, 1, grant_request(true));
	assert_true(expect(0, RPC_GRANT, 1).grant.ngrant);
	assert_false(server_logged(&server, "pages that others lack"));
	end_both();
}

/* Otherwise the other clients would return their pages in vain, and the request would wait for
 * them. */
static void spare__is_not_asked_for_what_is_no_page(void **state)
{
	struct rpc_request req = {.op = RPC_FALLOCATE, .fallocate = {.len = 1ull << 40}};
	static const uint8_t byte;
	uint32_t stage = 0;
	struct rpc_reply rep;
	int status;

	begin(0, ATTACH_SHARED);
	begin(1, ATTACH_SHARED);
	take_some(1);
	req.fallocate.ino = make_file(0, "file");
	take(0, req.fallocate.ino, LEASE_EXCLUSIVE);
	assert_int_equal(client_call(&clients[0], 0, &req, &rep), -ENOSPC);
	assert_int_equal(told(1), 0);
	do {
		req = (struct rpc_request){.op = RPC_STAGE, .stage = {++stage, 0, {&byte, 1}}};
		status = client_call(&clients[0], 0, &req, &rep);
	} while (!status);
	assert_int_equal(status, -ENOSPC);
	assert_int_equal(stage, STAGES_MAX + 1);
	assert_int_equal(told(1), 0);
	end_both();
}

static void until_status_says(const char *words)
{
	int64_t until = now_ms() + WAIT_MS;

	while (!status_says(words)) {
		assert_true(now_ms() < until);
		usleep(10000);
	}
}

/* A disconnected client keeps its pages, uncommitted ones too, until a client needs pages at
 * once. */
static void spare__of_one_that_is_gone_is_not_for_later(void **state)
{
	int64_t until = now_ms() + WAIT_MS;
	struct rpc_request req;
	struct rpc_reply rep;
	struct holder h;
	int status;

	holder_start(&h, &server, "holder", 1, ATTACH_SHARED);
	begin(0, ATTACH_SHARED);
	holder_kill(&h);
	until_status_says("\"disconnected\"");
	/* Repeats until that client's time to come back is over. */
	do {
		assert_true(now_ms() < until);
		usleep(50000);
		req = grant_request(false);
		assert_int_equal(client_call(&clients[0], 0, &req, &rep), -ENOSPC);
		assert_true(status_says("\"disconnected\""));
		req = grant_request(true);
		status = client_call(&clients[0], 0, &req, &rep);
	} while (status == -ENOSPC);
	assert_int_equal(status, 0);
	client_fini(&clients[0]);
}

/* ---- after a restart ------------------------------------------------------------------------- */

/* Client 0 returns all its pages after the restart. The holder's process has not come back. */
static void restart_with_dirty_pages(struct holder *h)
{
	struct rpc_grant_reply all;

	begin(0, ATTACH_SHARED);
	all = take_some(0);
	holder_start(h, &server, "holder", 1, ATTACH_SHARED);
	server_kill(&server);
	server_start(&server);
	client_wait_closed(&clients[0]);
	client_resume(&clients[0]);
	return_pages(0, &all, 0);
}

static void expect_grant(unsigned slot, int status)
{
	struct rpc_reply rep;

	client_receive(&clients[0], &rep);
	assert_int_equal(rep.op, RPC_GRANT);
	assert_int_equal(rep.slot, slot);
	assert_int_equal(rep.status, status);
}

/* Client 0 must send PINGs while it waits, or its own session would be ended. */
static int await_grant(void)
{
	struct rpc_request req = {.op = RPC_PING, .slot = RPC_NO_SLOT};
	int64_t until = now_ms() + WAIT_MS;
	struct rpc_reply rep, pong;

	do {
		assert_true(now_ms() < until);
		usleep(20000);
		client_send(&clients[0], &req);
		client_receive(&clients[0], &rep);
	} while (rep.op == RPC_PING);
	assert_int_equal(rep.op, RPC_GRANT);
	client_receive(&clients[0], &pong);
	assert_int_equal(pong.op, RPC_PING);
	return rep.status;
}

static void until_granted(void)
{
	int64_t until = now_ms() + WAIT_MS;

	do {
		assert_true(now_ms() < until);
		ask(0, 1, grant_request(true));
	} while (await_grant());
}

/* Over shm the wait for a client that may still write has no time limit. */
static void restart__with_one_that_stays_away__waits_no_longer_than_time_will_tell(void **state)
{
	struct holder h;

	restart_with_dirty_pages(&h);
	ask(0, 1, grant_request(true));
	if (driver_kind == TRANSPORT_SHM) {
		assert_int_equal(await_grant(), -ENOSPC);
		server_logs(&server, "can't be used again before its process");
		assert_true(wait_in_vain() < GIVE_MS);
		assert_int_equal(statfs_free(), 0);
		holder_kill(&h);
		until_granted();
	} else {
		assert_int_equal(await_grant(), 0);
		holder_kill(&h);
	}
	server_logs(&server, "requests wait for pages");
	client_fini(&clients[0]);
}

static void restart__who_waits_for_pages_can_withdraw(void **state)
{
	struct holder h;

	restart_with_dirty_pages(&h);
	ask(0, 1, grant_request(true));
	expect_no_recall(0);
	cancel(0, 1, clients[0].seq[1]);
	expect_grant(1, -EINTR);
	expect_cancelled(0);
	holder_kill(&h);
	client_fini(&clients[0]);
}

/* This client can't return its lease for a reason that is not its own. */
static void restart__who_waits_for_pages_is_not_late(void **state)
{
	uint64_t ino, number;
	struct holder h;

	skip_if_emulated(); /* its times are too short for that */
	restart_with_dirty_pages(&h);
	begin(1, ATTACH_SHARED);
	ino = make_file(0, "file");
	number = take(0, ino, LEASE_EXCLUSIVE);
	ask(0, 1, grant_request(true));
	expect_no_recall(0);
	ask(1, 0, lease_request(ino, LEASE_SHARED));
	expect_no_recall(1);
	usleep(LEASE_MS * 1300);
	expect_recall(0, ino, number, LEASE_SHARED);
	cancel(0, 1, clients[0].seq[1]);
	expect_grant(1, -EINTR);
	expect_cancelled(0);
	give_back(0, ino, number, LEASE_SHARED);
	expect(1, RPC_LEASE, 0);
	holder_kill(&h);
	end_both();
}

/* An answer to the server before the restart must not count: it would look like all the client's
 * pages. */
static void restart__asks_by_other_numbers(void **state)
{
	static const struct rpc_grant_reply nothing;
	uint64_t before, number;
	struct rpc_reply rep;

	begin_with_none_left();
	ask(0, 1, grant_request(true));
	before = until_told(1);
	server_kill(&server);
	server_start(&server);
	for (unsigned i = 0; i < 2; i++) {
		client_wait_closed(&clients[i]);
		client_resume(&clients[i]);
	}
	ask(0, 1, grant_request(true));
	number = until_told(1);
	assert_true(number > before);
	return_pages(1, &nothing, before);
	assert_int_equal(told(1), number);
	return_pages(1, &nothing, number);
	client_receive(&clients[0], &rep);
	assert_int_equal(rep.op, RPC_GRANT);
	assert_int_equal(rep.status, -ENOSPC);
	end_both();
}

int driver_run_pages(void)
{
	static const struct CMUnitTest tests[] = {
		SHARERS_TEST(spare__goes_to_who_lacks_it),
		SHARERS_TEST(spare__is_none_when_all_have_said_so),
		SHARERS_TEST(spare__of_one_that_says_nothing_is_waited_for_once),
		SHARERS_TEST(spare__of_one_that_gives_it_later),
		SHARERS_TEST(spare__is_not_asked_for_what_is_no_page),
		SHARERS_TEST(spare__of_one_that_is_gone_is_not_for_later),
		SHARERS_TEST(
			restart__with_one_that_stays_away__waits_no_longer_than_time_will_tell),
		SHARERS_TEST(restart__who_waits_for_pages_can_withdraw),
		SHARERS_TEST(restart__who_waits_for_pages_is_not_late),
		SHARERS_TEST(restart__asks_by_other_numbers),
	};

	/* Over shm a session's pages come with the end of its process, and all clients are in this
	 * one. */
	static const struct CMUnitTest fenced_tests[] = {
		SHARERS_TEST(spare__of_one_that_says_it_has_none_and_has),
	};
	int failed = cmocka_run_group_tests_name("pages", tests, NULL, NULL);

	if (driver_kind != TRANSPORT_SHM)
		failed += cmocka_run_group_tests_name("keepers", fenced_tests, NULL, NULL);
	return failed;
}
