/* makes.c - how many files a second the server makes by MAKE: makes shm|tcp FILES [DEPTH [BATCH]]
 *
 * Starts a server. A client without FUSE makes so many empty files in one folder, BATCH (1) by each
 * message, with DEPTH (16) messages on their way, one in each slot. Prints "makes FILES SECONDS",
 * and for each thread of the server that took time meanwhile "cpu THREAD SECONDS". The replies, and
 * the number of files at the end, are checked.
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
static unsigned depth = CLIENT_SLOTS, batch = 1;

static struct test_server server;
static struct rpc_client client;
static uint64_t folder;
static struct rpc_lent lent[LENT_MAX]; /* the first ones are next */
static uint8_t tails[CLIENT_SLOTS][4096];

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

static bool has_numbers(void)
{
	return lent[0].n;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Sends the files from n on that it has numbers for, `batch` at most. Returns how many. */
static unsigned send_make(unsigned slot, uint64_t n)
{
	uint64_t max = least(batch, nfiles - n);
	struct rpc_request req = {
		.op = RPC_MAKE, .makes.numbers = lent[1].n ? NUMBERS_NONE : NUMBERS_MORE};
	struct wire_out w;
	unsigned count = 0;
	char name[24];

	wire_out_init(&w, tails[slot], sizeof(tails[slot]));
	for (; count < max && has_numbers(); count++) {
		struct rpc_making making = {.commit.ino = next_number(),
			.make = {.parent = folder,
				.time = clock_ns(CLOCK_REALTIME),
				.mode = S_IFREG | 0644}};

		snprintf(name, sizeof(name), "file%" PRIu64, n + count);
		making.make.name = str(name);
		assert_true(rpc_put_making(&w, &making));
	}
	req.makes.tail = (struct rpc_tail){tails[slot], (uint32_t)wire_out_len(&w), 0};
	client_number(&client, slot, &req);
	client_send(&client, &req);
	return count;
}

/* Returns how many files the answer is about. */
static unsigned take_answer(unsigned *slot)
{
	struct rpc_reply rep;

	client_receive(&client, &rep);
	assert_int_equal(rep.op, RPC_MAKE);
	assert_int_equal(rep.status, 0);
	for (unsigned i = 0; i < rep.makes.n; i++)
		assert_int_equal(rep.makes.status[i], 0);
	take_numbers(&rep.makes.lent);
	*slot = rep.slot;
	return rep.makes.n;
}

static void make_all(void)
{
	uint64_t sent = 0, done = 0;
	bool idle[CLIENT_SLOTS];

	memset(idle, true, sizeof(idle));
	while (done < nfiles) {
		unsigned answered;

		for (unsigned slot = 0; slot < depth; slot++) {
			if (!idle[slot] || sent == nfiles || !has_numbers())
				continue;
			sent += send_make(slot, sent);
			idle[slot] = false;
		}
		if (sent == done)
			fail_msg("the server lends no inode numbers any more, after %" PRIu64
				 " files",
				done);
		done += take_answer(&answered);
		idle[answered] = true;
	}
}

static void check_all(void)
{
	struct rpc_request req = {.op = RPC_LOOKUP, .name = {folder, str("file0")}};
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

/* A thread of the server, and the time that it has taken so far. */
struct cpu {
	char task[256], name[32];
	double seconds;
};
enum { THREADS_MAX = 64 };

static unsigned read_cpu(struct cpu v[THREADS_MAX])
{
	char path[64];
	struct dirent *entry;
	unsigned n = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", server.pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while (n < THREADS_MAX && (entry = readdir(tasks))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(v[n].task, sizeof(v[n].task), "%s", entry->d_name);
		v[n].seconds = thread_seconds(entry->d_name, v[n].name);
		n++;
	}
	closedir(tasks);
	return n;
}

static double seconds_before(const char *task, const struct cpu *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(v[i].task, task))
			return v[i].seconds;
	return 0;
}

static void print_cpu(const struct cpu *before, unsigned nbefore)
{
	struct cpu now[THREADS_MAX];
	unsigned n = read_cpu(now);

	for (unsigned i = 0; i < n; i++) {
		double seconds = now[i].seconds - seconds_before(now[i].task, before, nbefore);

		if (seconds > 0)
			printf("cpu %s %.2f\n", now[i].name, seconds);
	}
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
	struct cpu before[THREADS_MAX];
	unsigned nbefore;
	int64_t begin;

	(void)state;
	start_server();
	client_init(&client, &server, "makes", 1);
	client_begin(&client);
	make_folder();
	make_first();
	nbefore = read_cpu(before);
	begin = clock_ns(CLOCK_MONOTONIC);
	make_all();
	printf("makes %" PRIu64 " %.6f\n", nfiles,
		(double)(clock_ns(CLOCK_MONOTONIC) - begin) / 1e9);
	print_cpu(before, nbefore);
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
	if (argc > 4)
		batch = (unsigned)strtoul(argv[4], NULL, 10);
	if (!known || argc > 5 || !nfiles || !depth || depth > CLIENT_SLOTS || !batch ||
		batch > MAKES_MAX) {
		fprintf(stderr, "usage: makes shm|tcp FILES [DEPTH, up to %d [BATCH, up to %d]]\n",
			CLIENT_SLOTS, MAKES_MAX);
		return 2;
	}
	return cmocka_run_group_tests_name("makes", all, NULL, NULL);
}
