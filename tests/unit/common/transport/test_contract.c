/* test_contract.c - one suite for all transports:
 *
 *     test_transport_contract shm|tcp|verbs
 *
 * RMEMFS_TEST_ADDRESS names the address to listen at (verbs: of an RDMA device; 10.9.0.1).
 */
#include "tests/unit/common/transport/contract.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/log.h"

static const struct cases *const all_cases[] = {
	&connect_cases,
	&message_cases,
	&io_cases,
	&pipe_cases,
	&tcp_pipe_cases,
	&refusal_cases,
	&end_cases,
	&socket_cases,
	&shm_cases,
	&verbs_cases,
	&srq_cases,
	&protect_cases,
	&protect_network_cases,
	&protect_tcp_cases,
};

/* Once more, over channels that are protected. */
static const struct cases *const protected_cases[] = {
	&message_cases,
	&io_cases,
	&pipe_cases,
	&end_cases,
};
/* tcp: once more where messages alone are protected. */
static const struct cases *const messages_cases[] = {&protect_cases, &protect_network_cases};

static int parse_kind(const char *text)
{
	for (int kind = 0; kind < TRANSPORT_NKINDS; kind++) {
		if (!strcmp(text, transport_kind_name((enum transport_kind)kind))) {
			contract_kind = (enum transport_kind)kind;
			return 0;
		}
	}
	return -EINVAL;
}

static int run_some(const struct cases *const *some, size_t n)
{
	char name[64];
	int failed = 0;

	for (size_t i = 0; i < n; i++) {
		const struct cases *cases = some[i];

		if (!(cases->kinds & 1U << contract_kind))
			continue;
		snprintf(name, sizeof(name), "%s over %s%s", cases->name,
			contract_messages_only ? "messages of "
			: contract_protected   ? "protected "
					       : "",
			transport_kind_name(contract_kind));
		failed += _cmocka_run_group_tests(name, cases->tests, cases->ntests, NULL, NULL);
	}
	return failed;
}

static int run_cases(void)
{
	int failed = run_some(all_cases, ARRAY_SIZE(all_cases));

	if (contract_kind == TRANSPORT_SHM)
		return failed;
	contract_protected = true;
	failed += run_some(protected_cases, ARRAY_SIZE(protected_cases));
	if (contract_kind != TRANSPORT_TCP)
		return failed;
	contract_messages_only = true;
	failed += run_some(protected_cases, ARRAY_SIZE(protected_cases));
	contract_protected = false;
	return failed + run_some(messages_cases, ARRAY_SIZE(messages_cases));
}

/* So that the socket's path fits into struct sockaddr_un. */
enum { PATH_BYTES = 100 };

static bool make_folder(char *dir, size_t len)
{
	const char *temp = getenv("TMPDIR");

	snprintf(dir, len, "%s/rmemfs-contract-XXXXXX", temp ? temp : "/tmp");
	return mkdtemp(dir) && setenv("RMEMFS_CONTRACT_DIR", dir, 1) == 0;
}

/* A server that was killed has left its socket. */
static void remove_folder(const char *dir)
{
	char path[PATH_BYTES + sizeof("/socket")];

	snprintf(path, sizeof(path), "%s/socket", dir);
	unlink(path);
	rmdir(dir);
}

int main(int argc, char **argv)
{
	char dir[PATH_BYTES];
	int failed;

	if (argc < 2 || parse_kind(argv[1])) {
		fprintf(stderr, "usage: %s shm|tcp|verbs [TEST-PATTERN]\n", argv[0]);
		return 2;
	}
	if (argc == 4 && !strcmp(argv[2], "--peer"))
		return peer_main(argv);
	/* Errors that cases provoke would be logged as in production; suppress them. */
	log_init("contract", LOG_LEVEL_ERROR);
	if (!make_folder(dir, sizeof(dir))) {
		perror(dir);
		return 1;
	}
	if (argc == 3)
		cmocka_set_test_filter(argv[2]);
	failed = run_cases();
	remove_folder(dir);
	return failed ? 1 : 0;
}
