/* Whether polling pays, by waits of known lengths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/base/spin.h"

enum { BUDGET = 1000 };

static void learn__hopes_after_a_short_wait(void **state)
{
	struct spin spin = {0};

	assert_false(spin_hopes(&spin));
	spin_learn(&spin, BUDGET - 1, BUDGET);
	assert_true(spin_hopes(&spin));
}

static void learn__gives_up_after_long_waits(void **state)
{
	struct spin spin = {0};
	unsigned waits = 0;

	for (unsigned i = 0; i < 1000; i++)
		spin_learn(&spin, 1, BUDGET);
	while (spin_hopes(&spin)) {
		spin_learn(&spin, BUDGET, BUDGET);
		waits++;
	}
	assert_true(waits > 1 && waits <= SPIN_HOPE_MAX / SPIN_LOSS);
}

static void learn__every_second_wait_is_too_few(void **state)
{
	struct spin spin = {.hope = SPIN_HOPE_MAX};
	unsigned hoped = 0;

	for (unsigned i = 0; i < 1000; i++) {
		spin_learn(&spin, i % 2 ? BUDGET : 1, BUDGET);
		hoped += i >= 100 && spin_hopes(&spin) && !(i % 2);
	}
	/* A short wait gives hope for the next one, which is long, and no more than that. */
	assert_int_equal(hoped, 450);
	assert_true(spin.hope <= SPIN_GAIN);
}

static void again__never_without_a_budget(void **state)
{
	struct spin spin = {.hope = SPIN_HOPE_MAX};

	assert_false(spin_again(&spin, 0));
	assert_int_equal(spin.idle_since, 0);
}

static void again__until_the_budget_is_used_up(void **state)
{
	struct spin spin = {.hope = SPIN_HOPE_MAX};

	assert_true(spin_again(&spin, INT64_MAX));
	assert_true(spin.idle_since > 0);
	spin.idle_since -= BUDGET;
	assert_false(spin_again(&spin, BUDGET));
	/* A wake-up that finds nothing does not end the wait. */
	assert_false(spin_again(&spin, BUDGET));
	spin_found(&spin, spin_looks(&spin), BUDGET);
	assert_int_equal(spin.hope, SPIN_HOPE_MAX - SPIN_LOSS);
	assert_int_equal(spin.idle_since, 0);
}

static void again__without_hope_waits_are_judged_all_the_same(void **state)
{
	struct spin spin = {0};

	assert_false(spin_again(&spin, INT64_MAX));
	spin_found(&spin, spin_looks(&spin), INT64_MAX);
	assert_true(spin_hopes(&spin));
	/* In between the owner did not wait. */
	assert_int_equal(spin_looks(&spin), 0);
	spin_found(&spin, spin_looks(&spin), 1);
	assert_int_equal(spin.hope, SPIN_GAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(learn__hopes_after_a_short_wait),
		cmocka_unit_test(learn__gives_up_after_long_waits),
		cmocka_unit_test(learn__every_second_wait_is_too_few),
		cmocka_unit_test(again__never_without_a_budget),
		cmocka_unit_test(again__until_the_budget_is_used_up),
		cmocka_unit_test(again__without_hope_waits_are_judged_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
