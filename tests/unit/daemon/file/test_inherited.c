/* Numbers of handles that another daemon has given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/file/handle.h"
#include "daemon/file/inherited.h"

enum { HANDLES = 100 };

static struct inherited *table;

static int setup(void **state)
{
	return inherited_new(HANDLES, &table);
}

static int teardown(void **state)
{
	inherited_delete(table);
	return 0;
}

static uint64_t translated(uint64_t number)
{
	struct request req = {.op = OP_READ, .args = {.fh = number, .has_fh = true}};

	inherited_translate(table, &req);
	return req.args.fh;
}

static uint64_t number_of(unsigned i)
{
	return UINT64_C(0x7f0000001000) + 0x40 * (uint64_t)i;
}

static void translate__each_number_to_its_handle(void **state)
{
	static struct handle handles[HANDLES];

	for (unsigned i = 0; i < HANDLES; i++)
		assert_int_equal(inherited_name(table, number_of(i)), 0);
	for (unsigned i = 0; i < HANDLES; i++)
		inherited_set(table, number_of(i), &handles[i]);
	for (unsigned i = 0; i < HANDLES; i++) {
		assert_int_equal(translated(number_of(i)), (uintptr_t)&handles[i]);
		assert_int_equal(handle_number(&handles[i]), number_of(i));
	}
}

static void translate__leaves_addresses_and_directories(void **state)
{
	struct handle own = {0};

	assert_int_equal(inherited_name(table, number_of(0)), 0);
	assert_int_equal(translated(handle_number(&own)), (uintptr_t)&own);
	assert_int_equal(translated(0), 0);
}

static void translate__takes_both_handles_of_a_copy(void **state)
{
	struct handle from = {0}, to = {0};
	struct request req = {
		.op = OP_COPY, .args = {.fh = number_of(1), .has_fh = true, .fh2 = number_of(2)}};

	inherited_name(table, number_of(1));
	inherited_name(table, number_of(2));
	inherited_set(table, number_of(1), &from);
	inherited_set(table, number_of(2), &to);
	inherited_translate(table, &req);
	assert_ptr_equal(handle_of(&req), &from);
	assert_ptr_equal(handle_of_target(&req), &to);
}

static void translate__not_once_it_is_closed(void **state)
{
	struct handle handle = {0};

	inherited_name(table, number_of(0));
	inherited_set(table, number_of(0), &handle);
	inherited_remove(table, &handle);
	assert_int_equal(translated(number_of(0)), number_of(0));
}

/* The daemon before this one has closed it, and was killed before it could say so. */
static void translate__of_a_request_that_came_again__knows_what_is_gone(void **state)
{
	struct request req = {.op = OP_RELEASE,
		.unique = 8 | REQUEST_RESENT,
		.args = {.fh = number_of(0), .has_fh = true}};
	struct handle handle = {0};

	assert_false(inherited_translate(table, &req));
	inherited_name(table, number_of(0));
	inherited_set(table, number_of(0), &handle);
	assert_true(inherited_translate(table, &req));
	assert_ptr_equal(handle_of(&req), &handle);
	req.args.has_fh = false;
	assert_true(inherited_translate(table, &req));
	req = (struct request){.op = OP_RELEASE, .unique = 8, .args = {.fh = number_of(1)}};
	assert_true(inherited_translate(table, &req));
}

static void name__twice__is_refused(void **state)
{
	assert_int_equal(inherited_name(table, number_of(0)), 0);
	assert_int_equal(inherited_name(table, number_of(0)), -EEXIST);
}

/* The allocator would give the address that was freed last. */
static void alloc__takes_no_address_that_is_a_number(void **state)
{
	struct handle *first = inherited_alloc(table), *second;
	uint64_t number = handle_number(first);

	free(first);
	assert_int_equal(inherited_name(table, number), 0);
	second = inherited_alloc(table);
	assert_non_null(second);
	assert_int_not_equal(handle_number(second), number);
	free(second);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(translate__each_number_to_its_handle),
		CASE(translate__leaves_addresses_and_directories),
		CASE(translate__takes_both_handles_of_a_copy),
		CASE(translate__not_once_it_is_closed),
		CASE(translate__of_a_request_that_came_again__knows_what_is_gone),
		CASE(name__twice__is_refused),
		CASE(alloc__takes_no_address_that_is_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
