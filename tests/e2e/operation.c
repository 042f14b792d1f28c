#include "operation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
