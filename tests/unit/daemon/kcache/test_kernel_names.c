/* test_kernel_names.c - names that the kernel was told, for each calling process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/kcache/kernel_names.h"

enum { THREAD = 4711, OTHER = THREAD + 1, SAME_SET = THREAD + SHOWN_SETS, INO = 99 };

static struct kernel_names shown;
static const struct name_key a = {1, 3}, b = {2, 5};

static int set_up(void **state)
{
	return kernel_names_init(&shown);
}

static int tear_down(void **state)
{
	kernel_names_fini(&shown);
	return 0;
}

static void expect(uint32_t thread, struct name_key key, uint64_t ino, bool directory, bool refused)
{
	struct shown_name name;

	assert_true(kernel_names_find(&shown, thread, key, &name));
	assert_int_equal(name.ino, ino);
	assert_int_equal(name.directory, directory);
	assert_int_equal(name.refused != 0, refused);
}

static void expect_nothing(uint32_t thread, struct name_key key)
{
	struct shown_name name;

	assert_false(kernel_names_find(&shown, thread, key, &name));
}

static void note__is_of_a_name_and_a_thread(void **state)
{
	expect_nothing(THREAD, a);
	kernel_names_note(&shown, THREAD, a, INO, true);
	kernel_names_note(&shown, THREAD, b, 0, false);
	kernel_names_note(&shown, OTHER, a, INO + 1, false);
	kernel_names_note(&shown, SAME_SET, a, INO + 2, false);
	expect(THREAD, a, INO, true, false);
	expect(THREAD, b, 0, false, false);
	expect(OTHER, a, INO + 1, false, false);
	expect(SAME_SET, a, INO + 2, false, false);
	expect_nothing(OTHER, b);
}

static void note__the_last_one_counts(void **state)
{
	kernel_names_note(&shown, THREAD, a, INO, true);
	kernel_names_note(&shown, THREAD, a, 0, false);
	expect(THREAD, a, 0, false, false);
}

/* The names noted last stay. */
static void note__makes_room_by_what_is_older(void **state)
{
	kernel_names_note(&shown, THREAD, a, INO, true);
	for (uint64_t i = 0; i < SHOWN_WAYS - 1; i++)
		kernel_names_note(&shown, THREAD, (struct name_key){10 + i, 1}, i, false);
	expect(THREAD, a, INO, true, false);
	kernel_names_note(&shown, THREAD, a, INO + 1, true);
	kernel_names_note(&shown, THREAD, b, INO, false);
	expect_nothing(THREAD, (struct name_key){10, 1});
	expect(THREAD, a, INO + 1, true, false);
	expect(THREAD, b, INO, false, false);
	for (uint64_t i = 0; i < SHOWN_WAYS; i++)
		kernel_names_note(&shown, SAME_SET, (struct name_key){10 + i, 1}, i, false);
	expect_nothing(THREAD, a);
}

static void refuse__is_known_until_a_change_ends_otherwise(void **state)
{
	kernel_names_note(&shown, THREAD, a, INO, true);
	kernel_names_note(&shown, THREAD, b, INO, true);
	kernel_names_note(&shown, OTHER, a, INO, true);
	kernel_names_set_refused(&shown, THREAD, a, true);
	kernel_names_note(&shown, THREAD, a, INO + 1, true);
	expect(OTHER, a, INO, true, false);
	expect(THREAD, b, INO, true, false);
	expect(THREAD, a, INO + 1, true, true);
	/* An operation that begins anew finds the same. */
	expect(THREAD, a, INO + 1, true, true);
	kernel_names_set_refused(&shown, THREAD, a, false);
	expect(THREAD, a, INO + 1, true, false);
}

static void note_others(uint64_t first, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		kernel_names_note(&shown, THREAD, (struct name_key){first + i, 1}, i, true);
}

/* Both names of a RENAME, whose folders are looked up again. */
static void refuse__outlives_the_names_of_a_path(void **state)
{
	kernel_names_note(&shown, THREAD, a, INO, true);
	kernel_names_note(&shown, THREAD, b, INO, true);
	kernel_names_set_refused(&shown, THREAD, a, true);
	kernel_names_set_refused(&shown, THREAD, b, true);
	note_others(10, SHOWN_REFUSED_NAMES - 1);
	expect(THREAD, a, INO, true, true);
	kernel_names_note(&shown, THREAD, b, INO + 1, false);
	expect(THREAD, b, INO + 1, false, true);
}

static void refuse__is_forgotten_where_nobody_comes_again(void **state)
{
	for (uint64_t i = 0; i < SHOWN_WAYS; i++) {
		kernel_names_note(&shown, THREAD, (struct name_key){1 + i, 1}, INO, true);
		kernel_names_set_refused(&shown, THREAD, (struct name_key){1 + i, 1}, true);
	}
	/* All of them come again, so the oldest one must go. */
	kernel_names_note(&shown, THREAD, a, INO, true);
	expect(THREAD, a, INO, true, false);
	expect_nothing(THREAD, (struct name_key){1, 1});
	note_others(10, SHOWN_REFUSED_NAMES + SHOWN_WAYS);
	for (uint64_t i = 0; i < SHOWN_WAYS; i++)
		expect_nothing(THREAD, (struct name_key){1 + i, 1});
}

static void note__of_a_thread_without_a_number_is_none(void **state)
{
	kernel_names_note(&shown, 0, a, INO, true);
	expect_nothing(0, a);
}

static void refuse__of_what_is_unknown_does_nothing(void **state)
{
	kernel_names_set_refused(&shown, THREAD, a, true);
	kernel_names_note(&shown, THREAD, a, INO, true);
	expect(THREAD, a, INO, true, false);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(note__is_of_a_name_and_a_thread),
		CASE(note__the_last_one_counts),
		CASE(note__makes_room_by_what_is_older),
		CASE(refuse__is_known_until_a_change_ends_otherwise),
		CASE(refuse__outlives_the_names_of_a_path),
		CASE(refuse__is_forgotten_where_nobody_comes_again),
		CASE(note__of_a_thread_without_a_number_is_none),
		CASE(refuse__of_what_is_unknown_does_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
