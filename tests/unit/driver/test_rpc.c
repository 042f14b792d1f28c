/* test_rpc.c - speaks to a real server without FUSE, kills it and starts it again.
 *
 *     test_rpc_driver shm|tcp|verbs [GROUP]...
 *
 * Without groups it runs all. They mostly wait, so it saves time to run several groups at once.
 * verbs: on the address in RMEMFS_TEST_ADDRESS. It looks for the server's program in RMEMFS_BIN.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "tests/unit/driver/driver.h"

enum transport_kind driver_kind = TRANSPORT_TCP;

static int kind_of(const char *name)
{
	for (int kind = 0; kind < TRANSPORT_NKINDS; kind++)
		if (strcmp(name, transport_kind_name((enum transport_kind)kind)) == 0)
			return kind;
	return -1;
}

static const struct group {
	const char *name;
	int (*run)(void);
} groups[] = {
	{"auth", driver_run_auth},
	{"mutations", driver_run_mutations},
	{"sessions", driver_run_sessions},
	{"silence", driver_run_silence},
	{"start", driver_run_start},
	{"data", driver_run_data},
	{"convert", driver_run_convert},
	{"leases", driver_run_leases},
	{"holders", driver_run_holders},
	{"pages", driver_run_pages},
	{"places", driver_run_places},
	{"locks", driver_run_locks},
	{"rings", driver_run_rings},
	{"strangers", driver_run_strangers},
	{"squash", driver_run_squash},
	{"sweep", driver_run_sweep},
	{"versions", driver_run_versions},
};

static const struct group *find_group(const char *name)
{
	for (unsigned i = 0; i < ARRAY_SIZE(groups); i++)
		if (strcmp(name, groups[i].name) == 0)
			return &groups[i];
	return NULL;
}

static bool are_groups(char **names, int n)
{
	for (int i = 0; i < n; i++)
		if (!find_group(names[i]))
			return false;
	return true;
}

/* Returns how many tests failed. */
static int run_groups(char **names, int n)
{
	int failed = 0;

	for (int i = 0; i < n; i++)
		failed += find_group(names[i])->run();
	for (unsigned i = 0; !n && i < ARRAY_SIZE(groups); i++)
		failed += groups[i].run();
	return failed;
}

int main(int argc, char **argv)
{
	int kind = argc >= 2 ? kind_of(argv[1]) : -1;

	signal(SIGPIPE, SIG_IGN);
	log_init("test_rpc_driver", LOG_LEVEL_WARNING);
	if (argc == 7 && strcmp(argv[1], "hold") == 0)
		return driver_hold(argv[2], argv[3], argv[4], strtoull(argv[5], NULL, 10),
			(uint32_t)strtoul(argv[6], NULL, 10));

	if (kind < 0 || !are_groups(argv + 2, argc - 2)) {
		fprintf(stderr, "usage: test_rpc_driver shm|tcp|verbs [GROUP]...\n");
		return EXIT_FAILURE;
	}
	driver_kind = (enum transport_kind)kind;
	return run_groups(argv + 2, argc - 2) ? EXIT_FAILURE : EXIT_SUCCESS;
}
