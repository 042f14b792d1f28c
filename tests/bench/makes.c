/* makes.c - how many files a second the server makes by MAKE: makes shm|tcp FILES [DEPTH]
 *
 * Starts a server. A client without FUSE makes so many empty files in one folder, DEPTH (16) at a
 * time, one in each slot. Prints "makes FILES SECONDS", and for each thread of the server that took
 * time "cpu THREAD SECONDS". The replies, and the number of files at the end, are checked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "tests/unit/driver/client.h"

enum { LENT_MAX = 2 };

static enum transport_kind kind;
static uint64_t nfiles;
static unsigned depth = CLIENT_SLOTS;

static struct test_server server;
static struct rpc_client client;
static uint64_t folder;
static struct rpc_lent lent[LENT_MAX]; /* the first ones are next */
static char names[CLIENT_SLOTS][24];

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){.s = s, .len = (uint16_t)strlen(s)};
}

static void take_numbers(const struct rpc_lent *came)
{
	if (!came->n)
		return;
	for (unsigned i = 0; i < LENT_MAX; i++) {
		if (!lent[i].n) {
			lent[i] = *came;
			return;
		}
	}
	fail_msg("more numbers came than may be lent");
}

static uint64_t next_number(void)
{
	uint64_t number = lent[0].first++;

	assert_true(lent[0].n > 0);
	if (--lent[0].n == 0) {
		lent[0] = lent[1];
		lent[1].n = 0;
	}
	return number;
}

static void make_folder(void)
{
	struct rpc_request req = {.op = RPC_MKDIR,
		.create = {.parent = ROOT_INO, .mode = S_IFDIR | 0755, .name = str("folder")}};
	struct rpc_reply rep;

	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	folder = rep.entry.attr.ino;
}

/* The first two files bring numbers. */
static void make_first(void)
{
	static const char *const first[] = {"one", "two"};
	struct rpc_reply rep;

	for (unsigned i = 0; i < ARRAY_SIZE(first); i++) {
		struct rpc_request req = {.op = RPC_CREATE,
			.create = {.parent = folder,
				.mode = S_IFREG | 0644,
				.exclusive = true,
				.numbers = NUMBERS_MORE,
				.name = str(first[i])}};

		assert_int_equal(client_call(&client, 0, &req, &rep), 0);
		take_numbers(&rep.entry.lent);
	}
}

static void send_make(unsigned slot, uint64_t n)
{
	struct rpc_request req = {.op = RPC_MAKE,
		.commit = {.ino = next_number(),
			.make = {.parent = folder,
				.time = clock_ns(CLOCK_REALTIME),
				.mode = S_IFREG | 0644,
				.numbers = lent[1].n ? NUMBERS_NONE : NUMBERS_MORE}}};

	snprintf(names[slot], sizeof(names[slot]), "file%" PRIu64, n);
	req.commit.make.name = str(names[slot]);
	client_number(&client, slot, &req);
	client_send(&client, &req);
}

static bool has_numbers(void)
{
	return lent[0].n;
}

static void make_all(void)
{
	uint64_t sent = 0, done = 0;
	bool idle[CLIENT_SLOTS];
	struct rpc_reply rep;

	memset(idle, true, sizeof(idle));
	while (done < nfiles) {
		for (unsigned slot = 0; slot < depth; slot++) {
			if (!idle[slot] || sent == nfiles || !has_numbers())
				continue;
			send_make(slot, sent++);
			idle[slot] = false;
		}
		if (sent == done)
			fail_msg("the server lends no inode numbers any more, after %" PRIu64
				 " files",
				done);
		client_receive(&client, &rep);
		assert_int_equal(rep.op, RPC_MAKE);
		assert_int_equal(rep.status, 0);
		take_numbers(&rep.attr.lent);
		idle[rep.slot] = true;
		done++;
	}
}

static void check_all(void)
{
	struct rpc_request req = {.op = RPC_LOOKUP, .name = {folder, str(names[0])}};
	struct rpc_reply rep;

	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	req = (struct rpc_request){.op = RPC_STATFS};
	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	/* The root, the folder, and the two that brought numbers. */
	assert_int_equal(rep.statfs.inodes, nfiles + 4);
}

/* ---- the server's CPU time ------------------------------------------------------------------- */

static double thread_seconds(const char *task, char name[32])
{
	char path[320], line[512], *end;
	unsigned long long user, system;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", server.pid, task);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f)) {
		if (f)
			fclose(f);
		return 0;
	}
	fclose(f);
	end = strrchr(line, ')');
	if (!end || sscanf(end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
			    &system) != 2)
		return 0;
	*end = '\0';
	snprintf(name, 32, "%s", strchr(line, '(') + 1);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void print_cpu(void)
{
	char path[64], name[32];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", server.pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		double seconds = entry->d_name[0] == '.' ? 0 : thread_seconds(entry->d_name, name);

		if (seconds > 0)
			printf("cpu %s %.2f\n", name, seconds);
	}
	closedir(tasks);
}

/* Numbers are lent while there is room for the files to come. */
static void start_server(void)
{
	FILE *f;

	server_prepare(&server, kind, 30, 30);
	f = fopen(server.config, "we");
	assert_non_null(f);
	fputs("lease_time = 30;\npeer_timeout = 30;\nmetadata_reserve = \"1GiB\";\n", f);
	assert_int_equal(fclose(f), 0);
	server_start(&server);
}

static void run(void **state)
{
	int64_t begin;

	(void)state;
	start_server();
	client_init(&client, &server, "makes", 1);
	client_begin(&client);
	make_folder();
	make_first();
	begin = clock_ns(CLOCK_MONOTONIC);
	make_all();
	printf("makes %" PRIu64 " %.6f\n", nfiles,
		(double)(clock_ns(CLOCK_MONOTONIC) - begin) / 1e9);
	print_cpu();
	check_all();
	client_bye(&client);
	client_fini(&client);
	server_stop(&server);
	server_fini(&server);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest all[] = {cmocka_unit_test(run)};
	bool known = argc > 1 && (!strcmp(argv[1], "shm") || !strcmp(argv[1], "tcp"));

	kind = known && !strcmp(argv[1], "shm") ? TRANSPORT_SHM : TRANSPORT_TCP;
	nfiles = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	if (argc > 3)
		depth = (unsigned)strtoul(argv[3], NULL, 10);
	if (!known || argc > 4 || !nfiles || !depth || depth > CLIENT_SLOTS) {
		fprintf(stderr, "usage: makes shm|tcp FILES [DEPTH, up to %d]\n", CLIENT_SLOTS);
		return 2;
	}
	return cmocka_run_group_tests_name("makes", all, NULL, NULL);
}
