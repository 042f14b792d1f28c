/* The settings of a mount: the shipped client.conf shows the values of the table. */
#include "tests/unit/conf_example.h"

#include "daemon/mount/config.h"

/* These have no default, or one that depends on the machine or on the transport. */
static bool is_automatic(const char *key)
{
	return strcmp(key, "port") == 0 || strcmp(key, "key") == 0 ||
	       strcmp(key, "io_threads") == 0 || strcmp(key, "spin_us") == 0;
}

static void check_line(const char *file, const char *name, bool first)
{
	const struct conf_key *key = conf_find(client_config_keys, name);
	struct client_config config, defaults;
	char why[256] = "";

	client_config_init(&config);
	client_config_init(&defaults);
	if (client_config_read(&config, file, why, sizeof(why)))
		fail_msg("%s", why);
	assert_non_null(key);
	if (first && !is_automatic(name) && !conf_equal(key, &config, &defaults))
		fail_msg("the example shows another default of %s", name);
	client_config_fini(&config);
	client_config_fini(&defaults);
}

static void example__has_every_key_and_its_default(void **state)
{
	struct conf_example example;

	example_each(RMEMFS_CONFIG_DIR "/client.conf", check_line, &example);
	example_is_complete(&example, client_config_keys);
}

static void example__as_it_is_changes_nothing(void **state)
{
	struct client_config config, defaults;
	char why[256] = "";

	client_config_init(&config);
	client_config_init(&defaults);
	assert_int_equal(
		client_config_read(&config, RMEMFS_CONFIG_DIR "/client.conf", why, sizeof(why)), 0);
	for (const struct conf_key *key = client_config_keys; key->name; key++)
		assert_true(conf_equal(key, &config, &defaults));
	client_config_fini(&config);
	client_config_fini(&defaults);
}

static void finish__settles_by_the_number_of_cpus(void **state)
{
	static const struct {
		unsigned ncpus, threads, spin_readers;
	} cases[] = {{0, 1, 0}, {1, 1, 0}, {2, 2, 1}, {4, 4, 2}, {7, 4, 3}, {64, 4, 32}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct client_config config;

		client_config_init(&config);
		client_config_finish(&config, cases[i].ncpus);
		assert_int_equal(config.io_threads, cases[i].threads);
		assert_int_equal(config.spin_us, 100);
		assert_int_equal(config.spin_readers, cases[i].spin_readers);
		client_config_fini(&config);
	}
}

static void finish__keeps_what_was_set(void **state)
{
	struct client_config config;

	client_config_init(&config);
	config.io_threads = 16;
	config.spin_us = 7;
	client_config_finish(&config, 1);
	assert_int_equal(config.io_threads, 16);
	assert_int_equal(config.spin_us, 7);
	assert_int_equal(config.spin_readers, 16);
	assert_int_equal(config.log_level, LOG_LEVEL_INFO);
	client_config_fini(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(example__has_every_key_and_its_default),
		cmocka_unit_test(example__as_it_is_changes_nothing),
		cmocka_unit_test(finish__settles_by_the_number_of_cpus),
		cmocka_unit_test(finish__keeps_what_was_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
