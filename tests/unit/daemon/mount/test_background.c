/* Going to the background: where log lines go from then on, and what the caller is told.
 *
 * A listener in place of journald runs in a mount namespace of the test, since its socket has a
 * fixed path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/mount/background.h"
#include "daemon/mount/exit_status.h"
#include "tests/unit/own_mounts.h"

static char dir[] = "/tmp/rmemfs-test-background.XXXXXX";
static char file[64];

static int make_dir(void **state)
{
	snprintf(file, sizeof(file), "%s/stderr", mkdtemp(dir));
	return 0;
}

static int remove_dir(void **state)
{
	unlink(file);
	return rmdir(dir);
}

/* Where the caller's standard error goes. */
static void redirect_stderr(void)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(101);
}

static void read_all(int fd, char *text, size_t len)
{
	size_t have = 0;
	ssize_t n;

	while ((n = read(fd, text + have, len - 1 - have)) > 0)
		have += (size_t)n;
	text[have] = '\0';
	close(fd);
}

static void read_stderr(char *text, size_t len)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	read_all(fd, text, len);
}

/* The exit status of a process that forks to the background. why: NULL if it starts well there. */
static int run_in_background(const char *why, int stderr_fd)
{
	pid_t caller = fork();
	int status = -1, report;

	if (caller != 0) {
		waitpid(caller, &status, 0);
		return WIFEXITED(status) ? WEXITSTATUS(status) : 102;
	}
	if (stderr_fd < 0)
		redirect_stderr();
	else
		dup2(stderr_fd, STDERR_FILENO);
	log_init("rmemfs", LOG_LEVEL_INFO);
	report = background_fork();
	if (why) {
		background_failed(report, why);
		_exit(1);
	}
	/* Written before the caller ends, which waits for background_ready(). */
	background_leave(true);
	background_ready(report);
	log_notice("hello");
	_exit(0);
}

/* ---- a journal of our own -------------------------------------------------------------------- */

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	_exit(103);
}

static int listen_as_journal(void)
{
	struct sockaddr_un un = {AF_UNIX, "/run/systemd/journal/stdout"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	need(fd >= 0, "socket");
	need(own_mounts(), "mounts of its own");
	need(mount("run", "/run", "tmpfs", 0, NULL) == 0, "tmpfs at /run");
	need(mkdir("/run/systemd", 0755) == 0, "mkdir");
	need(mkdir("/run/systemd/journal", 0755) == 0, "mkdir");
	need(bind(fd, (const struct sockaddr *)&un, sizeof(un)) == 0, "bind");
	need(listen(fd, 8) == 0, "listen");
	return fd;
}

/* Runs as a process group leader in a namespace of its own; its status is the test's. */
static int check_journal(void)
{
	/* Name, unit, level, whether lines have prefixes, three options that are off: journald's
	 * protocol.
	 */
	static const char expected[] = "rmemfs\n\n6\n1\n0\n0\n0\n<5>hello\n";
	int listener = listen_as_journal(), pipefd[2];
	char text[256], said[256];

	/* A pipe as standard error is left alone; its reader sees the end while the daemon runs. */
	need(pipe(pipefd) == 0, "pipe");
	if (run_in_background(NULL, pipefd[1]) != 0)
		return 1;
	close(pipefd[1]);
	read_all(pipefd[0], said, sizeof(said));
	read_all(accept(listener, NULL, NULL), text, sizeof(text));
	if (said[0] != '\0' || strcmp(text, expected) != 0) {
		fprintf(stderr, "standard error: %s\njournal: %s\n", said, text);
		return 2;
	}
	return 0;
}

static void ready__logs_to_the_journal_with_levels(void **state)
{
	int status = -1;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	pid = fork();
	if (pid == 0)
		_exit(check_journal());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- a file, and failure --------------------------------------------------------------------- */

static bool is_line_for_people(void)
{
	char text[256];

	read_stderr(text, sizeof(text));
	return strncmp(text, "rmemfs ", 7) == 0 && strstr(text, " notice: hello\n");
}

static void ready__keeps_a_file_and_its_format(void **state)
{
	char text[256] = "";

	unsetenv("JOURNAL_STREAM");
	assert_int_equal(run_in_background(NULL, -1), 0);
	/* The daemon writes that line after its caller has ended. */
	for (unsigned i = 0; i < 500 && !strchr(text, '\n'); i++) {
		read_stderr(text, sizeof(text));
		usleep(10 * 1000);
	}
	assert_true(is_line_for_people());
}

static void failed__is_told_by_the_caller(void **state)
{
	char text[256];

	unsetenv("JOURNAL_STREAM");
	assert_int_equal(run_in_background("no server at 192.0.2.1", -1), MOUNT_FAILED);
	read_stderr(text, sizeof(text));
	assert_string_equal(text, "rmemfs: no server at 192.0.2.1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ready__logs_to_the_journal_with_levels),
		cmocka_unit_test(ready__keeps_a_file_and_its_format),
		cmocka_unit_test(failed__is_told_by_the_caller),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
