/* The table in force, read by some threads while another one replaces it. */
#include "tests/unit/server/access_fixture.h"

#include <pthread.h>

#include "server/access/access_current.h"

enum { READS = 20000, RELOADS = 200 };

static void *read_often(void *arg)
{
	struct access_current *current = arg;
	size_t found = 0;

	for (int i = 0; i < READS; i++) {
		struct access_table *table = access_current_get(current);
		const struct access_key *key = access_table_key(table, "cur-1", 5);

		found += key && key->secret->secret[0] == 7;
		access_table_put(table);
	}
	return (void *)found;
}

/* Under the sanitizers a table that is freed too early is an error. */
static void current__is_replaced_while_others_read(void **state)
{
	static const char text[] = "exports = ( { name = \"data\"; size = 4096; clients = ("
				   "{ name = \"cur\"; keys = \"@/cur.key\" } ) } )";
	struct access_current current;
	struct access_table *kept;
	pthread_t threads[2];
	void *found;

	access_add_key("cur.key", "cur-1", 7);
	access_current_init(&current, access_table_of(text));
	kept = access_current_get(&current);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_often, &current), 0);
	for (int i = 0; i < RELOADS; i++)
		access_current_set(&current, access_table_of(text));
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &found), 0);
		assert_int_equal((size_t)found, READS);
	}
	assert_int_equal(access_table_key(kept, "cur-1", 5)->secret->secret[0], 7);
	access_table_put(kept);
	access_current_fini(&current);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(current__is_replaced_while_others_read),
	};

	return cmocka_run_group_tests(tests, access_make_dir, access_remove_dir);
}
