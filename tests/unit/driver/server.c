/* server.c - the server's process, for tests. */
#include "tests/unit/driver/client.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "common/transport/address.h"
#include "server/base/exit_status.h"
#include "common/base/clock.h"
#include "common/base/util.h"
#include "tests/unit/memory_dir.h"

extern char **environ;

/* ---- places ---------------------------------------------------------------------------------- */

/* Reserves a port for repeated starts of a server: until *fd is closed no other program gets it. A
 * listener that allows the reuse of addresses can bind it, since this socket allows that, too. */
static unsigned reserve_port(int *fd)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	const int one = 1;

	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(*fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	assert_int_equal(getsockname(*fd, (struct sockaddr *)&addr, &len), 0);
	return ntohs(addr.sin_port);
}

static void choose_listen(struct test_server *s)
{
	const char *host = getenv("RMEMFS_TEST_ADDRESS");

	snprintf(s->socket, sizeof(s->socket), "shm:%s/socket", s->dir);
	if (s->kind == TRANSPORT_SHM)
		memcpy(s->listen, s->socket, sizeof(s->listen));
	else if (s->kind == TRANSPORT_TCP)
		snprintf(s->listen, sizeof(s->listen), "tcp:127.0.0.1:%u",
			reserve_port(&s->port_fd));
	else
		snprintf(s->listen, sizeof(s->listen), "verbs:%s:%u", host ? host : "10.9.0.1",
			reserve_port(&s->port_fd));
}

static void open_notify(struct test_server *s)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	snprintf(s->notify, sizeof(s->notify), "%s/notify", s->dir);
	memcpy(addr.sun_path, s->notify, strlen(s->notify));
	s->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->notify_fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
}

/* settings: of the export's client; NULL: the command line names export and client. */
static void write_config(const struct test_server *s, const char *settings)
{
	FILE *f = fopen(s->config, "we");

	assert_non_null(f);
	/* Little metadata, since each of many starts allocates it. */
	fprintf(f,
		"lease_time = %u;\n"
		"peer_timeout = %u;\n"
		"region_size = \"32MiB\";\n"
		"metadata_reserve = \"8MiB\";\n",
		s->lease_time, s->peer_timeout);
	if (settings)
		fprintf(f,
			"exports = ( { name = \"default\"; size = \"%uMiB\"; clients = (\n"
			"  { name = \"test\"; keys = \"%s\"; %s } ) } );\n",
			s->mib, s->key_file, settings);
	assert_int_equal(fclose(f), 0);
}

void server_configure(struct test_server *s, const char *settings)
{
	s->configured = true;
	write_config(s, settings);
}

static void write_key(struct test_server *s)
{
	autoclose int fd = open(s->key_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char why[128];

	assert_true(fd >= 0);
	assert_int_equal(auth_key_generate("test", &s->key, why, sizeof(why)), 0);
	assert_int_equal(auth_key_write(&s->key, fd), 0);
}

void server_prepare(
	struct test_server *s, enum transport_kind kind, unsigned lease_time, unsigned peer_timeout)
{
	*s = (struct test_server){.kind = kind,
		.export = "default:64MiB",
		.mib = 64,
		.lease_time = lease_time,
		.peer_timeout = peer_timeout,
		.port_fd = -1,
		.port_too_fd = -1};
	memory_dir(s->dir, sizeof(s->dir));
	snprintf(s->memory, sizeof(s->memory), "%s/memory", s->dir);
	snprintf(s->config, sizeof(s->config), "%s/server.conf", s->dir);
	snprintf(s->log, sizeof(s->log), "%s/log", s->dir);
	snprintf(s->key_file, sizeof(s->key_file), "%s/test.key", s->dir);
	write_key(s);
	write_config(s, NULL);
	choose_listen(s);
	open_notify(s);
}

void server_init_timed(
	struct test_server *s, enum transport_kind kind, unsigned lease_time, unsigned peer_timeout)
{
	server_prepare(s, kind, lease_time, peer_timeout);
	server_start(s);
}

void server_init(struct test_server *s, enum transport_kind kind)
{
	server_init_timed(s, kind, 1, 3600);
}

void server_listen_too(struct test_server *s, struct transport_address *address)
{
	char why[256];

	server_stop(s);
	snprintf(s->listen_too, sizeof(s->listen_too), "tcp:127.0.0.1:%u",
		reserve_port(&s->port_too_fd));
	assert_int_equal(address_parse_listen(s->listen_too, address, why, sizeof(why)), 0);
	server_start(s);
}

void server_export_too(struct test_server *s, const char *export)
{
	server_stop(s);
	snprintf(s->export_too, sizeof(s->export_too), "%s", export);
	server_start(s);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

void server_fini(struct test_server *s)
{
	if (s->pid)
		server_stop(s);
	if (s->port_too_fd >= 0)
		close(s->port_too_fd);
	if (s->port_fd >= 0)
		close(s->port_fd);
	close(s->notify_fd);
	nftw(s->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- the process ----------------------------------------------------------------------------- */

static const char *program(void)
{
	static char path[512];
	const char *bin = getenv("RMEMFS_BIN");

	snprintf(path, sizeof(path), "%s/rmemfs-server", bin ? bin : RMEMFS_BIN_DIR);
	return path;
}

static pid_t run(const struct test_server *s, const char *const *argv)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(
		&actions, STDERR_FILENO, s->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert_int_equal(
		posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

static pid_t spawn(const struct test_server *s, const char *export)
{
	const char *argv[18] = {
		program(), "-c", s->config, "--memory-dir", s->memory, "--listen", s->listen};
	unsigned n = 7;
	pid_t pid;

	if (!s->configured) {
		argv[n++] = "--export";
		argv[n++] = export;
		argv[n++] = "--key";
		argv[n++] = s->key_file;
	}
	if (s->kind != TRANSPORT_SHM) {
		argv[n++] = "--listen";
		argv[n++] = s->socket;
	}
	if (s->listen_too[0]) {
		argv[n++] = "--listen";
		argv[n++] = s->listen_too;
	}
	if (s->export_too[0]) {
		argv[n++] = "--export";
		argv[n++] = s->export_too;
	}
	setenv("NOTIFY_SOCKET", s->notify, 1);
	pid = run(s, argv);
	unsetenv("NOTIFY_SOCKET");
	return pid;
}

static void print_log(const struct test_server *s)
{
	char line[512];
	FILE *f = fopen(s->log, "re");

	while (f && fgets(line, sizeof(line), f))
		print_message("%s", line);
	if (f)
		fclose(f);
}

static void wait_ready(struct test_server *s)
{
	autoclose int pidfd = pidfd_open(s->pid, 0);
	char text[256];

	for (;;) {
		struct pollfd fds[] = {
			{.fd = s->notify_fd, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
		ssize_t n;

		if (poll(fds, 2, WAIT_MS) <= 0 || !(fds[0].revents & POLLIN)) {
			print_log(s);
			fail_msg("the server did not become ready");
		}
		n = recv(s->notify_fd, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = '\0';
		if (strstr(text, "READY=1"))
			return;
	}
}

void server_start(struct test_server *s)
{
	s->pid = spawn(s, s->export);
	wait_ready(s);
}

void server_reload(struct test_server *s)
{
	assert_int_equal(kill(s->pid, SIGHUP), 0);
	wait_ready(s);
}

/* Returns the exit status. Kills a process that does not end, which the status shows. */
static int wait_bounded(pid_t pid)
{
	autoclose int fd = pidfd_open(pid, 0);
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int status;

	assert_true(fd >= 0);
	if (poll(&pfd, 1, WAIT_MS) != 1)
		kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int wait_end(struct test_server *s)
{
	int status = wait_bounded(s->pid);

	s->pid = 0;
	return status;
}

void server_kill(struct test_server *s)
{
	assert_int_equal(kill(s->pid, SIGKILL), 0);
	assert_true(WIFSIGNALED(wait_end(s)));
}

void server_stop(struct test_server *s)
{
	assert_int_equal(kill(s->pid, SIGTERM), 0);
	server_wait(s);
}

void server_wait(struct test_server *s)
{
	int status = wait_end(s);

	if (status)
		print_log(s);
	if (WIFSIGNALED(status))
		fail_msg("the server ended by signal %d", WTERMSIG(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

void server_heard(struct test_server *s)
{
	char text[256];

	while (recv(s->notify_fd, text, sizeof(text), MSG_DONTWAIT) > 0)
		continue;
}

void server_check(struct test_server *s)
{
	const char *argv[] = {program(), "--check", s->memory, NULL};

	server_stop(s);
	s->pid = run(s, argv);
	server_wait(s);
	server_heard(s);
	server_start(s);
}

void server_read_log(const struct test_server *s, char *log_text, size_t size)
{
	autoclose int fd = open(s->log, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, log_text, size - 1);

	log_text[n > 0 ? n : 0] = '\0';
}

bool server_logged(const struct test_server *s, const char *words)
{
	char text[LOG_BYTES];

	server_read_log(s, text, sizeof(text));
	return strstr(text, words);
}

void server_logs(const struct test_server *s, const char *words)
{
	int64_t until = now_ms() + WAIT_MS;
	char text[LOG_BYTES];

	while (!server_logged(s, words)) {
		if (now_ms() >= until) {
			server_read_log(s, text, sizeof(text));
			fail_msg("'%s' does not say '%s'", text, words);
		}
		usleep(10000);
	}
}

void server_refuses(struct test_server *s, const char *export, const char *words)
{
	char text[LOG_BYTES];
	int status;

	assert_int_equal(truncate(s->log, 0), 0);
	status = wait_bounded(spawn(s, export));
	assert_true(WIFEXITED(status));
	assert_true(WEXITSTATUS(status) == SERVER_REFUSED || WEXITSTATUS(status) == SERVER_FAILED);
	server_read_log(s, text, sizeof(text));
	if (!strstr(text, words))
		fail_msg("'%s' does not say '%s'", text, words);
}
