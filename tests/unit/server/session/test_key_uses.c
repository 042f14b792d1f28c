/* test_key_uses.c - when each key was used last, over changes of the table. */
#include "tests/unit/server/access_fixture.h"

#include "server/session/key_uses.h"

#define CLIENT(name)          "{ name = \"" name "\"; keys = \"@/" name ".key\"; }"
#define EXPORT(name, clients) "{ name = \"" name "\"; size = \"1GiB\"; clients = (" clients "); }"
#define EXPORTS(list)         "exports = (" list ");"

static struct key_uses uses;

static int set_up(void **state)
{
	access_add_key("a.key", "a-aaaa", 1);
	access_add_key("b.key", "b-bbbb", 2);
	access_add_key("b.key", "a-aaaa", 1);
	return 0;
}

static int tear_down(void **state)
{
	key_uses_fini(&uses);
	unlink(access_path("a.key"));
	unlink(access_path("b.key"));
	return 0;
}

static struct access_proof proof_of(const struct access_table *table, const char *id)
{
	const struct access_key *key = access_table_key(table, id, strlen(id));

	assert_non_null(key);
	return key->proof;
}

static void renew(const char *conf, int64_t now)
{
	struct access_table *table = access_table_of(conf);

	assert_int_equal(key_uses_renew(&uses, table, now), 0);
	access_table_put(table);
}

static const char both[] = EXPORTS(EXPORT("x", CLIENT("a")) "," EXPORT("y", CLIENT("b")));

static void renew__has_each_key_once(void **state)
{
	renew(both, 5);
	assert_int_equal(uses.n, 2);
	assert_string_equal(uses.v[0].proof.id, "a-aaaa");
	assert_string_equal(uses.v[1].proof.id, "b-bbbb");
	assert_int_equal(uses.v[1].count, 0);
	assert_int_equal(uses.v[1].used_ms, 5);
	assert_int_equal(uses.v[1].known_ms, 5);
}

static void renew__keeps_uses_of_keys_that_stay(void **state)
{
	struct access_table *table = access_table_of(both);
	struct access_proof a = proof_of(table, "a-aaaa"), b = proof_of(table, "b-bbbb");

	access_table_put(table);
	key_uses_begin(&uses, &a, 1); /* none is known: ignored */
	renew(both, 5);
	key_uses_begin(&uses, &a, 7);
	key_uses_begin(&uses, &b, 8);
	renew(EXPORTS(EXPORT("x", CLIENT("a"))), 9);
	assert_int_equal(uses.n, 1);
	assert_int_equal(uses.v[0].count, 1);
	assert_int_equal(uses.v[0].known_ms, 5);
	assert_int_equal(uses.v[0].used_ms, 7);
	key_uses_end(&uses, &a, 11);
	assert_int_equal(uses.v[0].used_ms, 11);
	assert_int_equal(uses.v[0].count, 1);
	assert_null(key_uses_find(&uses, &b));
	key_uses_end(&uses, &b, 12);
	renew(both, 13);
	assert_int_equal(key_uses_find(&uses, &b)->count, 0);
	assert_int_equal(key_uses_find(&uses, &b)->used_ms, 13);
}

/* A channel of the key before still ends. */
static void renew__another_key_of_the_same_id(void **state)
{
	static const char conf[] = EXPORTS(EXPORT("x", CLIENT("a")));
	struct access_table *table = access_table_of(conf);
	struct access_proof before = proof_of(table, "a-aaaa");

	access_table_put(table);
	renew(conf, 1);
	key_uses_begin(&uses, &before, 2);
	unlink(access_path("a.key"));
	access_add_key("a.key", "a-aaaa", 9);
	renew(conf, 3);
	key_uses_end(&uses, &before, 4);
	assert_int_equal(uses.n, 1);
	assert_int_equal(uses.v[0].count, 0);
	assert_int_equal(uses.v[0].used_ms, 3);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(renew__has_each_key_once),
		CASE(renew__keeps_uses_of_keys_that_stay),
		CASE(renew__another_key_of_the_same_id),
	};

	return cmocka_run_group_tests(tests, access_make_dir, access_remove_dir);
}
