#include "daemon/ctl/bounded.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"

static int poll_until(int fd, int64_t until_ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int n;

	do
		n = poll(&pfd, 1, (int)max_i64(until_ms - now_ms(), 0));
	while (n < 0 && errno == EINTR);
	return n;
}

static void end(pid_t pid, int pidfd)
{
	int status;

	kill(pid, SIGKILL);
	poll_until(pidfd, now_ms() + 100);
	waitpid(pid, &status, WNOHANG);
}

static int await_end(pid_t pid, int64_t until_ms, int *status)
{
	autoclose int pidfd = pidfd_open(pid, 0);

	if (poll_until(pidfd, until_ms) <= 0) {
		end(pid, pidfd);
		return -ETIMEDOUT;
	}
	waitpid(pid, status, 0);
	return 0;
}

/* 0: this is the new process. */
static pid_t begin(void)
{
	pid_t parent = getpid(), pid;

	fflush(stdout);
	pid = fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	return 0;
}

int bounded_run(void (*run)(void *arg), void *arg, int limit_ms, int *status)
{
	pid_t pid = begin();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		run(arg);
		_exit(EXIT_SUCCESS);
	}
	return await_end(pid, now_ms() + limit_ms, status);
}

/* ---- with its text --------------------------------------------------------------------------- */

static _Noreturn void be_writer(void (*run)(void *arg), void *arg, int fd)
{
	autoclose int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	run(arg);
	fflush(stdout);
	_exit(EXIT_SUCCESS);
}

/* 0: the end came. */
static int fill(int fd, int64_t until_ms, size_t max, struct bounded_text *written)
{
	while (written->len < max) {
		ssize_t n;

		if (poll_until(fd, until_ms) <= 0)
			return -ETIMEDOUT;
		n = read(fd, written->text + written->len, max - written->len);
		if (n == 0)
			return 0;
		written->len += n > 0 ? (size_t)n : 0;
	}
	written->cut = true;
	return 0;
}

static int await_text(pid_t pid, int fd, int limit_ms, size_t max, struct bounded_text *written)
{
	int64_t until = now_ms() + limit_ms;
	int err = fill(fd, until, max, written);
	int end_err = await_end(pid, err || written->cut ? 0 : until, &written->status);

	written->text[written->len] = '\0';
	return written->cut ? 0 : err ? err : end_err;
}

int bounded_read(
	void (*run)(void *arg), void *arg, int limit_ms, size_t max, struct bounded_text *written)
{
	int fds[2], err;
	pid_t pid;

	*written = (struct bounded_text){.text = malloc(max + 1)};
	if (!written->text)
		return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC) != 0) {
		err = -errno;
		free(steal_ptr(&written->text));
		return err;
	}
	pid = begin();
	if (pid == 0)
		be_writer(run, arg, fds[1]);
	err = pid < 0 ? -errno : 0;
	close(fds[1]);
	if (!err)
		err = await_text(pid, fds[0], limit_ms, max, written);
	else
		free(steal_ptr(&written->text));
	close(fds[0]);
	return err;
}
