/* Names that are known to be missing in a directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/util.h"
#include "daemon/file/dir_names.h"

static int setup(void **state)
{
	struct name_sets *sets = calloc(1, sizeof(*sets));

	*state = sets;
	return sets ? dir_names_sets_init(sets) : -1;
}

static int teardown(void **state)
{
	struct name_sets *sets = *state;

	assert_int_equal(atomic_load(&sets->bytes), 0);
	free(sets);
	return 0;
}

static void names_lack__knows_nothing_before_it_begins(void **state)
{
	struct names n = {0};

	dir_names_add(&n, *state, 7 << 8);
	assert_false(dir_names_lack(&n, 9 << 8));
	dir_names_begin(&n);
	assert_true(dir_names_lack(&n, 9 << 8));
	dir_names_forget(&n, *state);
	assert_false(dir_names_lack(&n, 9 << 8));
}

static void names_add__is_there_until_removed(void **state)
{
	struct names n = {0};

	dir_names_begin(&n);
	dir_names_add(&n, *state, 0);
	dir_names_add(&n, *state, 8);
	assert_false(dir_names_lack(&n, 0));
	assert_false(dir_names_lack(&n, 8));
	assert_true(dir_names_lack(&n, 16));
	dir_names_remove(&n, 0);
	dir_names_remove(&n, 16);
	assert_false(dir_names_are_none(&n));
	assert_true(dir_names_lack(&n, 0));
	assert_false(dir_names_lack(&n, 8));
	dir_names_remove(&n, 8);
	assert_true(dir_names_are_none(&n));
	dir_names_forget(&n, *state);
	assert_false(dir_names_are_none(&n));
}

/* Two names, or a name that is made again before its removal is known. */
static void names_add__twice_is_never_removed(void **state)
{
	struct names n = {0};

	dir_names_begin(&n);
	dir_names_add(&n, *state, 8);
	dir_names_add(&n, *state, 8);
	dir_names_remove(&n, 8);
	dir_names_remove(&n, 8);
	assert_false(dir_names_lack(&n, 8));
	dir_names_forget(&n, *state);
}

enum { MODEL = 512, STEPS = 20000 };

/* Only a few home slots, the last ones among them: long runs that wrap around the end. */
static uint64_t model_hash(unsigned i)
{
	return (uint64_t)(i % 7 + 0xfffffffc) << 32 | (i + 1) * 2;
}

static void names_remove__leaves_all_others(void **state)
{
	bool there[MODEL] = {0};
	struct names n = {0};
	uint64_t random = 1;

	dir_names_begin(&n);
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned i;

		random = random * 6364136223846793005 + 1442695040888963407;
		i = (unsigned)(random >> 33) % MODEL;
		if (there[i])
			dir_names_remove(&n, model_hash(i));
		else
			dir_names_add(&n, *state, model_hash(i));
		there[i] = !there[i];
		if (step % 97)
			continue;
		for (i = 0; i < MODEL; i++)
			assert_int_equal(dir_names_lack(&n, model_hash(i)), !there[i]);
	}
	dir_names_forget(&n, *state);
}

/* list(CHANGES, AFTER, COOKIE): an entry, whose name has the hash of its cookie. */
static void list(struct names *n, void *sets, uint64_t changes, uint64_t after, uint64_t cookie)
{
	dir_names_list(n, sets, &(struct names_entry){changes, after, cookie}, cookie << 8);
}

static void names_list__is_known_at_its_end(void **state)
{
	struct names n = {0};

	list(&n, *state, 5, 0, 10);
	list(&n, *state, 5, 10, 20);
	assert_false(dir_names_lack(&n, 30 << 8));
	/* Names that are made meanwhile count as changes. */
	dir_names_add(&n, *state, 40 << 8);
	list(&n, *state, 5, 20, 30);
	dir_names_list_end(&n, *state, 5, 20);
	assert_false(dir_names_lack(&n, 40 << 8));
	dir_names_list_end(&n, *state, 5, 30);
	assert_true(dir_names_lack(&n, 40 << 8));
	for (uint64_t i = 10; i <= 30; i += 10)
		assert_false(dir_names_lack(&n, i << 8));
	/* Each was added once, whoever reads the list once more. */
	list(&n, *state, 5, 0, 10);
	dir_names_remove(&n, 10 << 8);
	assert_true(dir_names_lack(&n, 10 << 8));
	dir_names_forget(&n, *state);
}

static void names_list__of_an_empty_directory(void **state)
{
	struct names n = {0};

	dir_names_list_end(&n, *state, 5, 0);
	assert_true(dir_names_lack(&n, 8));
	dir_names_add(&n, *state, 8);
	assert_false(dir_names_lack(&n, 8));
	dir_names_forget(&n, *state);
}

static void names_list__with_a_gap_or_a_change_tells_nothing(void **state)
{
	struct names n = {0};

	list(&n, *state, 5, 10, 20);
	dir_names_list_end(&n, *state, 5, 20);
	assert_false(dir_names_lack(&n, 8));
	list(&n, *state, 5, 0, 10);
	list(&n, *state, 5, 20, 30);
	dir_names_list_end(&n, *state, 5, 30);
	assert_false(dir_names_lack(&n, 8));
	list(&n, *state, 6, 10, 20);
	dir_names_list_end(&n, *state, 6, 20);
	assert_false(dir_names_lack(&n, 8));
	dir_names_list_end(&n, *state, 6, 10);
	assert_false(dir_names_lack(&n, 8));
	dir_names_forget(&n, *state);
	dir_names_list_end(&n, *state, 5, 10);
	assert_false(dir_names_lack(&n, 8));
}

/* The second one begins anew, and goes on with what the first one has read. */
static void names_list__may_be_read_by_two_at_once(void **state)
{
	struct names n = {0};

	list(&n, *state, 5, 0, 10);
	list(&n, *state, 5, 10, 20);
	list(&n, *state, 6, 0, 10);
	list(&n, *state, 5, 20, 30);
	list(&n, *state, 6, 10, 20);
	list(&n, *state, 6, 10, 20);
	list(&n, *state, 6, 20, 30);
	dir_names_list_end(&n, *state, 5, 30);
	assert_false(dir_names_lack(&n, 8));
	dir_names_list_end(&n, *state, 6, 30);
	assert_true(dir_names_lack(&n, 8));
	for (uint64_t i = 10; i <= 30; i += 10) {
		assert_false(dir_names_lack(&n, i << 8));
		dir_names_remove(&n, i << 8);
		assert_true(dir_names_lack(&n, i << 8));
	}
	dir_names_forget(&n, *state);
}

static void names_add__beyond_all_memory_nothing_is_known(void **state)
{
	struct name_sets *sets = *state;
	struct names n = {0}, other = {0};
	uint64_t name = 1;

	dir_names_begin(&n);
	dir_names_begin(&other);
	dir_names_add(&other, sets, 8);
	for (; n.known; name++) {
		assert_true(name <= NAMES_BYTES_MAX);
		dir_names_add(&n, sets, name * UINT64_C(0x9e3779b97f4a7c15));
		assert_in_range(atomic_load(&sets->bytes), 1, NAMES_BYTES_MAX);
	}
	assert_true(name > 1000000);
	assert_false(dir_names_lack(&n, 16));
	assert_null(n.slots);
	assert_true(dir_names_lack(&other, 16));
	dir_names_forget(&other, sets);
}

static void name_sets_hash__differs_by_name_and_key(void **state)
{
	struct name_sets *sets = *state, other;

	assert_int_equal(dir_names_sets_init(&other), 0);
	assert_int_equal(dir_names_sets_hash(sets, "a", 1), dir_names_sets_hash(sets, "a", 1));
	assert_int_not_equal(dir_names_sets_hash(sets, "a", 1), dir_names_sets_hash(sets, "b", 1));
	assert_int_not_equal(
		dir_names_sets_hash(sets, "a", 1), dir_names_sets_hash(&other, "a", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			names_lack__knows_nothing_before_it_begins, setup, teardown),
		cmocka_unit_test_setup_teardown(names_list__is_known_at_its_end, setup, teardown),
		cmocka_unit_test_setup_teardown(names_list__of_an_empty_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(
			names_list__with_a_gap_or_a_change_tells_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			names_list__may_be_read_by_two_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(names_add__is_there_until_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(names_add__twice_is_never_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(names_remove__leaves_all_others, setup, teardown),
		cmocka_unit_test_setup_teardown(
			names_add__beyond_all_memory_nothing_is_known, setup, teardown),
		cmocka_unit_test_setup_teardown(
			name_sets_hash__differs_by_name_and_key, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
