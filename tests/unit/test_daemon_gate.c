/* The gate of an inode: who runs beside whom, and in which order the others follow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/gate.h"

static struct gate_pass reading(void)
{
	return (struct gate_pass){.kind = GATE_READ};
}

static struct gate_pass writing(uint64_t first, uint64_t end)
{
	return (struct gate_pass){.kind = GATE_WRITE, .first = first, .end = end};
}

static struct gate_pass excluding(void)
{
	return (struct gate_pass){.kind = GATE_EXCLUSIVE};
}

static void reads__run_beside_writes(void **state)
{
	struct gate gate;
	struct gate_pass w = writing(0, 10), r1 = reading(), r2 = reading();

	gate_init(&gate);
	assert_true(gate_enter(&gate, &w));
	assert_true(gate_enter(&gate, &r1));
	assert_true(gate_enter(&gate, &r2));
	gate_leave(&gate, &r1);
	gate_leave(&gate, &w);
	assert_false(gate_idle(&gate));
	gate_leave(&gate, &r2);
	assert_null(gate_next(&gate));
	assert_true(gate_idle(&gate));
}

static void writes__apart__run_together(void **state)
{
	struct gate gate;
	struct gate_pass a = writing(0, 10), b = writing(10, 20), c = writing(30, 31);

	gate_init(&gate);
	assert_true(gate_enter(&gate, &a));
	assert_true(gate_enter(&gate, &b));
	assert_true(gate_enter(&gate, &c));
	gate_leave(&gate, &b);
	gate_leave(&gate, &a);
	gate_leave(&gate, &c);
	assert_true(gate_idle(&gate));
}

static void writes__overlapping__follow_in_order(void **state)
{
	struct gate gate;
	struct gate_pass a = writing(0, 10), b = writing(9, 20), c = writing(15, 16),
			 d = writing(40, 50);

	gate_init(&gate);
	assert_true(gate_enter(&gate, &a));
	assert_false(gate_enter(&gate, &b));
	/* c overlaps only b, which waits: it must not overtake. */
	assert_false(gate_enter(&gate, &c));
	assert_true(gate_enter(&gate, &d));
	assert_null(gate_next(&gate));
	gate_leave(&gate, &a);
	assert_ptr_equal(gate_next(&gate), &b);
	assert_null(gate_next(&gate));
	gate_leave(&gate, &b);
	assert_ptr_equal(gate_next(&gate), &c);
	gate_leave(&gate, &c);
	gate_leave(&gate, &d);
	assert_true(gate_idle(&gate));
}

static void exclusive__waits_and_holds_up_later_ones(void **state)
{
	struct gate gate;
	struct gate_pass w = writing(0, 1), r = reading(), x = excluding(), r2 = reading(),
			 w2 = writing(5, 6);

	gate_init(&gate);
	assert_true(gate_enter(&gate, &w));
	assert_true(gate_enter(&gate, &r));
	assert_false(gate_enter(&gate, &x));
	assert_false(gate_enter(&gate, &r2));
	assert_false(gate_enter(&gate, &w2));
	gate_leave(&gate, &w);
	assert_null(gate_next(&gate));
	gate_leave(&gate, &r);
	assert_ptr_equal(gate_next(&gate), &x);
	assert_null(gate_next(&gate));
	gate_leave(&gate, &x);
	assert_ptr_equal(gate_next(&gate), &r2);
	assert_ptr_equal(gate_next(&gate), &w2);
	assert_null(gate_next(&gate));
	gate_leave(&gate, &r2);
	gate_leave(&gate, &w2);
	assert_true(gate_idle(&gate));
}

static void exclusives__one_after_the_other(void **state)
{
	struct gate gate;
	struct gate_pass x = excluding(), y = excluding();

	gate_init(&gate);
	assert_true(gate_enter(&gate, &x));
	assert_false(gate_enter(&gate, &y));
	gate_leave(&gate, &x);
	assert_ptr_equal(gate_next(&gate), &y);
	gate_leave(&gate, &y);
	assert_true(gate_idle(&gate));
}

static void withdraw__lets_later_ones_in(void **state)
{
	struct gate gate;
	struct gate_pass r = reading(), x = excluding(), r2 = reading();

	gate_init(&gate);
	assert_true(gate_enter(&gate, &r));
	assert_false(gate_enter(&gate, &x));
	assert_false(gate_enter(&gate, &r2));
	assert_true(gate_withdraw(&x));
	assert_ptr_equal(gate_next(&gate), &r2);
	gate_leave(&gate, &r);
	gate_leave(&gate, &r2);
	assert_true(gate_idle(&gate));
}

static void withdraw__admitted__refused(void **state)
{
	struct gate gate;
	struct gate_pass r = reading();

	gate_init(&gate);
	assert_true(gate_enter(&gate, &r));
	assert_false(gate_withdraw(&r));
	gate_leave(&gate, &r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads__run_beside_writes),
		cmocka_unit_test(writes__apart__run_together),
		cmocka_unit_test(writes__overlapping__follow_in_order),
		cmocka_unit_test(exclusive__waits_and_holds_up_later_ones),
		cmocka_unit_test(exclusives__one_after_the_other),
		cmocka_unit_test(withdraw__lets_later_ones_in),
		cmocka_unit_test(withdraw__admitted__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
