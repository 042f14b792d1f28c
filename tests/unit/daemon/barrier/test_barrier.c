/* Requests that are held before they begin: which of them go on, in which thread, and when they do
 * not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "tests/unit/daemon/fs_fixture.h"
#include "daemon/barrier/barrier.h"

static struct fs_fixture fx;
static struct barrier hold;
static bool lasting;
static bool lasts_again; /* set when one has begun */
/* For each request. 1: it began, -errno: it was taken back, 0: it is held. */
static int began[FIXTURE_REQUESTS];

static bool lasts(const struct fs *fs)
{
	assert_ptr_equal(fs, &fx.fs);
	return lasting;
}

static void begin(struct request *req, int status)
{
	began[req->unique - 1] = status ? status : 1;
	assert_int_equal(op_of(req)->wait, OP_RUNS);
	lasting = lasts_again;
	request_end(req);
}

static int setup(void **state)
{
	memset(began, 0, sizeof(began));
	lasting = true;
	lasts_again = false;
	if (fs_fixture_init(&fx))
		return -1;
	barrier_init(&hold, &fx.fs, OP_AT_ABANDONED, lasts);
	return 0;
}

static int teardown(void **state)
{
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		assert_true(list_empty(&hold.threads[i].requests));
	fs_fixture_fini(&fx);
	return 0;
}

static void hold_one(unsigned i, unsigned thread)
{
	struct request *req = fs_fixture_make(&fx, i, thread, OP_LOOKUP);

	barrier_hold(&hold, req, begin);
	assert_int_equal(op_of(req)->wait, OP_AT_ABANDONED);
}

static void end(void)
{
	lasting = false;
	barrier_wake(&hold);
}

static void held__goes_on_in_its_thread_and_in_order(void **state)
{
	hold_one(0, 0);
	hold_one(1, 1);
	end();
	assert_int_equal(began[0], 0);
	fs_fixture_turn(&fx, 1);
	assert_int_equal(began[0], 0);
	assert_int_equal(began[1], 1);
	fs_fixture_turn(&fx, 0);
	assert_int_equal(began[0], 1);
}

/* The next requests wait for the first one that begins. */
static void held__waits_on_when_it_lasts_again(void **state)
{
	lasts_again = true;
	hold_one(0, 0);
	hold_one(1, 0);
	end();
	fs_fixture_turn(&fx, 0);
	assert_int_equal(began[0], 1);
	assert_int_equal(began[1], 0);
	end();
	fs_fixture_turn(&fx, 0);
	assert_int_equal(began[1], 1);
}

static void held__waits_on_when_it_is_woken_too_early(void **state)
{
	hold_one(0, 0);
	barrier_wake(&hold);
	fs_fixture_turn(&fx, 0);
	assert_int_equal(began[0], 0);
	end();
	fs_fixture_turn(&fx, 0);
	assert_int_equal(began[0], 1);
}

/* The call in flight sees it, and each thread has one call. */
static void held__is_woken_by_a_call_that_has_not_run_yet(void **state)
{
	hold_one(0, 0);
	barrier_wake(&hold);
	end();
	fs_fixture_turn(&fx, 0);
	assert_int_equal(began[0], 1);
	lasting = true;
	hold_one(1, 0);
	end();
	fs_fixture_turn(&fx, 0);
	assert_int_equal(began[1], 1);
}

static void held__that_is_taken_back_does_not_begin(void **state)
{
	hold_one(0, 0);
	hold_one(1, 0);
	assert_true(op_cancel(fx.requests[0], -EINTR));
	assert_int_equal(began[0], -ECANCELED);
	end();
	fs_fixture_turn(&fx, 0);
	assert_int_equal(began[0], -ECANCELED);
	assert_int_equal(began[1], 1);
}

static void held__does_not_count_among_its_threads_requests(void **state)
{
	unsigned nused = fx.threads[0]->priv->nused;

	hold_one(0, 0);
	assert_int_equal(fx.threads[0]->priv->nused, nused);
	end();
	fs_fixture_turn(&fx, 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	static const struct CMUnitTest tests[] = {
		CASE(held__goes_on_in_its_thread_and_in_order),
		CASE(held__waits_on_when_it_lasts_again),
		CASE(held__waits_on_when_it_is_woken_too_early),
		CASE(held__is_woken_by_a_call_that_has_not_run_yet),
		CASE(held__that_is_taken_back_does_not_begin),
		CASE(held__does_not_count_among_its_threads_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
