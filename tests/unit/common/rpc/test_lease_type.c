/* Conflicts of leases, and which lease includes which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/rpc/lease_type.h"

enum { L = LEASE_LAYOUT, O = LEASE_OVERWRITE, S = LEASE_SHARED, X = LEASE_EXCLUSIVE };

static void conflicts__as_the_table_says(void **state)
{
	static const bool table[LEASE_TYPES][LEASE_TYPES] = {
		[L] = {[X] = true},
		[O] = {[S] = true, [X] = true},
		[S] = {[O] = true, [X] = true},
		[X] = {[L] = true, [O] = true, [S] = true, [X] = true},
	};

	for (unsigned a = LEASE_NONE; a < LEASE_TYPES; a++)
		for (unsigned b = LEASE_NONE; b < LEASE_TYPES; b++) {
			assert_int_equal(lease_conflicts(a, lease_bit(b)), table[a][b]);
			assert_int_equal(table[a][b], table[b][a]);
		}
	assert_true(lease_conflicts(O, lease_bit(L) | lease_bit(S)));
}

/* A greater lease conflicts with at least as much. */
static void includes__is_an_order(void **state)
{
	for (unsigned a = LEASE_NONE; a < LEASE_TYPES; a++)
		for (unsigned b = LEASE_NONE; b < LEASE_TYPES; b++) {
			uint8_t both = lease_common(a, b);

			assert_int_equal(both, lease_common(b, a));
			assert_true(lease_includes(a, both) && lease_includes(b, both));
			for (unsigned c = LEASE_NONE; c < LEASE_TYPES; c++) {
				if (lease_includes(a, c) && lease_includes(b, c))
					assert_true(lease_includes(both, c));
				if (lease_includes(a, b) && lease_conflicts(b, lease_bit(c)))
					assert_true(lease_conflicts(a, lease_bit(c)));
			}
		}
	assert_false(lease_includes(S, O) || lease_includes(O, S));
	assert_int_equal(lease_common(S, O), L);
}

static void beside__is_as_much_as_others_let_one_have(void **state)
{
	assert_int_equal(lease_beside(X, lease_bit(S)), S);
	assert_int_equal(lease_beside(X, lease_bit(O)), O);
	assert_int_equal(lease_beside(X, lease_bit(L)), O);
	assert_int_equal(lease_beside(X, lease_bit(S) | lease_bit(O)), L);
	assert_int_equal(lease_beside(X, lease_bit(X)), LEASE_NONE);
	assert_int_equal(lease_beside(S, lease_bit(O)), L);
	assert_int_equal(lease_beside(O, lease_bit(S)), L);
	assert_int_equal(lease_beside(L, lease_bit(X)), LEASE_NONE);
	assert_int_equal(lease_beside(S, lease_bit(L)), S);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(conflicts__as_the_table_says),
		cmocka_unit_test(includes__is_an_order),
		cmocka_unit_test(beside__is_as_much_as_others_let_one_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
