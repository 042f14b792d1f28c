/* The session's client against the real server, over shm and tcp: calls are executed once, bytes
 * come back equal, and only the right clients are let in. The server is killed and restarted in the
 * middle of work.
 *
 * The server is $RMEMFS_BIN/rmemfs-server, else the one beside this program. */
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
#include "common/base/log.h"
#include "daemon/remote/session_handover.h"
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

static void server_program(char *path, size_t len)
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

static unsigned free_port(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	return ntohs(in.sin_port);
}

static int notify_socket(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	unlink(path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

static void server_exec(const char *notify)
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

static void server_start(void)
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

static void write_key(void)
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

static void server_init(void **state)
{
	sv = (struct server){.kind = *(const enum transport_kind *)*state};
	memory_dir(sv.dir, sizeof(sv.dir));
	sv.port = free_port();
	write_key();
	server_start();
}

static int server_end(int sig)
{
	int status;

	kill(sv.pid, sig);
	assert_int_equal(waitpid(sv.pid, &status, 0), sv.pid);
	sv.pid = 0;
	return status;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void server_forget_memory(void)
{
	char memory[96];

	snprintf(memory, sizeof(memory), "%s/memory", sv.dir);
	assert_int_equal(nftw(memory, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* Runs after each case, also after a failed one. */
static int server_fini(void **state)
{
	int status = sv.pid ? server_end(SIGTERM) : 0;

	nftw(sv.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return status;
}

static struct session_options options_for(const char *mountpoint)
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

static void drive_begin(struct drive *d)
{
	struct session_options options = options_for("/mnt/a");

	if (drive_open(d, &options) != 0 || drive_connect(d) != 0)
		fail_msg("%s", d->why);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct test_rpc calls[500], lookups[500];

static void creates_start(struct drive *d, const char *prefix)
{
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++) {
		test_rpc_create(&calls[i], prefix, i);
		rpc_start(&d->threads[i % d->nthreads], &calls[i].call);
	}
}

/* All creates succeeded (a repeated one would say EEXIST), and their files are there. */
static void creates_verify(struct drive *d)
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

static void ios_place(struct drive *d, const struct rpc_grant_reply *grant)
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

static void grant_pages(struct drive *d)
{
	struct test_rpc grant = {.call.done = test_rpc_done};

	grant.call.req.op = RPC_GRANT;
	grant.call.req.grant.want_pages = IO_PAGES;
	rpc_start(&d->threads[0], &grant.call);
	drive_until(d, grant.ndone);
	assert_int_equal(grant.status, 0);
	ios_place(d, &grant.rep.grant);
}

static void ios_start(struct drive *d, enum io_dir dir)
{
	for (unsigned i = 0; i < NIOS; i++) {
		ios.io[i] = (struct test_io){.call = {.dir = dir,
						     .works = &ios.works[i * IO_PAGES_EACH],
						     .nworks = IO_PAGES_EACH,
						     .done = test_io_done}};
		io_start(&d->threads[i % d->nthreads], &ios.io[i].call);
	}
}

static void ios_verify(void)
{
	for (unsigned i = 0; i < NIOS; i++) {
		assert_int_equal(ios.io[i].ndone, 1);
		assert_int_equal(ios.io[i].status, 0);
	}
}

static void fill(struct drive *d, uint32_t seed)
{
	for (size_t i = 0; i < IO_PAGES * PAGE_BYTES / sizeof(seed); i++)
		((uint32_t *)(void *)d->memory)[i] = (uint32_t)i * 2654435761U ^ seed;
}

/* Reads the pages again and compares them with fill()'s bytes. */
static void read_verify(struct drive *d, uint32_t seed)
{
	memset(d->memory, 0, IO_PAGES * PAGE_BYTES);
	ios_start(d, IO_READ);
	drive_until(d, count_done(ios.io) == NIOS);
	ios_verify();
	for (size_t i = 0; i < IO_PAGES * PAGE_BYTES / sizeof(seed); i++)
		assert_int_equal(
			((uint32_t *)(void *)d->memory)[i], (uint32_t)i * 2654435761U ^ seed);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void rpcs_and_io__come_back(void **state)
{
	struct drive d;

	server_init(state);
	drive_begin(&d);
	creates_start(&d, "file");
	drive_until(&d, count_done(calls) == ARRAY_SIZE(calls));
	creates_verify(&d);
	grant_pages(&d);
	fill(&d, 1);
	ios_start(&d, IO_WRITE);
	drive_until(&d, count_done(ios.io) == NIOS);
	ios_verify();
	read_verify(&d, 1);
	drive_stop(&d, 5000);
	drive_close(&d);
}

/* The kill comes when some calls are answered and the others are anywhere. */
static void server_killed__everything_is_done_once(void **state)
{
	struct drive d;

	server_init(state);
	drive_begin(&d);
	grant_pages(&d);
	for (uint32_t round = 0; round < 3; round++) {
		char prefix[16];

		snprintf(prefix, sizeof(prefix), "%u-", round);
		fill(&d, round);
		ios_start(&d, IO_WRITE);
		creates_start(&d, prefix);
		drive_until(&d, count_done(calls) >= 100 * round);
		server_end(SIGKILL);
		server_start();
		drive_until(
			&d, count_done(ios.io) == NIOS && count_done(calls) == ARRAY_SIZE(calls));
		ios_verify();
		read_verify(&d, round);
		creates_verify(&d);
	}
	drive_stop(&d, 5000);
	drive_close(&d);
}

static void store_gone__session_is_lost(void **state)
{
	struct drive d;

	server_init(state);
	drive_begin(&d);
	server_end(SIGKILL);
	server_forget_memory();
	creates_start(&d, "file");
	server_start();
	drive_until(&d, count_done(calls) == ARRAY_SIZE(calls));
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++)
		assert_true(calls[i].status == 0 || calls[i].status == -ESTALE);
	assert_int_equal(calls[ARRAY_SIZE(calls) - 1].status, -ESTALE);
	assert_true(session_lost(d.session));
	drive_close(&d);
}

static void second_mount__is_told_who_has_the_export(void **state)
{
	struct session_options options;
	struct drive d, other;

	server_init(state);
	drive_begin(&d);
	options = options_for("/mnt/b");
	options.connect_timeout_ms = 300;
	assert_int_equal(drive_open(&other, &options), 0);
	assert_int_equal(drive_connect(&other), -EBUSY);
	assert_non_null(strstr(other.why, ":/mnt/a (pid "));
	drive_close(&other);
	drive_stop(&d, 5000);
	drive_close(&d);
}

static void second_mount__gets_in_after_the_first_has_ended(void **state)
{
	struct drive d, other;

	server_init(state);
	drive_begin(&d);
	drive_stop(&d, 5000);
	drive_close(&d);
	drive_begin(&other);
	drive_stop(&other, 5000);
	drive_close(&other);
}

static void unknown_export__is_refused_alone(void **state)
{
	struct session_options options;
	struct drive d;

	server_init(state);
	options = options_for("/mnt/a");
	snprintf(options.source.export_name, sizeof(options.source.export_name), "nope");
	assert_int_equal(drive_open(&d, &options), 0);
	assert_int_equal(drive_connect(&d), -EACCES);
	assert_non_null(strstr(d.why, "nope"));
	assert_null(strstr(d.why, "default"));
	drive_close(&d);
}

/* Meanwhile both threads read. */
static void set_read_only(struct drive *d, bool read_only)
{
	ios_start(d, IO_READ);
	session_set_read_only(d->session, read_only);
	assert_false(session_has_keys(d->session));
	drive_until(d, session_has_keys(d->session) && count_done(ios.io) == NIOS);
	ios_verify();
}

static void expect_all(struct drive *d, const char *prefix, int status, int io_status)
{
	creates_start(d, prefix);
	ios_start(d, IO_WRITE);
	drive_until(d, count_done(calls) == ARRAY_SIZE(calls) && count_done(ios.io) == NIOS);
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++)
		assert_int_equal(calls[i].status, status);
	for (unsigned i = 0; i < NIOS; i++)
		assert_int_equal(ios.io[i].status, io_status);
}

static void read_only__is_changed_on_all_channels(void **state)
{
	struct drive d;

	server_init(state);
	drive_begin(&d);
	grant_pages(&d);
	fill(&d, 1);
	expect_all(&d, "before", 0, 0);
	set_read_only(&d, true);
	fill(&d, 2);
	expect_all(&d, "meanwhile", -EROFS, -EIO);
	read_verify(&d, 1);
	set_read_only(&d, false);
	fill(&d, 3);
	expect_all(&d, "after", 0, 0);
	read_verify(&d, 3);
	drive_stop(&d, 5000);
	drive_close(&d);
}

static void read_only__is_changed_when_the_server_is_back(void **state)
{
	struct drive d;
	int64_t until;

	server_init(state);
	drive_begin(&d);
	drive_until(&d, session_has_keys(d.session));
	server_end(SIGKILL);
	session_set_read_only(d.session, true);
	until = now_ms() + 300;
	drive_until(&d, now_ms() > until);
	assert_false(session_has_keys(d.session));
	server_start();
	drive_until(&d, session_has_keys(d.session));
	creates_start(&d, "file");
	drive_until(&d, count_done(calls) == ARRAY_SIZE(calls));
	assert_int_equal(calls[0].status, -EROFS);
	drive_stop(&d, 5000);
	drive_close(&d);
}

/* As in another mount namespace. */
static void remount__ends_no_mount_that_lives(void **state)
{
	struct session_options options;
	struct drive d, again;

	server_init(state);
	drive_begin(&d);
	options = options_for("/mnt/a");
	options.connect_timeout_ms = 500;
	assert_int_equal(drive_open(&again, &options), 0);
	assert_int_equal(drive_connect(&again), -EBUSY);
	drive_close(&again);
	creates_start(&d, "file");
	drive_until(&d, count_done(calls) == ARRAY_SIZE(calls));
	creates_verify(&d);
	drive_stop(&d, 5000);
	drive_close(&d);
}

/* Its channels end as those of a killed process, without BYE; the lease is longer than mounting
 * waits. */
static void remount__takes_over_what_a_dead_daemon_left(void **state)
{
	struct drive d, again;

	server_init(state);
	drive_begin(&d);
	drive_close(&d);
	drive_begin(&again);
	drive_stop(&again, 5000);
	drive_close(&again);
}

/* ---- in another process ---------------------------------------------------------------------- */

/* Granted pages, and the state of the session: one process tells them the other. */
static struct rpc_grant_reply moved_pages;
static struct session_state moved;
static int moved_owner;

static void rest(struct drive *d)
{
	drive_until(d, remote_connected(&d->threads[0]) && remote_connected(&d->threads[1]) &&
			       remote_has_no_calls(&d->threads[0]) &&
			       remote_has_no_calls(&d->threads[1]));
	for (unsigned i = 0; i < d->nthreads; i++)
		remote_rest(&d->threads[i]);
	moved_owner = session_describe(d->session, d->threads, &moved);
	assert_true(moved_owner >= 0);
}

static void work_before(struct drive *d)
{
	struct test_rpc grant = {.call.done = test_rpc_done};

	grant.call.req.op = RPC_GRANT;
	grant.call.req.grant.want_pages = IO_PAGES;
	rpc_start(&d->threads[0], &grant.call);
	drive_until(d, grant.ndone);
	moved_pages = grant.rep.grant;
	ios_place(d, &moved_pages);
	fill(d, 1);
	expect_all(d, "before", 0, 0);
}

static void take(struct drive *d, const struct transport_address *address)
{
	struct session_options options = options_for("/mnt/a");

	options.taken = address;
	options.instance = 1; /* the session has another one, which the description tells */
	assert_int_equal(drive_open(d, &options), 0);
	assert_int_equal(session_adopt(d->session, d->threads, &moved, dup(moved_owner), d->why,
				 sizeof(d->why)),
		0);
	if (drive_connect(d) != 0)
		fail_msg("%s", d->why);
	ios_place(d, &moved_pages);
}

static void work_after(struct drive *d)
{
	read_verify(d, 1);
	fill(d, 2);
	expect_all(d, "after", 0, 0);
	read_verify(d, 2);
}

/* Runs in a process of its own. A failed assertion there ends it by exit(3). */
static void in_child(struct drive *old, void (*fn)(struct drive *d))
{
	const struct transport_address *address = session_address(old->session);
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct drive d;

		take(&d, address);
		fn(&d);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void work_and_stop(struct drive *d)
{
	work_after(d);
	drive_stop(d, 5000);
}

/* The first process lives, with all that it has mapped, and the session is not its own any more. */
static void another_process__goes_on_with_the_session(void **state)
{
	struct drive d;

	server_init(state);
	drive_begin(&d);
	work_before(&d);
	rest(&d);
	in_child(&d, work_and_stop);
	for (unsigned i = 0; i < d.nthreads; i++)
		remote_resume(&d.threads[i]);
	drive_until(&d, session_lost(d.session));
	drive_close(&d);
}

static void do_nothing(struct drive *d)
{
}

static void another_process__that_ends__leaves_the_session(void **state)
{
	struct drive d;

	server_init(state);
	drive_begin(&d);
	work_before(&d);
	rest(&d);
	in_child(&d, do_nothing);
	for (unsigned i = 0; i < d.nthreads; i++)
		remote_resume(&d.threads[i]);
	work_after(&d);
	drive_stop(&d, 5000);
	drive_close(&d);
}

static void adopt__of_another_kind_of_mount__is_refused(void **state)
{
	struct session_options options;
	struct session_state other;
	struct drive d, again;

	server_init(state);
	drive_begin(&d);
	rest(&d);
	options = options_for("/mnt/a");
	options.taken = session_address(d.session);
	assert_int_equal(drive_open(&again, &options), 0);
#define refuses(change)                                                                  \
	do {                                                                             \
		other = moved;                                                           \
		change;                                                                  \
		assert_int_equal(session_adopt(again.session, again.threads, &other, -1, \
					 again.why, sizeof(again.why)),                  \
			-EINVAL);                                                        \
	} while (0)
	refuses(other.sharing = true);
	refuses(other.exclusive = true);
	refuses(other.nchannels--);
	refuses(other.nchannels = IO_THREADS_MAX + 1);
	refuses(other.id = 0);
	refuses(other.limits.max_work_bytes = 0);
	refuses(other.slots[1].nslots = SLOTS_MAX + 1);
	refuses(other.slots[1].nreserved = other.slots[1].nslots);
	drive_close(&again);
	for (unsigned i = 0; i < d.nthreads; i++)
		remote_resume(&d.threads[i]);
	drive_stop(&d, 5000);
	drive_close(&d);
}

int main(void)
{
	static enum transport_kind shm = TRANSPORT_SHM, tcp = TRANSPORT_TCP;
#define over(kind, test) cmocka_unit_test_prestate_setup_teardown(test, NULL, server_fini, &(kind))
	const struct CMUnitTest tests[] = {
		over(shm, rpcs_and_io__come_back),
		over(tcp, rpcs_and_io__come_back),
		over(shm, server_killed__everything_is_done_once),
		over(tcp, server_killed__everything_is_done_once),
		over(shm, store_gone__session_is_lost),
		over(tcp, store_gone__session_is_lost),
		over(shm, second_mount__is_told_who_has_the_export),
		over(tcp, second_mount__is_told_who_has_the_export),
		over(shm, read_only__is_changed_on_all_channels),
		over(tcp, read_only__is_changed_on_all_channels),
		over(tcp, read_only__is_changed_when_the_server_is_back),
		over(tcp, unknown_export__is_refused_alone),
		/* Not over shm: there a session whose process lives, as ours does, does not end. */
		over(tcp, second_mount__gets_in_after_the_first_has_ended),
		over(tcp, remount__ends_no_mount_that_lives),
		over(tcp, remount__takes_over_what_a_dead_daemon_left),
		over(shm, another_process__goes_on_with_the_session),
		over(tcp, another_process__goes_on_with_the_session),
		over(shm, another_process__that_ends__leaves_the_session),
		over(tcp, another_process__that_ends__leaves_the_session),
		over(tcp, adopt__of_another_kind_of_mount__is_refused),
	};

	log_init("test_daemon_session", LOG_LEVEL_INFO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
