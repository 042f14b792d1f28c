/* test_rpc_driver.c - a real server, killed and started again, spoken to without FUSE.
 *
 *     test_rpc_driver shm|tcp|verbs
 *
 * verbs: on the address in RMEMFS_TEST_ADDRESS. The server's program is looked for in RMEMFS_BIN.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "tests/unit/rpc_driver.h"

enum transport_kind driver_kind = TRANSPORT_TCP;

static int kind_of(const char *name)
{
	for (int kind = 0; kind < TRANSPORT_NKINDS; kind++)
		if (strcmp(name, transport_kind_name((enum transport_kind)kind)) == 0)
			return kind;
	return -1;
}

int main(int argc, char **argv)
{
	int kind = argc == 2 ? kind_of(argv[1]) : -1;

	signal(SIGPIPE, SIG_IGN);
	log_init("test_rpc_driver", LOG_LEVEL_WARNING);
	if (argc == 6 && strcmp(argv[1], "hold") == 0)
		return driver_hold(argv[2], argv[3], strtoull(argv[4], NULL, 10),
			(uint32_t)strtoul(argv[5], NULL, 10));

	if (kind < 0) {
		fprintf(stderr, "usage: test_rpc_driver shm|tcp|verbs\n");
		return EXIT_FAILURE;
	}
	driver_kind = (enum transport_kind)kind;

	return driver_run_mutations() + driver_run_sessions() + driver_run_data() +
			       driver_run_leases() + driver_run_holders() + driver_run_pages() +
			       driver_run_locks() + driver_run_rings() + driver_run_strangers()
		       ? EXIT_FAILURE
		       : EXIT_SUCCESS;
}
