/* test_name_cache.c - known names, and names that are being changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "daemon/kcache/name_cache.h"

enum { DIR = 7, INO = 99, LEASE = 12 };

static struct name_cache cache;

static int set_up(void **state)
{
	return name_cache_init(&cache);
}

static int tear_down(void **state)
{
	name_cache_fini(&cache);
	return 0;
}

static struct name_key key_of(const char *name)
{
	return name_key_of(&cache, DIR, name);
}

static void learn(const char *name, uint64_t asked, uint64_t ino, int64_t now)
{
	name_cache_learn(&cache, key_of(name), asked, &(struct known_name){ino, LEASE, now});
}

static void know(const char *name, uint64_t ino)
{
	learn(name, name_cache_ask(&cache, key_of(name)), ino, 1);
}

static bool knows(const char *name, uint64_t ino)
{
	struct known_name known;

	return name_cache_find(&cache, key_of(name), &known) && known.ino == ino &&
	       known.lease == LEASE;
}

static bool knows_nothing_of(const char *name)
{
	struct known_name known;

	return !name_cache_find(&cache, key_of(name), &known);
}

static void name__is_of_its_directory(void **state)
{
	struct known_name known;

	assert_true(knows_nothing_of("a"));
	know("a", INO);
	know("missing", 0);
	assert_true(knows("a", INO));
	assert_true(knows("missing", 0));
	assert_true(knows_nothing_of("b"));
	assert_false(name_cache_find(&cache, name_key_of(&cache, DIR + 1, "a"), &known));
	know("a", INO + 1);
	assert_true(knows("a", INO + 1));
}

static void learn__not_what_was_asked_before_a_change_began(void **state)
{
	uint64_t asked = name_cache_ask(&cache, key_of("a"));
	uint64_t changed = name_cache_change_begin(&cache, key_of("a"));

	learn("a", asked, INO, 1);
	assert_true(knows_nothing_of("a"));
	name_cache_change_end(&cache, key_of("a"), changed, NULL);
	learn("a", asked, INO, 1);
	assert_true(knows_nothing_of("a"));
	know("a", INO);
	assert_true(knows("a", INO));
}

static void learn__not_what_was_asked_during_a_change(void **state)
{
	uint64_t changed, asked;

	know("a", INO);
	changed = name_cache_change_begin(&cache, key_of("a"));
	assert_true(knows_nothing_of("a"));
	asked = name_cache_ask(&cache, key_of("a"));
	learn("a", asked, INO, 1);
	name_cache_change_end(&cache, key_of("a"), changed, NULL);
	learn("a", asked, INO, 1);
	assert_true(knows_nothing_of("a"));
}

static void change__of_one_is_known_when_it_has_ended(void **state)
{
	const struct known_name name = {INO, LEASE, 1};
	uint64_t changed = name_cache_change_begin(&cache, key_of("a"));

	name_cache_change_end(&cache, key_of("a"), changed, &name);
	assert_true(knows("a", INO));
}

static void change__of_several_at_once_is_not_known(void **state)
{
	const struct known_name first = {INO, LEASE, 1}, second = {INO + 1, LEASE, 1};
	uint64_t one = name_cache_change_begin(&cache, key_of("a"));
	uint64_t other = name_cache_change_begin(&cache, key_of("a"));

	name_cache_change_end(&cache, key_of("a"), other, &second);
	assert_true(knows_nothing_of("a"));
	name_cache_change_end(&cache, key_of("a"), one, &first);
	assert_true(knows_nothing_of("a"));
	know("a", INO);
	assert_true(knows("a", INO));
}

/* As many names as there are places in all: buckets overflow, and the newly learned names stay. */
static void learn__makes_room_by_what_is_older(void **state)
{
	enum { N = NAME_BUCKETS * NAME_WAYS, LAST = 1000 };
	unsigned still_known = 0;
	char name[16];

	for (int i = 1; i <= N; i++) {
		snprintf(name, sizeof(name), "%d", i);
		learn(name, name_cache_ask(&cache, key_of(name)), (uint64_t)i, i);
		assert_true(knows(name, (uint64_t)i));
	}
	for (int i = N - LAST + 1; i <= N; i++) {
		snprintf(name, sizeof(name), "%d", i);
		still_known += knows(name, (uint64_t)i);
	}
	assert_true(still_known > LAST * 9 / 10);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(name__is_of_its_directory),
		CASE(learn__not_what_was_asked_before_a_change_began),
		CASE(learn__not_what_was_asked_during_a_change),
		CASE(change__of_one_is_known_when_it_has_ended),
		CASE(change__of_several_at_once_is_not_known),
		CASE(learn__makes_room_by_what_is_older),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
