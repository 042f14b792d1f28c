/* driver_locks.c - sessions that share an export and lock its files: which clients the server
 * rings, the news in PING, and what waiting clients get when a holder or the server ends. */
#include <errno.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "tests/unit/driver/sharers.h"

static uint64_t file;

/* ---- requests -------------------------------------------------------------------------------- */

static void begin_all(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		begin(i, ATTACH_SHARED);
	file = make_file(0, "file");
}

static void end_all(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		client_fini(&clients[i]);
}

static int lock(unsigned i, uint8_t type, uint64_t wait)
{
	struct rpc_request req = {.op = RPC_LOCK,
		.lock = {.ino = file,
			.owner = 1,
			.wait = wait,
			.end = LOCK_END_MAX,
			.kind = LOCK_KIND_POSIX,
			.type = type}};
	struct rpc_reply rep;

	return client_call(&clients[i], 0, &req, &rep);
}

/* Returns the number of the first wait in the PING reply, or 0. */
static uint64_t told(unsigned i)
{
	struct rpc_recall news;

	if (!ping(i, &news))
		return 0;
	assert_int_equal(news.keep, RECALL_LOCKS);
	assert_int_equal(news.ino, file);
	return news.number;
}

static void await_told(unsigned i, uint64_t number)
{
	int64_t until = now_ms() + WAIT_MS;

	while (told(i) != number) {
		assert_true(now_ms() < until);
		usleep(10000);
	}
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void wait__is_told_until_it_comes(void **state)
{
	begin_all();
	assert_int_equal(lock(0, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(lock(1, LOCK_EXCLUSIVE, 7), -EINPROGRESS);
	assert_int_equal(lock(2, LOCK_SHARED, 8), -EINPROGRESS);
	assert_int_equal(told(1), 0);
	assert_int_equal(lock(0, LOCK_FREE, 0), 0);
	assert_int_equal(told(1), 7);
	assert_int_equal(told(1), 7);
	assert_int_equal(told(2), 0);
	assert_int_equal(lock(1, LOCK_EXCLUSIVE, 7), 0);
	assert_int_equal(told(1), 0);
	assert_int_equal(lock(1, LOCK_SHARED, 0), 0);
	assert_int_equal(told(2), 8);
	assert_int_equal(lock(2, LOCK_SHARED, 8), 0);
	end_all();
}

/* The ring has no content: it only says that there is news. */
static void wait__rings(void **state)
{
	struct event event;

	begin_all();
	assert_int_equal(lock(0, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(lock(1, LOCK_EXCLUSIVE, 7), -EINPROGRESS);
	assert_int_equal(lock(0, LOCK_FREE, 0), 0);
	client_event(&clients[1], &event);
	assert_int_equal(event.type, EV_RECV);
	assert_true(event.has_imm);
	assert_int_equal(event.imm, RPC_RING);
	channel_recv_done(clients[1].channel, event.data);
	end_all();
}

static void wait__is_passed_when_it_does_not_come(void **state)
{
	begin_all();
	assert_int_equal(lock(0, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(lock(1, LOCK_EXCLUSIVE, 7), -EINPROGRESS);
	assert_int_equal(lock(2, LOCK_EXCLUSIVE, 8), -EINPROGRESS);
	assert_int_equal(lock(0, LOCK_FREE, 0), 0);
	await_told(2, 8);
	assert_int_equal(lock(2, LOCK_EXCLUSIVE, 8), 0);
	end_all();
}

static void end__of_a_holder_frees_its_locks(void **state)
{
	begin_all();
	assert_int_equal(lock(0, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(lock(1, LOCK_EXCLUSIVE, 7), -EINPROGRESS);
	client_bye(&clients[0]);
	await_told(1, 7);
	assert_int_equal(lock(1, LOCK_EXCLUSIVE, 7), 0);
	end_all();
}

/* A client that is gone has the lease time to come back. Over shm its process lives, so it is not
 * gone. */
static void await_end_of_holder(void)
{
	int64_t began = now_ms(), until = began + WAIT_MS;

	if (driver_kind == TRANSPORT_SHM)
		return;
	/* A try without waiting ends the holder's session, too. */
	while (lock(1, LOCK_SHARED, 0)) {
		assert_true(now_ms() < until);
		usleep(50000);
	}
	assert_true(now_ms() - began >= LEASE_MS - 100);
	server_logs(&server, "it is gone, and has locks that others want");
}

static void end__of_a_holder_that_is_gone(void **state)
{
	begin_all();
	assert_int_equal(lock(0, LOCK_EXCLUSIVE, 0), 0);
	client_drop(&clients[0]);
	await_end_of_holder();
	end_all();
}

/* The connection stays open, but the client sends nothing over it. */
static void end__of_a_holder_that_is_silent(void **state)
{
	begin_all();
	assert_int_equal(lock(0, LOCK_EXCLUSIVE, 0), 0);
	await_end_of_holder();
	end_all();
}

static void read_only__locks_keep_no_writer_out(void **state)
{
	begin(0, ATTACH_SHARED);
	begin(1, ATTACH_SHARED | ATTACH_READ_ONLY);
	begin(2, ATTACH_SHARED | ATTACH_READ_ONLY);
	file = make_file(0, "file");
	assert_int_equal(lock(1, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(lock(2, LOCK_EXCLUSIVE, 7), -EINPROGRESS);
	assert_int_equal(lock(0, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(lock(1, LOCK_FREE, 0), 0);
	assert_int_equal(told(2), 0);
	assert_int_equal(lock(0, LOCK_FREE, 0), 0);
	await_told(2, 7);
	assert_int_equal(lock(2, LOCK_EXCLUSIVE, 7), 0);
	end_all();
}

static void restart__keeps_locks(void **state)
{
	begin_all();
	assert_int_equal(lock(0, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(lock(1, LOCK_EXCLUSIVE, 7), -EINPROGRESS);
	server_kill(&server);
	server_start(&server);
	for (unsigned i = 0; i < CLIENTS; i++) {
		client_wait_closed(&clients[i]);
		client_resume(&clients[i]);
	}
	/* The stored reply from before the restart must not answer the repeated wait. */
	clients[1].seq[0]--;
	assert_int_equal(lock(1, LOCK_EXCLUSIVE, 7), -EINPROGRESS);
	assert_int_equal(lock(2, LOCK_SHARED, 0), -EAGAIN);
	assert_int_equal(lock(1, LOCK_EXCLUSIVE, 7), -EINPROGRESS);
	assert_int_equal(lock(0, LOCK_FREE, 0), 0);
	await_told(1, 7);
	assert_int_equal(lock(1, LOCK_EXCLUSIVE, 7), 0);
	end_all();
}

int driver_run_locks(void)
{
	static const struct CMUnitTest tests[] = {
		SHARERS_TEST(wait__is_told_until_it_comes),
		SHARERS_TEST(wait__rings),
		SHARERS_TEST(wait__is_passed_when_it_does_not_come),
		SHARERS_TEST(end__of_a_holder_frees_its_locks),
		SHARERS_TEST(end__of_a_holder_that_is_gone),
		SHARERS_TEST(end__of_a_holder_that_is_silent),
		SHARERS_TEST(read_only__locks_keep_no_writer_out),
		SHARERS_TEST(restart__keeps_locks),
	};

	return cmocka_run_group_tests_name("locks", tests, NULL, NULL);
}
