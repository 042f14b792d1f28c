/* The gate of an inode: which operations run at the same time, and in which order the others
 * follow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/file/gate.h"

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
	/* c overlaps only b, which waits: c must not overtake b. */
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

/* ---- writes that were acknowledged ----------------------------------------------------------- */

static struct gate_pass reading_pages(uint64_t first, uint64_t end)
{
	return (struct gate_pass){.kind = GATE_READ, .first = first, .end = end};
}

static void acknowledged__reads_of_its_pages_wait(void **state)
{
	struct gate gate;
	struct gate_pass w = writing(5, 10), before = reading_pages(0, 10),
			 apart = reading_pages(10, 20), part = reading_pages(9, 20),
			 all = reading_pages(0, UINT64_MAX);

	gate_init(&gate);
	assert_true(gate_enter(&gate, &w));
	assert_true(gate_enter(&gate, &before));
	assert_false(gate_has_acknowledged(&gate));
	gate_acknowledge(&gate, &w, UINT64_MAX);
	assert_true(gate_has_acknowledged(&gate));
	assert_true(gate_enter(&gate, &apart));
	assert_false(gate_enter(&gate, &part));
	assert_false(gate_enter(&gate, &all));
	assert_null(gate_next(&gate));
	gate_leave(&gate, &w);
	assert_false(gate_has_acknowledged(&gate));
	assert_ptr_equal(gate_next(&gate), &part);
	assert_ptr_equal(gate_next(&gate), &all);
	gate_leave(&gate, &before);
	gate_leave(&gate, &apart);
	gate_leave(&gate, &part);
	gate_leave(&gate, &all);
	assert_true(gate_idle(&gate));
}

/* Else a continuous writer would keep readers from ending. */
static void acknowledged__later_ones_are_not_waited_for(void **state)
{
	struct gate gate;
	struct gate_pass a = writing(0, 1), b = writing(1, 2), c = writing(2, 3),
			 all = reading_pages(0, UINT64_MAX);

	gate_init(&gate);
	assert_true(gate_enter(&gate, &a));
	assert_true(gate_enter(&gate, &b));
	gate_acknowledge(&gate, &b, UINT64_MAX);
	assert_false(gate_enter(&gate, &all));
	gate_acknowledge(&gate, &a, UINT64_MAX);
	assert_true(gate_enter(&gate, &c));
	gate_acknowledge(&gate, &c, UINT64_MAX);
	gate_leave(&gate, &b);
	assert_ptr_equal(gate_next(&gate), &all);
	gate_leave(&gate, &a);
	gate_leave(&gate, &c);
	gate_leave(&gate, &all);
	assert_true(gate_idle(&gate));
}

static void acknowledged__writes_and_exclusives_wait_as_ever(void **state)
{
	struct gate gate;
	struct gate_pass w = writing(0, 10), again = writing(9, 11), x = excluding();

	gate_init(&gate);
	assert_true(gate_enter(&gate, &w));
	gate_acknowledge(&gate, &w, UINT64_MAX);
	assert_false(gate_enter(&gate, &again));
	assert_false(gate_enter(&gate, &x));
	gate_leave(&gate, &w);
	assert_ptr_equal(gate_next(&gate), &again);
	assert_null(gate_next(&gate));
	gate_leave(&gate, &again);
	assert_ptr_equal(gate_next(&gate), &x);
	gate_leave(&gate, &x);
	assert_true(gate_idle(&gate));
}

static void size__is_what_it_was_before_the_first_that_is_inside(void **state)
{
	struct gate gate;
	struct gate_pass a = writing(0, 1), b = writing(1, 2), inner = writing(2, 3),
			 late = reading_pages(8, 9);

	gate_init(&gate);
	assert_int_equal(gate_size(&gate, 0, 50), 50);
	assert_true(gate_enter(&gate, &b));
	assert_true(gate_enter(&gate, &a));
	assert_true(gate_enter(&gate, &inner));
	gate_acknowledge(&gate, &a, 100);
	gate_acknowledge(&gate, &inner, UINT64_MAX);
	assert_true(gate_enter(&gate, &late));
	gate_acknowledge(&gate, &b, 4096);
	assert_int_equal(gate_size(&gate, 0, 8192), 100);
	/* For a request that came after the first, its bytes are in the file. */
	assert_int_equal(gate_size(&gate, late.acks, 8192), 4096);
	gate_leave(&gate, &a);
	assert_int_equal(gate_size(&gate, 0, 8192), 4096);
	gate_leave(&gate, &b);
	assert_int_equal(gate_size(&gate, 0, 8192), 8192);
	gate_leave(&gate, &inner);
	gate_leave(&gate, &late);
	assert_true(gate_idle(&gate));
}

static void is_settled__beside_reads_and_acknowledged_writes(void **state)
{
	struct gate gate;
	struct gate_pass r = reading(), w = writing(0, 10), later = writing(5, 6), x = excluding();

	gate_init(&gate);
	assert_true(gate_enter(&gate, &r));
	assert_true(gate_is_settled(&gate));
	assert_true(gate_enter(&gate, &w));
	assert_false(gate_is_settled(&gate));
	gate_acknowledge(&gate, &w, UINT64_MAX);
	assert_true(gate_is_settled(&gate));
	assert_false(gate_enter(&gate, &later));
	assert_false(gate_is_settled(&gate));
	assert_true(gate_withdraw(&later));
	gate_leave(&gate, &r);
	gate_leave(&gate, &w);
	assert_true(gate_enter(&gate, &x));
	assert_false(gate_is_settled(&gate));
	gate_leave(&gate, &x);
	assert_true(gate_is_settled(&gate));
}

static void keeps_readers_out__those_of_its_pages_that_come_later(void **state)
{
	struct gate gate;
	struct gate_pass w = writing(0, 10), before = reading(), later = reading(),
			 apart = reading();

	before.end = later.end = 1;
	apart.first = 10;
	apart.end = 11;
	gate_init(&gate);
	assert_true(gate_enter(&gate, &w));
	assert_true(gate_enter(&gate, &before));
	gate_keep_readers_out(&gate, &w);
	assert_false(gate_enter(&gate, &later));
	assert_true(gate_enter(&gate, &apart));
	gate_leave(&gate, &before);
	assert_null(gate_next(&gate));
	gate_leave(&gate, &w);
	assert_ptr_equal(gate_next(&gate), &later);
	gate_leave(&gate, &later);
	gate_leave(&gate, &apart);
	assert_true(gate_idle(&gate));
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
		cmocka_unit_test(acknowledged__reads_of_its_pages_wait),
		cmocka_unit_test(acknowledged__later_ones_are_not_waited_for),
		cmocka_unit_test(acknowledged__writes_and_exclusives_wait_as_ever),
		cmocka_unit_test(size__is_what_it_was_before_the_first_that_is_inside),
		cmocka_unit_test(keeps_readers_out__those_of_its_pages_that_come_later),
		cmocka_unit_test(is_settled__beside_reads_and_acknowledged_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
