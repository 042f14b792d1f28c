#include "operation.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/util.h"

int operation_main(
	const char *program, const struct operation *operations, size_t n, int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < n; i++) {
		int err;

		if (strcmp(operations[i].name, argv[1]) != 0 || operations[i].nargs != argc - 2)
			continue;
		err = operations[i].run(argv + 2);
		if (err)
			fprintf(stderr, "%s: %s\n", program, strerrorname_np(-err));
		return err ? 1 : 0;
	}
	fprintf(stderr, "%s: no such operation, or not its arguments\n", program);
	return 2;
}

void operation_pattern(char *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (char)(i * 31 >> 3);
}

int operation_write(int fd, const char *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, buf, len);

		if (n < 0)
			return -errno;
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

int operation_compare(int fd, const char *expected, size_t len)
{
	autofree char *buf = malloc(len);
	size_t have = 0;

	while (buf && have < len) {
		ssize_t n = pread(fd, buf + have, len - have, (off_t)have);

		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		have += (size_t)n;
	}
	return buf && memcmp(buf, expected, len) == 0 ? 0 : -EILSEQ;
}

int64_t operation_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t operation_until(const char *seconds)
{
	return operation_now_ms() + strtol(seconds, NULL, 10) * 1000;
}

bool operation_begins_child(void)
{
	return fork() == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

int operation_wait_for(unsigned n)
{
	int err = 0, status;

	while (n--) {
		if (wait(&status) < 0)
			return -errno;
		if (!WIFEXITED(status))
			err = -ECHILD;
		else if (WEXITSTATUS(status))
			err = -WEXITSTATUS(status);
	}
	return err;
}
