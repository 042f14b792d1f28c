/* Files that the server does not know yet, and the inode numbers for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/util.h"
#include "daemon/file/make_first.h"
#include "daemon/file/unmade.h"

static struct unmade_files u;

static int setup(void **state)
{
	unmade_init(&u);
	return 0;
}

static int teardown(void **state)
{
	unmade_fini(&u);
	return 0;
}

static void come(uint64_t first, uint8_t n)
{
	unmade_numbers_came(&u, &(struct rpc_lent){first, n});
}

static void numbers__are_taken_in_turn(void **state)
{
	assert_int_equal(unmade_take_number(&u), 0);
	assert_int_equal(unmade_ask_numbers(&u), NUMBERS_ANEW);
	come(100, 2);
	assert_int_equal(unmade_ask_numbers(&u), NUMBERS_MORE);
	come(200, 1);
	assert_int_equal(unmade_take_number(&u), 100);
	assert_int_equal(unmade_take_number(&u), 101);
	assert_int_equal(unmade_take_number(&u), 200);
	assert_int_equal(unmade_take_number(&u), 0);
}

static void numbers__are_asked_for_by_one_request_at_a_time(void **state)
{
	assert_int_equal(unmade_ask_numbers(&u), NUMBERS_ANEW);
	assert_int_equal(unmade_ask_numbers(&u), NUMBERS_NONE);
	/* Nothing came, so that what this client had before is still lent. */
	come(0, 0);
	assert_int_equal(unmade_ask_numbers(&u), NUMBERS_ANEW);
	come(100, 64);
	assert_int_equal(unmade_ask_numbers(&u), NUMBERS_MORE);
	come(200, 64);
	/* There are enough, until the first ones are used. */
	assert_int_equal(unmade_ask_numbers(&u), NUMBERS_NONE);
	for (unsigned i = 0; i < 65; i++)
		assert_int_not_equal(unmade_take_number(&u), 0);
	assert_int_equal(unmade_ask_numbers(&u), NUMBERS_MORE);
}

/* Those that no file got are lent at the server for ever, unless it is told. */
static void numbers__are_asked_for_anew_when_all_are_gone(void **state)
{
	struct rpc_make make = {.parent = 1, .name = {"name", 4}};
	struct unmade *file = unmade_new(100, &make);

	come(100, 2);
	assert_int_equal(unmade_take_number(&u), 100);
	assert_int_equal(unmade_take_number(&u), 101);
	unmade_lose_number(&u);
	/* The other one's file is still to come. */
	assert_int_equal(unmade_ask_numbers(&u), NUMBERS_MORE);
	come(0, 0);
	unmade_add(&u, file);
	assert_int_equal(unmade_ask_numbers(&u), NUMBERS_MORE);
	come(0, 0);
	unmade_delete(&u, file);
	assert_int_equal(unmade_ask_numbers(&u), NUMBERS_ANEW);
}

static void numbers__that_would_be_used_twice_are_not_taken(void **state)
{
	come(ROOT_INO, 2);
	assert_int_equal(unmade_take_number(&u), 0);
	come(100, 2);
	come(101, 2);
	come(50, 2);
	come(UINT64_MAX, 2);
	assert_int_equal(unmade_take_number(&u), 100);
	assert_int_equal(unmade_take_number(&u), 101);
	come(101, 1);
	assert_int_equal(unmade_take_number(&u), 0);
	come(102, 1);
	assert_int_equal(unmade_take_number(&u), 102);
}

static struct unmade *add(uint64_t ino, uint64_t parent)
{
	struct rpc_make make = {.parent = parent, .name = {"name", 4}};
	struct unmade *file = unmade_new(ino, &make);

	come(ino, 1);
	assert_int_equal(unmade_take_number(&u), ino);
	unmade_add(&u, file);
	return file;
}

static uint64_t find(struct op_about about)
{
	uint64_t number = 0;

	return unmade_find(&u, &about, unmade_last(&u), &number);
}

static void find__by_file_and_by_directory(void **state)
{
	struct unmade *a = add(10, 1), *b = add(20, 2);

	assert_true(unmade_any(&u));
	assert_int_equal(find((struct op_about){.ino = {10}}), 10);
	assert_int_equal(find((struct op_about){.ino = {0, 20}}), 20);
	assert_int_equal(find((struct op_about){.ino = {2}}), 20);
	assert_int_equal(find((struct op_about){.ino = {30, 3}}), 0);
	assert_int_equal(find((struct op_about){0}), 0);
	assert_int_equal(find((struct op_about){.all = true}), 10);
	unmade_delete(&u, a);
	assert_int_equal(find((struct op_about){.all = true}), 20);
	unmade_delete(&u, b);
	assert_false(unmade_any(&u));
}

static void find__not_what_was_added_later(void **state)
{
	struct op_about all = {.all = true};
	struct unmade *a = add(10, 1), *b = add(20, 1), *c;
	uint64_t last = unmade_last(&u), number = 0;

	c = add(30, 1);
	assert_int_equal(unmade_find(&u, &all, last, &number), 10);
	assert_int_equal(unmade_find(&u, &all, last, &number), 20);
	assert_int_equal(unmade_find(&u, &all, last, &number), 0);
	unmade_delete(&u, a);
	unmade_delete(&u, b);
	unmade_delete(&u, c);
}

static void new__keeps_its_name(void **state)
{
	char name[] = "a-name";
	struct rpc_make make = {.parent = 1, .name = {name, 6}};
	struct unmade *file = unmade_new(10, &make);

	memset(name, 'x', sizeof(name));
	assert_int_equal(file->make.name.len, 6);
	assert_memory_equal(file->make.name.s, "a-name", 7);
	unmade_drop(file);
}

/* A request that this does not know is about all files. */
static void about__what_requests_name(void **state)
{
	static const uint16_t all[] = {RPC_RMDIR, RPC_RENAME, RPC_LINK};
	struct rpc_request req = {.op = RPC_UNLINK, .name = {.parent = 5}};
	struct op_about about = make_first_about(&req);

	assert_false(about.all);
	assert_int_equal(about.ino[0], 5);
	req = (struct rpc_request){.op = RPC_COPY, .copy = {.src = 6, .dst = 7}};
	about = make_first_about(&req);
	assert_false(about.all);
	assert_int_equal(about.ino[0], 6);
	assert_int_equal(about.ino[1], 7);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		req = (struct rpc_request){.op = all[i]};
		assert_true(make_first_about(&req).all);
	}
}

#define UNMADE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		UNMADE_TEST(numbers__are_taken_in_turn),
		UNMADE_TEST(numbers__are_asked_for_by_one_request_at_a_time),
		UNMADE_TEST(numbers__are_asked_for_anew_when_all_are_gone),
		UNMADE_TEST(numbers__that_would_be_used_twice_are_not_taken),
		UNMADE_TEST(find__by_file_and_by_directory),
		UNMADE_TEST(find__not_what_was_added_later),
		UNMADE_TEST(new__keeps_its_name),
		UNMADE_TEST(about__what_requests_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
