/* The numbers of values in progress. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>

#include "common/base/util.h"
#include "daemon/ops/value_stages.h"

static void take__the_lowest_that_is_free(void **state)
{
	struct value_stages stages = {0};

	for (uint32_t i = 1; i <= STAGES_MAX; i++)
		assert_int_equal(value_stages_take(&stages), i);
	assert_int_equal(value_stages_take(&stages), 0);
	value_stages_give(&stages, STAGES_MAX);
	value_stages_give(&stages, 64);
	value_stages_give(&stages, 65);
	assert_int_equal(value_stages_take(&stages), 64);
	assert_int_equal(value_stages_take(&stages), 65);
	assert_int_equal(value_stages_take(&stages), STAGES_MAX);
	assert_int_equal(value_stages_take(&stages), 0);
}

enum { THREADS = 4, ROUNDS = 20000, EACH = STAGES_MAX / THREADS };

static struct value_stages shared;
static _Atomic unsigned owners[STAGES_MAX + 1];

/* The threads take as many as there are in all, so none is refused, and each belongs to one
 * thread. */
static void *take_and_give(void *arg)
{
	uint32_t mine[EACH];

	for (unsigned round = 0; round < ROUNDS / EACH; round++) {
		for (unsigned i = 0; i < EACH; i++) {
			mine[i] = value_stages_take(&shared);
			if (!mine[i] || atomic_fetch_add(&owners[mine[i]], 1))
				return arg;
		}
		for (unsigned i = 0; i < EACH; i++) {
			atomic_fetch_sub(&owners[mine[i]], 1);
			value_stages_give(&shared, mine[i]);
		}
	}
	return NULL;
}

static void take__each_is_one_threads(void **state)
{
	pthread_t threads[THREADS];
	void *failed;

	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &shared), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__the_lowest_that_is_free),
		cmocka_unit_test(take__each_is_one_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
