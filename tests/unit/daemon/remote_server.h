/* remote_server.h - a real server for tests of the daemon's session, and calls whose results they
 * compare. The server is $RMEMFS_BIN/rmemfs-server, else the one beside the test's program. */
#ifndef RMEMFS_TESTS_REMOTE_SERVER_H
#define RMEMFS_TESTS_REMOTE_SERVER_H

#include "tests/unit/daemon/remote_drive.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "common/auth/auth_key.h"
#include "tests/unit/memory_dir.h"

enum { READY_MS = 20000 };

struct server {
	enum transport_kind kind;
	char dir[64]; /* all its files */
	char key[96]; /* the file of its clients' key */
	unsigned port;
	pid_t pid;
};
static struct server sv;

/* ---- the server ------------------------------------------------------------------------------ */

static inline void server_program(char *path, size_t len)
{
	const char *bin = getenv("RMEMFS_BIN");
	char self[512] = "";

	if (!bin) {
		assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
		*strrchr(self, '/') = '\0';
		bin = self;
	}
	snprintf(path, len, "%s/rmemfs-server", bin);
}

static inline unsigned free_port(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	return ntohs(in.sin_port);
}

static inline int notify_socket(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	unlink(path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

static inline void server_exec(const char *notify)
{
	char program[600], memory[96], listen[96];

	server_program(program, sizeof(program));
	snprintf(memory, sizeof(memory), "%s/memory", sv.dir);
	if (sv.kind == TRANSPORT_SHM)
		snprintf(listen, sizeof(listen), "shm:%s/sock", sv.dir);
	else
		snprintf(listen, sizeof(listen), "tcp:127.0.0.1:%u", sv.port);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("NOTIFY_SOCKET", notify, 1);
	execl(program, program, "-c", "/dev/null", "--memory-dir", memory, "--export",
		"default:64MiB", "--listen", listen, "--key", sv.key, (char *)NULL);
	_exit(127);
}

static inline void server_start(void)
{
	char notify[96], message[64] = "";
	autoclose int fd = -1;
	struct pollfd pfd;

	snprintf(notify, sizeof(notify), "%s/notify", sv.dir);
	fd = notify_socket(notify);
	sv.pid = fork();
	if (sv.pid == 0)
		server_exec(notify);
	assert_true(sv.pid > 0);
	pfd = (struct pollfd){.fd = fd, .events = POLLIN};
	do {
		assert_int_equal(poll(&pfd, 1, READY_MS), 1);
		assert_true(recv(fd, message, sizeof(message) - 1, 0) > 0);
	} while (!strstr(message, "READY=1"));
}

static inline void write_key(void)
{
	struct auth_key key;
	char why[128];
	autoclose int fd = -1;

	snprintf(sv.key, sizeof(sv.key), "%s/test.key", sv.dir);
	fd = open(sv.key, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(auth_key_generate("test", &key, why, sizeof(why)), 0);
	assert_int_equal(auth_key_write(&key, fd), 0);
}

static inline void server_init(void **state)
{
	sv = (struct server){.kind = *(const enum transport_kind *)*state};
	memory_dir(sv.dir, sizeof(sv.dir));
	sv.port = free_port();
	write_key();
	server_start();
}

static inline int server_end(int sig)
{
	int status;

	kill(sv.pid, sig);
	assert_int_equal(waitpid(sv.pid, &status, 0), sv.pid);
	sv.pid = 0;
	return status;
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static inline void server_forget_memory(void)
{
	char memory[96];

	snprintf(memory, sizeof(memory), "%s/memory", sv.dir);
	assert_int_equal(nftw(memory, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* Runs after each case, also after a failed one. */
static inline int server_fini(void **state)
{
	int status = sv.pid ? server_end(SIGTERM) : 0;

	nftw(sv.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return status;
}

static inline struct session_options options_for(const char *mountpoint)
{
	struct session_options options = {
		.source.export_name = "default",
		.transport = sv.kind,
		.port = sv.kind == TRANSPORT_TCP ? sv.port : 0,
		.connect_timeout_ms = 3000,
		.peer_timeout_ms = 5000,
		.io_threads = DRIVE_THREADS,
	};

	if (sv.kind == TRANSPORT_TCP)
		options.key_file = sv.key;
	snprintf(options.mountpoint, sizeof(options.mountpoint), "%s", mountpoint);
	if (sv.kind == TRANSPORT_SHM)
		snprintf(options.source.host, sizeof(options.source.host), "%s/sock", sv.dir);
	else
		snprintf(options.source.host, sizeof(options.source.host), "127.0.0.1");
	return options;
}

static inline void drive_begin(struct drive *d)
{
	struct session_options options = options_for("/mnt/a");

	if (drive_open(d, &options) != 0 || drive_connect(d) != 0)
		fail_msg("%s", d->why);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct test_rpc calls[500], lookups[500];

static inline void creates_start(struct drive *d, const char *prefix)
{
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++) {
		test_rpc_create(&calls[i], prefix, i);
		rpc_start(&d->threads[i % d->nthreads], &calls[i].call);
	}
}

/* All creates succeeded (a repeated one would say EEXIST), and their files are there. */
static inline void creates_verify(struct drive *d)
{
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++) {
		assert_int_equal(calls[i].ndone, 1);
		assert_int_equal(calls[i].status, 0);
		assert_true(calls[i].rep.entry.created);
		lookups[i] = (struct test_rpc){.call.done = test_rpc_done};
		lookups[i].call.req.op = RPC_LOOKUP;
		lookups[i].call.req.name = (struct rpc_name_request){
			.parent = ROOT_INO, .name = calls[i].call.req.create.name};
		rpc_start(&d->threads[i % d->nthreads], &lookups[i].call);
	}
	drive_until(d, count_done(lookups) == ARRAY_SIZE(lookups));
	for (unsigned i = 0; i < ARRAY_SIZE(lookups); i++) {
		assert_int_equal(lookups[i].status, 0);
		assert_int_equal(lookups[i].rep.entry.attr.ino, calls[i].rep.entry.attr.ino);
		assert_int_equal(lookups[i].rep.entry.attr.nlink, 1);
	}
}

enum { IO_PAGES = 512, IO_PAGES_EACH = 8, NIOS = IO_PAGES / IO_PAGES_EACH };

/* Calls that move each of the granted pages, one work per page. */
struct ios {
	struct test_io io[NIOS];
	struct sge sges[IO_PAGES];
	struct work works[IO_PAGES];
};
static struct ios ios;

static inline void ios_place(struct drive *d, const struct rpc_grant_reply *grant)
{
	unsigned n = 0;

	for (unsigned e = 0; e < grant->ngrant; e++)
		for (unsigned p = 0; p < grant->grant[e].npages && n < IO_PAGES; p++, n++) {
			ios.sges[n] = (struct sge){.addr = d->memory + (size_t)n * PAGE_BYTES,
				.len = PAGE_BYTES,
				.buffer = d->buffer};
			ios.works[n] = (struct work){.sge = &ios.sges[n],
				.nsge = 1,
				.region = grant->grant[e].region,
				.offset = ((uint64_t)grant->grant[e].page + p) << PAGE_SHIFT};
		}
	assert_int_equal(n, IO_PAGES);
}

static inline void grant_pages(struct drive *d)
{
	struct test_rpc grant = {.call.done = test_rpc_done};

	grant.call.req.op = RPC_GRANT;
	grant.call.req.grant.want_pages = IO_PAGES;
	rpc_start(&d->threads[0], &grant.call);
	drive_until(d, grant.ndone);
	assert_int_equal(grant.status, 0);
	ios_place(d, &grant.rep.grant);
}

static inline void ios_start(struct drive *d, enum io_dir dir)
{
	for (unsigned i = 0; i < NIOS; i++) {
		ios.io[i] = (struct test_io){.call = {.dir = dir,
						     .works = &ios.works[i * IO_PAGES_EACH],
						     .nworks = IO_PAGES_EACH,
						     .done = test_io_done}};
		io_start(&d->threads[i % d->nthreads], &ios.io[i].call);
	}
}

static inline void ios_verify(void)
{
	for (unsigned i = 0; i < NIOS; i++) {
		assert_int_equal(ios.io[i].ndone, 1);
		assert_int_equal(ios.io[i].status, 0);
	}
}

static inline void fill(struct drive *d, uint32_t seed)
{
	for (size_t i = 0; i < IO_PAGES * PAGE_BYTES / sizeof(seed); i++)
		((uint32_t *)(void *)d->memory)[i] = (uint32_t)i * 2654435761U ^ seed;
}

/* Reads the pages again and compares them with fill()'s bytes. */
static inline void read_verify(struct drive *d, uint32_t seed)
{
	memset(d->memory, 0, IO_PAGES * PAGE_BYTES);
	ios_start(d, IO_READ);
	drive_until(d, count_done(ios.io) == NIOS);
	ios_verify();
	for (size_t i = 0; i < IO_PAGES * PAGE_BYTES / sizeof(seed); i++)
		assert_int_equal(
			((uint32_t *)(void *)d->memory)[i], (uint32_t)i * 2654435761U ^ seed);
}

#endif
